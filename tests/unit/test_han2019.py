"""The study of Han et al. (2019), in a tiny market; and what its figures mean."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from salticus.cli import app
from salticus.exchange.folder import Log
from salticus.lab.studies.han2019.patterns import pattern_claims, pattern_tables
from salticus.lab.studies.han2019.published import INFLATION, LEVELS, SHARES
from salticus.lab.studies.han2019.requests import SIGHTS, STRATEGIES, saving_claims
from salticus.lab.studies.han2019.run import study
from salticus.lab.studies.paper import FIGURES
from salticus.lab.worlds.market import MarketSize, make_market
from salticus.lab.worlds.market.geography import COUNTRIES

KEYS = ["fig2", "fig3", "fig4", "fig5", "fig4_inflation", "table2", "table3", "fig10", "fig11",
        "fig11_largest"]  # fmt: skip


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study") / "han2019"
    words = ["study", "han2019", "--scale", "tiny", "--jobs", "1", "--out", str(folder)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "report.html" in done.output
    return folder


@pytest.fixture(scope="module")
def report(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "results.json").read_text("utf-8"))
    return found


def test_every_table_and_figure_is_there(report: dict[str, Any], out: Path) -> None:
    tables = {table["key"]: table for table in report["tables"]}
    assert [key for key in KEYS if key not in tables] == []
    assert {row["model"] for row in tables["table2"]["rows"]} >= {"Frequency (combined)"}
    assert len(tables["fig11"]["rows"]) == len(LEVELS) * len(STRATEGIES) * len(SIGHTS) * 2
    assert len(tables["fig10"]["rows"]) == len(SHARES) + 2
    for table in report["tables"]:
        assert all(set(FIGURES) <= set(row) for row in table["rows"])
        with (out / f"{table['key']}.csv").open(encoding="utf-8") as file:
            assert len(list(csv.DictReader(file))) == len(table["rows"])
    page = (out / "report.html").read_text("utf-8")
    assert "Figure 11: visits saved at equal freshness" in page
    assert "What the paper says, and whether it holds here" in page


def test_figures_lie_in_their_intervals(report: dict[str, Any]) -> None:
    rows = [row for table in report["tables"] for row in table["rows"] if row["low"] is not None]
    assert all(row["low"] <= row["ours"] <= row["high"] for row in rows)


def test_all_copies_are_fresh_at_the_start(report: dict[str, Any]) -> None:
    (table,) = (table for table in report["tables"] if table["key"] == "fig10")
    points = table["drawings"][0]["points"]
    assert {point["p_u"] for point in points} == set(SHARES)
    first = min(point["day"] for point in points)
    assert all(point["fresh"] > 0.8 for point in points if point["day"] == first)


def test_the_same_seed_gives_the_same_results(report: dict[str, Any]) -> None:
    again = json.loads(json.dumps(study("tiny")))
    assert again == report


def test_a_log_without_requests_has_the_figures_that_it_can(tmp_path: Path) -> None:
    make_market(tmp_path / "log", MarketSize(60, 12), seed=1, preset="han2019")
    for table in ("requests", "visits"):
        Log(tmp_path / "log").path(table).unlink()
    report = study("tiny", log=tmp_path / "log")
    keys = [table["key"] for table in report["tables"]]
    assert keys == [key for key in keys if key.startswith("fig") and key < "fig6"]
    assert "fig10" not in keys
    assert sum("there must be" in note for note in report["notes"]) == 2


def test_a_log_that_tells_nothing_says_so(tmp_path: Path) -> None:
    make_market(tmp_path / "log", MarketSize(60, 12), seed=1, preset="han2019")
    for table in ("values", "visits", "requests"):
        Log(tmp_path / "log").path(table).unlink()
    tables, notes = pattern_tables(Log(tmp_path / "log"))
    assert tables == []
    assert notes[0].startswith("Figures 2 to 5: nothing tells of changes")
    assert pattern_claims(Log(tmp_path / "log")) == []


def test_the_inflation_of_every_country_of_the_market_is_known() -> None:
    assert {country.code for country in COUNTRIES} == INFLATION.keys()


def savings(both: float | None, frequency: float) -> list[dict[str, Any]]:
    figures = {"dnn_both": both, "dnn_metadata": 0.1, "combined": frequency}
    return [
        {"gate": name, "group": group, "history": history, "at_budget": f"{level:g}", "saving": s}
        for name, s in figures.items()
        for group in ("seen", "unseen")
        for history in SIGHTS.values()
        for level in LEVELS
    ]


@pytest.mark.parametrize(
    ("both", "frequency", "holds"), [(0.3, 0.1, True), (0.1, 0.3, False), (None, 0.1, None)]
)
def test_a_claim_holds_at_all_levels_or_not(
    both: float | None, frequency: float, holds: bool | None
) -> None:
    found = list(saving_claims(savings(both, frequency)))
    assert [c["holds"] for c in found if "more than frequency" in c["claim"]] == [holds] * 2 * len(
        SIGHTS
    )
