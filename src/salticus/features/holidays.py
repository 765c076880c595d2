"""The merchant's own clock and calendar: local hours by time zone, public holidays by country."""

from __future__ import annotations

import warnings
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from salticus.types import Floats32

_EPOCH = date(1970, 1, 1)
UNKNOWN_ZONE = np.iinfo(np.int32).min


def day_shifts(zones: tuple[str, ...], day: int) -> NDArray[np.int32]:
    """Minutes that each zone is ahead of UTC, in each UTC hour of a day (days since 1970).

    >>> day_shifts(("Europe/Berlin",), 17617)[0, :3]  # 2018-03-26, the day after the clocks moved
    array([120, 120, 120], dtype=int32)
    """
    shifts = np.empty((len(zones), 24), dtype=np.int32)
    for row, zone in enumerate(zones):
        first, after = _shift(zone, 24 * day), _shift(zone, 24 * day + 24)
        shifts[row] = first
        if first != after:
            shifts[row] = [_shift(zone, 24 * day + hour) for hour in range(24)]
    return shifts


@lru_cache(maxsize=4096)
def _shift(zone: str, hour: int) -> int:
    from zoneinfo import ZoneInfo

    try:
        place = ZoneInfo(zone)
    except (ValueError, OSError):  # no such zone (ZoneInfoNotFoundError is a KeyError and below)
        return UNKNOWN_ZONE
    except KeyError:
        return UNKNOWN_ZONE
    ahead = datetime.fromtimestamp(3600 * hour, UTC).astimezone(place).utcoffset()
    return UNKNOWN_ZONE if ahead is None else int(ahead.total_seconds()) // 60


def feasts(countries: tuple[str, ...], day: int) -> Floats32:
    """Whether the day before, the day and the day after are public holidays, for each country: 1
    or 0, NaN for a country that is not known.

    >>> feasts(("DE", "??"), 17652)  # 2018-05-01 is the second of these three
    array([[ 0.,  1.,  0.],
           [nan, nan, nan]], dtype=float32)
    """
    found = np.full((len(countries), 3), np.nan, dtype=np.float32)
    for row, country in enumerate(countries):
        for place, near in enumerate((day - 1, day, day + 1)):
            when = _EPOCH + timedelta(days=near)
            dates = _holidays(country, when.year)
            if dates is not None:
                found[row, place] = when in dates
    return found


@lru_cache(maxsize=1024)
def _holidays(country: str, year: int) -> frozenset[date] | None:
    import holidays

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of years for which not every holiday is known
        try:
            return frozenset(holidays.country_holidays(country.upper(), years=year))
        except NotImplementedError:
            return None
