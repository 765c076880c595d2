"""What plans and learns, made from the settings."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from salticus import allocate, plugins, predict, schedule
from salticus.allocate.explore import Explore
from salticus.allocate.gate import BUILTIN as GATES
from salticus.allocate.gate.base import Gate
from salticus.allocate.insta import Insta
from salticus.allocate.panel import Panel
from salticus.clock import Clock
from salticus.config import Config
from salticus.models.registry import Registry
from salticus.schedule.ledger import Ledger
from salticus.schedule.planner import Planner
from salticus.schedule.ticks import Ticks
from salticus.store.base import Store, VisitStore
from salticus.types import Plan, Tick


def parts_of(config: Config, clock: Clock, store: Store, *, once: bool) -> dict[str, Any]:
    """What plans and learns, by role."""
    policy = plugins.make("policy", config.policy, allocate.BUILTIN, seed=config.seed)
    spacing = getattr(policy, "spacing", config.spacing)
    return {
        "ticks": Ticks(clock, config.tick),
        "predictor": _predictor(config, predictor_of(config, policy), store),
        "policy": policy,
        "spacing": plugins.make("spacing", spacing, schedule.BUILTIN, seed=config.seed),
        "ledger": Ledger(
            config.budget, carry=timedelta(days=1) if once else None, caps=config.caps
        ),
        "planner": Planner(seed=config.seed, at_once=once),
        "explore": Explore(config.explore, seed=config.seed),
        "panel": Panel(store),
        "insta": _insta(config),
    }


def _insta(config: Config) -> Insta:
    desk = config.desk
    if desk.listen is None or not desk.insta:
        return Insta()
    gate: Gate = plugins.make("gate", desk.gate, GATES, share=float(desk.share))
    return Insta(gate, share=float(desk.insta), seed=config.seed)


def predictor_of(config: Config, policy: object = None) -> str:
    """The name of the predictor: the user's word, else the policy's. Where the policy wants the
    rhythm, a model may come to serve beside it."""
    if config.predictor is not None:
        return config.predictor
    policy = policy or plugins.load("policy", config.policy, allocate.BUILTIN)
    wanted = str(getattr(policy, "predictor", "gamma"))
    return "serving" if wanted == "rhythm" else wanted


def _predictor(config: Config, name: str, store: VisitStore) -> Any:
    if name != "serving":
        return plugins.make("predictor", name, predict.BUILTIN)
    from salticus.predict.modelled import Sources
    from salticus.predict.serving import Serving  # takes a while; not everyone needs it

    return Serving(Registry(Path(config.models.path)), Sources(store.facts, store.history))


def no_plan(now: datetime) -> Plan:
    """The plan of a crawl that has none."""
    none = np.empty(0, dtype=np.int64)
    return Plan(
        visit=none,
        page=none,
        due=none.view("M8[us]"),
        purpose=none.astype(np.int8),
        propensity=none.astype(np.float64),
        tick=Tick(0, now, now),
    )
