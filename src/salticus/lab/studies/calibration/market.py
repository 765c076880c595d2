"""A log as the calibration reads it: its pages, what was there to see, what its crawler saw."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.features.history import ChangeHistory, full_history, partial_history
from salticus.types import Bools

if TYPE_CHECKING:  # polars takes a tenth of a second to import, so it is imported where used
    import polars as pl

UNIFORM, CLICK = "uniform", "click"


@dataclass(frozen=True, slots=True)
class MarketHistory:
    """Pages (rows as in `pages`), the full and the partial history, and the hour after the last."""

    log: Log
    pages: pl.DataFrame
    full: ChangeHistory
    partial: ChangeHistory
    end: int

    @property
    def start(self) -> int:
        return self.full.start

    def stratum(self, name: str) -> Bools:
        """Which pages were sampled so."""
        return (self.pages["stratum"] == name).fill_null(False).to_numpy()


def read_market(log: Log) -> MarketHistory:
    """Read what the statistics need; InputError names what is absent."""
    columns = ("page_id", "category", "stratum")
    known = log.scan("pages", *columns).select(columns).collect()
    full = full_history(known, log.scan("values"))
    partial = partial_history(known, log.scan("visits", "changed"), like=full)
    end = last_hour(log, full)
    return MarketHistory(log, known, until(full, end), until(partial, end), end)


def last_hour(log: Log, history: ChangeHistory) -> int:
    """The hour after the log's last, by its `span` or else by its last change."""
    try:
        ends = log.about.ends()
    except ValueError as error:
        raise InputError(f"{log.folder / 'log.json'}: `span`: {error}") from None
    if ends is None:
        return int(history.hour.max(initial=history.start)) + 1
    return -int(-(ends[1] - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(hours=1))


def until(history: ChangeHistory, end: int) -> ChangeHistory:
    """The history without what comes at the end or after it."""
    early = history.hour < end
    return replace(
        history,
        gone=np.minimum(history.gone, end),
        page=history.page[early],
        hour=history.hour[early],
    )
