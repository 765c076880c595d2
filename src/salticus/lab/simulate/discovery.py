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
from salticus.allocate.base import Policy, Priced
from salticus.clock import VirtualClock
from salticus.config import Budget, Config, CrawlRate, Span
from salticus.crawl.loop import Loop
from salticus.crawl.parts import Given, make_parts
from salticus.errors import ConfigError
from salticus.exchange.folder import Log
from salticus.exchange.linked import LinkTruth, read_linked
from salticus.exchange.write import spelt
from salticus.lab.worlds.links import LinkReplay
from salticus.predict.finder import Finder
from salticus.types import Floats, Instant, Ints

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
class DiscoverySettings:
    """How discovery is simulated. Pages whose first link appears in the `warmup` are not scored;
    not given, it is 14 days, or a third of the log if that is less. `tick` is the log's resolution
    unless it is given, and not finer."""

    warmup: timedelta | None = None
    days: int | None = None
    tick: timedelta | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class DiscoveryScore:
    """What a run achieved with the pages born in the scored days.

    `share` of the clicks that a crawl without limits would have served; shares of the pages `found`
    and `fetched`; `delay_hours` until a new page is fetched, the median and the upper quartile over
    all of them, inf for those that never were; `unseen`, the share of links that came and went
    between two visits; `seldom`, that of sources visited less than once a week. `daily` is the
    dynamic quality: of each scored day the clicks on the pages fetched in it, as a share of those
    on the pages born in it.
    """

    share: float
    found: float
    fetched: float
    delay_hours: float
    late_hours: float
    unseen: float
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
    warmup = _warmup(truth, rules)
    rows = []
    for rate in rates:
        visits = rate.per_day(truth.links_a_day)
        for policy in dict.fromkeys(policies):
            told(f"{policy}, {visits:,.0f} visits a day")
            score = discover(truth, policy, visits, warmup=warmup, seed=rules.seed)
            figures = {name: _known(value) for name, value in asdict(score).items()}
            rows.append({"policy": policy, "visits_per_day": round(visits, 3), **figures})
    days = truth.steps * truth.step / _DAY
    about = {"name": log.about.name, "folder": str(log.folder), "sources": truth.sources}
    about |= {"pages": truth.pages, "links": len(truth.page), "links_per_day": truth.links_a_day}
    span = {"warmup": spelt(warmup * truth.step), "days": round(days, 3)}
    used = {"tick": spelt(truth.step), "seed": rules.seed, **span}
    return {"log": about, "rules": used, "rows": rows, "notes": _notes(log)}


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
    truth: LinkTruth, policy: str, visits_a_day: float, *, warmup: int, seed: int = 0
) -> DiscoveryScore:
    """Crawl the links with a policy; pages born in the first `warmup` steps are not scored."""
    began = time.perf_counter()
    truth.attention.rewind()
    world = LinkReplay(truth, Finder(truth.sources, resolution=truth.step / _DAY))
    known = allocate.DISCOVERY | {"leap": allocate.BUILTIN["leap"]}
    made: Policy = plugins.make("policy", policy, known, seed=seed)
    config = Config(
        budget=Budget(visits_a_day, per_page=False),
        tick=Span(seconds=truth.step.total_seconds()),
        predictor="gamma",
        seed=seed,
    )
    parts = make_parts(config, VirtualClock(truth.start + truth.step), given=Given(made))
    loop = Loop(world, parts)
    world.asks = partial(_asked, loop)
    asyncio.run(loop.run(truth.start + truth.steps * truth.step))
    return score_of(world, warmup, time.perf_counter() - began)


async def _asked(loop: Loop, found: Ints, worth: Floats, now: Instant) -> None:
    """Let found pages ask for visits, by the door of all that cannot wait."""
    policy = loop.parts.policy
    price = policy.price_ if isinstance(policy, Priced) else 0.0
    await loop.urge(lambda: loop.parts.discover.ask(found, worth, now, price=price))


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
    links = (truth.appeared >= max(warmup, 1)) & (truth.appeared < truth.steps)
    return DiscoveryScore(
        share=_ratio(float(got.sum()), float(wanted.sum())),
        found=_ratio(np.count_nonzero(world.sight_.seen[new] >= 0), len(new)),
        fetched=_ratio(np.count_nonzero(held), len(new)),
        delay_hours=float(np.quantile(delay, 0.5, method="higher")) if len(new) else math.nan,
        late_hours=float(np.quantile(delay, 0.75, method="higher")) if len(new) else math.nan,
        unseen=1.0 - _ratio(np.count_nonzero(world.sight_.looked[links]), np.count_nonzero(links)),
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
