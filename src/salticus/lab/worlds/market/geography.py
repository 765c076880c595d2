"""Twenty countries: where merchants are, their clocks and calendars, how often prices change."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from salticus.lab.worlds.market.presets import Preset
from salticus.types import Floats, Ints

_NOON = timedelta(hours=12)
_MINUTE = timedelta(minutes=1)


class Country(NamedTuple):
    """A country of merchants.

    `weight` is its share of the merchants, before they are normalised. `factor` is how often its
    prices change beside the average: Han 2019 (Fig. 4) names the three highest (IN, MX, BR) and the
    three lowest (US, JP, ID) of twenty; the order of the others is free. `unit` is what a euro
    costs, `digits` how many decimals prices have, `holidays` month-day of national sales days.
    """

    code: str
    weight: float
    factor: float
    zones: tuple[str, ...]
    languages: tuple[str, ...]
    currency: str
    unit: float
    digits: int
    holidays: tuple[str, ...]


COUNTRIES = (
    Country("AU", 4, 1.00, ("Australia/Sydney", "Australia/Perth"), ("en",), "AUD", 1.6, 2,
            ("01-26", "04-25", "06-30")),
    Country("BR", 4, 1.80, ("America/Sao_Paulo",), ("pt",), "BRL", 4.3, 2, ("09-07", "10-12")),
    Country("CA", 4, 0.90, ("America/Toronto", "America/Vancouver"), ("en", "fr"), "CAD", 1.5, 2,
            ("07-01", "10-08")),
    Country("CH", 3, 0.85, ("Europe/Zurich",), ("de", "fr"), "CHF", 1.1, 2, ("08-01",)),
    Country("CZ", 3, 1.15, ("Europe/Prague",), ("cs",), "CZK", 25.7, 0, ("10-28",)),
    Country("DE", 9, 1.05, ("Europe/Berlin",), ("de",), "EUR", 1.0, 2, ("10-03",)),
    Country("DK", 3, 0.95, ("Europe/Copenhagen",), ("da",), "DKK", 7.5, 2, ("06-05",)),
    Country("ES", 4, 1.10, ("Europe/Madrid",), ("es",), "EUR", 1.0, 2, ("01-06", "07-01")),
    Country("FR", 7, 1.10, ("Europe/Paris",), ("fr",), "EUR", 1.0, 2, ("01-09", "06-27", "07-14")),
    Country("GB", 8, 1.00, ("Europe/London",), ("en",), "GBP", 0.88, 2, ("05-28", "08-27")),
    Country("ID", 4, 0.48, ("Asia/Jakarta", "Asia/Makassar"), ("id",), "IDR", 16500.0, 0,
            ("08-17", "12-12")),
    Country("IN", 5, 2.10, ("Asia/Kolkata",), ("en", "hi"), "INR", 80.0, 0,
            ("01-26", "08-15", "11-07")),
    Country("IT", 5, 1.05, ("Europe/Rome",), ("it",), "EUR", 1.0, 2, ("01-05", "07-07", "08-15")),
    Country("JP", 6, 0.52, ("Asia/Tokyo",), ("ja",), "JPY", 130.0, 0, ("01-02", "05-03", "08-11")),
    Country("MX", 4, 1.95, ("America/Mexico_City", "America/Tijuana"), ("es",), "MXN", 22.0, 2,
            ("09-16", "11-16")),
    Country("NL", 4, 1.15, ("Europe/Amsterdam",), ("nl",), "EUR", 1.0, 2, ("04-27", "12-05")),
    Country("NZ", 3, 0.90, ("Pacific/Auckland",), ("en",), "NZD", 1.7, 2, ("02-06", "06-04")),
    Country("PL", 4, 1.15, ("Europe/Warsaw",), ("pl",), "PLN", 4.3, 2, ("05-03", "11-11")),
    Country("SE", 3, 1.00, ("Europe/Stockholm",), ("sv",), "SEK", 10.3, 0, ("06-06",)),
    Country("US", 13, 0.55,
            ("America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles"),
            ("en",), "USD", 1.15, 2, ("05-28", "07-04", "09-03", "11-22")),
)  # fmt: skip

EVERYWHERE = ("11-11", "11-23", "11-26", "12-26", "12-27", "01-01", "01-02", "02-14")
"""Sales days that all countries share, month-day."""

ZONES = tuple(zone for country in COUNTRIES for zone in country.zones)
"""All time zones; a zone is known by its place here."""


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

    def utc_hour(self, zone: Ints, day: Ints, hour: Ints | int) -> Ints:
        """The hour of the log at whose start a change at a local day and hour is seen.

        Zones that differ from UTC by half an hour are seen at the next whole hour.
        """
        known = np.minimum(day, self.days + 1)
        minutes = 60 * (24 * (day - 1) + hour) - self.offset[zone, known]
        return -(-minutes // 60)


def calendar_of(preset: Preset, days: int) -> Calendar:
    """The calendar of a log of so many UTC days from the preset's start."""
    noons = [preset.start + _NOON + timedelta(days=d - 1) for d in range(days + 2)]
    zones = [ZoneInfo(zone) for zone in ZONES]
    ahead = [[(noon - noon.replace(tzinfo=zone)) // _MINUTE for noon in noons] for zone in zones]
    week = np.array([preset.weekend if noon.weekday() >= 5 else 1.0 for noon in noons])
    week *= 7 / (5 + 2 * preset.weekend)
    dates = [f"{noon:%m-%d}" for noon in noons]
    sales = [[day in {*country.holidays, *EVERYWHERE} for day in dates] for country in COUNTRIES]
    return Calendar(days, np.array(ahead), week * np.where(sales, preset.holiday, 1.0))
