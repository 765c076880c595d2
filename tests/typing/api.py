"""The public API as a user would write it; `mypy --strict` reads it and a test runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from salticus import (
    NewPage,
    Unknown,
    Wanted,
    Why,
    add,
    allocate,
    changes,
    fresh,
    open_crawl,
    plan,
    plugins,
    status,
    why,
)
from salticus.allocate.base import Policy
from salticus.checks.extract import check_extractor
from salticus.checks.policy import check_policy
from salticus.config import Budget, Config, Fetch, Span
from salticus.errors import Infeasible, PluginError, SalticusError
from salticus.extract.base import Content, Extractor
from salticus.predict.base import Predictor, ask
from salticus.store import open_store
from salticus.store.base import Store
from salticus.store.sqlite.store import SqliteStore
from salticus.testing import START, MemoryStore, blank_pages
from salticus.types import Bools, Floats, Ints, Outcomes, Pages, Survival, Value
from salticus.types.state import Remembers, State


class Patient:
    """A policy that remembers how many visits it has seen."""

    def __init__(self, *, eagerness: float = 1.0) -> None:
        self.eagerness = eagerness
        self.seen_ = 0

    def expected(self, pages: Pages, visits: float) -> Floats:
        return np.full(len(pages), min(1.0, visits / max(1, len(pages))))

    def learn(self, outcomes: Outcomes) -> None:
        self.seen_ += int(np.count_nonzero(outcomes.made))

    def state(self) -> State:
        return {"seen": np.array(self.seen_)}

    def restore(self, state: State) -> None:
        self.seen_ = int(state["seen"])


class Constant:
    """Survival under change rates that never change."""

    def __init__(self, rate: Floats) -> None:
        self.rate = rate

    def unchanged(self, ages: Floats) -> Floats:
        return np.exp(-self.rate * ages)

    def integral(self, ages: Floats) -> Floats:
        return np.asarray(-np.expm1(-self.rate * ages) / self.rate)

    def rates(self) -> Floats:
        return self.rate

    def take(self, rows: Ints | Bools) -> Constant:
        return Constant(self.rate[rows])


class Weekly:
    """A predictor that holds every page to change once a week."""

    def survival(self, pages: Pages, now: datetime) -> Survival:
        return Constant(np.full(len(pages), 1 / 7))

    def learn(self, outcomes: Outcomes) -> None:
        """Nothing to learn."""


class Length:
    """An extractor that takes the length of a page for its value."""

    fast = True

    def extract(self, content: Content) -> Value | None:
        return Value("length", str(len(content.body))) if content.body else None


policy: Policy = Patient(eagerness=2.0)
memory: Remembers = Patient()
predictor: Predictor = Weekly()
extractor: Extractor = Length()
stores: list[type[Store]] = [MemoryStore, SqliteStore]


def visits_a_day(settings: Config, pages: int) -> float:
    """What a budget comes to."""
    return settings.budget.per_day(pages)


def loaded() -> Policy:
    """A part by its name."""
    part: Policy = plugins.load("policy", "uniform", allocate.BUILTIN)()
    return part


def refusal(name: str) -> str:
    """Why a part cannot be loaded; empty if it can."""
    try:
        plugins.load("policy", name, allocate.BUILTIN)
    except PluginError as error:
        return str(error)
    return ""


async def kept(url: str, pages: Sequence[NewPage]) -> int:
    """Pages that a store holds once these were added."""
    store = await open_store(url)
    try:
        async with store.lock():
            await store.add(pages, at=0)
        return (await store.summary()).pages
    finally:
        await store.close()


def needed(error: SalticusError) -> float | None:
    """The budget that an error asks for, if it does."""
    return error.needed if isinstance(error, Infeasible) else None


async def looked(settings: Path) -> list[str]:
    """A crawl as its owner looks at it."""
    async with open_crawl(settings) as crawl:
        added = await add(crawl, ["http://a.example/", NewPage("http://b.example/", tags=("x",))])
        told = [f"{added.new} new"]
        for page in await fresh(crawl, ["http://a.example/", "http://c.example/"]):
            told.append(page.error if isinstance(page, Unknown) else f"{page.fresh:.0%}")
        reasons: Why = await why(crawl, "http://b.example/")
        visits = await plan(crawl)
        told += [reasons.binds, visits[0].purpose, (await status(crawl)).predictor]
        async for change in changes(crawl, Wanted(after=0), content=True):
            told.append(change.after.value)
        return told


def main() -> None:
    """Use all of it."""
    with TemporaryDirectory() as folder:
        settings_file = Path(folder) / "salticus.toml"
        settings_file.write_text('budget = "100%"')
        assert asyncio.run(looked(settings_file))[:2] == ["2 new", "0%"]
    check_policy(Patient)
    check_extractor(extractor)
    settings = Config(
        budget=Budget.parse("10%"), fetch=Fetch(contact="me@example.org", delay=Span(seconds=2))
    )
    assert visits_a_day(settings, 2000) == 200.0
    assert settings.delay("shop.example") == 2.0
    pages = blank_pages(4)
    assert loaded().expected(pages, 2.0).tolist() == policy.expected(pages, 2.0).tolist()
    assert ask(predictor, pages, START).unchanged(np.full(4, 7.0))[0] < 0.5
    assert asyncio.run(kept("memory:", [NewPage("http://a.example/")])) == 1
    assert needed(Infeasible("too much", needed=7.0)) == 7.0
    assert "known: change_proportional" in refusal("nosuch")
