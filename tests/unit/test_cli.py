"""The command line, as people and scripts meet it: real processes, a real mall."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from salticus.cli import app
from salticus.clock import SystemClock
from salticus.lab.worlds.mall.server import Mall
from salticus.lab.worlds.mall.stock import generate
from salticus.store.sqlite.store import SqliteStore
from salticus.types import NewPage

T = TypeVar("T")

PATIENCE_S = 600.0
SETTINGS = """\
budget = "100%"
tick = "1d"

[fetch]
contact = "tests@example.org"
delay = "10ms"
allow_private = ["127.0.0.1"]
"""
HEAVY = {"altair", "polars", "scrapy", "sklearn", "vl_convert"}
PREFERRED = """
import numpy as np

class Preferred:
    def expected(self, pages, visits):
        liked = pages.demand > 1
        return np.where(liked, min(1.0, visits / max(1, liked.sum())), 0.0)

    def learn(self, outcomes):
        pass
"""


def command(*words: str | Path) -> list[str]:
    return [str(Path(sys.executable).with_name("salticus")), *map(str, words)]


def together(calls: Iterable[Callable[[], T]]) -> list[T]:
    """What the calls return, made a few at a time."""
    with ThreadPoolExecutor(max_workers=3) as pool:
        return list(pool.map(lambda call: call(), calls))


class Place:
    """A folder with settings, in which commands are run."""

    salticus: ClassVar[Path]

    def __init__(self, folder: Path, settings: str = SETTINGS) -> None:
        self.folder = folder
        (folder / "salticus.toml").write_text(settings)

    def run(self, *words: str | Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.salticus, *words],
            cwd=self.folder,
            input=stdin,
            env={**os.environ, "COLUMNS": "200"},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def ok(self, *words: str | Path, stdin: str | None = None) -> str:
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def json(self, *words: str | Path) -> Any:
        return json.loads(self.ok(*words, "--json"))

    def holds(self, *urls: str, **known: Any) -> None:
        """Put pages into the store, where adding them is not what is tested."""
        asyncio.run(self._add([NewPage(url, **known) for url in urls]))

    async def _add(self, pages: list[NewPage]) -> None:
        store = await SqliteStore.open(self.folder / "salticus.db")
        await store.add(pages, at=int(time.time() * 1e6))
        await store.close()

    def sql(self, query: str) -> list[Any]:
        """The first column of the answer."""
        with closing(sqlite3.connect(self.folder / "salticus.db")) as db:
            return [row[0] for row in db.execute(query)]

    def refusal(self, *words: str | Path) -> str:
        """What a command that must fail has to say."""
        done = self.run(*words)
        assert done.returncode == 2, (done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
        return done.stderr

    def one_line(self, *words: str | Path) -> str:
        """The same, when it must be said in one line."""
        said = self.refusal(*words)
        assert re.fullmatch(r"salticus: [^\n]+\n", said), said
        return said


@pytest.fixture(scope="module", autouse=True)
def at_once(warm: Path) -> None:
    Place.salticus = warm


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(scope="module")
def mall() -> Iterator[Mall]:
    """Two shops whose ten offers have stopped changing, open while the tests run."""
    start = datetime.now(UTC) - timedelta(days=3)
    mall = Mall(generate(shops=2, offers=10, days=2, seed=4, start=start), SystemClock())
    loop, opened = asyncio.new_event_loop(), threading.Event()
    stop = asyncio.Event()

    async def serve() -> None:
        await mall.start()
        opened.set()
        await stop.wait()
        await mall.stop()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert opened.wait(PATIENCE_S)
        yield mall
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


# -------------------------------------------------------------------------------------------- help


def names(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, inner in getattr(group, "commands", {}).items():
        yield from names(inner, (*path, name))


def test_every_command_has_help(place: Place) -> None:
    every = list(names(get_command(app)))
    assert ("run",) in every
    assert ("bench", "fetch") in every
    for path in every:
        done = CliRunner().invoke(app, [*path, "--help"], prog_name="salticus")
        assert done.exit_code == 0
        assert f"Usage: salticus {' '.join(path)}".strip() in done.output
    assert "Usage: salticus run" in place.ok("run", "--help")
    assert re.fullmatch(r"salticus \d+\.\d+\.\d+\n", place.ok("--version"))


# ------------------------------------------------------------------------------------------ a crawl


def test_a_crawl_from_init_to_backup(tmp_path: Path, mall: Mall) -> None:
    """Every command once, in the form that machines read."""
    place = Place(tmp_path)
    made = place.json("init", "fresh", "--contact", "me@example.org", "--budget", "10%")
    assert Path(made["config"]) == Path("fresh") / "salticus.toml"
    assert place.json("add", *mall.urls[:9], "--tag", "x") == {"new": 9, "known": 0}
    again = place.ok("add", "-", "--json", stdin="\n".join(mall.urls))
    assert json.loads(again) == {"new": 1, "known": 9}
    crawl = place.json("run", "--once")
    assert (crawl["visits"], crawl["failures"], crawl["changes"]) == (10, 0, 0)
    row, url = 3, mall.urls[3]
    truth = mall.stock.value(row, datetime.now(UTC))
    status, shown, found, log, table, copied = together(
        [
            partial(place.json, "status"),
            partial(place.json, "show", url),
            partial(place.json, "get", url),
            partial(place.json, "export", "log"),
            partial(place.json, "export", "visits.csv", "--format", "csv"),
            partial(place.json, "backup", "copy.db"),
        ]
    )
    assert (status["pages"], status["visits"], status["running"]) == (10, 10, False)
    assert shown["facts"]["value"] == truth
    assert [visit["status"] for visit in shown["visits"]] == ["ok"]
    assert found["value"] == truth
    assert mall.stock.pages[row].title in found["content"]
    assert log["rows"] == {"pages": 10, "visits": 10, "signals": 0, "links": 0}
    assert table["rows"] == {"visits": 10}
    assert len((tmp_path / "visits.csv").read_text().splitlines()) == 11
    assert copied["bytes"] == (tmp_path / "copy.db").stat().st_size > 0
    assert "exists already" in place.one_line("backup", "copy.db")


def test_tables_are_for_people(place: Place, mall: Mall) -> None:
    url = mall.urls[0]
    place.holds(url)
    assert re.search(r"visits +1\n", place.ok("run", "--once"))
    words = (["add", url], ["status"], ["show", url], ["get", url], ["get", url, "--value"])
    added, status, shown, content, value = together([partial(place.ok, *w) for w in words])
    assert added == "0 new, 1 known already\n"
    assert re.search(r"never visited +0\n", status)
    assert "last visits" in shown
    assert content.startswith("<!DOCTYPE html>")
    assert value == f"{mall.stock.value(0, datetime.now(UTC))}\n"


def test_a_policy_from_a_file_decides(place: Place, mall: Mall) -> None:
    (place.folder / "mine.py").write_text(PREFERRED)
    liked = mall.urls[2:5]
    place.holds(*mall.urls)
    place.holds(*liked, demand=50.0)
    crawl = place.json("run", "--once", "--budget", "3", "--policy", "mine.py:Preferred")
    assert crawl["visits"] == 3
    assert place.sql("SELECT url FROM pages WHERE visits > 0 ORDER BY id") == liked


def test_a_crawl_imports_nothing_heavy(place: Place, mall: Mall) -> None:
    place.holds(mall.urls[0])
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "salticus", "run", "--once"],
        cwd=place.folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    imported = set(re.findall(r"\| +(\w+)(?:\.[\w.]+)?$", done.stderr, re.M))
    assert {"aiohttp", "numpy", "salticus"} <= imported
    assert imported & HEAVY == set()
    assert re.search(r"visits +1\n", done.stdout)


def test_one_crawl_at_a_time_and_it_ends_softly(place: Place, mall: Mall) -> None:
    place.holds(*mall.urls)
    first = subprocess.Popen(
        command("run", "--json"), cwd=place.folder, stdout=subprocess.PIPE, text=True
    )
    try:
        lock = place.folder / "salticus.db.lock"
        wait_for(lambda: lock.exists() and lock.read_text() == str(first.pid), "the first crawl")
        assert f"in use by another `salticus run` (process {first.pid})" in place.one_line("run")
        assert place.json("status")["running"] is True
        assert place.json("add", "http://127.0.0.1:9/late") == {"new": 1, "known": 0}
    finally:
        first.send_signal(signal.SIGTERM)
        out, _ = first.communicate(timeout=PATIENCE_S)
    assert first.returncode == 0
    assert json.loads(out)["failures"] == 0


# ------------------------------------------------------------------------------------------ sources


def shop_of(url: str) -> str:
    return url.partition("/o/")[0]


def test_a_shop_is_added_by_its_sitemap(place: Place, mall: Mall) -> None:
    home = shop_of(mall.urls[0])
    source, inside = f"{home}/sitemap.xml", sorted(u for u in mall.urls if shop_of(u) == home)
    said = place.ok("add", "--sitemap", source, "--tag", "x")
    assert said.splitlines() == [
        "1 new, 0 known already",
        f"1 source read, {len(inside)} new pages found",
    ]
    pages = place.json("pages", "--state", "new")
    assert [page["url"] for page in pages] == inside
    assert all(page["sources"] == [source] for page in pages)
    again = place.json("add", "--sitemap", source)
    told = {"read": 1, "found": 0, "waiting": 0, "failed": {}}
    assert again == {"new": 0, "known": 1, "sources": told}


def test_a_source_that_cannot_be_read_is_named(place: Place, mall: Mall) -> None:
    home = shop_of(mall.urls[0])
    done = place.run("add", "--feed", f"{home}/nosuch.xml", "--sitemap", f"{home}/sitemap.xml")
    assert done.returncode == 1
    assert f"{home}/nosuch.xml could not be read: gone" in done.stdout
    assert "1 source read, " in done.stdout


def test_sources_may_wait_for_the_crawl(place: Place, mall: Mall) -> None:
    source = f"{shop_of(mall.urls[0])}/sitemap.xml"
    assert place.json("add", source, "--kind", "source", "--no-visit") == {"new": 1, "known": 0}
    with crawling(place):
        said = place.ok("add", "--sitemap", source)
        assert "a crawl is running: it will read them at its next tick" in said
        refused = place.one_line("visit", source)
        assert "in use by another `salticus run`" in refused


def test_pages_are_visited_at_once(place: Place, mall: Mall) -> None:
    first, second = mall.urls[:2]
    place.holds(first, second, "http://127.0.0.1:9/closed")
    said = place.ok("visit", first)
    assert said == f"{first}  first visit: {mall.stock.value(0, datetime.now(UTC))}\n"
    assert f"{first}  unchanged: " in place.ok("visit", first)
    failed = place.run("visit", second, "http://127.0.0.1:9/closed", "--json")
    assert failed.returncode == 1
    assert [page["state"] for page in json.loads(failed.stdout)] == ["well", "failing"]
    assert place.sql("SELECT DISTINCT purpose FROM observations") == ["manual"]
    told = place.ok("changes", "--first").splitlines()
    assert [json.loads(line)["url"] for line in told] == [first, second]
    assert "is not in the store" in place.one_line("visit", "http://127.0.0.1:9/other")


# ------------------------------------------------------------------------------------------ reload


@contextmanager
def crawling(place: Place) -> Iterator[subprocess.Popen[str]]:
    """A crawl that runs meanwhile, and is ended softly; its tally counts all visits stored."""
    with subprocess.Popen(
        command("run", "--json"),
        cwd=place.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        lock = place.folder / "salticus.db.lock"
        try:
            wait_for(lambda: lock.exists() and lock.read_text() == str(process.pid), "the crawl")
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert json.loads(out)["visits"] == visits_of(place)


def visits_of(place: Place) -> int:
    return int(place.sql("SELECT count(*) FROM observations")[0])


def test_a_crawl_reads_its_settings_again(place: Place, mall: Mall) -> None:
    """New settings are taken up, wrong ones are not, and nothing is lost meanwhile."""
    settings = place.folder / "salticus.toml"
    slow = SETTINGS.replace("100%", "1").replace("1d", "1s")
    fast = SETTINGS.replace("100%", "2000000").replace("1d", "1s")
    settings.write_text(slow)
    place.holds(*mall.urls)
    with crawling(place) as crawl:
        assert crawl.stderr is not None
        wait_for(lambda: place.sql("SELECT count(*) FROM state") == [1], "a plan")
        before = visits_of(place)
        settings.write_text(fast)
        assert place.json("config", "reload") == {"process": crawl.pid}
        assert crawl.stderr.readline() == "salticus: the settings were read again\n"
        wait_for(lambda: visits_of(place) > before + 10, "visits under the new settings")
        settings.write_text("nosuch = 1")
        place.ok("config", "reload", "-c", given(place, fast))
        warned = crawl.stderr.readline()
        assert warned.startswith("salticus: the crawl goes on with its old settings: ")
        assert "unknown field `nosuch`" in warned
        between = visits_of(place)
        wait_for(lambda: visits_of(place) > between + 10, "visits under the old settings")


def given(place: Place, settings: str) -> Path:
    """The same settings in another file of the folder."""
    path = place.folder / "other.toml"
    path.write_text(settings)
    return path


# ------------------------------------------------------------------------------------------- errors


def test_missing_settings(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "salticus.toml").unlink()
    said = place.one_line("status")
    assert "salticus.toml: no such file" in said
    assert "salticus init" in said


WRONG_SETTINGS = {
    "nosuch = 1": "unknown field `nosuch`",
    "[fetch]\nspeed = 1": "unknown field `speed` - at `fetch`",
    'budget = "many"': "'many' is not a budget; write 10%, 0.1 or 5000 - at `budget`",
    'tick = "0s"': "tick must be more than 0",
    "store =\n": "line 1",
}


def test_wrong_settings_are_named(place: Place) -> None:
    for number, settings in enumerate(WRONG_SETTINGS):
        (place.folder / f"{number}.toml").write_text(settings)
    numbers = range(len(WRONG_SETTINGS))
    heard = together([partial(place.one_line, "status", "-c", f"{n}.toml") for n in numbers])
    for number, said, line in zip(numbers, WRONG_SETTINGS.values(), heard, strict=True):
        assert line.startswith(f"salticus: {number}.toml: ")
        assert said in line


WRONG_FLAGS = {
    ("run", "--budget", "many"): "'many' is not a budget",
    ("run", "--for", "soon"): "'soon' is not a duration",
    ("run", "--policy", "nosuch"): "no policy is called 'nosuch'; known: ",
    ("export", "out", "--format", "xml"): "xml",
    ("nosuch",): "No such command",
}


def test_wrong_flags_are_named(place: Place) -> None:
    heard = together([partial(place.refusal, *words) for words in WRONG_FLAGS])
    for said, text in zip(WRONG_FLAGS.values(), heard, strict=True):
        assert said in text


def test_wrong_urls_are_named_and_nothing_is_added(place: Place) -> None:
    lines = ["http://a.example/", "", "# a comment", "nonsense", "http://b.example/", "ftp://c/"]
    (place.folder / "urls.txt").write_text("\n".join(lines))
    said = place.refusal("add", "http://d.example/", "--file", "urls.txt")
    assert said.splitlines() == [
        "salticus: nothing was added",
        "urls.txt:4: 'nonsense' is not a URL",
        "urls.txt:6: 'ftp://c/' cannot be visited: only http and https can",
    ]
    assert not (place.folder / "salticus.db").exists()
    none, absent = together(
        [partial(place.one_line, *w) for w in (["add"], ["add", "-f", "no.txt"])]
    )
    assert "no URL was given" in none
    assert "no.txt" in absent


def test_unknown_pages(place: Place) -> None:
    place.holds("http://a.example/")
    unknown = "http://b.example/"
    for said in together([partial(place.one_line, word, unknown) for word in ("show", "get")]):
        assert f"{unknown} is not in the store; add it with `salticus add {unknown}`" in said
    assert "no content" in place.one_line("get", "http://a.example/")


def test_a_crawl_needs_a_contact(tmp_path: Path) -> None:
    said = Place(tmp_path, 'budget = "10%"').one_line("run")
    assert "fetch.contact is empty" in said


def test_what_cannot_be_kept_is_refused_with_what_it_needs(place: Place) -> None:
    urls = [f"http://a.example/{n}" for n in range(4)]
    place.holds(*urls, max_interval=0.5)
    said = place.one_line("run", "--once", "--budget", "5", "--tick", "1h")
    assert "need a budget of at least 9 visits a day, but the budget is 5" in said
    assert "needs ticks of at most 6 h, not 24 h" in place.one_line("run", "--once")


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "salticus.db").write_text("this is not a database, but it is long enough to be one")
    assert "salticus.db: file is not a database" in Place(tmp_path).one_line("status")
