"""What plans and learns, made from the settings: for a crawl, a simulation, and those who look."""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from functools import cached_property, reduce
from pathlib import Path
from typing import Protocol, Self

import numpy as np

from salticus import allocate, plugins, predict, schedule
from salticus.allocate.base import (
    Informed,
    Keeps,
    Paced,
    Patient,
    Policy,
    Proposer,
    Spaced,
    Stepwise,
    Urgent,
)
from salticus.allocate.capacity import less, within_capacity
from salticus.allocate.discover import Discover
from salticus.allocate.explore import Explore
from salticus.allocate.gate import BUILTIN as GATES
from salticus.allocate.gate.base import Gate
from salticus.allocate.insta import Insta
from salticus.allocate.limits import Limits, Pins
from salticus.allocate.panel import Panel
from salticus.clock import Clock
from salticus.config import Config
from salticus.errors import ConfigError
from salticus.features.places import Place, Places
from salticus.models.registry import Registry
from salticus.predict.base import Predictor, Quiet
from salticus.predict.followed import Followed, Sources
from salticus.predict.served_demand import ServedDemand
from salticus.schedule.base import Spacing
from salticus.schedule.ledger import Ledger
from salticus.schedule.planner import Planner
from salticus.schedule.ticks import Ticks
from salticus.store.base import Store, VisitStore
from salticus.types import Draw, Grant, Outcomes, Pages, Purpose, Tick


class Learner(Protocol):
    """Anything that wants to know how visits ended."""

    def learn(self, outcomes: Outcomes) -> None: ...


class Lessons:
    """Collects outcomes as they come, and teaches them all at once, by the numbers of their visits.

    So it does not matter in which order and in what batches they came, nor to a restart.
    """

    def __init__(self) -> None:
        self._waiting: list[Outcomes] = []

    def learn(self, outcomes: Outcomes) -> None:
        self._waiting.append(outcomes)

    def teach(self, *parts: Learner) -> None:
        if not self._waiting:
            return
        outcomes, self._waiting = reduce(Outcomes.join, self._waiting), []
        outcomes = outcomes.take(np.argsort(outcomes.visit, kind="stable"))
        for part in parts:
            part.learn(outcomes)


@dataclass(frozen=True, slots=True)
class PolicyVisits:
    """The policy as a proposer of visits: what it expects, turned into visits by the spacing."""

    policy: Policy
    spacing: Spacing
    purpose: Purpose = Purpose.POLICY

    def draw(self, pages: Pages, grant: Grant, tick: Tick) -> Draw:
        rest, visits = less(pages, grant.taken), grant.left(pages)
        if isinstance(self.policy, Paced) and grant.visits:
            self.policy.pace(grant.per_tick * visits / grant.visits)
        expected = within_capacity(self.policy, rest, visits, grant.taken)
        return self.spacing.draw(rest, expected, visits, tick)

    def keep(self, pages: Pages, draw: Draw) -> None:
        self.spacing.keep(pages, draw)


@dataclass(frozen=True)
class Parts:
    """What plans and learns. `proposers` stand before the policy, in order of precedence. `clicks`
    and `impressions` are what models say of demand, `followed` what all models look at. What a part
    is able to do is found out once: a tick of few pages would spend a tenth of its time so."""

    ticks: Ticks
    predictor: Predictor
    policy: Policy
    spacing: Spacing
    ledger: Ledger
    planner: Planner
    panel: Panel = field(default_factory=Panel)
    insta: Insta = field(default_factory=Insta)
    discover: Discover = field(default_factory=Discover)
    proposers: tuple[Proposer, ...] = (Limits(), Pins())
    followed: Followed | None = None
    clicks: ServedDemand | None = None
    impressions: ServedDemand | None = None

    @cached_property
    def all_proposers(self) -> tuple[Proposer, ...]:
        """Politeness > budget > maximum intervals > pins > exploration > policy; what pays for
        itself, and what must be ready for clicks, before them; pages that will be found, last."""
        policy = PolicyVisits(self.policy, self.spacing)
        return (self.panel, self.insta, *self.proposers, policy, self.discover)

    @cached_property
    def keeping(self) -> dict[int, Keeps]:
        """The proposers that must know what was made of their draws, by their places."""
        return {n: part for n, part in enumerate(self.all_proposers) if isinstance(part, Keeps)}

    @cached_property
    def urgent(self) -> dict[int, Urgent]:
        """The proposers whose visits cannot wait for a plan, by their places."""
        return {n: part for n, part in enumerate(self.all_proposers) if isinstance(part, Urgent)}

    @cached_property
    def stepwise(self) -> Stepwise | None:
        return self.policy if isinstance(self.policy, Stepwise) else None

    def make_read_only(self) -> None:
        """Write nothing into the registries of models."""
        for part in (self.predictor, self.clicks, self.impressions):
            if isinstance(part, Quiet):
                part.tells = False

    @property
    def planned(self) -> bool:
        """Whether a tick was planned, so that urgent visits can be judged."""
        return self.insta.pages_ is not None

    @property
    def accounts(self) -> tuple[Learner, ...]:
        """The parts that keep account of outcomes as they come."""
        return (self.ledger, self.insta)

    @property
    def learners(self) -> tuple[Learner, ...]:
        """The parts that learn once a tick what visits taught."""
        followed = () if self.followed is None else (self.followed,)
        return (self.spacing, *followed, self.predictor, self.policy, self.panel)

    @property
    def explore(self) -> Explore:
        """The proposer that explores; one without a share if there is none."""
        return next((p for p in self.proposers if isinstance(p, Explore)), Explore())

    def named(self) -> dict[str, object]:
        """The parts that may have something to remember, by role."""
        roles = {each.name: getattr(self, each.name) for each in fields(self)}
        extra = {f"proposer{n}": part for n, part in enumerate(roles.pop("proposers"))}
        return roles | extra

    def forked(self) -> Self:
        """The same parts, to plan ahead with: what one plan leaves to the next is a copy, the rest
        is shared, as nothing is learnt."""
        return replace(
            self,
            spacing=deepcopy(self.spacing),
            ledger=deepcopy(self.ledger),
            planner=copy(self.planner),
            panel=self.panel.forked(),
            proposers=deepcopy(self.proposers),
        )


