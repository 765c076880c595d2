"""`salticus why` and `salticus fresh` on a store whose crawl has not run yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from .cli_stage import FRESH, GONE, SETTINGS, TEA, Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path, 'policy = "leap"\n' + SETTINGS)
    stage.furnish()
    return stage


def test_why_explains_in_words_and_json(stage: Stage) -> None:
    told = stage.json("why", TEA)
    assert told["url"] == TEA
    assert told["price"] is None, "nothing has been planned yet"
    assert told["next_visit"]["purpose"] in ("policy", "explore")
    assert 0 <= told["copy"]["changed_by_now"] <= told["copy"]["changed_in_days"]["14"] <= 1
    words = stage.ok("why", TEA)
    assert "next visit\n    foreseen for tick" in words
    assert "of it is the page's own record" in words.replace("\n    ", " ")
    assert "there is none yet" in stage.ok("why", FRESH)


def test_why_and_fresh_name_what_they_do_not_know(stage: Stage) -> None:
    unknown = "http://nowhere.example/"
    assert f"{unknown} is not in the store" in stage.refusal("why", unknown)
    said = stage.run("fresh", TEA, unknown, FRESH, "-c", str(stage.file))
    assert said.code == 2
    assert f"{unknown} is not in the store" in said.err
    assert TEA in said.out
    assert FRESH in said.out


def test_fresh_tells_how_good_copies_are(stage: Stage) -> None:
    tea, gone, new = stage.json("fresh", TEA, GONE, FRESH)
    assert 0 < tea["fresh"] < 1
    assert tea["last_answer"] is not None
    assert tea["next_visit"]["tick"] >= 0
    assert gone["fresh"] == 0.0
    assert (new["fresh"], new["last_visit"]) == (0.0, None)
    assert "still right" in stage.ok("fresh", TEA, GONE)


def test_a_crawl_that_runs_is_not_disturbed(stage: Stage) -> None:
    before = stage.json("status")
    assert before["visit price"] is None
    for _ in range(2):
        first, second = stage.json("why", TEA), stage.json("why", TEA)
        assert first["next_visit"]["tick"] == second["next_visit"]["tick"]
    assert stage.json("status") == before
