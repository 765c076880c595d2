"""What the bandits of a simulation drew: every step of every run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from salticus.allocate.bandit.policy import Bandit
from salticus.allocate.base import Policy
from salticus.types import Floats, Ints


@dataclass(frozen=True, slots=True)
class ArmRecord:
    """The steps of one run: the probability of each arm when it was drawn (steps × arms), and the
    arm drawn, by number; -1: every arm had a part."""

    names: tuple[str, ...]
    chances: Floats
    drawn: Ints


def keep_all(policy: Policy) -> None:
    """Let a bandit remember all its steps, and not the last thousand."""
    if isinstance(policy, Bandit):
        policy.history_.kept = sys.maxsize


def record_of(policy: Policy) -> ArmRecord | None:
    """What a bandit remembers of its steps; None of another policy."""
    if not isinstance(policy, Bandit):
        return None
    past = policy.history_
    return ArmRecord(tuple(policy.arms_.names), past.chances, past.arm)


def told_arms(runs: Sequence[ArmRecord]) -> dict[str, Any]:
    """The runs of a bandit as plain data: probabilities are means over the runs, step by step."""
    return {
        "names": list(runs[0].names),
        "chances": np.round(mean_chances(runs), 4).tolist(),
        "drawn": [run.drawn.tolist() for run in runs],
    }


def mean_chances(runs: Sequence[ArmRecord]) -> Floats:
    """The mean over the runs of the probability of each arm, steps × arms."""
    steps = min(len(run.drawn) for run in runs)
    return np.asarray(np.mean([run.chances[:steps] for run in runs], axis=0))
