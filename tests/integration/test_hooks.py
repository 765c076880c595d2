"""What is done on changes: for each at least once, whatever the command does."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from salticus.clock import run_fast
from salticus.config import Hook, Span
from salticus.crawl import hooks
from salticus.crawl.hooks import Hooks
from salticus.errors import ConfigError, StoreError
from salticus.store.base import Store
from salticus.store.sqlite.store import SqliteStore
from salticus.testing import MemoryStore
from salticus.types import Change, NewPage, Observation, Record, Value

START = 1_767_225_600_000_000  # 2026-01-01
TAGS = [("even",), ()]
PAGES = [NewPage(f"https://shop.example/{n}", tags=TAGS[n % 2]) for n in range(9)]
NUMBERS = itertools.count(1)
CAT = f"{sys.executable} keep.py"
KEEP = """
import json, os, sys
told = json.load(sys.stdin)
told["environment"] = {k: v for k, v in os.environ.items() if k.startswith("SALTICUS_")}
with open("kept.jsonl", "a") as file:
    file.write(json.dumps(told) + "\\n")
"""


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "RETRY_S", 0.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "keep.py").write_text(KEEP)
    return tmp_path


async def visit(store: Store, number: int, text: str, content: bytes | None = None) -> None:
    """Page `number` is found to have a value."""
    state = await store.page(PAGES[number].url)
    value, nth = Value("offer", text, {"price": text}), next(NUMBERS)
    at = START + nth * 1_000_000
    seen = Observation(nth, state.page, at, "policy", 1.0, "ok", digest=text, value=value)
    seen.changed = None if state.value is None else True
    await store.record([Record(seen, content=content, content_type="text/html; charset=latin1")])


def kept(folder: Path) -> list[dict[str, Any]]:
    path = folder / "kept.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def after(folder: Path) -> list[str]:
    return [each["after"]["text"] for each in kept(folder)]


Work = Callable[[Any, Hooks], Awaitable[None]]
Runner = Callable[[Coroutine[Any, Any, Hooks]], Hooks]


def with_hook(
    hook: Hook, folder: Path, work: Work, store: Store | None = None, run: Runner = asyncio.run
) -> Hooks:
    """Start the hook, do something, and let the hook end its work."""

    async def main() -> Hooks:
        held = store or MemoryStore()
        await held.add(PAGES, at=0)
        found = Hooks(hook, held, folder)
        await found._begin()
        stop = asyncio.Event()
        task = asyncio.create_task(found.run(stop))
        await work(held, found)
        stop.set()
        await asyncio.wait_for(task, 600)
        return found

    return run(main())


async def change(store: Store, hook: Hooks) -> None:
    """One page has a first value, and then another."""
    await visit(store, 0, "1 EUR")
    await visit(store, 0, "2 EUR", "caf\xe9 \u20ac".encode("cp1252"))


# ------------------------------------------------------------------------------------ what is told


def test_a_command_is_told_everything(folder: Path) -> None:
    found = with_hook(Hook(command=CAT), folder, change)
    (told,) = kept(folder)
    assert told["url"] == PAGES[0].url
    assert told["tags"] == ["even"]
    assert told["at"].startswith("2026-01-01T00:")
    assert told["before"] == {"kind": "offer", "text": "1 EUR", "fields": {"price": "1 EUR"}}
    assert told["after"]["fields"] == {"price": "2 EUR"}
    assert told["content"] == "caf\xe9 \u20ac"
    environment = told["environment"]
    assert environment["SALTICUS_URL"] == PAGES[0].url
    assert (environment["SALTICUS_BEFORE"], environment["SALTICUS_AFTER"]) == ("1 EUR", "2 EUR")
    assert environment["SALTICUS_TAGS"] == "even"
    assert (found.handled, found.failures) == (1, 0)


def test_what_is_no_text_is_told_in_base64(folder: Path) -> None:
    async def work(store: Store, hook: Hooks) -> None:
        await visit(store, 0, "x", b"%PDF-1.7 \xff\xfe")

    with_hook(Hook(command=CAT, first=True), folder, work)
    (told,) = kept(folder)
    assert told["content_base64"] == "JVBERi0xLjcg//4="
    assert told["content"] is None


def test_first_values_and_tags_are_told_as_wished(folder: Path) -> None:
    async def work(store: Store, hook: Hooks) -> None:
        for number in range(4):
            await visit(store, number, f"first {number}")
            await visit(store, number, f"second {number}")

    with_hook(Hook(command=CAT, tags=("even", "other"), first=True, workers=1), folder, work)
    assert after(folder) == ["first 0", "second 0", "first 2", "second 2"]


def test_a_callable_is_told_the_same(folder: Path) -> None:
    code = "import json\ndef keep(told):\n  open('FILE', 'a').write(json.dumps(told) + '\\n')\n"
    (folder / "mine.py").write_text(code.replace("FILE", "kept.jsonl"))
    for name in ("mine.py:keep", "mine:keep"):
        with_hook(Hook(python=name), folder, change)
    one, other = ({k: v for k, v in told.items() if k != "at"} for told in kept(folder))
    assert one == other
    assert one["content"] == "caf\xe9 \u20ac"
    assert one["after"]["text"] == "2 EUR"


# --------------------------------------------------------------------------------- what goes wrong

FAILURES = {
    "exit": ("import sys; print('no disk', file=sys.stderr); sys.exit(3)", "exit code 3: no disk"),
    "silence": ("raise SystemExit(1)", "exit code 1"),
    "killed": ("import os; os.kill(os.getpid(), 9)", "exit code -9"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_command_that_fails_is_named_and_the_next_is_run(
    folder: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    code, words = FAILURES[name]
    fails = f"import os\nif os.environ['SALTICUS_AFTER'] == 'bad':\n    {code}\n"
    (folder / "keep.py").write_text(fails + KEEP)

    async def work(store: Store, hook: Hooks) -> None:
        await visit(store, 1, "bad")
        await visit(store, 2, "good")

    with caplog.at_level(logging.WARNING):
        found = with_hook(Hook(command=CAT, first=True), folder, work)
    assert after(folder) == ["good"]
    assert (found.handled, found.failures) == (2, 1)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == f"the hook failed for {PAGES[1].url}: {words}"


def test_a_command_is_tried_twice(folder: Path) -> None:
    once = "import os\nif not os.path.exists('x'):\n    os.mkdir('x'); raise SystemExit(1)\n"
    (folder / "keep.py").write_text(once + KEEP)
    found = with_hook(Hook(command=CAT), folder, change)
    assert after(folder) == ["2 EUR"]
    assert found.failures == 0


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are looked up in /proc")
def test_a_command_that_hangs_is_ended_with_its_children(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hang = "import os, time\nos.fork()\nopen(f'{os.getpid()}.pid', 'w')\ntime.sleep(600)"
    (folder / "keep.py").write_text(hang)
    short = Hook(command=CAT, timeout=Span(seconds=1))
    start = time.monotonic()
    assert with_hook(short, folder, change).failures == 1
    assert time.monotonic() - start < 500
    assert "took longer than 1 s" in caplog.text
    started = [int(path.stem) for path in folder.glob("*.pid")]
    assert len(started) == 2
    wait_until(lambda: all(map(ended, started)))


def ended(pid: int) -> bool:
    """Whether a process is gone, or waits for nothing but to be buried."""
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


@pytest.mark.parametrize("run", [run_fast, asyncio.run], ids=["fast", "plain"])
@pytest.mark.parametrize("size", [1, 5_000_000])
def test_a_command_need_not_listen(folder: Path, run: Runner, size: int) -> None:
    """Forty times, because it depends on who is first: who writes, or the program that ends."""

    async def work(store: Store, hook: Hooks) -> None:
        for number in range(40):
            await visit(store, number % 9, f"{number}", b"y" * size)

    deaf = Hook(command="sh -c 'echo $SALTICUS_AFTER >> heard'", first=True)
    found = with_hook(deaf, folder, work, run=run)
    assert (found.handled, found.failures) == (40, 0)
    assert set((folder / "heard").read_text().split()) == {str(number) for number in range(40)}


def test_a_script_that_is_missing_is_reported_for_every_change(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(store: Store, hook: Hooks) -> None:
        for number in range(5):
            await visit(store, number, "x", b"y" * 100_000)

    missing = Hook(command=f"{sys.executable} missing.py", first=True)
    found = with_hook(missing, folder, work, run=run_fast)
    assert (found.handled, found.failures) == (5, 5)
    lines = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(lines) == 5
    assert all("missing.py" in line for line in lines)


class Unforeseen(hooks.Command):
    """Fails in a way that nobody thought of, for one page."""

    async def act(self, message: hooks.Message) -> None:
        if message["after"]["text"] == "bad":
            raise RuntimeError("the transport is closed")
        await super().act(message)


def test_what_nobody_foresaw_is_reported_too(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(store: Store, hook: Hooks) -> None:
        hook.action = Unforeseen(CAT, folder, 30)
        await visit(store, 1, "bad")
        await visit(store, 2, "good")

    found = with_hook(Hook(command=CAT, first=True), folder, work)
    assert (found.handled, found.failures) == (2, 1)
    assert after(folder) == ["good"]
    assert f"failed for {PAGES[1].url}: RuntimeError: the transport is closed" in caplog.text


class Faltering(MemoryStore):
    """Cannot be read for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.faults = 3
        self.recovered = asyncio.Event()

    async def changes(self, *args: Any, **kwargs: Any) -> list[Change]:
        if self.faults:
            self.faults -= 1
            raise StoreError("the disk sleeps")
        self.recovered.set()
        return await super().changes(*args, **kwargs)


