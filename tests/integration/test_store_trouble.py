"""Full disks, files and folders without rights, damaged stores: one clear line, nothing lost."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import calling
import pytest

from salticus.store.sqlite.store import SqliteStore
from salticus.types import NewPage, Observation, Record, Value

from .conftest import Street, finished, wait_for

URL = "http://shop.example/0"
READS = ("status", "show", "export", "backup")
_NO_DROP = 77  # exit code of a child that could not give up its rights
COMMANDS = ("add", "run", *READS)


class Answer:
    """What a command said."""

    def __init__(self, code: int, said: str) -> None:
        self.code = code
        self.said = said

    def refuses(self, name: str, *words: str) -> None:
        """One line that names the file and says all of the words; the exit code of our errors."""
        assert self.code == 2, self.said
        assert self.said.count("\n") == 1, self.said
        for word in ("salticus: ", name, *words):
            assert word in self.said

    def works(self) -> None:
        assert (self.code, self.said) == (0, "")


class Shop:
    """A folder with a store that has pages, visits, values and content."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "crawl"
        self.folder.mkdir()
        self.store = self.folder / "a.db"
        self.settings = folder / "salticus.toml"
        self.out = folder / "out"
        self.out.mkdir()
        self.calls = 0
        self.use(self.store)
        asyncio.run(fill(self.store, range(200)))

    def use(self, store: Path) -> None:
        settings = f"store = {json.dumps(str(store))}\n[fetch]\ncontact = 'me@shop.example'\n"
        self.settings.write_text(settings)

    def call(self, *commands: str, under: Callable[[], None] | None = None) -> dict[str, Answer]:
        """Run commands; in a process that has fewer rights than ours, if there is to be one."""
        words = [[*self._words(command), "-c", str(self.settings)] for command in commands]
        told = [calling.call(*each) for each in words] if under is None else said(under, words)
        return {
            name: Answer(code, err) for name, (code, _, err) in zip(commands, told, strict=True)
        }

    def _words(self, command: str) -> list[str]:
        self.calls += 1
        return {
            "add": ["add", f"http://new.example/{self.calls}"],
            "add many": ["add", "--file", str(self.out / "urls.txt")],
            "run": ["run", "--once", "--for", "1s"],
            "status": ["status", "--json"],
            "show": ["show", URL],
            "export": ["export", str(self.out / f"log{self.calls}")],
            "backup": ["backup", str(self.out / f"copy{self.calls}.db")],
        }[command]

    def held(self) -> tuple[int, ...]:
        """What is stored: pages, visits, values, bodies."""
        with closing(sqlite3.connect(self.store)) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            tables = ("pages", "observations", '"values"', "content")
            return tuple(
                db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables
            )


def said(under: Callable[[], None], words: list[list[str]]) -> list[calling.Said]:
    child = subprocess.run(
        [sys.executable, calling.__file__, json.dumps(words)],
        preexec_fn=under,
        capture_output=True,
        text=True,
        check=False,
    )
    if child.returncode == _NO_DROP:
        pytest.skip("root's rights cannot be given up here")
    assert child.stderr == ""
    return [calling.Said(*each) for each in json.loads(child.stdout)]


async def fill(path: Path, numbers: range) -> None:
    """Pages with these numbers, each visited."""
    store = await SqliteStore.open(path)
    urls = [f"http://shop.example/{number}" for number in numbers]
    await store.add([NewPage(url) for url in urls], at=1)
    seen = [
        Observation(
            n, (await store.page(url)).page, n, "policy", 1.0, "ok", value=Value("page", url)
        )
        for n, url in zip(numbers, urls, strict=True)
    ]
    await store.record([Record(each, (), os.urandom(2000), "text/html") for each in seen])
    await store.close()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(tmp_path)
    before = shop.held()
    yield shop
    shop.folder.chmod(0o700)
    for path in shop.folder.iterdir():
        path.chmod(0o600)
    asyncio.run(fill(shop.store, range(200, 210)))
    now = tuple(count + 10 for count in before)
    assert shop.held()[1:] == now[1:], "a restart works, with all that was stored"


def without_privilege() -> None:
    """Let rights on files bind, as they do not for root."""
    if os.geteuid() == 0:
        drop_bound, override, read_search = 24, 1, 2
        for capability in (override, read_search):
            if ctypes.CDLL(None).prctl(drop_bound, capability, 0, 0, 0):
                os._exit(_NO_DROP)


