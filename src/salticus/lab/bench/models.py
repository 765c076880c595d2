"""`salticus bench models`: what models cost a crawl: features, scores, and the whole process."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np
import polars as pl

from salticus.config import Budget, Config
from salticus.crawl.assembly import crawler
from salticus.crawl.live import Live
from salticus.crawl.loop import Loop
from salticus.crawl.parts import registry_of
from salticus.crawl.snapshot import give_back
from salticus.errors import SalticusError
from salticus.features.following import Following, as_crawled
from salticus.features.metadata import Vocabulary
from salticus.features.names import METADATA, all_names, chosen
from salticus.lab.bench import Told, answer, measured, new_peak, peak
from salticus.lab.bench.tick import START, crawl_config, crawl_tick, fill_store
from salticus.models.deep import CYCLES, DeepModel, Layout
from salticus.models.file import Saved, asked, save_model
from salticus.models.linear import LinearModel
from salticus.models.model import Calibrated, Curve, Model
from salticus.models.trees import Encoding, Forest, TreesModel
from salticus.predict.serving import Serving
from salticus.types import CHANGED, Floats, Floats32, Ints, Outcomes, Plan
from salticus.types.coins import coins
from salticus.types.dates import DAY_US, HOUR_US
from salticus.types.state import State

CONTESTS = ("features", "linear", "trees", "dnn", "process")
KINDS = ("linear", "trees", "dnn")

_DAYS = 30  # of visits, one a page and day
_TICKS = 3  # that are planned, made and saved in the process
_HOSTS, _BRANDS, _SHELVES = 1000, 2000, 600
_EDGES = (6, 24, 72, 168, 336)
_SERVED = {"change": _EDGES, "click": (24,), "impression": (24,)}
_BLOCK = 50_000  # pages that are asked about at a time, as in a crawl
_TREES, _LEAVES = 300, 15  # as big as forests become
_FIRST = (START.timestamp() * 1e6 - _DAYS * DAY_US) // HOUR_US * HOUR_US  # µs


def bench(
    *, pages: int = 1_000_000, contests: Sequence[str] = CONTESTS, told: Told = lambda step: None
) -> Iterator[dict[str, Any]]:
    """A row for each contest, each in a process of its own, for pages that are visited once a day.

    features: learnt from a month of visits and read. linear, trees, dnn: the features read once and
    scored by three models of that kind, of change with five horizons and of click and impression
    with one; models as big as the usual settings make them, their numbers at random. process: a
    crawl with a store and models of trees of all three that serve, its month of visits, some ticks
    and their snapshots. `cpu s/M` is processor time for a million pages, `wall s/M` what it took on
    the cores there are; the columns are explained in docs/reference/cli.md.
    """
    for contest in contests:
        told(f"{contest}, {pages:,} pages")
        found = measured(contest, "models", contest, pages)
        yield {"what": contest, "pages": pages, **_told(found, pages)}


def _told(found: dict[str, float], pages: int) -> dict[str, Any]:
    """The figures of a contest as a row; None where a contest has no such figure."""
    each = {name: found.get(name) for name in ("learn", "read", "score", "wall", "tick")}
    spelt = {f"{name} s/M": s and round(1e6 * s / pages, 2) for name, s in each.items()}
    sizes = {name: found.get(name) for name in ("arrays", "bytes")}
    return {
        **spelt,
        "arrays B/page": sizes["arrays"] and round(sizes["arrays"] / pages),
        "RSS B/page": sizes["bytes"] and round(sizes["bytes"] / pages),
        "peak MB": round(found["peak"] / 1e6),
    }


def contest(name: str, pages: int) -> dict[str, float]:
    """The figures of one contest: processor seconds, and bytes."""
    if name not in CONTESTS:
        raise SalticusError(f"there is no contest {name}, only {', '.join(CONTESTS)}")
    if name in KINDS:
        return scoring(name, pages)
    return features(pages) if name == "features" else process(pages)


# -------------------------------------------------------------------------------------- features


def features(pages: int) -> dict[str, float]:
    """A month of visits learnt, and all pages read."""
    _read(_followed(100, 2), 100)  # compiles
    base = new_peak()
    following = _followed(pages, _DAYS - 1)
    last, began = list(_a_day(pages, _DAYS - 1)), time.process_time()
    for hour in last:
        _learn(following, hour)
    learnt = time.process_time()
    _read(following, pages)
    read = time.process_time()
    return {
        "learn": learnt - began,
        "read": read - learnt,
        "arrays": float(array_bytes(following)),
        "bytes": peak() - base,
        "peak": peak(),
    }


def _followed(pages: int, days: int) -> Following:
    """The features of pages that were visited once a day, on the hour by which they are called."""
    following = Following(_EDGES)
    for day in range(days):
        for hour in _a_day(pages, day):
            _learn(following, hour)
    return following


def _learn(following: Following, outcomes: Outcomes) -> None:
    """As a crawl does: outcomes, what they tell of pages, and on to the next hour."""
    following.learn(outcomes)
    touched = following.touched()
    following.place(touched, _facts(touched))
    following.read(np.arange(1), _hour(outcomes) + 1)


def _a_day(pages: int, day: int) -> Iterator[Outcomes]:
    """The visits of a day, hour by hour; one in ten finds a change."""
    for hour in range(24):
        ids = np.arange(1 + hour, pages + 1, 24)
        at = (_FIRST + (24 * day + hour) * HOUR_US + coins(day, ids, hour) * HOUR_US).astype("i8")
        before = (at - DAY_US).view("M8[us]") if day else np.full(len(ids), np.datetime64("NaT"))
        changed = np.where(coins(day + 1000, ids, hour) < 0.1, CHANGED, 0).astype(np.int8)
        outcomes = Outcomes.known(
            visit=ids, page=ids, at=at.view("M8[us]"), since=before.astype("M8[us]")
        )
        yield replace(outcomes, changed=changed) if day else outcomes


def _hour(outcomes: Outcomes) -> int:
    return int(outcomes.at[0].astype(np.int64)) // HOUR_US


def _facts(ids: Ints) -> dict[str, list[str | None]]:
    """What the store would tell of pages."""
    numbers = ids.tolist()
    return {
        "host": [f"shop{n % _HOSTS}.example" for n in numbers],
        "brand": [f"brand {n * 7 % _BRANDS}" for n in numbers],
        "category": [f"a{n % 30} > b{n % 150} > c{n % _SHELVES}" for n in numbers],
        "country": ["DE" for _ in numbers],
    }


def _read(following: Following, pages: int) -> None:
    for low in range(0, pages, _BLOCK):
        following.read(np.arange(low, min(pages, low + _BLOCK)), following.hour)


def array_bytes(part: object) -> int:
    """Bytes of all arrays that an object holds, itself or through others; each array once."""
    seen: dict[int, int] = {}
    waiting, met = [part], set()
    while waiting:
        each = waiting.pop()
        if id(each) in met or isinstance(each, str | bytes | int | float | type | Callable):
            continue
        met.add(id(each))
        if isinstance(each, np.ndarray):
            owner = each if each.base is None else each.base
            seen[id(owner)] = getattr(owner, "nbytes", each.nbytes)
        elif isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, list | tuple | set):
            waiting.extend(each)
        else:
            waiting.extend(getattr(each, "__dict__", {}).values())
            slots = getattr(type(each), "__slots__", ())
            waiting.extend(getattr(each, name, None) for name in slots)
    return sum(seen.values())


# --------------------------------------------------------------------------------------- scoring


def scoring(kind: str, pages: int) -> dict[str, float]:
    """The features of all pages read, and three models asked, block after block."""
    following = _followed(pages, 3)
    words = vocabulary()
    models = [a_model(kind, _EDGES, seed=1), *(a_model(kind, (24,), seed=k) for k in (2, 3))]
    known = words.encode(as_crawled(pl.DataFrame(_facts(np.arange(1, _BLOCK + 1)))))
    base = new_peak()
    for block in (min(pages, 5000), pages):  # the first time compiles
        read = score = wall = 0.0
        for low in range(0, block, _BLOCK):
            rows = np.arange(low, min(pages, low + _BLOCK))
            marks = [(time.process_time(), time.perf_counter())]
            inputs = replace(following.read(rows, following.hour), page=np.arange(len(rows)))
            marks.append((time.process_time(), time.perf_counter()))
            metadata = known.take(np.arange(len(rows)))
            for model in models:
                model.hazards(inputs, metadata)
            marks.append((time.process_time(), time.perf_counter()))
            read += marks[1][0] - marks[0][0]
            score += marks[2][0] - marks[1][0]
            wall += marks[2][1] - marks[0][1]
    return {"read": read, "score": score, "wall": wall, "bytes": peak() - base, "peak": peak()}


def vocabulary() -> Vocabulary:
    """The values of all pages' facts."""
    frame = as_crawled(pl.DataFrame(_facts(np.arange(5 * 30_000))))
    return Vocabulary.fit(frame, np.ones(len(frame), dtype=np.bool_), METADATA)