@dataclass(frozen=True, slots=True)
class Given:
    """Parts that are not made from the settings, as those that only a simulation can have."""

    policy: Policy | None = None
    predictor: Predictor | None = None


def make_parts(
    config: Config,
    clock: Clock,
    store: Store | None = None,
    given: Given | None = None,
    *,
    once: bool = False,
) -> Parts:
    """The parts that the settings name, or those given. Without a store, as in a simulation,
    nothing is known of pages but what visits tell, and nothing is kept."""
    given = given or Given()
    policy = make_policy(config) if given.policy is None else given.policy
    spacing = policy.spacing if isinstance(policy, Spaced) else config.spacing
    followed = None if store is None else followed_in(config, store)
    clicks, impressions = (_demand(config, followed, task) for task in ("click", "impression"))
    extra = [plugins.make("proposer", name, {}, seed=config.seed) for name in config.proposers]
    return Parts(
        ticks=Ticks(clock, config.tick),
        predictor=given.predictor or make_predictor(config, policy, store, followed),
        policy=policy,
        spacing=plugins.make("spacing", spacing, schedule.BUILTIN, seed=config.seed),
        ledger=_ledger(config, policy, once=once),
        planner=Planner(seed=config.seed, at_once=once),
        panel=Panel(store),
        insta=_insta(config),
        proposers=(Limits(), Pins(), *extra, Explore(config.explore, seed=config.seed)),
        followed=followed,
        clicks=clicks,
        impressions=impressions,
    )


def followed_in(config: Config, store: Store) -> Followed:
    """What models look at in the crawl of a store."""
    return Followed(Sources(store.facts, store.history, store.past_counts, places_of(config)))


def places_of(config: Config) -> Places:
    """Whose hosts are whose, and by which clock they live, as the settings say."""
    return Places([Place(each.match, each.merchant, each.timezone) for each in config.hosts])


def registry_of(config: Config, task: str = "change") -> Registry:
    """Where the models of a crawl are kept: those of change as they always were, the others in
    folders of their own among them."""
    folder = Path(config.models.path)
    return Registry(folder if task == "change" else folder / task)


def _demand(config: Config, followed: Followed | None, task: str) -> ServedDemand | None:
    return None if followed is None else ServedDemand(task, registry_of(config, task), followed)


def _ledger(config: Config, policy: Policy, *, once: bool) -> Ledger:
    carry = timedelta(days=1) if once else None
    patience = policy.patience if isinstance(policy, Patient) else timedelta()
    return Ledger(config.budget, carry=carry, patience=patience, caps=config.caps)


def make_policy(config: Config) -> Policy:
    """The policy that the settings name; ConfigError if it does not take what they say of it."""
    known = allocate.BUILTIN | allocate.DISCOVERY
    finding = None if config.finding is None else float(config.finding)
    if finding is not None and not plugins.takes("policy", config.policy, known, "finding"):
        raise ConfigError(
            f"finding is set, but the policy {config.policy!r} does not take it: remove the "
            'setting `finding`, or set `policy = "leap"`'
        )
    given = {"seed": config.seed, "finding": finding}
    made: Policy = plugins.make("policy", config.policy, known, **given)
    return made


def make_predictor(
    config: Config, policy: Policy, store: VisitStore | None, followed: Followed | None = None
) -> Predictor:
    """The predictor that the settings name, made with what it takes of what the store knows."""
    name = predictor_of(config, policy)
    name = "rhythm" if store is None and name == "serving" else name
    given = {} if store is None else {"facts": store.facts, "history": store.history}
    made: Predictor = plugins.make(
        "predictor",
        name,
        predict.BUILTIN if store is None else predict.IN_A_CRAWL,
        registry=registry_of(config),
        followed=followed,
        seed=config.seed,
        **given,
    )
    return made


def predictor_of(config: Config, policy: Policy | None = None) -> str:
    """The name of the predictor: the user's word, else the policy's. Where the policy wants the
    rhythm, or none by name, a model may come to serve beside it."""
    if config.predictor is not None:
        return config.predictor
    policy = policy or make_policy(config)
    wanted = policy.predictor if isinstance(policy, Informed) else "rhythm"
    return "serving" if wanted == "rhythm" else wanted


def _insta(config: Config) -> Insta:
    desk = config.desk
    if desk.listen is None or not desk.insta:
        return Insta()
    gate: Gate = plugins.make("gate", desk.gate, GATES, share=float(desk.share))
    horizon = desk.score.horizon
    return Insta(gate, share=float(desk.insta), horizon=horizon, seed=config.seed)