def test_a_store_that_falters_is_reported_once_and_read_again(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "POLL_S", 0.0)

    async def work(store: Faltering, hook: Hooks) -> None:
        await change(store, hook)
        await asyncio.wait_for(store.recovered.wait(), 60)

    found = with_hook(Hook(command=CAT), folder, work, Faltering())
    assert after(folder) == ["2 EUR"]
    assert found.failures == 0
    assert caplog.text.count("the disk sleeps") == 1


CALLS = {
    "def f(told): raise KeyError('price')": "KeyError: 'price'",
    "def f(told): raise SystemExit(4)": "SystemExit: 4",
    "import os\ndef f(told): os._exit(5)": "its process ended with exit code 5",
    "import time\ndef f(told): time.sleep(600)": "it took longer than 1 s",
    "import nosuch": "No module named 'nosuch'",
    "x = 1": "has no 'f'",
}


@pytest.mark.parametrize("code", CALLS)
def test_a_callable_that_fails_is_named(
    folder: Path, caplog: pytest.LogCaptureFixture, code: str
) -> None:
    (folder / "mine.py").write_text(code)
    hook = Hook(python="mine.py:f", timeout=Span(seconds=1), workers=1)
    found = with_hook(hook, folder, change)
    assert (found.handled, found.failures) == (1, 1)
    assert CALLS[code] in caplog.text
    assert PAGES[0].url in caplog.text


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        (Hook(command="nosuch --flag"), "there is no program 'nosuch'"),
        (Hook(command="./nosuch"), "there is no program './nosuch'"),
        (Hook(command="echo 'x"), "No closing quotation"),
        (Hook(python="nosuch.py:f"), "there is no file 'nosuch.py' beside the settings"),
        (Hook(python="function"), "is not file.py:function or module:function"),
    ],
)
def test_what_cannot_run_is_refused_at_once(tmp_path: Path, hook: Hook, words: str) -> None:
    with pytest.raises(ConfigError, match="on_change") as caught:
        Hooks(hook, MemoryStore(), tmp_path)
    assert words in str(caught.value)


