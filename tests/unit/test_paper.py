"""The form that studies of papers share: rows, intervals, files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from salticus.lab.studies.paper import (
    FIGURES,
    Drawing,
    Measured,
    PaperTable,
    claim,
    compared,
    mean_of,
    report_of,
    write_study,
)

NUMBERS = st.floats(-1e6, 1e6)


@given(NUMBERS, NUMBERS, st.floats(0, 1e6))
def test_a_note_is_said_where_figures_part_and_nowhere_else(
    ours: float, published: float, half: float
) -> None:
    row = compared({"a": 1}, Measured(ours, ours - half, ours + half), published, why="Because.")
    parts = not row["low"] <= row["published"] <= row["high"] and row["difference"] != 0
    assert bool(row["note"]) == parts
    assert ("Because." in row["note"]) == parts


def test_what_is_not_known_is_none() -> None:
    row = compared({}, float("nan"), 0.5)
    assert [row[name] for name in FIGURES] == [0.5, None, None, None, None, ""]
    assert compared({}, 0.5)["difference"] is None


def test_a_small_difference_is_not_one() -> None:
    assert compared({}, 0.51, 0.5, bound=0.02)["note"] == ""
    assert compared({}, 0.53, 0.5, bound=0.02)["note"] == "Ours is higher."


@given(st.lists(NUMBERS, min_size=2, max_size=20))
def test_an_interval_holds_its_mean(values: list[float]) -> None:
    mean, low, high = mean_of(np.array(values))
    assert mean is not None
    assert low is not None
    assert high is not None
    assert low <= mean + 1e-3
    assert mean <= high + 1e-3


def test_one_value_has_no_interval() -> None:
    assert mean_of(np.array([2.0])) == Measured(2.0)
    assert mean_of(np.array([np.nan])) == Measured(None)


def test_a_study_is_written_as_page_json_and_csv(tmp_path: Path) -> None:
    rows = [
        compared({"model": name, "group": "seen"}, Measured(0.8, 0.75, 0.85), 0.7) for name in "ab"
    ]
    points = [{"day": day, "share": share, "fresh": 0.9} for day in (0, 1) for share in (0.1, 1.0)]
    drawings = (
        Drawing("points", "model:N", colour="model", panel="group"),
        Drawing("bars", "model:N", colour="group"),
        Drawing("lines", "day:Q", "fresh:Q", "share", points=points),
    )
    table = PaperTable("table_2", "Table 2", "AUC", ("model", "group"), rows, drawings, ("Few.",))
    said = claim("a is best", "§5", None, "-")
    report = report_of("A paper", {"scale": "tiny"}, [table], [said], ["A note."])
    files = write_study(report, tmp_path / "out")
    names = {"report.html", "results.json", "table_2.csv", "table_2-points-1.csv"}
    assert {path.name for path in files} == names
    assert json.loads((tmp_path / "out" / "results.json").read_text("utf-8"))["title"] == "A paper"
    with (tmp_path / "out" / "table_2.csv").open(encoding="utf-8") as file:
        assert [row["published"] for row in csv.DictReader(file)] == ["0.7", "0.7"]
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "Ours is higher." in page
    assert "cannot be told" in page
