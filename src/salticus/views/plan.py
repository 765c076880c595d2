"""The visits that a crawl would make next, without making them."""

from __future__ import annotations

from datetime import datetime

import msgspec
import numpy as np

from salticus.crawl.opening import Crawl
from salticus.types import Purpose, moment


class PlannedVisit(msgspec.Struct, frozen=True):
    """A visit of the coming tick: when it is due, why it was chosen, the probability of that
    choice, and the chance that it finds a change (None = nobody said)."""

    url: str
    due: datetime
    purpose: str
    propensity: float
    chance: float | None


async def plan(crawl: Crawl) -> list[PlannedVisit]:
    """The visits of the coming tick by the time at which they are due, as a crawler that started
    now would plan them. Nothing is fetched or stored."""
    standing = await crawl.foreseeing()
    standing.study()
    visits = standing.plan()
    urls = {target.page: target.url for target in await crawl.store.targets(visits.page)}
    return [
        PlannedVisit(
            url=urls[page],
            due=moment(due),
            purpose=Purpose(int(purpose)).label,
            propensity=float(propensity),
            chance=None if np.isnan(chance) else float(chance),
        )
        for page, due, purpose, propensity, chance in zip(
            visits.page.tolist(),
            visits.due,
            visits.purpose,
            visits.propensity,
            visits.chance,
            strict=True,
        )
    ]