def a_model(kind: str, edges: tuple[int, ...], seed: int = 0) -> Calibrated:
    """A model of that kind as big as the usual settings make it; its numbers are random."""
    made: dict[str, Callable[[tuple[int, ...], int], Model]]
    made = {"linear": _a_line, "trees": _trees, "dnn": _network}
    curve = Curve("platt", 1.0, 0.0)
    return Calibrated(made[kind](edges, seed), (curve,) * len(edges))


def _a_line(edges: tuple[int, ...], seed: int) -> LinearModel:
    slope = np.full((len(edges), 8), 0.1)
    return LinearModel("combined", edges, slope, -slope, np.full(len(edges), -2.0), np.empty(0))


def _trees(edges: tuple[int, ...], seed: int) -> TreesModel:
    from salticus.models.training.trees import PAIRS

    chance, choice = np.random.default_rng(seed), chosen("visits", "both", _EDGES)
    empty = vocabulary().encode(pl.DataFrame({"brand": ["x"]}))
    fields = choice.fields(empty)
    sizes = tuple(empty.sizes[empty.fields.index(name)] for name in fields)
    table = chance.normal(-2, 0.5, (len(edges), sum(sizes))).astype(np.float32)
    titles = chance.normal(-2, 0.5, (len(edges), empty.buckets)).astype(np.float32)
    encoding = Encoding(fields, sizes, table, titles)
    columns = len(choice.dense) + len(PAIRS) + len(encoding.names)
    forests = tuple(_forest(chance, columns) for _ in edges)
    return TreesModel(choice.dense, PAIRS, encoding, forests)


