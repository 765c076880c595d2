"""Estimates and policies by the names that one can type."""

from __future__ import annotations

from pathlib import Path

import pytest

from salticus.errors import ConfigError
from salticus.lab.simulate.named import Contestant, Estimates, contestant


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("oracle", ("oracle", "history", "history")),
        ("clicks=a/click", ("history", "a/click", "history")),
        ("change=gamma, impressions=oracle+history", ("gamma", "history", "oracle+history")),
    ],
)
def test_estimates_are_read(text: str, said: tuple[str, str, str]) -> None:
    assert Estimates.parse(text).names() == said


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("clicks=", "write change=…"),
        ("views=oracle", "write change=…"),
        ("model+gamma", "write FOLDER.history or FOLDER.fitted"),
        ("clicks=fitted", "only change can be fitted"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Estimates.parse(text)


def test_the_names_of_the_paper() -> None:
    models = Path("models")
    published = Estimates(change="frequency")
    assert contestant("nu_h").policy == "impression_proportional"
    assert contestant("lambda_h@coin") == Contestant("lambdacrawl", "coin", published)
    assert contestant("leap_h").estimates == Estimates()
    assert contestant("kab5_ml", models).estimates == Estimates(
        "models/change", "models/click", "models/impression"
    )
    mixed = contestant("leap_mix", models).estimates
    assert mixed is not None
    assert mixed.clicks == "models/click+history"


def test_other_names_are_left_alone() -> None:
    assert contestant("kab5_ix") == Contestant("kab5_ix")
    assert contestant("a_b/mine_h.py:Mine_ml") == Contestant("a_b/mine_h.py:Mine_ml")


def test_models_must_be_named() -> None:
    with pytest.raises(ConfigError, match="give --models"):
        contestant("lambda_ml")
