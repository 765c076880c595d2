"""The features of a crawl's pages, fed by the outcomes of its visits as they come."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from salticus.features.events import Answered, Crawler, EventKind, make_events
from salticus.features.groups import Groups, numbered
from salticus.features.metadata import Hashes, hashes
from salticus.features.names import EDGES
from salticus.features.past import FeatureStream
from salticus.features.places import Places
from salticus.types import CHANGED, UNCHANGED, Bools, Counts, Inputs, Ints, Outcomes, distinct
from salticus.types.dates import HOUR_US
from salticus.types.frames import pl
from salticus.types.state import State, part_of, places

Facts = Mapping[str, Sequence[str | None]]
"""What is known of pages without their history, row by row: `host`, `brand`, `category`, …"""

FOLLOWED = ("host", "brand", "category", "country")
"""The facts by which pages are grouped; merchant and time zone follow from them (`Places`)."""

NOWHERE = Places()
"""Where the settings say nothing of hosts."""

_COUNTRY = re.compile("[A-Z]{2,3}")  # whatever pages say: there are not many of these
_KEPT = ("ids", "host", "brand", "category", "country", "touched")


class Following:
    """Learns the outcomes of visits and what was counted of clicks, and tells features of pages.

    A page is born with its first answer; of one that was only met no more is known than what it is.
    Law: when every page that is `touched` has been placed, the features are,
    bit for bit, those of the batch over the log that is exported from the same store, with
    `as_crawled` pages. An answer or a click that comes to be known only after its hour was read
    counts in the hour of that reading.

    Cost: some 240 bytes a page (50 more with clicks), and 3 bytes for every answer, and every hour
    of a page with clicks, of the last month.
    """

    def __init__(self, edges: tuple[int, ...] = EDGES, places: Places = NOWHERE) -> None:
        self.edges = edges
        self.places = places
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
        new = np.flatnonzero(at > self._crawler.answer[row])
        order = new[np.lexsort((at[new], row[new]))]
        row, at, found = row[order], at[order], seen.changed[order]
        price, stock = (each[order].astype(np.float32) for each in (seen.price, seen.stock))
        events = self._crawler.learn(Answered(row, at, found == CHANGED, price, stock))
        late = replace(events, hour=np.maximum(events.hour, self.hour))
        self._past.learn(late.ordered())
        self._touched[row[found != UNCHANGED]] = True  # only a new value tells new facts

    def count(self, counts: Counts) -> None:
        """Take clicks and impressions, each row once."""
        if not len(counts):
            return
        if not self._past.demand:
            self._past.with_demand()
        row, hour = self._met(counts.page), counts.at.view(np.int64) // HOUR_US
        told = (each.astype(np.float32) for each in (counts.clicks, counts.impressions))
        late = np.maximum(hour, self.hour)
        self._past.learn(make_events(EventKind.DEMAND, late, row, *told).ordered())

    def meet(self, ids: Ints) -> None:
        """Let pages be known that have not answered yet."""
        self._met(ids)

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
        """The row of each page, and whether it has one: whether it was met."""
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
        own |= {"demand": np.array(self._past.demand), "price": self._crawler.price}
        names = {"hosts": list(self._hosts), "countries": self._countries}
        return past | own | {name: np.array(each, np.str_) for name, each in names.items()}

    def restore(self, state: State) -> None:
        for name in _KEPT:
            setattr(self, f"_{name}", state[name].copy())
        self._index()
        self._crawler = Crawler(len(self), announced=False)
        self._crawler.answer, self._crawler.price = state["answer"].copy(), state["price"].copy()
        self.hour = int(state["hour"])
        self._hosts = {name: number for number, name in enumerate(state["hosts"].tolist())}
        self._countries = state["countries"].tolist()
        counted = len(state["past_own"])  # pages that came since are not placed yet
        groups = self._groups().take(np.arange(counted))
        demand = bool(state["demand"])
        self._past = FeatureStream(groups, edges=self.edges, full=False, demand=demand)
        self._past.restore(part_of(state, "past_"))

    def _met(self, ids: Ints) -> Ints:
        """The row of each page, a new one if need be; its facts are not known yet."""
        row, known = self.rows(ids)
        if known.all():
            return row
        new = distinct(ids[~known])
        self._ids = np.append(self._ids, new)
        self._crawler.grow(len(new))
        for name in _KEPT[1:]:
            column = getattr(self, f"_{name}")
            none = {"u": 0, "b": True}.get(column.dtype.kind, -1)
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
        host, merchants = self._host.astype(np.int64), dict[str, int]()
        whose = [merchants.setdefault(self.places.merchant(h), len(merchants)) for h in self._hosts]
        zone, zones = self._zones()
        return Groups(
            category=numbered(self._category, self._category != 0),
            merchant=np.array([*whose, -1], dtype=np.int64)[host],  # the last: not placed yet
            host=host,
            brand=numbered(self._brand, self._brand != 0),
            zone=zone,
            country=self._country.astype(np.int64),
            zones=zones,
            countries=tuple(self._countries),
        )

    def _zones(self) -> tuple[Ints, tuple[str, ...]]:
        """The number of each page's time zone, -1 = unknown, and the names of them."""
        hosts, zones = [*self._hosts], dict[str, int]()
        span = len(self._countries) + 1
        pairs, which = np.unique(
            self._host.astype(np.int64) * span + self._country + 1, return_inverse=True
        )
        code = np.full(len(pairs), -1, dtype=np.int64)
        for place, pair in enumerate(pairs.tolist()):
            host, country = divmod(pair, span)
            name = self.places.zone(
                hosts[host] if host >= 0 else "", self._countries[country - 1] if country else None
            )
            if name is not None:
                code[place] = zones.setdefault(name, len(zones))
        return code[which], tuple(zones)


def as_crawled(pages: pl.DataFrame, places: Places = NOWHERE) -> pl.DataFrame:
    """The pages of an exported log as a crawl groups them: by host, which is known from the start
    and for good, and what follows from it and the country."""
    named = pl.col("country").cast(pl.String)
    country = pl.when(named.str.contains(f"^{_COUNTRY.pattern}$")).then(named)
    pages = pages.with_columns(country=country)
    hosts = [host or "" for host in pages["host"].cast(pl.String).to_list()]
    whose = {host: places.merchant(host) for host in dict.fromkeys(hosts)}
    both = [*zip(hosts, pages["country"].to_list(), strict=True)]
    zones = {pair: places.zone(*pair) for pair in dict.fromkeys(both)}
    return pages.with_columns(
        merchant=pl.Series([whose[host] for host in hosts], dtype=pl.String),
        timezone=pl.Series([zones[pair] for pair in both], dtype=pl.String),
    )


def _hashed(texts: Sequence[str | None]) -> Hashes:
    """A hash of each text that is not 0, or 0 if there is none."""
    each = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    code = np.maximum(hashes(each), np.uint64(1))
    if None in each:
        code[each[None]] = 0
    return np.asarray(code[[each[text] for text in texts]] if len(texts) else code)
