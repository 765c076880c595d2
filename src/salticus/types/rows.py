"""Rows: one page, one visit, one piece of news at a time. Times are µs since 1970, UTC."""

from __future__ import annotations

import msgspec

from salticus.types.words import Status


class Target(msgspec.Struct, frozen=True):
    """What is needed to visit a page and to judge what comes back.

    `digest` and `seen` (µs) describe the last answer that had a value; both None before it.
    `rule` is the number of the page's rule in the settings, -1 = none: it is found in one place,
    by URL, host and `tags`, and everybody else goes by the number.
    """

    page: int
    url: str
    host: str
    kind: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    digest: str | None = None
    seen: int | None = None
    tags: tuple[str, ...] = ()
    rule: int = -1


class Fetched(msgspec.Struct):
    """What came back from one visit, redirects and retries included.

    `status` is OK for any 2xx, and `fault` says in words what went wrong otherwise. `at` is the
    world time (µs) of the answer. `code` is the last HTTP status, 0 if there was none. `moved` is
    where the page has moved for good, if every redirect on the way was permanent. `reading` is what
    the body says, if whoever fetched it has read it too.
    """

    url: str
    status: Status
    at: int
    code: int = 0
    body: bytes = b""
    content_type: str = ""
    charset: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    fault: str | None = None
    elapsed_s: float = 0.0
    moved: str | None = None
    reading: Reading | None = None


class Value(msgspec.Struct, frozen=True):
    """The meaningful content of a page.

    `text` is canonical: two pages with the same text have the same value. `fields` holds the parts
    for people and exports (price, currency, availability, title, …); it never decides a change.
    """

    kind: str
    text: str
    fields: dict[str, str] = {}


class Entry(msgspec.Struct, frozen=True):
    """A page that a source names. `at` is when it last changed or was published, as told.

    `word` is the kind of signal that such a time is: lastmod (of a sitemap) or feed.
    """

    url: str
    kind: str | None = None  # "source" for a sitemap that another names
    at: int | None = None
    title: str | None = None
    word: str = "feed"


class Reading(msgspec.Struct, frozen=True):
    """What extraction made of a body.

    `status` is OK unless the body shows that the visit failed all the same (SOFT_404, BLOCKED);
    `fault` then says why. `canonical` is the URL that the page names as its own, if it is another.
    `entries` are the pages that a source names; all that it knows if it is `complete`.
    """

    value: Value | None = None
    status: Status = Status.OK
    fault: str | None = None
    canonical: str | None = None
    entries: tuple[Entry, ...] = ()
    complete: bool = False


class Observation(msgspec.Struct):
    """What a visit taught us; the row that is stored, once, for ever.

    Times are µs since 1970 UTC (world time). `changed` is None when nothing can be said: a first
    answer, a failure, a lost value. `value` is set only when it is new. `chance` is the probability
    of a change as it was foretold when the visit was planned.
    """

    visit: int
    page: int
    at: int
    purpose: str
    propensity: float
    status: str
    code: int = 0
    changed: bool | None = None
    since: int | None = None
    age_s: float | None = None
    digest: str | None = None
    value: Value | None = None
    etag: str | None = None
    last_modified: str | None = None
    fault: str | None = None
    size: int = 0
    elapsed_s: float = 0.0
    chance: float | None = None


class HostState(msgspec.Struct):
    """What must be remembered of a host across restarts. Times are wall seconds since 1970."""

    host: str
    next_at: float = 0.0
    strikes: int = 0
    robots: str | None = None
    robots_code: int | None = None
    robots_until: float = 0.0


class NewPage(msgspec.Struct, frozen=True):
    """A page to add. Everything but the URL may be unknown."""

    url: str
    kind: str | None = None
    tags: tuple[str, ...] = ()
    max_interval: float | None = None  # days
    demand: float | None = None  # clicks a day
    found: bool = False  # by a source, not by hand


class Signal(msgspec.Struct, frozen=True):
    """News about a page that did not cost a visit. `at` in µs."""

    page: int
    at: int
    kind: str
    value: str | None = None


class Count(msgspec.Struct, frozen=True):
    """What readers did to a page in the hour of `at` (µs)."""

    url: str
    at: int
    clicks: int = 0
    impressions: int = 0


