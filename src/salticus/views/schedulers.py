"""How the two schedulers fared: InstaCrawl with its clicks, and the arms of a bandit."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import numpy as np

from salticus.allocate.bandit.policy import Bandit
from salticus.config import Config
from salticus.crawl.opening import clock_of, stored
from salticus.crawl.parts import make_policy
from salticus.crawl.snapshot import Memory
from salticus.errors import InputError
from salticus.store.base import VisitStore
from salticus.views.times import iso

SHOWN = 12  # steps of a bandit that are told


async def insta_of(config: Config, window: timedelta) -> dict[str, Any]:
    """What became of the clicks of the last while, and of the visits that the gate saved.

    Without a gate every click would have brought a visit: those that did not are saved. The budget
    spends them on other pages; what they found there is their share of the changes that were found
    on pages which nobody clicked. Cost: linear in the visits stored.
    """
    end = int(clock_of(config).now().timestamp() * 1e6)
    start = end - int(window.total_seconds() * 1e6)
    async with stored(config) as store:
        requests = [row for row in store.scan("requests") if row["at"] >= start]
        urgent, others = _visits(store, start, _clicked(store, start))
    asked, made = len(requests), urgent["visits"]
    saved = min(asked - made, others["visits"])
    gain = saved * others["changes"] / others["visits"] if others["visits"] else 0.0
    return {
        "from": iso(start),
        "to": iso(end),
        "clicks that asked": asked,
        "let through": sum(row["sent"] for row in requests),
        "visits at once": made,
        "changes found by them": urgent["changes"],
        "chance of a change, let through": _mean(requests, sent=True),
        "chance of a change, others": _mean(requests, sent=False),
        "visits saved": asked - made,
        "visits to pages nobody clicked": others["visits"],
        "changes found there": others["changes"],
        "changes that saved visits found there": round(gain, 1),
    }


def _clicked(store: VisitStore, start: int) -> set[int]:
    return {row["page_id"] for row in store.scan("demand") if row["at"] >= start and row["clicks"]}


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


async def arms_of(config: Config) -> dict[str, Any]:
    """The arms of the crawl's bandit, how likely each is drawn now, and what the steps earned.

    InputError if the policy is no bandit.
    """
    async with stored(config) as store:
        policy = make_policy(config)
        if not isinstance(policy, Bandit):
            raise InputError(f"the policy {config.policy!r} has no arms; bandits are kab2 to kab5")
        await Memory({"policy": policy}, store).recall()
    names, past = policy.arms_.names, policy.history_
    drawn = Counter(past.arm.tolist())
    return {
        "policy": config.policy,
        "arms": [
            {
                "arm": name,
                "chance": round(float(policy.learner_.probabilities()[k]), 4),
                "drawn": drawn[k],
                "mean reward": _earned(past.reward, past.arm == k),
            }
            for k, name in enumerate(names)
        ],
        "steps": [
            {
                "at": iso(int(start)),
                "arm": "all" if arm < 0 else names[arm],
                "reward": round(float(reward), 4),
                "chances": dict(zip(names, np.round(chances, 4).tolist(), strict=True)),
            }
            for start, arm, reward, chances in zip(
                past.start, past.arm, past.reward, past.chances, strict=True
            )
        ],
    }


def _earned(reward: Any, mine: Any) -> float | None:
    return round(float(reward[mine].mean()), 4) if mine.any() else None
