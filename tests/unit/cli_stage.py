"""A folder with settings and a store that has a history, in which commands are run."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

from calling import Said, call

from salticus.observe import digest
from salticus.store.sqlite.store import SqliteStore
from salticus.types import Alert, Entry, NewPage, Observation, Record, Value

DAY = 86_400_000_000
NOW = int(time.time() * 1e6)
SETTINGS = """\
budget = "100%"

[fetch]
contact = "tests@example.org"
delay = "10ms"
allow_private = ["127.0.0.1"]
"""
TEA, ABOUT, GONE, FRESH, MAP = (
    "http://a.example/tea",
    "http://a.example/about",
    "http://b.example/gone",
    "http://b.example/fresh",
    "http://a.example/sitemap.xml",
)
PAGES = (
    NewPage(TEA, tags=("drinks",)),
    NewPage(ABOUT, kind="page"),
    NewPage(GONE),
    NewPage(FRESH),
    NewPage(MAP, kind="source"),
)
TEXT = " ".join(f"word{n}" for n in range(60))


class Stage:
    """A folder with settings, and with a store once it is given one."""

    def __init__(self, folder: Path, text: str = SETTINGS) -> None:
        self.folder = folder
        self.file = folder / "salticus.toml"
        self.file.write_text(text)
        self.store = folder / "salticus.db"

    def run(self, *words: str) -> Said:
        """Run a command in this process."""
        return call(*words)

    def ok(self, *words: str) -> str:
        said = self.run(*words, "-c", str(self.file))
        assert said.code == 0, said
        return said.out

    def json(self, *words: str) -> Any:
        return json.loads(self.ok(*words, "--json"))

    def lines(self, *words: str) -> list[Any]:
        return [json.loads(line) for line in self.ok(*words).splitlines()]

    def refusal(self, *words: str, code: int = 2) -> str:
        said = self.run(*words, "-c", str(self.file))
        assert said.code == code, said
        return said.err if code == 2 else said.out

    def furnish(self, records: list[Record] | None = None) -> None:
        """Give the store its pages and their history."""
        asyncio.run(_furnish(self.store, history() if records is None else records))

    def record(self, *records: Record) -> None:
        asyncio.run(_record(self.store, list(records)))


async def _furnish(path: Path, records: list[Record]) -> None:
    store = await SqliteStore.open(path)
    await store.add(PAGES, at=NOW - 9 * DAY)
    await store.record(records)
    await store.close()


async def _record(path: Path, records: list[Record]) -> None:
    store = await SqliteStore.open(path)
    await store.record(records)
    await store.close()


def seen(visit: int, page: int, days_ago: float, text: str | None = None, **known: Any) -> Record:
    """A visit; `text` is the new value that it found."""
    kind = known.pop("kind", "offer")
    extra = {name: known.pop(name) for name in ("entries", "complete", "alerts", "moved")
             if name in known}  # fmt: skip
    fields = {"title": "Tea [/b] \x1b[31m"} if kind == "offer" else {}
    value = None if text is None else Value(kind, text, fields)
    observation = Observation(
        visit=visit,
        page=page,
        at=NOW - int(days_ago * DAY),
        purpose="policy",
        propensity=1.0,
        status=known.pop("status", "ok"),
        digest=None if text is None else digest(text),
        value=value,
        **known,
    )
    content = None if text is None else text.encode()
    return Record(observation, content=content, content_type="text/html", **extra)


def history() -> list[Record]:
    """Prices that fell, a text that was edited, a page that is gone, a host that blocks us."""
    blocked = Alert("b.example", "blocked", NOW - DAY, "the server answered 403")
    return [
        seen(1, 1, 5, "19.9 EUR InStock"),
        seen(2, 2, 4, f"We are open from nine to five. {TEXT}", kind="page"),
        seen(3, 1, 3, "17.5 EUR InStock", changed=True),
        seen(4, 1, 2, "17.5 EUR OutOfStock", changed=True),
        seen(
            5, 2, 1.5, f"We are open from ten to five. {TEXT} Welcome!", kind="page", changed=True
        ),
        seen(6, 3, 1, status="gone", fault="the server answered 404", alerts=(blocked,)),
        seen(7, 1, 1, changed=False),
        seen(8, 5, 1, "a map", kind="source", entries=(Entry(TEA),), complete=True),
    ]
