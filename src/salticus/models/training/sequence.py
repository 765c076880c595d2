"""Training of the network that reads a page's last changes one by one."""

from __future__ import annotations

from dataclasses import replace

from salticus.errors import InputError
from salticus.features.names import FeatureSet
from salticus.models.sequence import SequenceModel
from salticus.models.training.deep import OURS, Told, Train, Trainer, TrainingRows, layout_of
from salticus.models.training.network import DeepSettings
from salticus.types import Examples, Metadata

STATE = 32
"""Numbers that a page's last changes are summed up in."""


def fit_sequence(  # noqa: PLR0913 the same for every kind of model
    train: Train,
    validation: Examples,
    metadata: Metadata,
    choice: FeatureSet,
    settings: DeepSettings = OURS,
    told: Told = lambda step: None,
) -> SequenceModel:
    """Train as `fit_deep` does, with the last N changes of the rows' `steps` beside the features.

    N is the greatest power of two that the rows have; with less than two there is no sequence.
    """
    rows = TrainingRows(train, settings)
    depth = rows.sample.inputs.steps.shape[1]
    if depth < 2:
        raise InputError(
            "the rows hold no last changes; make the examples with a depth of 2 or more"
        )
    layout = layout_of(rows.sample, metadata, choice, settings)
    layout = replace(layout, steps=1 << (depth.bit_length() - 1), state=STATE)
    return Trainer(SequenceModel, layout, metadata, settings).fit(rows, validation, told)
