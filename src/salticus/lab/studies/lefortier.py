"""`salticus study lefortier2013`: how well do policies find new pages while people want them?

The experiments of Lefortier et al. (2013, §5) on synthetic publishers, or on a log of links: every
source was looked at every step for three weeks, clicks were counted for a week more. A crawl at a
tenth, a third and two thirds of the rate at which links appear is measured in its last week. The
dynamic profit Q_T(t) is the clicks to come on the pages fetched in the T before t, a second. No
crawl exceeds that of breadth-first search without a limit, which fetches every page in the step in
which its link appears.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from salticus.allocate.echo import EchoSources, keeping_all
from salticus.exchange.folder import Log
from salticus.exchange.linked import LinkTruth
from salticus.exchange.write import spelt
from salticus.lab.analyze.interest import interest_of
from salticus.lab.analyze.links import links_of
from salticus.lab.analyze.pages import known_pages
from salticus.lab.simulate.compare import known as told_figure
from salticus.lab.simulate.discovery import (
    DISCOVERERS,
    DiscoverySettings,
    Learning,
    dual_bound,
    replay,
    score_of,
    set_links,
)
from salticus.lab.studies.paper import scale_of
from salticus.lab.worlds.publishers import PublisherSettings, make_publishers, publishers
from salticus.predict.finder import KnownSources
from salticus.types import Floats, Ints

Told = Callable[[str], None]

RATES = (0.1, 0.3, 0.6)
"""Visits a day, as shares of the links that appear in one."""

_DAY, _WEEK = timedelta(days=1), timedelta(days=7)
_SHORT = timedelta(hours=5)
_ECHO = ("echo_newpages", "echo_schedule")
_SURE = (*_ECHO, "echo_newpages_published", "echo_schedule_published", "echo_greedy", "leap")
_SHOWN = ("bfs", "quota", "frequency", "echo_greedy", "echo_newpages", "echo_schedule")
_ENOUGH = 0.99  # of the bound
_MIDDLE = RATES[1]


@dataclass(frozen=True, slots=True)
class Scale:
    """How big a study is: the publishers, how many runs each with others, the visits remembered,
    and how often a rate is halved in the search for the least that is enough."""

    publishers: PublisherSettings
    runs: int
    history: Sequence[int] = tuple(range(3, 11))
    halvings: int = 6


SCALES = {
    "tiny": Scale(
        PublisherSettings(sources=25, days=2, after=2, step=timedelta(hours=4)),
        runs=1,
        history=(3, 10),
        halvings=2,
    ),
    "small": Scale(PublisherSettings(sources=300, step=timedelta(minutes=30)), runs=2),
    "full": Scale(PublisherSettings(), runs=10),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where crawls are measured: synthetic publishers, or a log."""

    name: str
    publishers: PublisherSettings | None = None
    log: Path | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Task:
    """One crawl, at so many visits for each link that appears; if `told`, it knows its sources; if
    `series`, the course of its profit is wanted."""

    place: Place
    policy: str
    rate: float
    learning: Learning = Learning()
    told: bool = False
    series: timedelta | None = None

    def measure(self) -> dict[str, Any]:
        """Make it: the figures of its last week."""
        truth, known = _world(self.place)
        learning = replace(self.learning, seed=self.place.seed, known=known if self.told else None)
        visits = self.rate * truth.links_a_day
        world = replay(truth, self.policy, visits, learning)
        week = last_week(truth)
        held = np.flatnonzero(world.fetched_ >= 0)
        profit = dynamic(truth, held, world.fetched_[held], week)[-week:]
        figures = asdict(score_of(world, truth.steps - week, 0.0))
        del figures["daily"], figures["delays"], figures["seconds"]
        bound = float("nan") if known is None else dual_bound(known, visits)
        row = {"profit": float(profit.mean()), "sd": float(profit.std()), "bound": bound, **figures}
        if self.series is not None:
            steps = max(round(self.series / truth.step), 1)
            row["series"] = dynamic(truth, held, world.fetched_[held], steps)
        return row


@lru_cache(maxsize=2)
def _world(place: Place) -> tuple[LinkTruth, KnownSources | None]:
    if place.publishers is not None:
        return publishers(place.publishers, place.seed)
    assert place.log is not None
    return set_links(Log(place.log), DiscoverySettings()), None


def last_week(truth: LinkTruth) -> int:
    """Steps that are measured: a week, or a third of what is shorter than three."""
    return max(int(min(_WEEK, truth.steps * truth.step / 3) / truth.step), 1)


def dynamic(truth: LinkTruth, pages: Ints, fetched: Ints, window: int) -> Floats:
    """Q_T at the end of each step, T that many of them: the clicks to come on the pages fetched
    meanwhile, a second."""
    clicks = truth.attention.after(pages, fetched)
    total = np.cumsum(np.bincount(fetched, weights=clicks, minlength=truth.steps)[: truth.steps])
    before = np.concatenate([np.zeros(window), total])[: truth.steps]
    return np.asarray((total - before) / (window * truth.step.total_seconds()))


