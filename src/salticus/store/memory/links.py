"""The links of a `MemoryStore`: what sources name, and since when they no longer do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from salticus.types import Record


class Link(msgspec.Struct):
    """One source names one page."""

    appeared: int
    vanished: int | None = None
    at: int | None = None


class Links:
    """Links by page and source."""

    def __init__(self) -> None:
        self._of: dict[int, dict[int, Link]] = {}

    def sources(self, page: int) -> list[int]:
        """The sources that name a page now."""
        links = self._of.get(page, {})
        return [source for source, link in links.items() if link.vanished is None]

    def ended(self, page: int) -> bool:
        """Whether a page was named, and is not any longer."""
        return page in self._of and not self.sources(page)

    def pages(self, source: int) -> set[int]:
        """The pages that a source names, or named."""
        return {page for page, links in self._of.items() if source in links}

    def count(self, sources: Iterable[int], *, now: bool = False) -> int:
        """How many links these sources have, or have `now`, without those that vanished."""
        wanted = set(sources)
        every = ((s, link) for links in self._of.values() for s, link in links.items())
        return sum(s in wanted and not (now and link.vanished is not None) for s, link in every)

    def read(self, record: Record, times: dict[int, int | None]) -> list[int]:
        """Take up the pages in a source with the `times` told; those whose time is news."""
        source, at = record.observation.page, record.observation.at
        news = []
        for page, told in times.items():
            link = self._of.setdefault(page, {}).setdefault(source, Link(at))
            link.vanished = None
            if told is not None and (link.at is None or told > link.at):
                link.at = told
                news.append(page)
        if record.complete:
            for page in self.pages(source) - times.keys():
                link = self._of[page][source]
                link.vanished = at if link.vanished is None else link.vanished
        return sorted(news)

    def hand_over(self, source: int, other: int) -> None:
        """What a source named, another one does from now on."""
        for page in self.pages(source):
            link = self._of[page].pop(source)
            if page != other:
                self._of[page].setdefault(other, link)
        self._sweep()

    def forget(self, pages: Iterable[int]) -> None:
        """Drop the links from and to these pages."""
        for page in pages:
            self._of.pop(page, None)
            for links in self._of.values():
                links.pop(page, None)
        self._sweep()

    def _sweep(self) -> None:
        self._of = {page: links for page, links in self._of.items() if links}

    def rows(self) -> Iterator[dict[str, Any]]:
        """Rows of the exchange format."""
        every = [(p, s, link) for p, links in self._of.items() for s, link in links.items()]
        for page, source, link in sorted(every, key=lambda e: (e[2].appeared, e[1], e[0])):
            times = {"appeared": link.appeared, "vanished": link.vanished}
            yield {"source_id": source, "page_id": page, **times}
