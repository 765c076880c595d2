"""`salticus new`: every new page once, in the order found; `why` and `sources` explain them."""

from __future__ import annotations

from pathlib import Path

import pytest

from salticus.types import Entry

from .cli_stage import MAP, TEA, Stage, seen

FIRST, SECOND = "http://a.example/news/1", "http://a.example/news/2"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A store whose sitemap has shown two new pages since its first visit; one was fetched."""
    stage = Stage(tmp_path)
    stage.furnish()
    shown = (Entry(TEA), Entry(FIRST))
    stage.record(seen(9, 5, 0.5, "more", kind="source", entries=shown, complete=True))
    stage.record(
        seen(10, 5, 0.1, "most", kind="source", entries=(*shown, Entry(SECOND)), complete=True),
        seen(11, 6, 0.05, "what is new", kind="page"),
    )
    return stage


def test_new_pages_are_json_lines_in_the_order_found(stage: Stage) -> None:
    first, second = stage.lines("new")
    assert [first["url"], second["url"]] == [FIRST, SECOND], "what the first visit showed is old"
    assert set(first) == {"seq", "found", "since", "url", "source", "tags", "fetched"}
    assert first["source"] == second["source"] == MAP
    assert first["since"] < first["found"] == second["since"] < second["found"]
    assert first["fetched"] > second["found"]
    assert second["fetched"] is None
    assert stage.lines("new", "--json") == [first, second]


def test_new_pages_can_be_chosen(stage: Stage) -> None:
    def urls(*words: str) -> list[str]:
        return [found["url"] for found in stage.lines("new", *words)]

    first = stage.lines("new")[0]
    assert urls("--after", str(first["seq"])) == urls("--since", "6h") == [SECOND]
    assert urls("--url", "news/2") == [SECOND]
    assert urls("--fetched") == urls("--limit", "1") == [FIRST]
    assert urls("--source", "sitemap") == [FIRST, SECOND]
    assert urls("--source", "other") == urls("--tag", "drinks") == []
    said = stage.ok("new", "--human")
    assert f"{FIRST}  on {MAP}, fetched" in said


def test_a_found_page_and_its_source_are_explained(stage: Stage) -> None:
    page, source = stage.json("why", SECOND), stage.json("why", MAP)
    assert page["found"]["source"] == MAP
    assert 0 < page["found"]["remaining"] <= 1.5
    assert (page["promise"], source["found"]) == (None, None)
    assert source["promise"]["new_now"] > 0
    assert "clicks are still to come" in " ".join(stage.ok("why", SECOND).split())
    assert "half of them within 17 h" in " ".join(stage.ok("why", MAP).split())
    (told,) = stage.json("sources")
    assert (told["url"], len(told["by_hour"])) == (MAP, 24)
    assert "new pages, each good for" in told["why"]
    shown = stage.ok("sources", "--limit", "1").splitlines()
    assert shown[1].endswith(MAP)
    assert "new links by the hour of the day (UTC)" in shown[-1]
