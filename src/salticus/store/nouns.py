"""The nouns of every store: a page's state, a search's hit, what to look for and what to edit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from salticus.errors import InputError
from salticus.types import Ints, Observation, Told

STATES = ("moved", "paused", "unlisted", "new", "gone", "failing", "well")
SORTS = ("url", "added", "last_visit", "last_change", "changes", "failures", "demand")
MOST_CLICKS = 10_000  # of a page in an hour; more are a fault, or an attack on the budget
MOST_IMPRESSIONS = 100_000  # likewise
DROPPED = 9  # visits in a row with nothing to come back for, after which a page is dropped

# columns of the exchange format that only the fields of a value can tell
FIELD_COLUMNS = ("merchant", "brand", "category", "condition", "country", "language", "title")

HIT_FIELDS = ("title", "price", "currency", "availability")  # of a value, shown with a hit

History = Callable[[Ints], Iterable[Sequence[Observation]]]
"""Visits made elsewhere, in order of time and in batches, given the ids of their pages."""


class PageState(msgspec.Struct):
    """One page with its present state, for people. Times are µs, None = never."""

    page: int
    url: str
    host: str
    kind: str | None = None
    tags: list[str] = []
    added: int = 0
    last_visit: int | None = None
    last_answer: int | None = None
    last_change: int | None = None
    status: str | None = None
    fault: str | None = None
    value: str | None = None
    fields: dict[str, str] = {}
    visits: int = 0
    changes: int = 0
    failures: int = 0
    max_interval: float | None = None
    demand: float | None = None
    cost: float = 1.0
    idle: int = 0
    paused: bool = False
    unlisted: bool = False  # found by sources that have all ceased to name it
    moved: str | None = None  # the URL of the page that this one was merged into
    canonical: str | None = None  # what the page itself says its URL is
    sources: list[str] = []  # URLs of the sources that name it now
    told: Told | None = None  # what a merchant's feed says, if it is newer than the last answer

    @property
    def is_dropped(self) -> bool:
        """Whether it is not visited any more; sources are looked at again for ever."""
        return self.idle >= DROPPED and self.kind != "source"

    @property
    def state(self) -> str:
        """One word for people, the first of `STATES` that fits."""
        if self.moved:
            return "moved"
        if self.paused:
            return "paused"
        if self.unlisted:
            return "unlisted"
        if self.status is None:
            return "new"
        if self.idle:
            return "gone"
        return "well" if self.status in ("ok", "not_modified") else "failing"


class Hit(msgspec.Struct, frozen=True):
    """A page that a search found, with what is known of it without a visit. Times are µs.

    What it offers is what the last answered visit left; of a page that was never answered, what a
    merchant's feed tells. `told` is what a feed says since the last answer.
    """

    page: int
    url: str
    title: str | None = None
    price: str | None = None
    currency: str | None = None
    availability: str | None = None
    last_visit: int | None = None
    last_answer: int | None = None
    told: Told | None = None


class Query(msgspec.Struct, frozen=True):
    """Which pages; conditions that are None do not count, `url` is a pattern (``*``, ``?``).

    `sort` is one of `SORTS`; what is unknown comes last, and equal pages in order of id.
    """

    url: str | None = None
    host: str | None = None  # a pattern, like `url`
    tag: str | None = None
    kind: str | None = None
    status: str | None = None
    state: str | None = None  # one of `STATES`
    sort: str = "url"
    descending: bool = False
    limit: int | None = None


def known(word: str, words: Sequence[str], what: str) -> str:
    """The word, if it is one of those known; InputError tells which are.

    >>> known("url", SORTS, "order")
    'url'
    """
    if word not in words:
        raise InputError(f"there is no {what} {word!r}; there is {', '.join(words)}")
    return word


class Edit(msgspec.Struct, frozen=True):
    """What to change of pages; None = leave as it is. A tag to add and to remove is removed."""

    add_tags: tuple[str, ...] = ()
    remove_tags: tuple[str, ...] = ()
    kind: str | None = None
    max_interval: float | None = None  # days; inf = none
    demand: float | None = None
    cost: float | None = None  # in visits; inf = as the settings say
    paused: bool | None = None


class AlertState(msgspec.Struct):
    """An alert as it is kept. `until` is None while it lasts; µs."""

    host: str
    kind: str
    since: int
    until: int | None
    fault: str


class Summary(msgspec.Struct):
    """Counts over the whole store."""

    pages: int
    visited: int
    hosts: int
    visits: int
    answered: int
    changes: int
    by_status: dict[str, int]
    first: int | None
    last: int | None
    bytes: int
    resting: int = 0  # pages that are not visited: paused, merged, dropped


class Stamp(NamedTuple):
    """If `data` is what it was, nothing in the store has changed; if `state` is, the run state has
    not. Another number may mean nothing. They compare within one open store only."""

    data: int
    state: int


class Health(msgspec.Struct, frozen=True):
    """How the store itself is: what is wrong with it, None if nothing is; its size; and the bytes
    that are left where it lies, None if nobody knows."""

    wrong: str | None
    bytes: int
    free: int | None


class Loaded(NamedTuple):
    """What was new: pages, and visits, whose numbers lie from `first` up to `end`."""

    pages: int
    visits: int
    first: int
    end: int


def plain(pattern: str) -> str:
    """A pattern in which only ``*`` and ``?`` mean more than themselves, for GLOB and `fnmatch`.

    >>> plain("http://[::1]/*")
    'http://[[]::1]/*'
    """
    return pattern.replace("[", "[[]")
