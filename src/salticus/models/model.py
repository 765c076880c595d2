"""Learnt models: rows of features → log-odds, and those → probabilities that come true so often."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from salticus.types import Floats, Inputs, Metadata
from salticus.types.state import State


class Model(Protocol):
    """A trained model: it scores, and is arrays and plain settings.

    Laws: a row's score depends on that row alone; ``of(m.settings(), m.arrays())`` scores as m does
    to the last bit; scoring needs nothing that only training needs.
    """

    kind: ClassVar[str]

    def logits(self, inputs: Inputs, metadata: Metadata) -> Floats:
        """Log-odds, rows × horizons: of the event in each stretch, if it did not come before."""

    def settings(self) -> dict[str, Any]:
        """What besides arrays makes the model, as JSON can hold it."""

    def arrays(self) -> State: ...

    @classmethod
    def of(cls, settings: dict[str, Any], arrays: State) -> Self: ...


@dataclass(frozen=True, slots=True)
class Curve:
    """Log-odds in, log-odds out; never falling.

    platt: slope · z + intercept (Platt 1999). isotonic: straight between the points (x, y), and
    beyond them on with the slope. none: as they are.
    """

    method: str = "none"
    slope: float = 1.0
    intercept: float = 0.0
    x: Floats = field(default_factory=lambda: np.empty(0))
    y: Floats = field(default_factory=lambda: np.empty(0))

    def __call__(self, logits: Floats) -> Floats:
        if self.method == "none":
            return logits
        if self.method == "platt":
            return np.asarray(self.slope * logits + self.intercept)
        inside = np.clip(logits, self.x[0], self.x[-1])
        return np.asarray(np.interp(inside, self.x, self.y) + self.slope * (logits - inside))


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A model with a curve for each horizon, learnt from examples later than its own.

    Law: of `probabilities`, no later edge has less than an earlier one.
    """

    model: Model
    curves: tuple[Curve, ...]

    def hazards(self, inputs: Inputs, metadata: Metadata) -> Floats:
        """Rows × horizons: of the event in each stretch, if it did not come before; in (0, 1)."""
        logits = self.model.logits(inputs, metadata)
        columns = [sigmoid(curve(z)) for curve, z in zip(self.curves, logits.T, strict=True)]
        return np.stack(columns, axis=1)

    def probabilities(self, inputs: Inputs, metadata: Metadata) -> Floats:
        """Rows × horizons: of the event between now and each edge."""
        return within(self.hazards(inputs, metadata))

    def settings(self) -> dict[str, Any]:
        """The curves, without their points and without the model."""
        kept = ("method", "slope", "intercept")
        return {"curves": [{name: getattr(c, name) for name in kept} for c in self.curves]}

    def arrays(self) -> State:
        """The points of the curves of horizon 0, 1, ..."""
        numbered = tuple(enumerate(self.curves))
        return {f"{at}.{name}": getattr(curve, name) for name in "xy" for at, curve in numbered}

    @classmethod
    def of(cls, settings: dict[str, Any], arrays: State, model: Model) -> Self:
        """The model with the curves of these settings and arrays."""
        curves = (
            Curve(**told, x=arrays[f"{at}.x"], y=arrays[f"{at}.y"])
            for at, told in enumerate(settings["curves"])
        )
        return cls(model, tuple(curves))


def within(hazards: Floats) -> Floats:
    """1 − ∏(1 − p): of the event by the end of each stretch.

    >>> within(np.array([[0.5, 0.5, 0.0]]))
    array([[0.5 , 0.75, 0.75]])
    """
    return np.asarray(1.0 - np.cumprod(1.0 - hazards, axis=1))


def sigmoid(logits: Floats) -> Floats:
    """Probabilities strictly inside (0, 1), also of log-odds beyond what floats tell apart.

    >>> sigmoid(np.array([-1000.0, 0.0])) > 0
    array([ True,  True])
    """
    inside = np.clip(logits, -30.0, 30.0)
    return np.asarray(1.0 / (1.0 + np.exp(-inside)))
