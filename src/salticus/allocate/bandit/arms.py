"""The arms of a bandit: any policies, all asked about the same pages with the same estimates."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from salticus import plugins
from salticus.allocate import BUILTIN
from salticus.allocate.base import Policy, Stepwise, Thrifty
from salticus.errors import ConfigError
from salticus.types import Floats, Outcomes, Pages
from salticus.types.state import Remembers, State

Arm = str | Callable[[], Policy]


class Arms:
    """Policies side by side. An arm is a policy's name, ``file.py:Class``, or anything that makes
    one."""

    def __init__(self, arms: Sequence[Arm], *, seed: int) -> None:
        if not arms:
            raise ConfigError("a bandit has no arms; name some policies in its class: arms = (...)")
        self.names = [arm if isinstance(arm, str) else arm.__name__ for arm in arms]
        self.policies = [_made(arm, seed) for arm in arms]
        thrifty = [policy for policy in self.policies if isinstance(policy, Thrifty)]
        self.spends = all(policy.spends for policy in thrifty)

    def __len__(self) -> int:
        return len(self.policies)

    def expected(self, arm: int, pages: Pages, visits: float) -> Floats:
        """What one of them expects."""
        return self.policies[arm].expected(pages, visits)

    def begin(self, pages: Pages) -> None:
        """A tick begins."""
        for policy in self.policies:
            if isinstance(policy, Stepwise):
                policy.begin(pages)

    def adopt(self) -> None:
        """What they were asked last is what is done."""
        for policy in self.policies:
            if isinstance(policy, Stepwise):
                policy.adopt()

    def learn(self, outcomes: Outcomes) -> None:
        """All learn from every visit, whoever asked for it."""
        for policy in self.policies:
            policy.learn(outcomes)

    def state(self) -> State:
        """What the arms remember, each under its number, and what they are called."""
        kept = {
            f"arm{number}/{name}": column
            for number, policy in enumerate(self.policies)
            if isinstance(policy, Remembers)
            for name, column in policy.state().items()
        }
        return {"names": np.array(self.names), **kept}

    def are_of(self, state: State) -> bool:
        """Whether the state is that of arms of the same names."""
        return bool(state["names"].tolist() == self.names)

    def restore(self, state: State) -> None:
        for number, policy in enumerate(self.policies):
            if isinstance(policy, Remembers):
                policy.restore(part(state, f"arm{number}"))


def part(state: State, name: str) -> State:
    """The columns under a name, without it.

    >>> part({"arm0/due": np.array([1]), "arm1/due": np.array([2])}, "arm1")
    {'due': array([2])}
    """
    head = f"{name}/"
    return {key.removeprefix(head): state[key] for key in state if key.startswith(head)}


def _made(arm: Arm, seed: int) -> Policy:
    if not isinstance(arm, str):
        return arm()
    made: Policy = plugins.make("policy", arm, BUILTIN, seed=seed)
    return made