def _forest(chance: np.random.Generator, columns: int) -> Forest:
    """Trees of random splits."""
    trees = [_tree(chance, columns) for _ in range(_TREES)]
    root = np.cumsum([0, *(len(nodes) for nodes, _ in trees)])[:-1]
    moved = [nodes + [0, 0, start, 0] for (nodes, _), start in zip(trees, root, strict=True)]
    feature, threshold, first, value = np.concatenate(moved).T
    return Forest(
        feature=feature.astype(np.uint32),
        threshold=threshold.astype(np.float32),
        unknown_first=np.ones(len(feature), dtype=np.bool_),
        first=first.astype(np.uint32),
        value=value,
        root=root.astype(np.uint32),
        depth=np.array([depth for _, depth in trees]),
        baseline=-2.0,
    )


def _tree(chance: np.random.Generator, columns: int) -> tuple[Floats, int]:
    """Nodes (feature, threshold, first child, value), and how deep they lie; one of the two oldest
    leaves is split until there are enough."""
    nodes, leaves = [[0.0, np.inf, 0.0, chance.normal(0, 0.01)]], [(0, 0)]
    while len(leaves) < _LEAVES:
        at, deep = leaves.pop(int(chance.integers(min(2, len(leaves)))))
        column, limit = float(chance.integers(columns)), float(np.exp(chance.normal(-3, 2)))
        nodes[at] = [column, limit, float(len(nodes)), 0.0]
        leaves += [(len(nodes), deep + 1), (len(nodes) + 1, deep + 1)]
        places = range(len(nodes), len(nodes) + 2)
        nodes += [[0.0, np.inf, float(k), chance.normal(0, 0.01)] for k in places]
    return np.array(nodes), max(deep for _, deep in leaves)


