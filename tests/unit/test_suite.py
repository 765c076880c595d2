"""What holds for the tests themselves."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from hypothesis import settings

ROOT = Path(__file__).parents[2]


def test_make_runs_every_test_once() -> None:
    """`make test` runs the tests in parts; a file in none of them would never be run."""
    named = re.findall(r"pytest .*-m \"not soak\" (.+)", (ROOT / "Makefile").read_text("utf-8"))
    runs = Counter(
        path
        for pattern in " ".join(named).split()
        for place in ROOT.glob(pattern)
        for path in (place.rglob("test_*.py") if place.is_dir() else [place])
    )
    assert runs.keys() == {*(ROOT / "tests").rglob("test_*.py")}
    assert max(runs.values()) == 1
    assert "src" in " ".join(named).split(), "the examples of docstrings"


def test_no_property_depends_on_the_speed_of_the_machine() -> None:
    assert settings.default is not None
    assert settings.default.deadline is None
    places = (ROOT / "tests").rglob("*.py")
    said = {found for path in places for found in re.findall(r"deadline=(\w+)", path.read_text())}
    assert said <= {"None", "Span"}, "Span is a setting of ours, for extractors"
