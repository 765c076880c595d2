"""The policies in words, and how the two schedulers fared: InstaCrawl, and the arms of a bandit."""

from __future__ import annotations

import inspect
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import msgspec
import numpy as np

from salticus import allocate, plugins
from salticus.allocate.bandit.policy import Bandit
from salticus.crawl.opening import Crawl
from salticus.crawl.parts import make_policy
from salticus.crawl.snapshot import Snapshot
from salticus.errors import InputError
from salticus.store.base import VisitStore
from salticus.views.times import moment, spaced


class PolicyView(msgspec.Struct, frozen=True):
    """A policy: its name, where it is, a sentence about it, and the rest of its description."""

    name: str
    where: str
    summary: str
    text: str


_KNOWN = allocate.BUILTIN | allocate.DISCOVERY


def policies() -> list[PolicyView]:
    """Those that come with Salticus."""
    return [policy(name) for name in _KNOWN]


def policy(name: str) -> PolicyView:
    """A policy by its name, or ``file.py:Class``."""
    part = plugins.load("policy", name, _KNOWN)
    plain = name.replace("-", "_")
    known = plain if plain in _KNOWN else name
    lines = (inspect.getdoc(part) or "").split("\n>>> ")[0].strip().splitlines() or [""]
    text = "\n".join(lines[1:]).strip()
    return PolicyView(known, _KNOWN.get(known, name), lines[0], text)


SHOWN = 12  # steps of a bandit that are told
_MICRO = timedelta(microseconds=1)


class InstaView(
    msgspec.Struct,
    frozen=True,
    rename=spaced(
        start="from",
        end="to",
        asked="clicks that asked",
        changes_at_once="changes found by them",
        chance_let_through="chance of a change, let through",
        chance_others="chance of a change, others",
        saved="visits saved",
        other_visits="visits to pages nobody clicked",
        other_changes="changes found there",
        gained="changes that saved visits found there",
    ),
):
    """What became of the clicks from `start` to `end`, and of the visits that the gate saved."""

    start: datetime
    end: datetime
    asked: int
    let_through: int
    visits_at_once: int
    changes_at_once: int
    chance_let_through: float | None
    chance_others: float | None
    saved: int
    other_visits: int
    other_changes: int
    gained: float


class Arm(msgspec.Struct, frozen=True, rename={"reward": "mean reward"}):
    """An arm of a bandit: how likely it is drawn now, and what its steps earned on average."""

    arm: str
    chance: float
    drawn: int
    reward: float | None


class ArmStep(msgspec.Struct, frozen=True):
    """A step of a bandit: its arm ("all" if every arm had a part), its reward (null: it taught
    nothing, or is not over), and with what chances the arms were drawn."""

    at: datetime
    arm: str
    reward: float | None
    chances: dict[str, float]


class ArmsView(msgspec.Struct, frozen=True):
    """The arms of the crawl's bandit, and its steps."""

    policy: str
    arms: list[Arm]
    steps: list[ArmStep]


async def insta(crawl: Crawl, window: timedelta) -> InstaView:
    """What became of the clicks of the last while, and of the visits that the gate saved.

    Without a gate every click would have brought a visit: those that did not are saved. The budget
    spends them on other pages; what they found there is their share of the changes that were found
    on pages which nobody clicked. Cost: linear in the visits stored.
    """
    end, store = crawl.micros, crawl.store
    start = end - window // _MICRO
    requests = [row for row in store.scan("requests") if row["at"] >= start]
    demand = (row for row in store.scan("demand") if row["at"] >= start)
    clicked = {row["page_id"] for row in demand if row["clicks"]}
    urgent, others = _visits(store, start, clicked)
    asked, made = len(requests), urgent["visits"]
    saved = min(asked - made, others["visits"])
    gain = saved * others["changes"] / others["visits"] if others["visits"] else 0.0
    return InstaView(
        start=moment(start),
        end=moment(end),
        asked=asked,
        let_through=sum(row["sent"] for row in requests),
        visits_at_once=made,
        changes_at_once=urgent["changes"],
        chance_let_through=_mean(requests, sent=True),
        chance_others=_mean(requests, sent=False),
        saved=asked - made,
        other_visits=others["visits"],
        other_changes=others["changes"],
        gained=round(gain, 1),
    )


def _visits(store: VisitStore, start: int, clicked: set[int]) -> tuple[Counter[str], Counter[str]]:
    """Visits and changes found: at once, and by the plan on pages that nobody clicked."""
    urgent, others = Counter[str](), Counter[str]()
    for row in store.scan("visits"):
        if row["at"] < start:
            continue
        tally = urgent if row["purpose"] == "insta" else others
        if tally is urgent or row["page_id"] not in clicked:
            tally["visits"] += 1
            tally["changes"] += row["changed"] is True
    return urgent, others


def _mean(requests: list[dict[str, Any]], *, sent: bool) -> float | None:
    scores = [row["score"] for row in requests if row["sent"] is sent]
    return round(float(np.mean(scores)), 4) if scores else None


async def arms(crawl: Crawl) -> ArmsView:
    """The arms of the crawl's bandit, and what its steps earned; InputError if there is none."""
    name = crawl.config.policy
    policy = make_policy(crawl.config)
    if not isinstance(policy, Bandit):
        raise InputError(f"the policy {name!r} has no arms; bandits are kab2 to kab5")
    await Snapshot({"policy": policy}, crawl.store).recall()
    names, past = policy.arms_.names, policy.history_
    drawn, chances = Counter(past.arm.tolist()), policy.learner_.probabilities()
    return ArmsView(
        policy=name,
        arms=[
            Arm(arm, round(float(chances[k]), 4), drawn[k], _earned(past.reward, past.arm == k))
            for k, arm in enumerate(names)
        ],
        steps=[
            ArmStep(
                at=moment(int(start)),
                arm="all" if arm < 0 else names[arm],
                reward=_figure(reward),
                chances=dict(zip(names, np.round(each, 4).tolist(), strict=True)),
            )
            for start, arm, reward, each in zip(
                past.start, past.arm, past.reward, past.chances, strict=True
            )
        ],
    )


def _earned(reward: Any, mine: Any) -> float | None:
    some = reward[mine & np.isfinite(reward)]
    return _figure(some.mean()) if len(some) else None


def _figure(reward: float) -> float | None:
    return round(float(reward), 4) if np.isfinite(reward) else None
