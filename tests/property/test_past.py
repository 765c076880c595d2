"""Laws of the features: a plain loop finds the same, chunks do not matter, no future is known."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.features.events import EventKind, Events
from salticus.features.groups import Groups
from salticus.features.names import EDGES, SEASON, WINDOWS
from salticus.features.past import FeatureStream

START = 17652 * 24  # 2018-05-01, a Tuesday and a holiday in Germany
PAGES, HOURS, DEPTH = 5, 1700, 2
GROUPS = Groups(
    category=np.array([0, 0, 1, 1, -1]),
    merchant=np.array([0, 0, 0, 1, -1]),
    host=np.array([0, 1, 0, 1, -1]),
    brand=np.array([-1, 0, 0, 1, 1]),
    zone=np.array([0, 0, 1, 1, -1]),
    country=np.array([0, 0, 1, 1, -1]),
    zones=("Asia/Kolkata", "Europe/Berlin"),
    countries=("DE", "??"),
)
Row = tuple[int, int, int, float, float, float]


@st.composite
def told(draw: Any) -> list[Row]:
    """Events of a few pages, sound and unsound ones, in order."""
    rows: list[Row] = []
    for page in range(PAGES):
        born = draw(st.integers(0, 300))
        if draw(st.integers(0, 5)):
            rows.append((born, page, EventKind.BORN, 8.0, math.nan, 1.0))
        price = st.sampled_from([1.0, 4.0, math.nan])
        for hour in draw(st.lists(st.integers(0, HOURS), max_size=8)):
            first, second = draw(price), draw(st.sampled_from([-0.5, 0.25, math.nan]))
            rows.append(
                (hour, page, EventKind.CHANGE, first, second, draw(st.sampled_from([0.0, 1.0])))
            )
        for hour in draw(st.lists(st.integers(0, HOURS), max_size=8)):
            gap = draw(st.sampled_from([math.nan, 0.5, 30.25]))
            rows.append((hour, page, EventKind.VISIT, gap, draw(price), math.nan))
        for hour in draw(st.lists(st.integers(0, HOURS), max_size=5)):
            rows.append(
                (hour, page, EventKind.DEMAND, 2.0, draw(st.sampled_from([math.nan, 9.0])), 0.0)
            )
        if not draw(st.integers(0, 3)):
            rows.append((draw(st.integers(0, HOURS)), page, EventKind.GONE, 0.0, 0.0, 0.0))
    crowd = draw(st.integers(0, HOURS))  # a batch
    rows += [
        (crowd, page, EventKind.CHANGE, 2.0, 0.1, 1.0) for page in range(draw(st.integers(0, 3)))
    ]
    return sorted((START + hour, *rest) for hour, *rest in rows)  # type: ignore[misc]


def events_of(rows: list[Row]) -> Events:
    columns = list(zip(*rows, strict=True)) if rows else [()] * 6
    kinds = (np.int64, np.int64, np.int8, np.float32, np.float32, np.float32)
    return Events(*(np.array(c, dtype=k) for c, k in zip(columns, kinds, strict=True)))  # type: ignore[arg-type]


def past(*, full: bool = False, demand: bool = True) -> FeatureStream:
    return FeatureStream(GROUPS, full=full, demand=demand, depth=DEPTH)


def read_at(machine: FeatureStream, hour: int) -> Any:
    return machine.read(np.arange(PAGES), np.full(PAGES, hour))


def same(a: Any, b: Any) -> bool:
    return np.array_equal(a.dense, b.dense, equal_nan=True) and np.array_equal(
        a.steps, b.steps, equal_nan=True
    )


hours = st.integers(1, HOURS + 20).map(lambda hour: START + hour)


# --------------------------------------------------------------------------------- the plain loop


class Plain:
    """The features of one page in one hour, by loops over everything that is known then."""

    def __init__(self, rows: list[Row], now: int, full: bool) -> None:
        self.now, self.full = now, full
        self.born: dict[int, int] = {}
        self.gone: dict[int, int] = {}
        self.known = [row for row in rows if row[0] < now and self._counts(row)]

    def _counts(self, row: Row) -> bool:
        hour, page, kind = row[:3]
        there = page in self.born and page not in self.gone
        if there == (kind == EventKind.BORN) or page in self.gone:
            return False
        if kind == EventKind.BORN:
            self.born[page] = hour
        if kind == EventKind.GONE:
            self.gone[page] = hour
        return True

    def of(self, kind: EventKind, pages: list[int], low: int = 0) -> list[Row]:
        return [r for r in self.known if r[2] == kind and r[1] in pages and r[0] >= low]

    def life(self, page: int, low: int = 0) -> range:
        if page not in self.born:
            return range(0)
        return range(max(low, self.born[page]), min(self.now, self.gone.get(page, self.now)))

    def rate(self, pages: list[int], window: int) -> float:
        low = self.now - window
        seen = sum(len(self.life(p, low)) for p in pages)
        return ratio(len(self.of(EventKind.CHANGE, pages, low)), seen)

    def last(self, page: int) -> int:
        return max([r[0] for r in self.of(EventKind.CHANGE, [page])] + [self.born[page]])

    def features(self, page: int) -> dict[str, float]:
        found = self.clock(page) | self.week("all", list(range(PAGES)))
        for name, window in WINDOWS.items():
            found[f"all_{name}"] = self.rate(list(range(PAGES)), window)
        for family in ("category", "merchant", "host", "brand"):
            peers = peers_of(getattr(GROUPS, family), page)
            for name, window in WINDOWS.items():
                found[f"{family}_{name}"] = self.rate(peers, window)
        both = [p for p in peers_of(GROUPS.merchant, page) if p in peers_of(GROUPS.category, page)]
        for name, window in WINDOWS.items():
            found[f"shelf_{name}"] = self.rate(both, window)
        alive = [
            p for p in peers_of(GROUPS.category, page) if p in self.born and p not in self.gone
        ]
        ages = [self.now - self.last(p) for p in alive]
        found["category_recent"] = ratio(sum(ages), len(ages))
        found |= self.lately(page) | self.week("merchant", peers_of(GROUPS.merchant, page))
        return found | (self.own(page) | self.demand(page) if page in self.born else {})

    def own(self, page: int) -> dict[str, float]:
        found = {f"page_{name}": self.rate([page], w) for name, w in WINDOWS.items()}
        changes = self.of(EventKind.CHANGE, [page])
        found["page_hours"], found["page_all"] = self.rate([page], 6), self.rate([page], self.now)
        found["page_recent"], found["page_changes"] = self.now - self.last(page), len(changes)
        if len(changes) > 1:
            found["page_gap"] = changes[-1][0] - changes[-2][0]
        found["page_age"] = self.now - self.born[page]
        if changes:
            found["move"] = changes[-1][4]
        return found | self.watched(page) | self.price(page)

    def watched(self, page: int) -> dict[str, float]:
        low = self.now - 720
        visits = self.of(EventKind.VISIT, [page], low)
        spans = [r[3] for r in visits if not math.isnan(r[3])]
        n, hours = len(spans), sum(spans)
        found: dict[str, float] = {"page_visits": len(visits)}
        if answers := self.of(EventKind.VISIT, [page]):
            found["page_since"] = self.now - answers[-1][0]
        if self.full:
            n = hours = len(self.life(page, low))
            found = {"page_visits": n, "page_since": 0}
        changed = min(n, len(self.of(EventKind.CHANGE, [page], low)))
        if n and hours:
            found["page_rate"] = -math.log((n - changed + 0.5) / (n + 0.5)) * n / hours
        return found

    def price(self, page: int) -> dict[str, float]:
        prices: list[float] = []
        found = {}
        for r in self.known:
            if r[1] == page and r[2] <= EventKind.VISIT:
                new = r[4] if r[2] == EventKind.VISIT else r[3]
                again = r[2] == EventKind.VISIT and prices[-1:] == [new]
                prices += [] if math.isnan(new) or again else [new]
                found |= {} if math.isnan(r[5]) else {"in_stock": r[5]}
        if prices:
            mean = sum(prices) / len(prices)
            found |= {"price": math.log(prices[-1]), "price_place": math.log(prices[-1] / mean)}
        return found

    def demand(self, page: int) -> dict[str, float]:
        found = {}
        shown = any(not math.isnan(r[4]) for r in self.of(EventKind.DEMAND, list(range(PAGES))))
        for name, w in (WINDOWS | {"fortnight": 336}).items():
            rows = self.of(EventKind.DEMAND, [page], self.now - w)
            hours = len(self.life(page, self.now - w))
            found[f"clicks_{name}"] = ratio(24 * sum(r[3] for r in rows), hours)
            seen = sum(r[4] for r in rows if not math.isnan(r[4]))
            found[f"impressions_{name}"] = ratio(24 * seen, hours) if shown else math.nan
        return found

    def lately(self, page: int) -> dict[str, float]:
        peers, found = peers_of(GROUPS.merchant, page), {}
        at = [r[0] for r in self.of(EventKind.CHANGE, peers)]
        if at:
            found["merchant_recent"] = self.now - at[-1]
        batches = [h for h in at if at.count(h) > max(1, self.pages_at(peers, h) / 50 - 1e-9)]
        if batches:
            found["merchant_batch"] = self.now - batches[-1]
        own = self.of(EventKind.VISIT, [page])
        if self.full or not own:
            return found
        for name, group in (("merchant", peers), ("host", peers_of(GROUPS.host, page))):
            found |= self.found(name, group, own[-1][0]) if group else {}
        return found | {"all_found": self.found("", list(range(PAGES)), own[-1][0])["_found"]}

    def found(self, name: str, pages: list[int], since: int) -> dict[str, float]:
        answers, changes = (
            len(self.of(k, pages, since + 1)) for k in (EventKind.VISIT, EventKind.CHANGE)
        )
        return {f"{name}_seen": answers, f"{name}_found": ratio(changes, answers)}

    def pages_at(self, pages: list[int], hour: int) -> int:
        ends = [(self.born[p], self.gone.get(p, self.now)) for p in pages if p in self.born]
        return sum(born <= hour < gone for born, gone in ends)

    def week(self, name: str, pages: list[int]) -> dict[str, float]:
        low = self.now - SEASON
        changes, watched = np.zeros(168), np.zeros(168)
        for r in self.of(EventKind.CHANGE, pages, low):
            changes[cell(r[0])] += 1
        for page in pages:
            np.add.at(watched, [cell(h) for h in self.life(page, low)], 1)
        if not watched.sum():
            return {}
        rates = np.full(168, changes.sum() / watched.sum())
        np.divide(changes, watched, out=rates, where=watched > 0)
        found, before = {}, 0
        for edge in EDGES:
            ahead = [cell(self.now + k) for k in range(before, edge)]
            found[f"{name}_ahead_{edge}"], before = float(rates[ahead].sum()), edge
        day, hour = cell(self.now) // 24, cell(self.now) % 24
        if name == "merchant":
            both = changes.reshape(7, 24), watched.reshape(7, 24)
            found["merchant_weekday"] = ratio(24 * both[0][day].sum(), both[1][day].sum())
            found["merchant_hour"] = ratio(both[0][:, hour].sum(), both[1][:, hour].sum())
        return found

    def clock(self, page: int) -> dict[str, float]:
        found: dict[str, float] = {"weekday": cell(self.now) // 24, "hour": self.now % 24}
        minutes = {0: 330, 1: 120, -1: 0}[int(GROUPS.zone[page])]  # all of it is in summer
        local = (60 * self.now + minutes) // 60
        if page < 4:
            found |= {"local_weekday": cell(local) // 24, "local_hour": local % 24}
        if page < 2:
            feasts = {START // 24 + d for d in (0, 9, 20)}  # Labour Day, Ascension, Whit Monday
            found["holiday"] = local // 24 in feasts
        return found


def cell(hour: int) -> int:
    return (hour + 72) % 168


def ratio(count: float, of: float) -> float:
    return count / of if of else math.nan


def peers_of(codes: Any, page: int) -> list[int]:
    return [] if codes[page] < 0 else [p for p in range(PAGES) if codes[p] == codes[page]]


@settings(max_examples=30, deadline=None)
@given(told(), st.lists(hours, min_size=1, max_size=4).map(sorted), st.booleans())
def test_the_plain_loop_finds_the_same(rows: list[Row], when: list[int], full: bool) -> None:
    machine = past(full=full)
    machine.learn(events_of(rows))
    for now in when:
        found, plain = read_at(machine, now), Plain(rows, now, full)
        for page in range(PAGES):
            expected = plain.features(page)
            assert set(expected) <= set(machine.names)
            mine = dict(zip(machine.names, found.dense[page].tolist(), strict=True))
            wanted = {name: expected.get(name, math.nan) for name in machine.names}
            wrong = {n: (mine[n], wanted[n]) for n in mine if not close(mine[n], wanted[n])}
            assert wrong == {}, page


def close(a: float, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9)


# ----------------------------------------------------------------------------------------- the laws


@settings(max_examples=30, deadline=None)
@given(told(), st.lists(hours, min_size=1, max_size=6).map(sorted), st.data())
def test_chunks_and_reads_between_them_change_no_bit(
    rows: list[Row], when: list[int], data: Any
) -> None:
    whole, piecewise = past(), past()
    whole.learn(events_of(rows))
    at_once = [read_at(whole, hour) for hour in when]
    done = 0
    for hour, expected in zip(when, at_once, strict=True):
        due = sum(row[0] < hour for row in rows)
        for cut in sorted({*data.draw(st.lists(st.integers(done, due), max_size=3)), due}):
            piecewise.learn(events_of(rows[done:cut]))
            done = cut
        if data.draw(st.booleans()):
            fresh = past()
            fresh.restore(piecewise.state())
            piecewise = fresh
        assert same(read_at(piecewise, hour), expected)
        assert (piecewise.known(np.arange(PAGES)) >= 0).all()


@settings(max_examples=30, deadline=None)
@given(told(), told(), hours)
def test_what_happens_from_the_hour_on_is_not_known(
    rows: list[Row], others: list[Row], hour: int
) -> None:
    found = []
    for future in (rows, others, []):
        machine = past()
        before, after = (
            [r for r in each if (r[0] < hour) == old]
            for each, old in ((rows, True), (future, False))
        )
        machine.learn(events_of(before + after))
        found.append(read_at(machine, hour))
    assert same(found[0], found[1])
    assert same(found[0], found[2])


@settings(max_examples=15, deadline=None)
@given(told(), hours, st.randoms(use_true_random=False))
def test_the_order_of_a_chunk_and_of_pages_does_not_matter(
    rows: list[Row], hour: int, chance: Any
) -> None:
    tidy, mixed = past(), past()
    keys = [row[:3] for row in rows]
    rows = [row for row in rows if keys.count(row[:3]) == 1]  # else their own order tells
    tidy.learn(events_of(rows))
    mixed.learn(events_of(chance.sample(rows[len(rows) // 2 :], len(rows) - len(rows) // 2)))
    mixed.learn(events_of(chance.sample(rows[: len(rows) // 2], len(rows) // 2)))
    order = np.array(chance.sample(range(PAGES), PAGES))
    a, b = read_at(tidy, hour), mixed.read(order, np.full(PAGES, hour))
    assert same(replace(a, dense=a.dense[order], steps=a.steps[order]), b)
