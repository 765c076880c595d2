"""The features of a crawl's pages, fed by the outcomes of its visits as they come."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from salticus.features.events import Answered, Crawler
from salticus.features.groups import Groups, numbered
from salticus.features.metadata import Hashes, hashes
from salticus.features.names import EDGES
from salticus.features.past import FeatureStream
from salticus.types import CHANGED, UNCHANGED, Bools, Inputs, Ints, Outcomes, distinct
from salticus.types.dates import HOUR_US
from salticus.types.frames import pl
from salticus.types.state import State, part_of, places

Facts = Mapping[str, Sequence[str | None]]
"""What is known of pages without their history, row by row: `host`, `brand`, `category`, …"""

FOLLOWED = ("host", "brand", "category", "country")
"""The facts by which pages are grouped. The merchant of a page is its host."""

_COUNTRY = re.compile("[A-Z]{2,3}")  # whatever pages say: there are not many of these
_KEPT = ("ids", "host", "brand", "category", "country", "touched")


class Following:
    """Learns the outcomes of visits, and tells the features of the pages that have answered.

    A page is born with its first answer; there are no prices and no clicks. Law: when every page
    that is `touched` has been placed, the features are, bit for bit, those of the batch over the
    log that is exported from the same store, with `as_crawled` pages. An answer that comes to be
    known only after its hour was read counts in the hour of that reading.

    Cost: some 240 bytes a page, and 3 bytes for every answer of the last month.
    """

    def __init__(self, edges: tuple[int, ...] = EDGES) -> None:
        self.edges = edges
        self.hour = 0  # up to which was read
        self._ids = np.empty(0, dtype=np.int64)  # row by row, in the order of the first answers
        self._row = np.empty(0, dtype=np.int32)  # of each page, by id
        self._crawler = Crawler(0, announced=False)
        self._host = np.empty(0, dtype=np.int32)
        self._brand = self._category = np.empty(0, dtype=np.uint64)  # hashes; 0 = unknown
        self._country = np.empty(0, dtype=np.int16)
        self._touched = np.empty(0, dtype=np.bool_)
        self._moved = False  # a page, to another group
        self._hosts: dict[str, int] = {}
        self._countries: list[str] = []
        self._past = FeatureStream(self._groups(), edges=edges, full=False, demand=False)

    def __len__(self) -> int:
        return len(self._ids)

    def learn(self, outcomes: Outcomes) -> None:
        """Take outcomes; those that are no later than the page's last known answer are known."""
        seen = outcomes.take(outcomes.answered)
        if not len(seen):
            return
        row, at = self._met(seen.page), seen.at.view(np.int64)
        order = np.lexsort((at, row))
        row, at, found = row[order], at[order], seen.changed[order]
        new = at > self._crawler.answer[row]
        row, at, found = row[new], at[new], found[new]
        unknown = np.full(len(row), np.nan, dtype=np.float32)
        events = self._crawler.learn(Answered(row, at, found == CHANGED, unknown, unknown))
        late = replace(events, hour=np.maximum(events.hour, self.hour))
        self._past.learn(late.ordered())
        self._touched[row[found != UNCHANGED]] = True  # only a new value tells new facts

    def touched(self) -> Ints:
        """The pages whose facts may be others than those known here, by id."""
        return self._ids[self._touched]

    def place(self, ids: Ints, facts: Facts) -> None:
        """Take up the facts of touched pages, in one go or several; a page keeps its first host."""
        row, known = self.rows(ids)
        row, some = row[known], np.flatnonzero(known)
        cut = {name: [facts[name][k] for k in some.tolist()] for name in FOLLOWED}
        host = np.array([self._hosts.setdefault(h or "", len(self._hosts)) for h in cut["host"]])
        fresh = self._host[row] < 0
        self._host[row[fresh]] = host[fresh]
        country = np.array([self._numbered(name) for name in cut["country"]], dtype=np.int16)
        brand, category = _hashed(cut["brand"]), _hashed(cut["category"])
        columns = (self._brand, brand), (self._category, category), (self._country, country)
        for column, told in columns:
            self._moved |= bool((column[row] != told).any())
            column[row] = told
        self._touched[row] = False
        if not self._touched.any() and (self._moved or len(self) > len(self._past)):
            self._past.regroup(self._groups())
            self._moved = False

    def read(self, rows: Ints, hour: int) -> Inputs:
        """The features of rows (see `rows`) in an hour, or in the last that was read if it is
        later. ValueError if a page is still to be placed."""
        if self._touched.any():
            raise ValueError(f"page {self.touched()[0]}: its facts are not known yet")
        self.hour = max(hour, self.hour)
        return self._past.read(rows, np.full(len(rows), self.hour))

    def rows(self, ids: Ints) -> tuple[Ints, Bools]:
        """The row of each page, and whether it has one: whether it has answered."""
        if not len(self):
            return places(self._ids, ids)
        at = np.searchsorted(self._ids, ids, sorter=self._row)
        row = self._row[np.minimum(at, len(self) - 1)].astype(np.int64)
        return row, self._ids[row] == ids

    def answered(self) -> Ints:
        """Hours of the last answer, row by row."""
        return np.asarray(self._crawler.answer // HOUR_US)

    def state(self) -> State:
        past = {f"past_{name}": column for name, column in self._past.state().items()}
        own = {name: getattr(self, f"_{name}") for name in _KEPT}
        own |= {"answer": self._crawler.answer, "hour": np.array(self.hour)}
        names = {"hosts": list(self._hosts), "countries": self._countries}
        return past | own | {name: np.array(each, np.str_) for name, each in names.items()}

    def restore(self, state: State) -> None:
        for name in _KEPT:
            setattr(self, f"_{name}", state[name].copy())
        self._index()
        self._crawler = Crawler(len(self), announced=False)
        self._crawler.answer = state["answer"].copy()
        self.hour = int(state["hour"])
        self._hosts = {name: number for number, name in enumerate(state["hosts"].tolist())}
        self._countries = state["countries"].tolist()
        counted = len(state["past_own"])  # pages that came since are not placed yet
        groups = self._groups().take(np.arange(counted))
        self._past = FeatureStream(groups, edges=self.edges, full=False, demand=False)
        self._past.restore(part_of(state, "past_"))

    def _met(self, ids: Ints) -> Ints:
        """The row of each page, a new one if need be."""
        row, known = self.rows(ids)
        if known.all():
            return row
        new = distinct(ids[~known])
        self._ids = np.append(self._ids, new)
        self._crawler.grow(len(new))
        for name in _KEPT[1:]:
            column = getattr(self, f"_{name}")
            none = 0 if column.dtype.kind in "ub" else -1
            setattr(self, f"_{name}", np.append(column, np.full(len(new), none, column.dtype)))
        self._index()
        return self.rows(ids)[0]

    def _index(self) -> None:
        self._row = np.argsort(self._ids, kind="stable").astype(np.int32)

    def _numbered(self, country: str | None) -> int:
        if country is None or not _COUNTRY.fullmatch(country):
            return -1
        if country not in self._countries:
            self._countries.append(country)
        return self._countries.index(country)

    def _groups(self) -> Groups:
        host = self._host.astype(np.int64)
        return Groups(
            category=numbered(self._category, self._category != 0),
            merchant=host,
            host=host,
            brand=numbered(self._brand, self._brand != 0),
            zone=np.full(len(self), -1, dtype=np.int64),
            country=self._country.astype(np.int64),
            zones=(),
            countries=tuple(self._countries),
        )


def as_crawled(pages: pl.DataFrame) -> pl.DataFrame:
    """The pages of an exported log as a crawl groups them: by host, which is known from the start
    and for good; a time zone is not known."""
    named = pl.col("country").cast(pl.String)
    country = pl.when(named.str.contains(f"^{_COUNTRY.pattern}$")).then(named)
    pages = pages.with_columns(merchant=pl.col("host"), country=country)
    return pages.drop("timezone", strict=False)


def _hashed(texts: Sequence[str | None]) -> Hashes:
    """A hash of each text that is not 0, or 0 if there is none."""
    each = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    code = np.maximum(hashes(each), np.uint64(1))
    if None in each:
        code[each[None]] = 0
    return np.asarray(code[[each[text] for text in texts]] if len(texts) else code)
