"""The sections of the settings file, typed."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

import msgspec

from salticus.config.units import Budget, ClickScore, Hours, Share, Size, Span, Tolerance, matches

if TYPE_CHECKING:
    from salticus.types import Target  # NumPy takes a while; not every command needs it


class Host(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Manners and credentials for the hosts that match a pattern such as ``*.example.org``.

    `proxy`, `auth` ("user:password") and the values of `headers` and `cookies` may be written
    ``env:NAME``: they are then read from the environment. `cookie_file` is a cookies.txt, relative
    to the settings. With `keep_cookies` what the host sets is sent back to it. Outside of `hours`
    the host is left alone. `merchant` is whose the host is, `timezone` (IANA) by which clock it
    lives: models look at both.
    """

    match: str
    delay: Span | None = None
    concurrency: int | None = None
    proxy: str | None = None
    headers: dict[str, str] = {}
    cookies: dict[str, str] = {}
    cookie_file: str | None = None
    keep_cookies: bool | None = None
    auth: str | None = None
    hours: Hours | None = None
    merchant: str | None = None
    timezone: str | None = None


class Scope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which pages: those whose URL matches a pattern such as ``https://shop.example/p/*``.

    With `host`, only those on a host that matches a pattern such as ``*.example.org``, with or
    without its port; with `tag`, only those that have it.
    """

    match: str = "*"
    host: str | None = None
    tag: str | None = None

    def fits(self, target: Target) -> bool:
        """Whether a page is one of them.

        >>> from salticus.types import Target
        >>> Scope(tag="tea").fits(Target(1, "http://a.example/1", "a.example", tags=("tea",)))
        True
        """
        if not fnmatchcase(target.url, self.match):
            return False
        if self.tag is not None and self.tag not in target.tags:
            return False
        return self.host is None or matches(target.host, self.host)

    @property
    def named(self) -> str:
        """The pages in words, for messages.

        >>> Scope().named, Scope(host="*.example.org", tag="tea").named
        ("pages that match '*'", "pages on '*.example.org' with the tag 'tea'")
        """
        every = self.match == "*" and (self.host is not None or self.tag is not None)
        said = [] if every else [f"that match {self.match!r}"]
        said += [f"on {self.host!r}"] * (self.host is not None)
        said += [f"with the tag {self.tag!r}"] * (self.tag is not None)
        return " ".join(["pages", *said])


class Rule(Scope, frozen=True, forbid_unknown_fields=True):
    """How some pages are read, and when they are visited.

    `select` maps the names of fields to selectors: ``css:``, ``xpath:`` or ``json:`` (JSONPath)
    before an expression; CSS if nothing is said. `value` names the fields that make up the value,
    `tolerance` how far a number in one may move and still be the same. `ignore` lists what does not
    count in a text: elements by ``css:`` or ``xpath:``, passages by ``re:``. `render` runs the
    page's scripts in a browser first, until `wait` (a CSS selector) is there. A visit costs `cost`
    of the budget.

    `interval` fixes how often the pages are visited, `pause` that they are not, `hours` when;
    `max_interval` is theirs instead of the one for all pages. Policy and exploration leave a page
    alone for `min_interval` after a visit. `importance` is a factor on its demand.
    """

    kind: str | None = None
    extractor: str | None = None
    select: dict[str, str] = {}
    value: tuple[str, ...] = ()
    tolerance: dict[str, Tolerance] = {}
    ignore: tuple[str, ...] = ()
    render: bool = False
    wait: str | None = None
    cost: int | None = None
    interval: Span | None = None
    max_interval: Span | None = None
    min_interval: Span | None = None
    hours: Hours | None = None
    pause: bool = False
    importance: float | None = None


class Hook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is run for every change: a `command`, or a `python` callable (``file.py:function``).

    With `first`, also for the first value of a page; with `tags`, only for pages with one of them.
    """

    command: str | None = None
    python: str | None = None
    timeout: Span = Span(seconds=30)
    workers: int = 2
    first: bool = False
    tags: tuple[str, ...] = ()


class Fetch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How pages are fetched. `delay` and `per_host` hold for hosts without a pattern."""

    contact: str = ""
    concurrency: int = 256
    delay: Span = Span(seconds=1)
    per_host: int = 1
    timeout: Span = Span(seconds=30)
    max_size: Size = Size(10_000_000)
    max_redirects: int = 5
    retries: int = 2
    allow_private: tuple[str, ...] = ()
    browser: str | None = None  # a Chromium; found by itself if it is installed


class Extract(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How values are found."""

    workers: int = 1
    deadline: Span = Span(seconds=5)
    keep_content: bool = True
    links: bool = False  # of every page, not only of sources
    pdf: bool = False