class Counted(msgspec.Struct, frozen=True):
    """What came of rows: how many were of known pages, what they added, which pages are unknown.

    What would exceed the cap for one hour of a page is not added.
    """

    rows: int
    clicks: int
    impressions: int
    unknown: tuple[str, ...] = ()  # canonical URLs, in the order in which they came


class Mark(msgspec.Struct, frozen=True):
    """How far a file of counts was read: `place` bytes, unpacked, and a digest of all of them.

    `file` and `at` (µs) tell people which file that was, and when it was counted.
    """

    place: int
    digest: str
    file: str = ""
    at: int = 0


class Request(msgspec.Struct, frozen=True):
    """A click that asked for a visit at once, and what became of it; numbered from 1 on.

    `score` is the chance that the copy was out of date, or that the page would change soon, as the
    settings want; `propensity` the probability with which the gate let it through. `visit` is None
    if it was not sent, or there was no room for it.
    """

    number: int
    page: int
    at: int
    score: float
    propensity: float
    sent: bool
    visit: int | None = None


class Alert(msgspec.Struct, frozen=True):
    """Something is wrong with a host as a whole, since `at`; or `over`, it is well again.

    `kind` is blocked, broken, certificate, layout, missing, unreachable or flood (its sources name
    more than the caps let in); or drift or flood, of all hosts (``*``); or retired or discover, of
    the source or main page whose URL stands for the host. `fault` says it in words.
    """

    host: str
    kind: str
    at: int
    fault: str = ""
    over: bool = False


class Record(msgspec.Struct):
    """What one visit leaves in the store; all of it is committed together or not at all.

    `moved` is the URL of the page that this one has become: it is added if it is new, and this one
    is visited no more. `entries` (of a source) are added likewise, and linked to their source; if
    `complete`, the links to pages that are not among them vanish. `looked` is True for a source
    that answered; without entries it said that it is as it was.
    """

    observation: Observation
    hosts: tuple[HostState, ...] = ()
    content: bytes | None = None
    content_type: str = ""
    moved: str | None = None
    canonical: str | None = None
    entries: tuple[Entry, ...] | None = None
    complete: bool = False
    alerts: tuple[Alert, ...] = ()
    looked: bool = False


class Told(msgspec.Struct, frozen=True):
    """A value that a merchant's feed, `origin`, states for a page, without a visit."""

    url: str
    at: int
    origin: str
    value: Value


class Change(msgspec.Struct, frozen=True):
    """A new value of a page, numbered in the order in which they were stored.

    `before` is None for the first value of a page; `changed` is None then.
    """

    seq: int
    at: int
    page: int
    url: str
    tags: tuple[str, ...]
    changed: bool | None
    before: Value | None
    after: Value


class Find(msgspec.Struct, frozen=True):
    """A new page, numbered in the order in which they were found: `at` (µs) it was there, `since`
    not yet. `source` is the URL of the first that showed it; `fetched` when the page answered last,
    None while no visit to it was answered."""

    seq: int
    at: int
    since: int
    page: int
    url: str
    tags: tuple[str, ...]
    source: str
    fetched: int | None


class Gauge(msgspec.Struct, frozen=True):
    """What the predictor thought of all pages at the start of a tick, `at` (µs), of so many days.

    `stale` is the sum of the chances that a copy is out of date, `stale_demand` the same weighted
    by demand; `coins` and `coin_demand` are the pages, and their demand, that exploration could
    draw in this tick. `visits` is what all visits planned cost.
    """

    at: int
    days: float
    pages: int
    demand: float
    stale: float
    stale_demand: float
    coins: int
    coin_demand: float
    visits: float


class Member(msgspec.Struct, frozen=True):
    """A page of the panel: visited every `every` days from `since` until `until` (µs, None = until
    it is ended). `stratum` says how it was drawn; it stands for `weight` pages."""

    page: int
    stratum: str
    weight: float
    every: float
    since: int
    until: int | None = None


class Sighting(msgspec.Struct, frozen=True):
    """What a visit to a page of the panel saw; `digest` is None if it was not answered."""

    page: int
    at: int
    purpose: str
    digest: str | None
