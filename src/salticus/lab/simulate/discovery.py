"""Discovery in simulation: how much of what people wanted of new pages does each policy serve?"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, SupportsFloat

import numpy as np

from salticus import allocate, plugins
from salticus.allocate.base import Policy
from salticus.allocate.echo import EchoSources, quality, revisits
from salticus.clock import VirtualClock
from salticus.config import Budget, Config, CrawlRate, Share, Span
from salticus.crawl.finders import finder_for
from salticus.crawl.loop import Loop
from salticus.crawl.parts import Given, make_parts
from salticus.crawl.scout import admit
from salticus.errors import ConfigError, InputError
from salticus.exchange.folder import Log
from salticus.exchange.linked import LinkTruth, read_linked
from salticus.exchange.write import spelt
from salticus.lab.worlds.links import PUSH, RESOLVE, LinkReplay
from salticus.predict.finder import Finder, KnowingFinder, KnownSources
from salticus.predict.links import VISITS
from salticus.types import Floats, Ints
from salticus.types.frames import pl

Told = Callable[[str], None]

DISCOVERERS = (
    "bfs",
    "fixed_sources",
    "miniflux",
    "news_crawl",
    "quota",
    "frequency",
    "echo_greedy",
    "echo_newpages_published",
    "echo_schedule_published",
    "echo_newpages",
    "echo_schedule",
    "leap",
)
"""Who competes if nobody is named."""

_DAY = timedelta(days=1)
_WARMUP = 14 * _DAY
_SELDOM = 7.0  # days between visits to a source that is hardly ever visited


@dataclass(frozen=True, slots=True)
class Learning:
    """How a crawl learns what its sources promise: from the last `history` visits to each, and from
    clicks, which arrive every `push` and are counted in `bins` of age; it works that out every
    `resolve`. Or it is told what is `known`. A new page counts for the first source that shows it,
    or, `shared`, for all."""

    resolve: timedelta = RESOLVE
    push: timedelta = PUSH
    history: int = VISITS
    bins: timedelta = timedelta(minutes=20)
    known: KnownSources | None = None
    shared: bool = False
    seed: int = 0

    def finder(self, truth: LinkTruth, policy: Policy | None = None) -> Finder:
        """What learns from visits to the sources of a log, or knows them; as the policy wants."""
        if self.known is not None:
            return KnowingFinder(self.known, resolution=truth.step / _DAY)
        bins = max(self.bins, truth.step) / _DAY
        return finder_for(policy, truth.sources, resolution=bins, visits=self.history)


LEARNING = Learning()


@dataclass(frozen=True, slots=True)
class DiscoverySettings:
    """How discovery is simulated. Pages whose first link appears in the `warmup` are not scored;
    not given, it is 14 days, or a third of the log if that is less. `tick` is the log's resolution
    unless it is given, and not finer. With an `oracle` crawls are told what the log says is true of
    its sources; others learn it, as `learning` says."""

    warmup: timedelta | None = None
    days: int | None = None
    tick: timedelta | None = None
    seed: int = 0
    oracle: bool = False
    learning: Learning = LEARNING


@dataclass(frozen=True, slots=True)
class DiscoveryScore:
    """What a run achieved with the pages born in the scored days.

    `share` of the clicks that a crawl without limits would have served; shares of the pages `found`
    and `fetched`; `delay_hours` until a new page is fetched, the median and the upper quartile over
    all of them, inf for those that never were, and all nine deciles (`delays`); `unseen`, the share
    of links that no visit saw, and `lost`, of those that had vanished before one did; `seldom`,
    that of sources visited less than once a week. `daily` is the dynamic quality: of each scored
    day the clicks on the pages fetched in it, as a share of those on the pages born in it.
    """

    share: float
    found: float
    fetched: float
    delay_hours: float
    late_hours: float
    delays: list[float]
    unseen: float
    lost: float
    seldom: float
    source_visits: int
    page_visits: int
    daily: list[float]
    seconds: float


def contest(
    log: Log,
    rules: DiscoverySettings,
    policies: Sequence[str],
    rates: Sequence[CrawlRate],
    told: Told = lambda step: None,
) -> dict[str, Any]:
    """Let every policy find the new pages of a log at every crawl rate; the result as plain data.

    The same seed gives the same result, whatever else is in the contest.
    """
    told("reading the links")
    truth = set_links(log, rules)
    warmup, known = _warmup(truth, rules), known_of(log, truth) if rules.oracle else None
    learning = replace(rules.learning, known=known, seed=rules.seed)
    rows = []
    for rate in rates:
        visits = rate.per_day(truth.links_a_day)
        for policy in dict.fromkeys(policies):
            told(f"{policy}, {visits:,.0f} visits a day")
            score = discover(truth, policy, visits, warmup=warmup, learning=learning)
            figures = {name: _known(value) for name, value in asdict(score).items()}
            bound = {} if known is None else {"bound": _known(dual_bound(known, visits))}
            given = {"policy": policy, "visits_per_day": round(visits, 3), **bound}
            rows.append({**given, **figures})
    days = truth.steps * truth.step / _DAY
    about = {"name": log.about.name, "folder": str(log.folder), "sources": truth.sources}
    about |= {"pages": truth.pages, "links": len(truth.page), "links_per_day": truth.links_a_day}
    span = {"warmup": spelt(warmup * truth.step), "days": round(days, 3)}
    used = {"tick": spelt(truth.step), "seed": rules.seed, **span}
    return {"log": about, "rules": used, "rows": rows, "notes": _notes(log)}


def known_of(log: Log, truth: LinkTruth) -> KnownSources:
    """What a log says is true of its sources, as synthetic ones do; InputError if it does not."""
    missing = [name for name in KnownSources._fields if name not in log.columns("pages")]
    if missing:
        raise InputError(
            f"{log.path('pages')}: nothing is known of the sources without the column "
            f"`{missing[0]}`; use --estimates history, or `salticus log make publishers`"
        )
    table = log.scan("pages").select(pl.col("page_id").cast(pl.String), *KnownSources._fields)
    names = pl.LazyFrame({"page_id": truth.names})
    found = names.join(table, on="page_id", how="left", maintain_order="left").collect()
    columns = [found[name].cast(pl.Float64).fill_null(np.nan) for name in KnownSources._fields]
    known = KnownSources(*(column.to_numpy() for column in columns))
    if np.isnan(known).any():
        raise InputError(f"{log.path('pages')}: not every source has a rate, profit and decay")
    return known


def dual_bound(known: KnownSources, visits_a_day: float) -> float:
    """The share of all clicks that no schedule can exceed with so many visits, if links appear at
    any hour alike and stay (ALGORITHMS §1.3); NaN if they do not stay. Where a source may be
    visited for a share of the time, the corrected rule attains it."""
    if known.vanish.any():
        return math.nan
    sources = EchoSources(known.rate, known.profit, known.decay)
    best = quality(sources, revisits(sources, visits_a_day))
    return best / float((known.rate * known.profit).sum())


def set_links(log: Log, rules: DiscoverySettings) -> LinkTruth:
    """The links that are replayed; ConfigError if the rules ask for more than the log has."""
    fine = log.about.resolution or timedelta(hours=1)
    step = rules.tick or fine
    if step < fine:
        raise ConfigError(
            f"{log.folder}: times are known to {spelt(fine)} only, so ticks of {spelt(step)} would "
            f"exploit an artefact; use --tick {spelt(fine)} or more"
        )
    truth = read_linked(log, step)
    if rules.days is None:
        return truth
    steps = int((_warmup(truth, rules) * step + rules.days * _DAY) / step)
    if steps > truth.steps:
        most = (truth.steps - _warmup(truth, rules)) * step // _DAY
        raise ConfigError(f"{log.folder}: --days: after the warm-up the log has {most} days")
    return replace(truth, steps=steps)


def _warmup(truth: LinkTruth, rules: DiscoverySettings) -> int:
    """Steps that are crawled but not scored."""
    third = truth.steps * truth.step / 3
    steps = int((min(_WARMUP, third) if rules.warmup is None else rules.warmup) / truth.step)
    if steps >= truth.steps:
        raise ConfigError("--warmup: the log ends before it does")
    return steps


def discover(
    truth: LinkTruth,
    policy: str,
    visits_a_day: float,
    *,
    warmup: int,
    learning: Learning = LEARNING,
) -> DiscoveryScore:
    """Crawl the links with a policy; pages born in the first `warmup` steps are not scored."""
    began = time.perf_counter()
    world = replay(truth, policy, visits_a_day, learning)
    return score_of(world, warmup, time.perf_counter() - began)


def replay(
    truth: LinkTruth, policy: str, visits_a_day: float, learning: Learning = LEARNING
) -> LinkReplay:
    """The world after a policy has crawled its links."""
    truth.attention.rewind()
    seed, known = learning.seed, allocate.DISCOVERY | {"leap": allocate.BUILTIN["leap"]}
    made: Policy = plugins.make("policy", policy, known, seed=seed)
    finder = learning.finder(truth, made)
    how = {"resolve": learning.resolve, "push": learning.push}
    world = LinkReplay(truth, finder, **how, shared=learning.shared)
    config = Config(
        budget=Budget(visits_a_day, per_page=False),
        tick=Span(seconds=truth.step.total_seconds()),
        predictor="gamma",
        explore=Share(0.0),
        seed=seed,
    )
    parts = make_parts(config, VirtualClock(truth.start + truth.step), given=Given(made))
    loop = Loop(world, parts)
    world.asks = partial(admit, loop)
    asyncio.run(loop.run(truth.start + truth.steps * truth.step))
    return world


def score_of(world: LinkReplay, warmup: int, seconds: float) -> DiscoveryScore:
    """The score of a crawl that has ended."""
    truth, fetched = world.truth, world.fetched_
    scored = (truth.born >= max(warmup, 1)) & (truth.born < truth.steps) & (fetched >= -1)
    new = np.flatnonzero(scored)
    born, held = truth.born[new], fetched[new] >= 0
    wanted = truth.attention.after(new, born)
    got = truth.attention.after(new[held], fetched[new[held]])
    delay = np.where(held, fetched[new] - born, np.inf) * (truth.step / timedelta(hours=1))
    weeks = truth.steps * truth.step / _DAY / _SELDOM
    visits = world.sight_.visits - 1  # but the one before the crawl
    links = np.flatnonzero((truth.appeared >= max(warmup, 1)) & (truth.appeared < truth.steps))
    missed = links[~world.sight_.looked[links]]
    gone = np.count_nonzero(truth.vanished[missed] < truth.steps - 1)
    return DiscoveryScore(
        share=_ratio(float(got.sum()), float(wanted.sum())),
        found=_ratio(np.count_nonzero(world.sight_.seen[new] >= 0), len(new)),
        fetched=_ratio(np.count_nonzero(held), len(new)),
        delay_hours=_later_than(delay, 0.5),
        late_hours=_later_than(delay, 0.75),
        delays=[_later_than(delay, n / 10) for n in range(1, 10)],
        unseen=_ratio(len(missed), len(links)),
        lost=_ratio(gone, len(links)),
        seldom=float((visits < weeks).mean()),
        source_visits=int(visits.sum()),
        page_visits=int(np.count_nonzero(fetched >= 0)),
        daily=_daily(truth, (fetched[new[held]], got), (born, wanted), warmup),
        seconds=round(seconds, 3),
    )


def _daily(
    truth: LinkTruth, got: tuple[Ints, Floats], wanted: tuple[Ints, Floats], warmup: int
) -> list[float]:
    """Of each day after the warm-up, clicks on what was fetched in it over those on what was born
    in it."""
    long = _DAY / truth.step
    days = max(int((truth.steps - warmup) / long), 1)
    fetched, born = (
        np.bincount(((step - warmup) / long).astype(np.int64), weights=clicks, minlength=days)
        for step, clicks in (got, wanted)
    )
    return [_ratio(a, b) for a, b in zip(fetched[:days], born[:days], strict=True)]


def _later_than(delay: Floats, part: float) -> float:
    """The delay that such a part of all do not exceed."""
    return float(np.quantile(delay, part, method="higher")) if len(delay) else math.nan


def _ratio(part: SupportsFloat, whole: SupportsFloat) -> float:
    return float(part) / float(whole) if whole else math.nan


def _known(figure: Any) -> Any:
    """A figure as JSON has it: nothing for what is not a number, or has no end."""
    if isinstance(figure, list):
        return [_known(each) for each in figure]
    if isinstance(figure, float):
        return round(figure, 6) if math.isfinite(figure) else None
    return figure


def _notes(log: Log) -> list[str]:
    if log.has("demand"):
        return []
    return ["the log has no clicks: a page counts once for each link to it and step it stands"]
