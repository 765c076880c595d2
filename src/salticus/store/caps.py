"""How much of what a source names is taken up, so that no site can flood the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from salticus.config import Caps
from salticus.types import Alert

MOST_NAMING = 8  # sources from which links to a page are kept; a ninth tells nothing new


class Known(NamedTuple):
    """What the store knows of an entry: whether its page is there, whether the source links to it
    already, and how many sources do."""

    page: bool
    linked: bool
    naming: int


class Held(NamedTuple):
    """What the store holds before a source is read, as each cap counts it.

    `today` are new pages that later visits to the source's origin brought this day; `importing` is
    whether this visit is none of these.
    """

    source_links: int
    host_links: int
    source_pages: int
    host_pages: Mapping[str, int]
    today: int = 0
    importing: bool = False


class Admission:
    """Decides entry by entry what is taken up; counts what is `left_out_`, and by which `cap_`.

    What is linked already stays. An entry that `MOST_NAMING` sources name adds no link; its page is
    known, so nothing is left out by that.

    >>> admission = Admission(Caps(source_links=1), Held(0, 0, 0, {}))
    >>> new = Known(page=False, linked=False, naming=0)
    >>> [admission.admits("a.example", new) for _ in range(2)], admission.cap_
    ([True, False], 'source_links = 1')
    """

    def __init__(self, caps: Caps, held: Held) -> None:
        self.caps = caps
        self.left_out_ = 0
        self.cap_ = ""
        self.new_ = 0  # pages
        self._source_links = caps.source_links - held.source_links
        self._host_links = caps.host_links - held.host_links
        self._source_pages = caps.source_pages - held.source_pages
        self._host_pages = {h: caps.host_pages - n for h, n in held.host_pages.items()}
        self._today, self._importing = held.today, held.importing

    def admits(self, host: str, known: Known) -> bool:
        """Whether the next entry, on `host`, is taken up."""
        if known.linked:
            return True
        if known.naming >= MOST_NAMING:
            return False
        if cap := self._reached(host, new=not known.page):
            self.left_out_, self.cap_ = self.left_out_ + 1, cap
            return False
        self._source_links -= 1
        self._host_links -= 1
        if not known.page:
            self.new_ += 1
            self._source_pages -= 1
            self._host_pages[host] = self._room(host) - 1
        return True

    def _room(self, host: str) -> int:
        return self._host_pages.get(host, self.caps.host_pages)

    def _reached(self, host: str, *, new: bool) -> str:
        """The cap that an entry would exceed, as it is set; empty if there is none."""
        if self._source_links <= 0:
            return f"source_links = {self.caps.source_links}"
        if self._host_links <= 0:
            return f"host_links = {self.caps.host_links}"
        if new and self._source_pages <= 0:
            return f"source_pages = {self.caps.source_pages}"
        if new and self._room(host) <= 0:
            return f"host_pages = {self.caps.host_pages}"
        return self._too_soon() if new and not self._importing else ""

    def _too_soon(self) -> str:
        """The cap on new pages in a time that one more would exceed."""
        if self.new_ >= self.caps.visit_pages:
            return f"visit_pages = {self.caps.visit_pages}"
        if self.new_ + self._today >= self.caps.day_pages:
            return f"day_pages = {self.caps.day_pages}"
        return ""

    def alert(self, host: str, url: str, at: int) -> Alert:
        """What to tell of the source at `url` on `host`, if something was left out."""
        fault = f"{url}: {self.left_out_:,} of its entries were left out by caps.{self.cap_}"
        return Alert(host, "flood", at, fault)
