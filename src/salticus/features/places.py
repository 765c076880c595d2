"""Whose hosts are whose, and by which clock their pages live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from salticus.config.units import matches

_ZONES = """
AE Asia/Dubai,AR America/Argentina/Buenos_Aires,AT Europe/Vienna,AU Australia/Sydney,
BD Asia/Dhaka,BE Europe/Brussels,BG Europe/Sofia,BR America/Sao_Paulo,BY Europe/Minsk,
CA America/Toronto,CH Europe/Zurich,CL America/Santiago,CN Asia/Shanghai,CO America/Bogota,
CY Asia/Nicosia,CZ Europe/Prague,DE Europe/Berlin,DK Europe/Copenhagen,EE Europe/Tallinn,
EG Africa/Cairo,ES Europe/Madrid,FI Europe/Helsinki,FR Europe/Paris,GB Europe/London,
GR Europe/Athens,HK Asia/Hong_Kong,HR Europe/Zagreb,HU Europe/Budapest,ID Asia/Jakarta,
IE Europe/Dublin,IL Asia/Jerusalem,IN Asia/Kolkata,IS Atlantic/Reykjavik,IT Europe/Rome,
JP Asia/Tokyo,KE Africa/Nairobi,KR Asia/Seoul,KZ Asia/Almaty,LT Europe/Vilnius,
LU Europe/Luxembourg,LV Europe/Riga,MA Africa/Casablanca,MT Europe/Malta,
MX America/Mexico_City,MY Asia/Kuala_Lumpur,NG Africa/Lagos,NL Europe/Amsterdam,NO Europe/Oslo,
NZ Pacific/Auckland,PE America/Lima,PH Asia/Manila,PK Asia/Karachi,PL Europe/Warsaw,
PT Europe/Lisbon,RO Europe/Bucharest,RS Europe/Belgrade,RU Europe/Moscow,SA Asia/Riyadh,
SE Europe/Stockholm,SG Asia/Singapore,SI Europe/Ljubljana,SK Europe/Bratislava,
TH Asia/Bangkok,TR Europe/Istanbul,TW Asia/Taipei,UA Europe/Kyiv,US America/New_York,
VN Asia/Ho_Chi_Minh,ZA Africa/Johannesburg
"""
ZONES = dict(line.split(" ") for line in "".join(_ZONES.split("\n")).split(","))
"""The time zone in which most people of a country live."""

_ENDINGS = {"UK": "GB"}  # of names of hosts that are no code of a country
_ANYBODY = ("CO",)  # endings that hosts of all countries have


class Place(NamedTuple):
    """What the settings say of hosts that match a pattern."""

    match: str
    merchant: str | None
    timezone: str | None


class Places:
    """Merchant and time zone of pages, from their host, their country and the settings.

    A host is a merchant unless the settings say whose it is. A page's time zone is what they say of
    its host, else the main one of its country, else of the country that its host ends in.

    >>> places = Places([Place("*.shop.example", "Shop", "Asia/Tokyo")])
    >>> places.merchant("a.shop.example"), places.merchant("b.example")
    ('Shop', 'b.example')
    >>> places.zone("b.example", "DE"), places.zone("b.example.fr:80", None)
    ('Europe/Berlin', 'Europe/Paris')
    """

    def __init__(self, said: Sequence[Place] = ()) -> None:
        self.said = tuple(said)

    def merchant(self, host: str) -> str:
        """Whose a host is; itself, if nobody says."""
        names = (place.merchant for place in self.said if matches(host, place.match))
        return next((name for name in names if name is not None), host)

    def zone(self, host: str, country: str | None) -> str | None:
        """The time zone of a page, if it is known (IANA)."""
        names = (place.timezone for place in self.said if matches(host, place.match))
        said = next((name for name in names if name is not None), None)
        if said is not None or country in ZONES:
            return said or ZONES[country or ""]
        ending = host.partition(":")[0].rpartition(".")[2].upper()
        ending = _ENDINGS.get(ending, ending)
        return None if ending in _ANYBODY else ZONES.get(ending)

    def __repr__(self) -> str:
        return repr(self.said)
