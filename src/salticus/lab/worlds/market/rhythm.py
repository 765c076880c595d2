"""Local time: which hour of the log a merchant's midnight is, and which days are lively."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from salticus.lab.worlds.market.geography import COUNTRIES, EVERYWHERE, ZONES
from salticus.lab.worlds.market.presets import Preset
from salticus.types import Floats, Ints

_NOON = timedelta(hours=12)

_OFFICE = np.array([1.0] * 6 + [1.5, 2, 3, 4, 4, 4, 3.5, 3.5, 4, 3.5, 3, 2.5, 2, 2, 2, 1.5, 1.5, 1])
_EVENING = np.array([2.0, 1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7, 8, 9, 9, 7, 4])

PRICING = _OFFICE / _OFFICE.sum()
"""When people change prices: share of each local hour."""

SHOPPING = _EVENING / _EVENING.sum()
"""When people shop: share of each local hour."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """The local days that a log touches: one before its first UTC day to one after its last.

    `offset` is local time minus UTC in minutes, by zone and local day, as of noon; `lively` is the
    factor of the change rate, by country and local day. Mean over a plain week: 1.
    """

    days: int
    offset: Ints
    lively: Floats

    @property
    def hours(self) -> int:
        """UTC hours of the log."""
        return 24 * self.days

    def utc_hour(self, zone: Ints, day: Ints, hour: Ints) -> Ints:
        """The hour of the log at whose start a change at a local day and hour is seen.

        Zones that differ from UTC by half an hour are seen at the next whole hour.
        """
        known = np.minimum(day, self.days + 1)
        minutes = 60 * (24 * (day - 1) + hour) - self.offset[zone, known]
        return -(-minutes // 60)


def calendar_of(preset: Preset, days: int) -> Calendar:
    """The calendar of a log of so many UTC days from the preset's start."""
    noons = [preset.start + _NOON + timedelta(days=d - 1) for d in range(days + 2)]
    offset = np.array([[_minutes(zone, noon) for noon in noons] for zone in ZONES], dtype=np.int64)
    week = np.array([preset.weekend if noon.weekday() >= 5 else 1.0 for noon in noons])
    week *= 7 / (5 + 2 * preset.weekend)
    dates = [f"{noon:%m-%d}" for noon in noons]
    sales = [[day in {*country.holidays, *EVERYWHERE} for day in dates] for country in COUNTRIES]
    return Calendar(days, offset, week * np.where(sales, preset.holiday, 1.0))


def _minutes(zone: str, noon: datetime) -> int:
    local = noon.replace(tzinfo=ZoneInfo(zone))
    offset = local.utcoffset()
    assert offset is not None  # zones of the database always know theirs
    return offset // timedelta(minutes=1)