# ------------------------------------------------------------------------------- which, and when


def test_old_changes_are_not_told_and_none_is_lost_between_runs(folder: Path) -> None:
    async def prepare() -> MemoryStore:
        store = MemoryStore()
        await store.add(PAGES, at=0)
        await change(store, None)  # type: ignore[arg-type]
        return store

    async def nothing(store: Store, hook: Hooks) -> None:
        pass

    async def one(store: Store, hook: Hooks) -> None:
        await visit(store, 0, "3 EUR")

    store = asyncio.run(prepare())
    hook = Hook(command=CAT)
    with_hook(hook, folder, nothing, store)
    assert after(folder) == []
    with_hook(hook, folder, one, store)
    asyncio.run(visit(store, 0, "4 EUR"))
    with_hook(hook, folder, nothing, store)
    assert after(folder) == ["3 EUR", "4 EUR"]


def test_so_many_run_at_once_and_no_more(folder: Path) -> None:
    count = """
import os, pathlib, time
mine = pathlib.Path(f'{os.getpid()}.on')
mine.touch()
time.sleep(0.2)
with open('kept.jsonl', 'a') as file:
    file.write(f'{{"running": {len(list(pathlib.Path(".").glob("*.on")))}}}\\n')
mine.unlink()
"""
    (folder / "keep.py").write_text(count)

    async def work(store: Store, hook: Hooks) -> None:
        for number in range(7):
            await visit(store, number, "x")

    with_hook(Hook(command=CAT, first=True, workers=3), folder, work)
    running = [told["running"] for told in kept(folder)]
    assert len(running) == 7
    assert 2 <= max(running) <= 3