def at_once(truth: LinkTruth, window: int) -> Floats:
    """The dynamic profit of breadth-first search without a limit."""
    new = np.flatnonzero((truth.born > 0) & (truth.born < truth.steps))
    return dynamic(truth, new, truth.born[new], window)


# -------------------------------------------------------------------------------------- the study


def study(
    scale: str,
    *,
    log: Path | None = None,
    jobs: int = 1,
    seed: int = 0,
    told: Told = lambda _: None,
) -> dict[str, Any]:
    """Run everything, in so many processes. The same seed gives the same result."""
    size, run = scale_of(SCALES, scale), _runner(jobs, told)
    places = _places(size, log, seed)
    first = next(iter(places.values()))[0]
    truth = _world(first)[0]
    report: dict[str, Any] = {
        "protocol": _protocol(scale, size, truth, log),
        "worlds": [_about(group[0]) for group in places.values()],
        "table": list(_table(places, run)),
        "five_hours": list(_courses(first, run)),
        "warmup": list(_warmup(first, run)),
        **_settings(first, size, run),
        "reach": list(_reach(first, size, run)),
    }
    told("looking at links and clicks")
    return report | {"analysis": _analysis(first)}


def _places(size: Scale, log: Path | None, seed: int) -> dict[str, list[Place]]:
    """The worlds by name, each as often as it is run."""
    if log is not None:
        return {"log": [Place(Log(log).about.name or log.name, log=log, seed=seed)]}
    kinds = {"steady": True, "rhythm": False}
    return {
        name: [
            Place(name, replace(size.publishers, steady=steady), seed=seed + n)
            for n in range(size.runs)
        ]
        for name, steady in kinds.items()
    }


def _protocol(scale: str, size: Scale, truth: LinkTruth, log: Path | None) -> dict[str, Any]:
    week = last_week(truth) * truth.step
    used = {"step": spelt(truth.step), "days": truth.steps * truth.step / _DAY}
    runs = 1 if log else size.runs
    return {"scale": scale, "runs": runs, **used, "measured": spelt(week), "rates": list(RATES)}


def _about(place: Place) -> dict[str, Any]:
    truth, known = _world(place)
    week = last_week(truth)
    bound = at_once(truth, week)[-week:]
    about = {
        "name": place.name,
        "sources": truth.sources,
        "pages": truth.pages,
        "links": len(truth.page),
        "links_per_day": truth.links_a_day,
        "profit": float(bound.mean()),
        "sd": float(bound.std()),
    }
    if known is not None:
        sources = EchoSources(known.rate, known.profit, known.decay)
        about["keeps_all"] = keeping_all(sources) / truth.links_a_day
        about["keeps_all_published"] = keeping_all(sources, published=True) / truth.links_a_day
    return about


Runner = Callable[[str, Sequence[Task]], Iterator[dict[str, Any]]]


