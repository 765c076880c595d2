"""What the first 10 % and the other 90 % of InstaCrawl requests buy (Han 2019, Fig. 10)."""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from salticus.exchange.truth import read_truth
from salticus.lab.simulate.requests import WINDOW, read_requests, replay_uniform
from salticus.lab.studies.calibration.market import MarketHistory
from salticus.types import moment

DAYS = 45  # 1 August to the middle of September
SETTLED = 5  # days; "the impact from initialization fades away" on 5 August


def request_lifts(market: MarketHistory, *, seed: int) -> dict[str, float]:
    """Mean freshness gained from sending none to 10 % of requests, and from 10 % to all.

    All copies are in sync 45 days before the end of the log (or in its middle, if it is shorter
    than 90 days); the mean is over windows of 6 h from the sixth day on.
    """
    days = min(DAYS, (market.end - market.start) // 48)
    end = moment(np.datetime64(market.end, "h"))
    start = end - timedelta(days=days)
    requests = read_requests(market.log, read_truth(market.log), start, end, seed=seed)
    settled = min(SETTLED, days // 2) * timedelta(days=1) // WINDOW
    none, some, every = (
        np.mean([f for f in row["windows"][settled:] if f is not None])
        for row in replay_uniform(requests, (0.0, 0.1, 1.0), start, end)
    )
    return {"lift_first": float(some - none), "lift_rest": float(every - some)}