class Desk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where clicks, notices and searches come in while a crawl runs: ``127.0.0.1:8470``.

    `allowed_hosts` are names, other than its address, under which the desk may be asked, and whose
    pages may ask it. `insta` of the visits are set aside for clicked pages. The `gate` lets a
    `share` of the clicks through, those of the highest `score`: the chance that the copy is out of
    date and the page answers ("stale"), or that the page changes within some time ("6h").
    """

    listen: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    insta: Share = Share(0.0)
    gate: str = "instacrawl"
    share: Share = Share(0.2)
    score: ClickScore = ClickScore("stale")


class Caps(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much sites can put into the store by naming pages; what exceeds a cap is left out.

    A source has at most `source_links` links; a source that was added by hand leads to at most
    `source_pages` new pages, those named by the sources that it names included. On one host at most
    `host_pages` pages are found, and its sources have at most `host_links` links. Of all found
    pages, `budget_pages` count where the budget is given per page.

    One visit to a source brings at most `visit_pages` new pages, and a day (UTC) of visits to a
    source that was added by hand and to those that it names, `day_pages`. These two do not hold for
    first visits within a day of the first one to the source that was added: owners import shops.
    """

    source_pages: int = 1_000_000
    source_links: int = 100_000
    visit_pages: int = 5_000
    day_pages: int = 20_000
    host_pages: int = 1_000_000
    host_links: int = 2_000_000
    budget_pages: int = 100_000

    def budgeted(self, pages: int, found: int) -> int:
        """How many of the pages, of which some were found, count for a budget per page.

        >>> Caps(budget_pages=10).budgeted(pages=25, found=20)
        15
        """
        return pages - max(0, found - self.budget_pages)


class Sources(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is supposed of new pages, and how it is learnt what sources bring.

    Interest in a new page halves in `half_life`, as long as clicks say nothing else. How many links
    appear on a source is told by the last `history` visits to it (published: 3 to 10 are alike).
    What was learnt is worked out anew every `relearn`. A source that is dead for as long as
    `retire` is retired.
    """

    half_life: Span = Span(hours=17)
    history: int = 7
    relearn: Span = Span(minutes=30)
    retire: Span = Span(days=30)


class Models(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Models that learn from the crawl's own visits and clicks: where they lie, of which kind they
    are, and how often they are trained.

    A model takes over only if it was better on at least `least` visits to explore or of the panel;
    one of clicks or impressions, on as many days of pages.
    """

    path: str = "models"
    kind: Literal["trees", "dnn"] = "trees"
    retrain: Span = Span(days=1)  # world time; 0 = never
    least: int = 200


class Time(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An accelerated clock, for malls and tests: `speed` world seconds a wall second.

    With `path`, world time is kept in that file and passes only while a crawl keeps up with it.
    """

    speed: float = 1.0
    world_origin: datetime | None = None
    wall_origin: datetime | None = None
    path: str | None = None


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All settings of one crawl."""

    store: str = "salticus.db"
    budget: Budget = Budget(1.0, per_page=True)
    tick: Span = Span(hours=2)
    seed: int = 0
    policy: str = "leap"
    predictor: str | None = None  # what the policy asks for
    spacing: str = "even"
    explore: Share = Share(0.045)
    finding: Share | None = None  # of the visits, for new pages; not given, one price decides
    proposers: tuple[str, ...] = ()  # of visits, beside the built-in ones: ``file.py:Class``
    freshness_target: Share | None = None
    max_interval: Span | None = None
    retention: Span | None = None
    fetch: Fetch = Fetch()
    extract: Extract = Extract()
    caps: Caps = Caps()
    sources: Sources = Sources()
    models: Models = Models()
    desk: Desk = Desk()
    clock: Time = Time()
    hosts: tuple[Host, ...] = ()
    pages: tuple[Rule, ...] = ()
    on_change: Hook | None = None
    folder: str = "."  # of the settings file; not a setting
    file: str = ""  # the settings file itself, if they come from one; not a setting

    @property
    def max_interval_days(self) -> float:
        """The maximum interval of pages without one of their own; inf = none."""
        return math.inf if self.max_interval is None else self.max_interval / timedelta(days=1)

    def per_day(self, pages: int, found: int) -> float:
        """Visits a day for so many pages, of which some were found by sources."""
        return self.budget.per_day(self.caps.budgeted(pages, found))

    def delay(self, host: str) -> float:
        """Seconds between two requests to `host` (the first pattern that sets it wins)."""
        found = (h.delay for h in self._matching(host) if h.delay is not None)
        return next(found, self.fetch.delay).total_seconds()

    def concurrency(self, host: str) -> int:
        """Requests to `host` that may be under way at once."""
        found = (h.concurrency for h in self._matching(host) if h.concurrency is not None)
        return next(found, self.fetch.per_host)

    def hours(self, host: str) -> Hours | None:
        """When `host` may be visited; None = always."""
        return next((h.hours for h in self._matching(host) if h.hours is not None), None)

    def rule(self, number: int) -> Rule | None:
        """The rule with a number; None for -1, which stands for pages without one."""
        return self.pages[number] if number >= 0 else None

    def ruled(self, target: Target) -> Target:
        """A page that is not stored, with the number of the first rule that is for it; of stored
        pages the census knows it."""
        fitting = (number for number, rule in enumerate(self.pages) if rule.fits(target))
        return msgspec.structs.replace(target, rule=next(fitting, -1))

    def _matching(self, host: str) -> list[Host]:
        return [h for h in self.hosts if matches(host, h.match)]