def _runner(jobs: int, told: Told) -> Runner:
    """What makes crawls, and tells which."""

    def run(what: str, tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
        for number, (task, row) in enumerate(zip(tasks, _measured(tasks, jobs), strict=True), 1):
            told(f"{what}, {number} of {len(tasks)}: {task.policy}, {task.rate:g} of the links")
            yield row

    return run


def _measured(tasks: Sequence[Task], jobs: int) -> Iterator[dict[str, Any]]:
    if jobs <= 1:
        yield from map(Task.measure, tasks)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(Task.measure, tasks)


def _table(places: dict[str, list[Place]], run: Runner) -> Iterator[dict[str, Any]]:
    """Every policy at every rate, and those that use them with known parameters: the means over the
    runs, and of the share of the bound a confidence interval."""
    tasks = [task for group in places.values() for place in group for task in _crawls(place)]
    runs: dict[tuple[str, bool, float, str], list[dict[str, Any]]] = {}
    for task, row in zip(tasks, run("policies", tasks), strict=True):
        runs.setdefault((task.place.name, task.told, task.rate, task.policy), []).append(row)
    for (world, told, rate, policy), rows in runs.items():
        where = {"world": world, "estimates": "known" if told else "learnt"}
        yield {**where, "rate": rate, "policy": policy, **_means(rows)}


def _crawls(place: Place) -> list[Task]:
    competing = {False: DISCOVERERS, True: () if place.publishers is None else _SURE}
    return [
        Task(place, policy, rate, told=told)
        for told, policies in competing.items()
        for rate in RATES
        for policy in policies
    ]


def _means(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Means over the runs; `low` and `high` are the 95 % confidence interval of the share."""
    share = np.array([row["share"] for row in runs])
    of_bound = share / np.array([row["bound"] for row in runs])
    off = _student(len(share)) * share.std(ddof=1) / np.sqrt(len(share)) if len(share) > 1 else 0.0
    mean = {name: told_figure(float(np.mean([row[name] for row in runs]))) for name in runs[0]}
    span = {"low": float(share.mean() - off), "high": float(share.mean() + off)}
    return {**mean, **span, "of_bound": told_figure(float(of_bound.mean()))}


def _student(n: int) -> float:
    from scipy.stats import t

    return float(t.ppf(0.975, n - 1))


# ------------------------------------------------------------------------------------ the figures


def _points(series: Floats, truth: LinkTruth, last: int | None = None) -> list[dict[str, float]]:
    """So many of the last values of a series, 200 at most, with the day of each."""
    steps = np.arange(len(series))[-(last or len(series)) :]
    steps = steps[:: max(len(steps) // 200, 1)]
    day = truth.step / _DAY
    return [{"day": float((k + 1) * day), "profit": float(series[k])} for k in steps]


def _courses(place: Place, run: Runner) -> Iterator[dict[str, Any]]:
    """The dynamic profit in a window of five hours through the last week, and the bound's."""
    truth, _ = _world(place)
    week, short = last_week(truth), max(round(_SHORT / truth.step), 1)
    for point in _points(at_once(truth, short), truth, week):
        yield {"policy": "no limit", **point}
    tasks = [Task(place, policy, _MIDDLE, series=_SHORT) for policy in _SHOWN]
    for task, row in zip(tasks, run("five hours", tasks), strict=True):
        for point in _points(row["series"], truth, week):
            yield {"policy": task.policy, **point}


def _warmup(place: Place, run: Runner) -> Iterator[dict[str, Any]]:
    """The dynamic profit in a window of a day from the start, by how often clicks arrive."""
    truth, _ = _world(place)
    pushes = [timedelta(hours=hours) for hours in (1, 12, 24, 168)]
    tasks = [
        Task(place, "echo_newpages", _MIDDLE, Learning(push=push), series=_DAY) for push in pushes
    ]
    for push, row in zip(pushes, run("warm-up", tasks), strict=True):
        for point in _points(row["series"], truth):
            yield {"push": spelt(push), "share": row["share"], **point}


def _settings(place: Place, size: Scale, run: Runner) -> dict[str, list[dict[str, Any]]]:
    """The share of the bound by the visits remembered, how often intervals are solved for, and the
    bins of age."""
    steps = [timedelta(minutes=m) for m in (10, 30, 60, 240)]
    bins = [timedelta(minutes=m) for m in (20, 60, 240)]
    tried: dict[str, list[tuple[Any, Learning]]] = {
        "history": [(n, Learning(history=n)) for n in size.history],
        "resolve": [(spelt(span), Learning(resolve=span)) for span in steps],
        "bins": [(spelt(span), Learning(bins=span)) for span in bins],
    }
    found = {}
    for name, values in tried.items():
        tasks = [Task(place, policy, _MIDDLE, how) for _, how in values for policy in _ECHO]
        told = [value for value, _ in values for _ in _ECHO]
        found[name] = [
            {name: value, "policy": task.policy, "share": row["share"]}
            for value, task, row in zip(told, tasks, run(name, tasks), strict=True)
        ]
    return found


def _reach(place: Place, size: Scale, run: Runner) -> Iterator[dict[str, Any]]:
    """The least rate at which a policy reaches 99 % of the bound, by halving."""
    truth, _ = _world(place)
    most = 1.2 + truth.sources * (_DAY / truth.step) / truth.links_a_day  # all sources every step
    for policy in ("bfs", "echo_newpages"):
        low, high, enough, rate = 0.1, most, False, most  # most is tried first
        for _ in range(size.halvings + 1):
            (row,) = run("enough", [Task(place, policy, rate)])
            if row["share"] >= _ENOUGH:
                high, enough = rate, True
            else:
                low = rate
            rate = float(np.sqrt(low * high))
        a_second = high * truth.links_a_day / _DAY.total_seconds()
        yield {"policy": policy, "reached": enough, "rate": high, "per_second": a_second}


def _analysis(place: Place) -> dict[str, Any]:
    """Cover, clusters, fits and the rate of new links, as `analyze` finds them."""
    if place.log is not None:
        return _analyzed(Log(place.log))
    assert place.publishers is not None
    with TemporaryDirectory(prefix="salticus-study-") as folder:
        make_publishers(Path(folder, "log"), place.publishers, place.seed)
        return _analyzed(Log(Path(folder, "log")))


def _analyzed(log: Log) -> dict[str, Any]:
    known = known_pages(log)
    found = {"links": links_of(log, known), "interest": interest_of(log, known)}
    return {name: None if each is None else asdict(each) for name, each in found.items()}
