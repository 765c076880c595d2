"""Commands about stored pages: list, edit, forget, show, alerts, status."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from salticus.cli.pages import Sort, State
from salticus.crawl.alerts import KINDS
from salticus.crawl.retiring import DISCOVER, RETIRED
from salticus.crawl.snapshot import Snapshot
from salticus.store.nouns import SORTS, STATES
from salticus.store.sqlite.store import SqliteStore
from salticus.types import Alert, Plan, Tick, Told, Value, instant
from salticus.views.alerts import ADVICE, MEANING
from salticus.views.page import STATES as STATE_WORDS
from salticus.views.times import iso

from .cli_stage import ABOUT, FRESH, GONE, MAP, NOW, PAGES, TEA, Stage, seen


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    stage.furnish()
    return stage


# --------------------------------------------------------------------------------------------- list


def urls(stage: Stage, *words: str) -> list[str]:
    return [page["url"] for page in stage.json("pages", *words)]


def test_pages_can_be_chosen(stage: Stage) -> None:
    assert urls(stage) == sorted(page.url for page in PAGES)
    assert urls(stage, "--tag", "drinks") == [TEA]
    assert urls(stage, "--kind", "source") == [MAP]
    assert urls(stage, "--status", "gone") == urls(stage, "--state", "gone") == [GONE]
    assert urls(stage, "--state", "new") == [FRESH]
    assert urls(stage, "--host", "a.*") == urls(stage, "http://a.example/*") == [ABOUT, MAP, TEA]
    assert urls(stage, "tea") == urls(stage, "HTTP://A.EXAMPLE/tea#top") == [TEA]
    assert urls(stage, "--sort", "changes", "--desc", "--limit", "1") == [TEA]
    assert urls(stage, "nothing") == []


def test_a_listing_is_for_people(stage: Stage) -> None:
    lines = stage.ok("pages").splitlines()
    assert lines[0].split() == ["kind", "state", "value", "visited", "changed", "changes", "url"]
    row = next(line for line in lines if line.endswith(TEA))
    assert re.match(r"offer +well +17\.5 EUR OutOfStock +24h ago +2d ago +2 ", row)
    assert stage.ok("pages", "nothing") == "no page fits\n"


def test_a_listing_that_is_cut_says_so(stage: Stage) -> None:
    said = stage.run("pages", "--limit", "2", "-c", str(stage.file))
    assert len(said.out.splitlines()) == 3
    assert "--limit shows more" in said.err


def test_the_words_of_the_commands_are_those_of_the_store() -> None:
    assert set(get_args(Sort)) == set(SORTS)
    assert set(get_args(State)) == set(STATES) == set(STATE_WORDS)
    assert set(MEANING) == set(ADVICE) == {*KINDS.values(), "drift", "flood", RETIRED, DISCOVER}


# --------------------------------------------------------------------------------------------- edit


def test_many_pages_are_edited_at_once(stage: Stage) -> None:
    words = ["--set-tag", "x", "--set-tag", "y", "--drop-tag", "drinks", "--set-demand", "7"]
    assert stage.json("pages", "a.example", *words, "--set-max-interval", "12h") == {"edited": 3}
    pages = stage.json("pages", "--tag", "x")
    assert [page["url"] for page in pages] == [ABOUT, MAP, TEA]
    assert all(page["tags"] == ["x", "y"] for page in pages)
    assert all((page["max_interval"], page["demand"]) == (0.5, 7.0) for page in pages)
    assert stage.ok("pages", TEA, "--set-max-interval", "none") == "1 page edited\n"
    assert stage.json("pages", TEA)[0]["max_interval"] is None


def test_pages_rest_and_come_back(stage: Stage) -> None:
    assert stage.ok("pages", "--host", "b.example", "--pause") == "2 pages edited\n"
    assert urls(stage, "--state", "paused") == [FRESH, GONE]
    assert stage.json("status")["resting"] == 2
    stage.ok("pages", FRESH, "--resume")
    assert urls(stage, "--state", "paused") == [GONE]


def test_edits_of_everything_must_be_meant(stage: Stage) -> None:
    assert "--all" in stage.refusal("pages", "--pause")
    assert urls(stage, "--state", "paused") == []
    assert stage.json("pages", "--set-kind", "page", "--all") == {"edited": len(PAGES)}
    assert "exclude each other" in stage.refusal("pages", TEA, "--pause", "--resume")


def test_wrong_words_are_named(stage: Stage) -> None:
    assert "'offr'" in stage.refusal("pages", "--set-kind", "offr", TEA)
    assert "'x' is not a duration" in stage.refusal("pages", TEA, "--set-max-interval", "x")


# ------------------------------------------------------------------------------------------- forget


def test_nothing_is_forgotten_before_it_is_meant(stage: Stage) -> None:
    said = stage.refusal("forget", TEA, ABOUT, code=1)
    assert "2 pages would go, with 6 visits and 3 changes" in said
    assert TEA in said
    assert "--yes" in said
    assert len(urls(stage)) == len(PAGES)


def test_forgotten_pages_are_gone(stage: Stage) -> None:
    assert stage.json("forget", "tea", "--yes") == {"forgotten": 1, "urls": [TEA]}
    assert TEA not in urls(stage)
    assert "not in the store" in stage.refusal("show", TEA)
    assert [change["url"] for change in stage.lines("changes")] == [ABOUT]
    assert stage.ok("forget", "tea", "--yes") == "no page fits; nothing was forgotten\n"


def test_not_everything_is_forgotten_by_mistake(stage: Stage) -> None:
    assert "say which pages" in stage.refusal("forget", "--yes")
    assert len(urls(stage)) == len(PAGES)


# --------------------------------------------------------------------------------------------- show


def test_prices_are_shown_with_their_moves(stage: Stage) -> None:
    said = stage.ok("show", TEA)
    assert re.search(r"state +well \(its last visit was answered\)", said)
    assert re.search(rf"named by +{re.escape(MAP)}", said)
    assert "↓ 2.4 EUR (-12.1 %)" in said
    assert "17.5 EUR [-InStock-] {+OutOfStock+}" in said
    assert "\x1b" not in said


def test_texts_are_shown_with_their_words(stage: Stage) -> None:
    said = stage.ok("show", ABOUT)
    assert "We are open from [-nine-] {+ten+} to five." in said
    assert "change of" not in stage.ok("show", ABOUT, "--diffs", "0")
    diffs = stage.json("show", ABOUT, "--diffs", "9")["diffs"]
    assert [diff["at"] for diff in diffs] == [iso(NOW - int(1.5 * 86_400_000_000))]
    assert "{+Welcome!+}" in diffs[0]["text"]


def test_a_new_page_shows_no_empty_tables(stage: Stage) -> None:
    said = stage.ok("show", FRESH)
    assert "not visited yet" in said
    assert "last visits" not in said


def test_a_moved_page_says_where_to(stage: Stage) -> None:
    stage.record(seen(20, 4, 0.1, "5 EUR", moved="http://b.example/new"))
    assert re.search(r"moved to +http://b\.example/new", stage.ok("show", FRESH))
    assert urls(stage, "--state", "moved") == [FRESH]


def test_what_a_feed_says_is_shown_beside_what_was_seen(stage: Stage) -> None:
    told = Told(TEA, NOW, "teahouse", Value("offer", "16 EUR InStock"))
    asyncio.run(with_store(stage, lambda store: store.told([told])))
    said = stage.ok("show", TEA)
    assert re.search(r"a feed says +16 EUR InStock \(teahouse, ", said)
    assert stage.ok("get", TEA, "--value") == "16 EUR InStock\n"
    assert stage.json("get", TEA)["origin"] == "feed:teahouse"
    assert "feed: 16 EUR InStock" in stage.ok("pages", TEA)
    assert re.search(r"value +17\.5 EUR OutOfStock", said)


def test_a_visit_that_is_planned_is_shown(stage: Stage) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    asyncio.run(with_store(stage, lambda store: Snapshot({}, store).save(plan_of([1, 2], soon))))
    assert re.search(rf"next visit +{soon:%Y-%m-%d %H:%M:%S}Z", stage.ok("show", TEA))
    assert re.search(r"next visit +not planned yet", stage.ok("show", FRESH))
    stage.ok("pages", TEA, "--pause")
    assert re.search(r"next visit +not planned yet", stage.ok("show", TEA))


async def with_store(stage: Stage, work: Callable[[SqliteStore], Awaitable[object]]) -> None:
    store = await SqliteStore.open(stage.store)
    await work(store)
    await store.close()


def plan_of(pages: list[int], due: datetime) -> Plan:
    count = len(pages)
    return Plan(
        visit=np.arange(100, 100 + count),
        page=np.array(pages),
        due=np.full(count, instant(due)),
        purpose=np.zeros(count, dtype=np.int8),
        propensity=np.ones(count),
        tick=Tick(0, due, due + timedelta(hours=2)),
    )


def test_hostile_values_do_not_reach_the_terminal(stage: Stage) -> None:
    stage.record(seen(21, 1, 0.1, "9 EUR \x1b]0;owned\x07 [/nosuch] [bold]", changed=True))
    for words in (["show", TEA], ["pages"], ["changes", "--human"]):
        said = stage.ok(*words)
        assert "\x1b" not in said
        assert "\x07" not in said
    assert "[/nosuch] [bold]" in stage.ok("show", TEA)


# ------------------------------------------------------------------------------------------- alerts


def test_alerts_come_with_advice(stage: Stage) -> None:
    (alert,) = stage.json("alerts")
    assert (alert["host"], alert["kind"], alert["until"]) == ("b.example", "blocked", None)
    said = " ".join(stage.ok("alerts").split())
    assert "b.example: blocked since" in said
    assert "the server answered 403" in said
    assert "`salticus pages --host b.example --pause`" in said
    assert stage.json("status")["open alerts"] == ["b.example (blocked)"]


def test_past_alerts_are_shown_if_asked_for(stage: Stage) -> None:
    over = Alert("b.example", "blocked", NOW, over=True)
    stage.record(seen(22, 4, 0, "5 EUR", alerts=(over,)))
    assert "no open alerts" in stage.ok("alerts")
    (alert,) = stage.json("alerts", "--all")
    assert alert["until"] is not None
    assert alert["advice"] == ""
    assert "(over)" in stage.ok("alerts", "--all")


def test_a_crawl_ends_with_a_word_about_alerts(stage: Stage) -> None:
    stage.ok("pages", "--pause", "--all")
    command = [sys.executable, "-m", "salticus", "run", "--once"]
    done = subprocess.run(command, cwd=stage.folder, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("1 open alert: see `salticus alerts`\n")
    assert re.search(r"visits +0\n", done.stdout)


def test_status_counts_sources(stage: Stage) -> None:
    assert stage.json("status")["sources"] == 1


# ------------------------------------------------------------------------------------------- export


def test_content_is_exported_in_part(stage: Stage) -> None:
    every, some = stage.folder / "all.warc", stage.folder / "some.warc.gz"
    whole = stage.json("export", str(every), "--format", "warc")
    assert whole["rows"] == {"records": 3}
    assert stage.json("export", str(some), "tea", "--format", "warc")["rows"] == {"records": 1}
    assert every.read_bytes().count(b"WARC-Target-URI: ") == 3
    assert "only content can be exported in part" in stage.refusal("export", "x", "--tag", "a")