def with_files_up_to(size: int) -> Callable[[], None]:
    """Let no file grow beyond `size` bytes."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    return limit


# ------------------------------------------------------------------------------------- rights


RIGHTS = ("no right to write", "choose another `store`")


def test_a_store_that_may_not_be_written(shop: Shop) -> None:
    for mode in (0o400, 0o000):
        shop.store.chmod(mode)
        for answer in shop.call(*COMMANDS, under=without_privilege).values():
            answer.refuses("a.db: ", *RIGHTS)
    assert sorted(path.name for path in shop.folder.iterdir()) == ["a.db"]


def test_a_folder_that_may_not_be_written(shop: Shop) -> None:
    for mode in (0o500, 0o000):
        shop.folder.chmod(mode)
        for answer in shop.call(*COMMANDS, under=without_privilege).values():
            answer.refuses("a.db", *RIGHTS)


def test_a_lock_that_may_not_be_written(shop: Shop) -> None:
    lock = shop.folder / "a.db.lock"
    lock.touch(0o400)
    answers = shop.call(*COMMANDS, under=without_privilege)
    answers.pop("run").refuses("a.db.lock: ", *RIGHTS)
    for answer in answers.values():
        answer.works()


def test_files_beside_the_store_that_may_not_be_written(shop: Shop) -> None:
    with closing(sqlite3.connect(shop.store)) as db:
        db.execute("UPDATE pages SET demand = 1")
        db.commit()
        beside = shop.folder / "a.db-wal"
        beside.chmod(0o400)
        shop.call("add", under=without_privilege)["add"].refuses("a.db: ", *RIGHTS)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (".", "crawl: this is a folder: let `store` name a file in it"),
        ("nowhere/a.db", "crawl/nowhere: make it, or choose another `store`"),
        ("a.db/a.db", "there is no folder "),
    ],
)
def test_a_store_where_none_can_be(shop: Shop, place: str, said: str) -> None:
    shop.use(shop.folder / place)
    for answer in shop.call(*COMMANDS).values():
        answer.refuses(Path(place).name or "crawl", said)


# --------------------------------------------------------------------------------- full disks


def test_a_file_that_may_not_grow(shop: Shop) -> None:
    long = "x" * 200
    (shop.out / "urls.txt").write_text(
        "".join(f"http://x.example/{long}/{n}\n" for n in range(5000))
    )
    size, before = shop.store.stat().st_size, shop.held()
    limited = ("add many", "backup", "status", "show")
    answers = shop.call(*limited, under=with_files_up_to(size - 4096))
    answers["add many"].refuses("a.db: ", "`ulimit -f`", "start again", "nothing", "is lost")
    answers["backup"].refuses(".db: ", "`ulimit -f`")
    shop.call("run", under=with_files_up_to(0))["run"].refuses("a.db: ", "`ulimit -f`")
    answers["status"].works()
    answers["show"].works()
    assert shop.held() == before
    assert [path.name for path in shop.out.iterdir()] == ["urls.txt"]
    shop.call("add many")["add many"].works()
    assert shop.held() == (before[0] + 5000, *before[1:])


def test_a_crawl_on_a_full_disk(street: Street) -> None:
    """It ends with one line; what it had stored stays, and the next crawl goes on from there."""
    street.open(shops=3, offers=300, days=200, speed=8640, delay=0.01)
    street.set("budget", '"300%"')
    crawler = street.crawl()
    wait_for(lambda: street.requests() > 100, "requests")
    crawler.terminate()
    assert finished(crawler)[0] == 0
    before = seen(street)
    room = with_files_up_to(street.database.stat().st_size + 100_000)
    words = [sys.executable, "-m", "salticus", "run", "-c", str(street.settings)]
    full = subprocess.run(
        words, preexec_fn=room, capture_output=True, text=True, timeout=600, check=False
    )
    Answer(full.returncode, full.stderr).refuses("salticus.db: ", "`ulimit -f`", "start again")
    between = seen(street)
    assert between >= before > set()
    crawler = street.crawl()
    wait_for(lambda: len(seen(street)) > len(between) + 50, "the crawl to go on")
    crawler.terminate()
    assert finished(crawler)[0] == 0
    assert seen(street) > between


def seen(street: Street) -> set[tuple[object, ...]]:
    return set(street.sql("SELECT visit, page, at, status, digest FROM observations"))


# ------------------------------------------------------------------------------------- damage


def spoilt(body: bytes, at: int, size: int = 4096) -> bytes:
    return body[:at] + b"\xff" * size + body[at + size :]


@pytest.mark.parametrize("what", ["mark", "schema", "rest", "half", "stub", "zeros"])
def test_a_damaged_store(shop: Shop, what: str) -> None:
    body = shop.store.read_bytes()
    bad = {
        "mark": spoilt(body, 0, 16),
        "schema": spoilt(body, 100, 3996),
        "rest": body[:4096] + b"\xff" * (len(body) - 4096),
        "half": body[: len(body) // 2],
        "stub": body[:5000],
        "zeros": bytes(100) + body[100:],
    }[what]
    shop.store.write_bytes(bad)
    commands = COMMANDS if what == "half" else ("add", "status")
    for answer in shop.call(*commands).values():
        answer.refuses("a.db: ", "damaged", "restore a backup", ".recover")
    assert shop.store.read_bytes() == bad, "nobody makes it worse"
    shop.store.write_bytes(body)


def test_damage_deep_in_the_file_is_not_carried_into_a_backup(shop: Shop) -> None:
    body = shop.store.read_bytes()
    with closing(sqlite3.connect(shop.store)) as db:
        query = "SELECT pageno FROM dbstat WHERE name = 'content' AND pagetype = 'internal'"
        try:
            page = db.execute(query).fetchone()[0] - 1
        except sqlite3.OperationalError:
            pytest.skip("this SQLite does not tell where its pages lie")
    shop.store.write_bytes(spoilt(body, page * 4096))
    shop.call("backup")["backup"].refuses("a.db: ", "damaged", "restore a backup")
    assert list(shop.out.iterdir()) == []
    shop.store.write_bytes(body)


def test_damage_in_a_text_or_a_body(shop: Shop) -> None:
    """SQLite does not look into what it stores; we do, and say so."""
    body = shop.store.read_bytes()
    with closing(sqlite3.connect(shop.store)) as db:
        db.execute("UPDATE pages SET tags = 'spoilt', url = CAST(x'ff' AS TEXT) WHERE id = 2")
        db.execute("""UPDATE "values" SET value = x'00112233' WHERE page = 1""")
        db.commit()
    answers = shop.call("show", "export")
    for answer in answers.values():
        answer.refuses("a.db: ", "damaged", "restore a backup")
    shop.store.write_bytes(body)


def test_garbage_in_the_log_that_sqlite_writes_ahead(shop: Shop) -> None:
    before = shop.held()
    (shop.folder / "a.db-wal").write_bytes(os.urandom(100_000))
    for answer in shop.call("add", "show", "status").values():
        answer.works()
    assert shop.held() == (before[0] + 1, *before[1:])
