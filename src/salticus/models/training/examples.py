"""Examples of a log: what was known at a moment, and what came of it (Han et al. 2019, 4.1).

The log is gone through once, a UTC day at a time, and each day becomes a file. In memory are the
truth of the log (its change points), what `FeatureStream` keeps, and one day.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.features.events import EventKind, Events, among, make_events, runs
from salticus.features.groups import groups_of
from salticus.features.metadata import hashes
from salticus.features.names import all_names
from salticus.features.past import FeatureStream
from salticus.features.seen import pages_of, seen_events
from salticus.models.training import labels
from salticus.models.training.moments import BINS, Sampler, VisitsByDay
from salticus.models.training.recipe import (
    PARTS,
    TASKS,
    Recipe,
    TimeSpan,
    click_weights,
    seen_pages,
    spans_of,
    uniform_pages,
)
from salticus.models.training.shards import (
    FORMAT,
    MANIFEST,
    Shard,
    Shards,
    read_manifest,
    rows_of,
    write_manifest,
    write_shard,
)
from salticus.types import STEP, Bools, Floats
from salticus.types.dates import HOUR_US
from salticus.types.frames import pl
from salticus.types.inputs import Bytes
from salticus.types.state import State
from salticus.version import VERSION

Told = Callable[[str], None]


def make_examples(log: Log, recipe: Recipe, folder: Path, told: Told = lambda step: None) -> Shards:
    """Make the examples that a recipe asks for, or what is still missing of them.

    The same log and recipe give the same files, whether the work was interrupted or not. Training
    has seen pages only, of all strata; the other parts all pages of the uniform stratum only.
    """
    check_recipe(log, recipe)
    folder.mkdir(parents=True, exist_ok=True)
    work = _prepared(log, recipe)
    if (done := _complete(folder, work.fingerprint)) is not None:
        return done
    (folder / MANIFEST).unlink(missing_ok=True)
    with TemporaryDirectory(dir=folder, prefix="visits-") as space:
        visits = _visits(log, work.pages, recipe, Path(space))
        told("counting moments")
        counted = work.sampler.rates(work.spans, visits)
        rates, shards = {part: rate for part, (rate, _) in counted.items()}, []
        for shard in _made(work, visits, rates, folder):
            told(f"{shard.part} {shard.file}: {shard.rows} examples")
            shards.append(shard)
    return _finished(folder, work, counted, shards)


def check_recipe(log: Log, recipe: Recipe) -> None:
    """InputError if a recipe makes no sense, or the log lacks what it needs."""
    wrong = {
        f"no such task: {recipe.task}": recipe.task not in TASKS,
        "edges must be ascending hours": list(recipe.edges) != sorted({*recipe.edges} - {0}),
        "there must be an edge": not recipe.edges,
        "`every` must be more than 0": recipe.every <= timedelta(0),
        "`unseen` must be at least 0 and less than 1": not 0 <= recipe.unseen < 1,
        "`examples` must be more than 0": recipe.examples <= 0,
        "nothing is ever stale for one who sees all": (recipe.task, recipe.observe)
        == ("stale", "full"),
        f"{log.path('visits')}: no such file": recipe.observe == "partial"
        and not log.has("visits"),
    }
    for message, is_so in wrong.items():
        if is_so:
            raise InputError(message)


# --------------------------------------------------------------------------------- what is needed


@dataclass(frozen=True, slots=True)
class _Work:
    """All that is known before the first day."""

    log: Log
    recipe: Recipe
    pages: pl.DataFrame
    points: labels.ChangePoints
    spans: tuple[TimeSpan, ...]
    seen: Bools
    uniform: Bools
    sampler: Sampler
    fingerprint: str

    @property
    def by_clicks(self) -> bool:
        """Whether there are pages that came into the log for their clicks, and clicks are known."""
        return self.log.has("demand") and bool((~self.uniform & self.seen).any())


def _prepared(log: Log, recipe: Recipe) -> _Work:
    pages = pages_of(log)
    points, (first, end) = labels.read_points(log, pages, seed=recipe.seed, clip=recipe.clip)
    spans, key = spans_of(recipe.split, first, end), hashes(pages["page_id"])
    seen = seen_pages(key, recipe)
    there = points.first[1:] > points.first[:-1]
    seen &= there
    seen[there] &= points.at[points.first[:-1][there]] < spans[0].stop  # born before the end
    uniform = uniform_pages(pages)
    sampler = Sampler(recipe, key, points, dict.fromkeys(PARTS, uniform) | {"train": seen})
    mark = _fingerprint(log, recipe)
    return _Work(log, recipe, pages, points, spans, seen, uniform, sampler, mark)


def stream_of(log: Log, pages: pl.DataFrame, recipe: Recipe) -> FeatureStream:
    """What makes the features of a recipe; it knows nothing yet."""
    return FeatureStream(
        groups_of(pages),
        edges=recipe.edges,
        full=recipe.observe == "full",
        demand=log.has("demand"),
        depth=recipe.depth,
    )


def clipped(points: labels.ChangePoints, stop: int) -> Events:
    """The ends of pages whose merchant was no longer looked at before `stop`, in µs."""
    page = np.flatnonzero(points.end < stop)
    return make_events(EventKind.GONE, -(-points.end[page] // HOUR_US), page).ordered()


def _fingerprint(log: Log, recipe: Recipe) -> str:
    """Changes with the recipe, with the log, and with the version of either's making."""
    files = {path.name: path.stat().st_size for path in sorted(log.folder.glob("*.parquet"))}
    said = [FORMAT, VERSION, plain(recipe), log.about.rest, files]
    return blake2b(json.dumps(said, default=str).encode(), digest_size=16).hexdigest()