def test_a_stop_leaves_the_rest_for_later(folder: Path) -> None:
    async def work(store: Store, hook: Hooks) -> None:
        for number in range(9):
            await visit(store, number, str(number))
        hook._end = 0.0  # as if the time-out had passed since the stop

    store = MemoryStore()
    hook = Hook(command=CAT, first=True, workers=1)
    with_hook(hook, folder, work, store)
    assert len(after(folder)) < 9

    async def nothing(store: Store, hook: Hooks) -> None:
        pass

    with_hook(hook, folder, nothing, store)
    assert set(after(folder)) == {str(number) for number in range(9)}


CRAWL = """
import asyncio, sys
from pathlib import Path
from salticus.config import Hook
from salticus.crawl.hooks import Hooks
from salticus.store.sqlite.store import SqliteStore

async def main():
    store = await SqliteStore.open("crawl.db")
    hook = Hook(command=f"{sys.executable} keep.py", first=True, workers=2)
    stop = asyncio.Event()
    if sys.argv[1:] == ["finish"]:
        stop.set()
    await Hooks(hook, store, Path(".")).run(stop)
    await store.close()

asyncio.run(main())
"""


def test_after_kill_9_every_change_was_told_and_few_twice(folder: Path) -> None:
    total = 40
    slow = "import time; time.sleep(0.02)\n"
    (folder / "keep.py").write_text(slow + KEEP)
    asyncio.run(prepare(folder, total))
    for _ in range(2):
        before = len(kept(folder))
        crawl = subprocess.Popen([sys.executable, "-c", CRAWL], cwd=folder)
        while len(kept(folder)) < before + 5:
            assert crawl.poll() is None, "it runs until it is killed"
            time.sleep(0.01)
        crawl.send_signal(signal.SIGKILL)
        crawl.wait()
    subprocess.run([sys.executable, "-c", CRAWL, "finish"], cwd=folder, check=True, timeout=600)
    told = after(folder)
    assert set(told) == {str(number) for number in range(total)}
    assert len(told) <= total + 2 * hooks.IN_FLIGHT * 2


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def prepare(folder: Path, total: int) -> None:
    store = await SqliteStore.open(folder / "crawl.db")
    await store.add(PAGES, at=0)
    await store.done(hooks.BEGUN, 1)
    for number in range(total):
        await visit(store, number % len(PAGES), str(number))
    await store.close()
