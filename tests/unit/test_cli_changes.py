"""`salticus changes`: every change once, in order, as lines that programs read."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from salticus.errors import StoreError
from salticus.types import Change, Value
from salticus.views import changes
from salticus.views.changes import Wanted, stream

from .cli_stage import ABOUT, MAP, TEA, Stage, seen

PATIENCE_S = 600.0


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    stage.furnish()
    return stage


# ------------------------------------------------------------------------------------ the commands


def test_changes_are_json_lines(stage: Stage) -> None:
    found = stage.lines("changes")
    assert [change["seq"] for change in found] == sorted({change["seq"] for change in found})
    assert [change["url"] for change in found] == [TEA, TEA, ABOUT]
    fell = found[0]
    assert set(fell) == {"seq", "at", "url", "tags", "kind", "changed", "before", "after"}
    assert fell["before"]["value"] == "19.9 EUR InStock"
    assert fell["after"]["value"] == "17.5 EUR InStock"
    assert fell["after"]["fields"]["title"] == "Tea [/b] \x1b[31m"
    assert (fell["changed"], fell["kind"], fell["tags"]) == (True, "offer", ["drinks"])
    assert fell["at"].endswith("Z")
    assert stage.lines("changes", "--json") == found


def test_changes_can_be_chosen(stage: Stage) -> None:
    def urls(*words: str) -> list[str]:
        return [change["url"] for change in stage.lines("changes", *words)]

    assert urls("--tag", "drinks") == urls("--kind", "offer") == urls("--url", TEA) == [TEA, TEA]
    assert urls("--url", "about") == urls("--since", "40h") == [ABOUT]
    assert urls("--since", "50h") == [TEA, ABOUT]
    assert urls("--limit", "1") == [TEA]
    second = stage.lines("changes")[1]
    assert urls("--after", str(second["seq"])) == [ABOUT]
    assert urls("--since", "2999-01-01") == []
    assert len(urls("--first")) == 5
    assert urls("--first", "--kind", "source") == [MAP]


def test_first_values_are_marked(stage: Stage) -> None:
    first = stage.lines("changes", "--first", "--diff")[0]
    assert (first["changed"], first["before"], first["diff"]) == (None, None, None)


def test_differences_come_if_asked_for(stage: Stage) -> None:
    fell, out, edited = (change["diff"] for change in stage.lines("changes", "--diff"))
    assert fell["price"]["percent"] == -12.1
    assert out == {"text": "17.5 EUR [-InStock-] {+OutOfStock+}"}
    assert "from [-nine-] {+ten+} to" in edited["text"]
    assert "word30" not in edited["text"]


def test_people_get_short_lines(stage: Stage) -> None:
    said = stage.ok("changes", "--human", "--first").splitlines()
    assert said[0].endswith(f"{TEA}  first seen: 19.9 EUR InStock")
    assert said[2].endswith(f"{TEA}  19.9 EUR → 17.5 EUR (-2.4, -12.1 %)")
    assert all(len(line) < 400 for line in said)


def test_a_time_that_is_none_is_named(stage: Stage) -> None:
    assert "'soon' is no time" in stage.refusal("changes", "--since", "soon")


# --------------------------------------------------------------------------------------- following


@contextmanager
def following(stage: Stage, *words: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "salticus", "changes", "--follow", *words]
    process = subprocess.Popen(
        command, cwd=stage.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_followers_hear_of_changes_until_they_are_stopped(stage: Stage, number: int) -> None:
    with following(stage, "--after", "0") as process:
        assert process.stdout is not None
        heard = [json.loads(process.stdout.readline()) for _ in range(3)]
        stage.record(seen(9, 1, 0.5, "15 EUR InStock", changed=True))
        heard.append(json.loads(process.stdout.readline()))
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert [change["url"] for change in heard] == [TEA, TEA, ABOUT, TEA]
    assert heard[-1]["after"]["value"] == "15 EUR InStock"
    assert (out, err, process.returncode) == ("", "", 0)


def test_a_follower_whose_reader_leaves_ends(stage: Stage) -> None:
    """Whether or not there is another change to tell of."""
    with following(stage, "--after", "0") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_pipe_that_closes_is_no_error(stage: Stage) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "salticus", "changes"]
    done = subprocess.run(
        command, cwd=stage.folder, stdout=write, stderr=subprocess.PIPE, timeout=PATIENCE_S
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


# -------------------------------------------------------------------------------------- the stream


class Source:
    """Changes in memory; with `busy` it refuses to be read so often at first."""

    def __init__(self, count: int, *, busy: int = 0, fault: str = "database is locked") -> None:
        self.count, self.busy, self.fault = count, busy, fault

    async def changes(self, after: int, *, limit: int = 1000) -> list[Change]:
        if self.busy:
            self.busy -= 1
            raise StoreError(self.fault)
        numbers = range(after + 1, min(self.count, after + limit) + 1)
        return [_change(number) for number in numbers]


def _change(number: int) -> Change:
    after = Value("offer", f"{number} EUR")
    return Change(number, number, 1, f"http://a.example/{number % 7}", (), True, after, after)


async def collected(source: Source, wanted: Wanted, most: int | None = None) -> list[int]:
    stopped = None if most is None else asyncio.Event()
    found = []
    async for change in stream(source, wanted, stopped):
        found.append(change.seq)
        if stopped is not None and len(found) == most:
            stopped.set()
    return found


@pytest.mark.parametrize("count", [0, 1, changes.CHUNK, changes.CHUNK + 1, 2 * changes.CHUNK])
def test_every_change_comes_once_and_in_order(count: int) -> None:
    assert asyncio.run(collected(Source(count), Wanted())) == list(range(1, count + 1))


def test_a_busy_store_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "LOOK_S", 0.001)
    assert asyncio.run(collected(Source(3, busy=2), Wanted(), most=3)) == [1, 2, 3]
    with pytest.raises(StoreError, match="disk I/O"):
        asyncio.run(collected(Source(3, busy=1, fault="disk I/O error"), Wanted(), most=3))


def test_the_limit_counts_what_fits() -> None:
    wanted = Wanted(url="*/3", limit=2)
    assert asyncio.run(collected(Source(3000), wanted)) == [3, 10]
