"""Calibration: log-odds become probabilities that come true as often as they say."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.models.model import Calibrated, sigmoid, within
from salticus.models.training.calibrate import calibrate, isotonic, platt
from salticus.types import Examples, Floats, Inputs, Metadata
from salticus.types.state import State

METHODS = ("platt", "isotonic", "none", "best")

NOTHING = Metadata(np.empty((0, 0), dtype=np.int32), np.empty((0, 0), dtype=np.int32), (), (), 0)


class Given:
    """A model whose log-odds are its features."""

    kind: ClassVar[str] = "given"

    def logits(self, inputs: Inputs, metadata: Metadata) -> Floats:
        return inputs.dense.astype(np.float64)

    def settings(self) -> dict[str, Any]:
        return {}

    def arrays(self) -> State:
        return {}

    @classmethod
    def of(cls, settings: dict[str, Any], arrays: State) -> Self:
        return cls()


def examples(logits: np.ndarray, label: np.ndarray, weight: np.ndarray | None = None) -> Examples:
    rows, horizons = logits.shape
    inputs = Inputs(
        page=np.arange(rows) % 97,
        hour=np.arange(rows) * 240 // rows,  # ten days
        dense=logits.astype(np.float32),
        steps=np.empty((rows, 0, 3), dtype=np.float32),
        names=tuple(f"z{horizon}" for horizon in range(horizons)),
    )
    yes = np.ones(rows, dtype=np.bool_)
    weight = np.ones(rows) if weight is None else weight
    return Examples(inputs, label.astype(np.int8), weight, yes, yes, np.arange(rows))


def told(rows: int, truth: Any, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds of a model, and labels whose true log-odds are a function of them."""
    rng = np.random.default_rng(seed)
    z = rng.normal(-1.0, 2.0, (rows, 1))
    return z, rng.random((rows, 1)) < sigmoid(truth(z))


def off(model: Calibrated, asked: Examples, truth: Any) -> float:
    """Mean distance between probabilities and the truth."""
    p = model.hazards(asked.inputs, NOTHING)
    return float(np.abs(p - sigmoid(truth(asked.inputs.dense.astype(np.float64)))).mean())


def line(z: np.ndarray) -> np.ndarray:
    return 0.5 * z - 1.0


def bend(z: np.ndarray) -> np.ndarray:
    return np.where(z < -1.0, -3.0, z)


@pytest.mark.parametrize("method", ["platt", "isotonic", "best"])
def test_a_known_distortion_is_undone(method: str) -> None:
    asked = examples(*told(20_000, line))
    model = calibrate(Given(), asked, NOTHING, method=method)
    assert off(model, examples(*told(2000, line, seed=1)), line) < 0.012
    assert off(calibrate(Given(), asked, NOTHING, method="none"), asked, line) > 0.08


def test_the_best_method_is_found() -> None:
    straight = calibrate(Given(), examples(*told(20_000, line)), NOTHING)
    bent = calibrate(Given(), examples(*told(20_000, bend)), NOTHING)
    assert [model.curves[0].method for model in (straight, bent)] == ["platt", "isotonic"]


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_weights_undo_sampling(method: str) -> None:
    """Of the rows without the event every tenth was kept: its weight is ten."""
    z, label = told(60_000, line)
    kept = label[:, 0] | (np.random.default_rng(1).random(len(z)) < 0.1)
    weight = np.where(label[:, 0], 1.0, 10.0)[kept]
    sampled = examples(z[kept], label[kept], weight)
    model = calibrate(Given(), sampled, NOTHING, method=method)
    assert off(model, examples(z, label), line) < 0.015
    blind = calibrate(Given(), examples(z[kept], label[kept]), NOTHING, method=method)
    assert off(blind, examples(z, label), line) > 0.1


def test_rows_that_are_not_at_risk_teach_nothing() -> None:
    z, label = told(4000, line)
    label = label.astype(np.int8)
    known = calibrate(Given(), examples(z[:3000], label[:3000]), NOTHING, method="platt")
    label[3000:] = -1
    some = calibrate(Given(), examples(z, label), NOTHING, method="platt")
    assert some.curves[0].slope == pytest.approx(known.curves[0].slope, rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [0, 1])
def test_probabilities_stay_inside(method: str, value: int) -> None:
    """Also where all labels are alike, and for log-odds beyond all that was seen."""
    z, label = told(50, line)
    model = calibrate(Given(), examples(z, np.full_like(label, value)), NOTHING, method=method)
    far = examples(np.array([[-1e6], [-50.0], [0.0], [50.0], [1e6]]), np.zeros((5, 1)))
    p = model.hazards(far.inputs, NOTHING)
    assert ((p > 0) & (p < 1)).all()
    assert (np.diff(p[:, 0]) >= 0).all()


def test_one_day_and_no_rows_will_do() -> None:
    z, label = told(200, line)
    one = examples(z, label)
    one.inputs.hour[:] = 5
    assert calibrate(Given(), one, NOTHING).curves[0].method != "none"
    none = one.take(np.empty(0, dtype=np.int64))
    assert [curve.method for curve in calibrate(Given(), none, NOTHING).curves] == ["none"]


def test_a_useless_model_becomes_flat_not_turned_round() -> None:
    z, label = told(4000, lambda z: -z)
    curve = calibrate(Given(), examples(z, label), NOTHING, method="platt").curves[0]
    assert 0 < curve.slope < 0.01
    assert sigmoid(curve(z)).mean() == pytest.approx(label.mean(), abs=0.01)


@given(st.integers(0, 10_000), st.sampled_from([platt, isotonic]))
@settings(max_examples=20, deadline=None)
def test_curves_never_fall(seed: int, fit: Any) -> None:
    rng = np.random.default_rng(seed)
    z = rng.choice([rng.normal(size=60), np.round(rng.normal(size=60))])
    curve = fit(z, (rng.random(60) < 0.3).astype(np.float64), rng.exponential(size=60))
    asked = np.sort(np.append(z, [-9.0, 9.0]))
    assert (np.diff(curve(asked)) >= -1e-12).all()


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=5))
@settings(max_examples=30)
def test_a_later_edge_has_no_less(hazards: list[list[float]]) -> None:
    p = within(np.array(hazards))
    assert (np.diff(p, axis=1) >= 0).all()
    survive = np.array([[np.prod(1 - np.array(row[: k + 1])) for k in range(3)] for row in hazards])
    assert p == pytest.approx(1 - survive)


def test_probabilities_are_within_each_edge() -> None:
    rng = np.random.default_rng(0)
    asked = examples(rng.normal(size=(300, 3)), rng.random((300, 3)) < 0.5)
    model = calibrate(Given(), asked, NOTHING)
    p = model.probabilities(asked.inputs, NOTHING)
    assert np.array_equal(p[:, 0], 1 - (1 - model.hazards(asked.inputs, NOTHING)[:, 0]))
    assert (np.diff(p, axis=1) >= 0).all()


def test_curves_are_their_settings_and_arrays() -> None:
    asked = examples(*told(3000, bend))
    for method in METHODS:
        model = calibrate(Given(), asked, NOTHING, method=method)
        again = Calibrated.of(model.settings(), model.arrays(), Given())
        one, other = (m.hazards(asked.inputs, NOTHING) for m in (model, again))
        assert np.array_equal(one, other)
