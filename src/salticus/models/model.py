"""The contract of learnt models: rows of features → log-odds, and back to a file."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self

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