def plain(recipe: Recipe) -> dict[str, Any]:
    """A recipe as JSON can hold it: lengths of time in seconds, times in ISO 8601."""

    def told(value: timedelta | datetime) -> float | str:
        return value.total_seconds() if isinstance(value, timedelta) else value.isoformat()

    return dict(json.loads(json.dumps(asdict(recipe), default=told)))


def _visits(log: Log, pages: pl.DataFrame, recipe: Recipe, space: Path) -> VisitsByDay | None:
    if not log.has("visits") or not (recipe.visits or recipe.task == "stale"):
        return None
    return VisitsByDay(space).spill(log, pages)


def _complete(folder: Path, fingerprint: str) -> Shards | None:
    try:
        about = read_manifest(folder)
    except InputError:
        return None
    there = all((folder / each["file"]).is_file() for each in about["shards"])
    return Shards(folder) if there and about["fingerprint"] == fingerprint else None


# ------------------------------------------------------------------------------------ day by day


class _EventFeed:
    """Tells `FeatureStream` the events of a log as time goes on, and when pages last answered."""

    def __init__(self, work: _Work, visits: VisitsByDay | None) -> None:
        recipe, log = work.recipe, work.log
        self.past = stream_of(log, work.pages, recipe)
        self.answers = labels.Answers(len(work.pages)) if recipe.task == "stale" else None
        self._visits = visits if recipe.observe == "partial" else None
        found = seen_events(log, work.pages, recipe.observe, seed=recipe.seed)
        self._events = among(found, clipped(work.points, work.spans[-1].stop))
        self._next = next(self._events, None)

    def until(self, hour: int) -> None:
        """Tell all days of which any event is before the given hour."""
        while (events := self._next) is not None and events.hour[0] < hour:
            midnight = events.hour[:1] // 24 * 24
            self.past.read(np.array([0]), midnight)  # what came before need not be kept
            self.past.learn(events)
            self._answer(events)
            self._next = next(self._events, None)

    def _answer(self, events: Events) -> None:
        if self.answers is None:
            return
        if self._visits is not None:
            page, at, answered = self._visits.on(int(events.hour[0]) // 24)
            self.answers.learn(page[answered], at[answered])
        else:  # made by coins: it saw what the page held at the end of its hour
            visits = events.take(events.kind == EventKind.VISIT)
            order = np.lexsort((visits.hour, visits.page))
            self.answers.learn(visits.page[order], (visits.hour[order] + 1) * HOUR_US - 1)

    def read(self, moments: labels.Moments) -> State:
        """Features of moments in order of time, and how many observations there were before."""
        hour, past = moments.at // HOUR_US, self.past
        known = np.zeros(len(hour), dtype=np.int32)
        dense = np.empty((len(hour), len(past.names)), dtype=np.float32)
        steps = np.empty((len(hour), past.depth, len(STEP)), dtype=np.float32)
        for low, high in runs(hour):
            page = moments.page[low:high]
            steps[low:high] = past.read(page, hour[low:high], dense[low:high]).steps
            known[low:high] = past.known(page)
        return {"dense": dense, "steps": steps, "known": known}


def _made(
    work: _Work, visits: VisitsByDay | None, rates: dict[str, int], folder: Path
) -> Iterator[Shard]:
    """Make the file of every day that is not there yet."""
    feed, label_of, weight = _EventFeed(work, visits), _labels(work), _weights(work, rates)
    for piece, moments in work.sampler.moments(work.spans, visits, rates):
        path = folder / f"{piece.part}-{piece.day}.npz"
        feed.until(-(-piece.stop // HOUR_US))
        rows = rows_of(path, work.fingerprint)
        if rows is None:
            label = label_of(moments, piece, feed.answers)
            known = np.flatnonzero((label >= 0).any(axis=1))
            moments, label = moments.take(known), label[known]
            page = moments.page
            arrays: State = {
                "page": page.astype(np.int32),
                "hour": (moments.at // HOUR_US).astype(np.int32),
                "at": moments.at,
                "weight": weight[piece.part][page],
                "seen": work.seen[page],
                "uniform": work.uniform[page],
                **feed.read(moments),
                "label": label,
            }
            write_shard(path, arrays, work.fingerprint)
            rows = len(label)
        yield Shard(path.name, piece.part, rows)


def _labels(work: _Work) -> Callable[[labels.Moments, TimeSpan, labels.Answers | None], Bytes]:
    """What gives labels of the recipe's task, rows × stretches; all but `change` have one."""
    column = {"click": "clicks", "impression": "impressions"}.get(work.recipe.task)
    demand = None if column is None else labels.ClickedDays(work.log, work.pages, column)

    def label_of(moments: labels.Moments, piece: TimeSpan, answers: labels.Answers | None) -> Bytes:
        if demand is not None:
            return demand.labels(moments.page, moments.at)
        if answers is not None:
            return labels.stale(work.points, moments, answers.since(moments.page, moments.at))
        return labels.changes(work.points, moments, work.recipe.edges, piece.limit)

    return label_of


def _weights(work: _Work, rates: dict[str, int]) -> dict[str, Floats]:
    """Over pages, the weight of an example of each part."""
    alike = np.ones(len(work.pages))
    by_page = dict.fromkeys(PARTS, alike)
    if work.by_clicks:
        clicks, days = labels.clicks_of(work.log, work.pages, work.points, work.spans[0])
        by_page["train"] = click_weights(clicks, days, work.seen, work.uniform)
    return {part: by_page[part] * BINS / max(1, rates[part]) for part in PARTS}


# --------------------------------------------------------------------------------------- manifest


def _finished(
    folder: Path, work: _Work, counted: dict[str, tuple[int, int]], shards: list[Shard]
) -> Shards:
    for old in {path.name for path in folder.glob("*.npz")} - {shard.file for shard in shards}:
        (folder / old).unlink()
    told = {"seen": pl.Series(work.seen), "uniform": pl.Series(work.uniform)}
    work.pages.with_columns(**told).write_parquet(folder / "pages.parquet")
    rows = {part: sum(s.rows for s in shards if s.part == part) for part in PARTS}
    if not rows["train"]:
        raise InputError("the training span has no examples; ask for more, or another split")
    recipe = work.recipe
    about = {
        "format": FORMAT,
        "salticus": VERSION,
        "fingerprint": work.fingerprint,
        "log": work.log.about.name,
        "recipe": plain(recipe),
        "names": list(all_names(recipe.edges)),
        "labels": len(recipe.edges) if recipe.task == "change" else 1,
        "steps": len(STEP),
        "pages": len(work.pages),
        "spans": {span.part: [_iso(span.start), _iso(span.stop)] for span in work.spans},
        "rows": rows,
        "moments": {part: total for part, (_, total) in counted.items()},
        "rates": {part: rate / BINS for part, (rate, _) in counted.items()},
        "weighted_by_clicks": work.by_clicks,
        "shards": [asdict(shard) for shard in shards],
    }
    write_manifest(folder, about)
    return Shards(folder)


def _iso(micros: int) -> str:
    return f"{np.datetime64(micros, 'us')}Z"
