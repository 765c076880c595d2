"""The network of `deep`, which also reads a page's last changes one by one."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from salticus.errors import InputError
from salticus.models.deep import DeepModel
from salticus.types import Floats32, Inputs, Metadata


class SequenceModel(DeepModel):
    """Causal convolutions over the last N changes join the inputs of the network.

    Each level sees two neighbouring places of the one below, so that log₂ N of them see all: the
    dilated convolutions of van den Oord et al. (2016, "WaveNet"), of which only the last place is
    wanted and only what it needs is computed. A change is its three numbers (`STEP`) and an
    indicator that there was one; what is unknown is 0. N is a power of two; where more changes are
    given, the latest count.
    """

    kind: ClassVar[str] = "sequence"

    def _check(self, inputs: Inputs, metadata: Metadata) -> None:
        DeepModel._check(self, inputs, metadata)
        if inputs.steps.shape[1] < self.layout.steps:
            raise InputError(
                f"the model needs a page's last {self.layout.steps} changes,"
                f" not {inputs.steps.shape[1]}"
            )

    def _state(self, steps: Floats32) -> Floats32:
        level = step_inputs(steps[:, steps.shape[1] - self.layout.steps :])
        for k in range(self.layout.steps.bit_length() - 1):
            level = level.reshape(len(level) * level.shape[1] // 2, -1)
            level = level @ self.weights_[f"step{k}/weight"]
            level += self.weights_[f"step{k}/bias"]
            np.maximum(level, 0.0, out=level)
            level = level.reshape(len(steps), -1, level.shape[1])
        return level[:, 0]


def step_inputs(steps: Floats32) -> Floats32:
    """Rows × N × 4: the numbers of each change, 0 where unknown, and whether there was one."""
    known = ~np.isnan(steps[:, :, :1])
    numbers = np.nan_to_num(steps, nan=0.0)
    return np.concatenate([numbers, known.astype(np.float32)], axis=2)
