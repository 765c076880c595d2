"""The names of all features, and the sets of them that were published.

A rate is changes an hour and page; "day", "week" and "month" are the last 24, 168 and 720 whole
hours. Where nothing was watched a feature is unknown (NaN).
"""

from __future__ import annotations

from dataclasses import dataclass

from salticus.types import Metadata

WINDOWS = {"day": 24, "week": 168, "month": 720}  # hours
DEMAND_WINDOWS = {"day": 24, "week": 168, "fortnight": 336, "month": 720}  # hours
SEASON = 1344  # hours: the eight weeks from which a merchant's week is learnt
EDGES = (6, 24, 72, 168, 336)  # hours ahead: the stretches in which a change may come

_OWN = (
    "page_hours",  # rate in the last 6 hours
    *(f"page_{window}" for window in WINDOWS),
    "page_all",  # rate in all the time known
    "page_recent",  # hours since the last change found, else since the page is known
    "page_gap",  # hours between the last two changes found
    "page_changes",  # how many were found
    "page_age",  # hours since the page is known
    "page_visits",  # answers in the last month (full: hours watched)
    "page_since",  # hours since the last answer (full: 0)
    "page_rate",  # from the month's answers, whatever their spacing: -ln((n-X+.5)/(n+.5))·n/T
    "price",  # logarithm
    "price_place",  # logarithm of price / mean of the prices known
    "move",  # logarithm of new / old price at the last change found
    "in_stock",  # 1 or 0
)
_PRICES = ("price", "price_place", "move", "in_stock")
_DEMAND = (
    *(f"clicks_{window}" for window in DEMAND_WINDOWS),  # a day
    *(f"impressions_{window}" for window in DEMAND_WINDOWS),
)
_CATEGORY = (*(f"category_{window}" for window in WINDOWS), "category_recent")
_GROUPS = tuple(
    f"{group}_{window}"
    for group in ("merchant", "host", "brand", "shelf", "all")  # shelf: category at the merchant
    for window in WINDOWS
)
_LATELY = (
    "merchant_recent",  # hours since any page of the merchant was found changed
    "merchant_batch",  # hours since the merchant's last batch: an hour with >= 2 and >= 2 % changed
    "merchant_found",  # share of changed among the merchant's answers since the page's own last
    "merchant_seen",  # how many answers that were
    "host_found",
    "host_seen",
    "all_found",
)
_WEEK = (
    "merchant_weekday",  # changes a day and page on this UTC weekday, over the season
    "merchant_hour",  # changes an hour and page at this UTC hour of the day, over the season
)
TIME = ("weekday", "hour")  # UTC: 0 = Monday
LOCAL = ("local_weekday", "local_hour", "holiday")  # the merchant's own; holiday 1 or 0

METADATA = ("brand", "condition", "country", "language", "merchant", "title", "category")


def ahead(edges: tuple[int, ...]) -> tuple[str, ...]:
    """What the week of the merchant, and of all, lets expect for each stretch: changes a page."""
    return tuple(f"{group}_ahead_{edge}" for group in ("merchant", "all") for edge in edges)


def all_names(edges: tuple[int, ...] = EDGES) -> tuple[str, ...]:
    """Every dense feature, in the order in which `FeatureStream.read` gives them."""
    return (
        *_OWN, *_DEMAND, *_CATEGORY, *_GROUPS, *_LATELY, *_WEEK, *ahead(edges), *TIME, *LOCAL
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class FeatureSet:
    """The features that a model uses: dense ones and fields of metadata."""

    dense: tuple[str, ...]
    metadata: tuple[str, ...]

    def fields(self, metadata: Metadata) -> tuple[str, ...]:
        """The fields that there are; a level of the category path is a field of its own."""
        names = self.metadata
        return tuple(f for f in metadata.fields if f in names or f.rpartition("_")[0] in names)

    def titled(self, metadata: Metadata) -> bool:
        """Whether the words of titles are among them."""
        return "title" in self.metadata and metadata.words.shape[1] > 0


def chosen(preset: str, kind: str, edges: tuple[int, ...] = EDGES) -> FeatureSet:
    """The features of a preset (han2019, han2020, full, visits), of a kind (metadata, history,
    both). `visits` is `full` without prices and clicks: what visits alone can tell.
    """
    plain = tuple(name for name in _OWN if name not in _PRICES)
    grouped = (*_CATEGORY, *_GROUPS, *_LATELY, *_WEEK, *ahead(edges))
    history, time, metadata = {
        "han2019": ((*(f"page_{w}" for w in WINDOWS), "page_recent", *_CATEGORY), TIME, METADATA),
        "han2020": (
            ("page_month", "page_recent", *_DEMAND),
            ("weekday",),
            tuple(field for field in METADATA if field != "title"),
        ),
        "full": ((*_OWN, *_DEMAND, *grouped), (*TIME, *LOCAL), METADATA),
        "visits": ((*plain, *grouped), (*TIME, *LOCAL), METADATA),
    }[preset]
    return {
        "metadata": FeatureSet(time, metadata),
        "history": FeatureSet(history, ()),
        "both": FeatureSet((*history, *time), metadata),
    }[kind]