def _network(edges: tuple[int, ...], seed: int) -> DeepModel:
    chance, choice = np.random.default_rng(seed), chosen("visits", "both", _EDGES)
    empty = vocabulary().encode(pl.DataFrame({"brand": ["x"]}))
    fields = choice.fields(empty)
    sizes = tuple(empty.sizes[empty.fields.index(name)] for name in fields)
    names = tuple(name for name in choice.dense if name not in CYCLES)
    layout = Layout(
        names=names,
        holes=tuple(range(len(names))),
        cycles=tuple(name for name in choice.dense if name in CYCLES),
        fields=fields,
        sizes=sizes,
        widths=tuple(min(16, 4 + int(np.log2(size))) for size in sizes),
        buckets=empty.buckets,
        word=16,
        outputs=len(edges),
    )

    def some(*shape: int) -> Floats32:
        return (chance.standard_normal(shape, dtype=np.float32) * 0.1).astype(np.float32)

    one = np.ones(len(names), dtype=np.float32)
    arrays: State = {"scale": one, "middle": 0 * one, "spread": one}
    arrays["words"] = some(layout.buckets, layout.word)
    arrays |= {f"cycle/{name}": some(CYCLES[name] + 1, layout.cycle) for name in layout.cycles}
    tables = zip(fields, sizes, layout.widths, strict=True)
    arrays |= {f"field/{name}": some(size, width) for name, size, width in tables}
    for name, before, after in layout.levels():
        arrays |= {f"{name}/weight": some(before, after), f"{name}/bias": some(after)}
    return DeepModel(layout, arrays)


# --------------------------------------------------------------------------------------- process


def process(pages: int) -> dict[str, float]:
    """A crawl on a real store in which models serve: a month of visits, then ticks."""
    with TemporaryDirectory(prefix="salticus-bench-") as folder:
        config = msgspec.structs.replace(crawl_config(Path(folder)), budget=Budget.parse("100%"))
        measured("filling", "models", "fill", pages, folder)
        new_peak()
        return asyncio.run(_process(config, pages))


def _serve(config: Config) -> None:
    """Have models of all three tasks serve the crawl; made where they take no memory of it."""
    words = vocabulary()
    inputs = asked(all_names(_EDGES), 0, words.encode(pl.DataFrame({"brand": ["x"]})))
    kept, recipe = (words.settings(), words.arrays()), {"edges": list(_EDGES)}
    for seed, (task, edges) in enumerate(_SERVED.items()):
        registry = registry_of(config, task)
        about = {"task": task, "edges": list(edges), "inputs": inputs, "recipe": recipe}
        save_model(registry.path(1), Saved(a_model("trees", edges, seed), kept, about))
        registry.pin(1, START)


async def _process(config: Config, pages: int) -> dict[str, float]:
    async with crawler(config) as loop:
        plan = await loop.plan(crawl_tick(0))
        predictor = loop.parts.predictor
        assert isinstance(predictor, Serving)
        served = predictor, loop.parts.clicks, loop.parts.impressions
        assert [part and part.version_ for part in served] == [1, 1, 1]
        predictor.followed.streams_.clear()
        predictor.followed.streams_[_EDGES] = _followed(pages, _DAYS)
        give_back()
        base, began = new_peak(), time.process_time()
        for number in range(1, _TICKS + 1):
            await loop.snapshot.save(plan)
            _make(loop, plan)
            plan = await loop.plan(crawl_tick(number))
        seconds = (time.process_time() - began) / _TICKS
        arrays = float(array_bytes(predictor.followed))
    return {"tick": seconds, "arrays": arrays, "bytes": base, "peak": peak()}


def _make(loop: Loop, plan: Plan) -> None:
    """Let the visits of a plan be answered when they are due; one in ten finds a change."""
    assert isinstance(loop.world, Live)
    pages = loop.world.census.everyone(plan.tick, lambda _: 0.0)
    since = pages.last_answer[pages.rows(plan.page)]
    found = coins(plan.tick.number, plan.page, 0) < 0.1
    drawn = {"purpose": plan.purpose, "propensity": plan.propensity, "chance": plan.chance}
    outcomes = Outcomes.known(visit=plan.visit, page=plan.page, at=plan.due, since=since, **drawn)
    outcomes = replace(outcomes, changed=found.astype(np.int8))
    loop.world.census.learn(outcomes)
    loop.learn(outcomes)


if __name__ == "__main__":
    name, size, *more = sys.argv[1:]
    if name == "fill":
        asyncio.run(fill_store(Path(more[0]), int(size)))
        _serve(crawl_config(Path(more[0])))
        answer({})
    else:
        answer(contest(name, int(size)))
