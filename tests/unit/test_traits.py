"""Fitted traits in a crawl: fitted to its explore visits, judged, served, outlasting a restart."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from salticus.checks.predictor import check_predictor
from salticus.checks.samples import poisson_outcomes, some_pages
from salticus.clock import VirtualClock
from salticus.config import Config, Models
from salticus.crawl.contest import JudgedTime
from salticus.crawl.fitting import fit_traits, material_of, replayed
from salticus.crawl.opening import Crawl
from salticus.crawl.training import Trained, train_crawl
from salticus.errors import InputError
from salticus.models.file import MANIFEST, _sealed
from salticus.models.registry import Registry
from salticus.models.training import traits as choosing
from salticus.models.training.run import ModelSpec
from salticus.models.traits import Traits, load_traits, load_version, save_traits
from salticus.predict.base import ask
from salticus.predict.fitted import Fitted
from salticus.predict.followed import Followed, Sources
from salticus.predict.kin import Kin, KnownKin
from salticus.predict.retrace import ticks
from salticus.predict.rhythm import Rhythm
from salticus.predict.serving import Serving
from salticus.predict.versioned import Versioned
from salticus.store.memory.store import MemoryStore
from salticus.store.sqlite.store import SqliteStore
from salticus.testing import START, blank_pages
from salticus.types import Outcomes, Pages, Purpose, instant
from salticus.types.state import pack, unpack

from .cli_stage import Stage
from .crawled import fill

ONE_DAY = timedelta(days=1)
NOW = START + 31 * ONE_DAY
ALL = Traits(20.0, 0.6, 0.3, 2.0, 6.0, 0.3, 3.0)
PAGES = 48


def kin_of(pages: Pages) -> Kin:
    """Four neighbours each."""
    return Kin(pages.ids, np.arange(len(pages)) // 4)


# ------------------------------------------------------------------------------------------ curves


@given(seed=st.integers(0, 99), spacing=st.sampled_from(["even", "poisson", "bursts"]))
def test_the_usual_traits_are_the_rhythm_to_the_bit(seed: int, spacing: str) -> None:
    pages = some_pages(30, seed=seed)
    plain, same = Rhythm(), Fitted(Traits(), kin_of(pages))
    for outcomes in poisson_outcomes(pages, 0.5, visits=12, spacing=spacing, seed=seed):
        told = replace(outcomes, visit=np.arange(len(outcomes)))
        for part in (plain, same):
            part.learn(told)
    first, second = (ask(part, pages, START) for part in (plain, same))
    ages = np.linspace(0.0, 20.0, 30)
    assert np.array_equal(first.unchanged(ages), second.unchanged(ages))
    assert np.array_equal(first.worth(ages, 0.1), second.worth(ages, 0.1))
    assert np.array_equal(first.rates(), second.rates())
    for name, column in plain.state().items():
        assert np.array_equal(column, same.state()[name]), name


@pytest.mark.parametrize("traits", [Traits(), ALL, Traits(kin_prior=0.3, merchant_prior=3.0)])
def test_a_fitted_rhythm_obeys_the_laws_of_predictors(traits: Traits) -> None:
    check_predictor(lambda: Fitted(traits, kin_of(some_pages(400))), within=0.2)


def test_no_curve_rises_whatever_the_news() -> None:
    """Some kin change all the time, others never; nights are quiet."""
    known = replace(some_pages(40), merchant=np.zeros(40, dtype=np.int64))
    part = Fitted(ALL, kin_of(known))
    ask(part, known, START)
    for day in range(20):
        late = START + day * ONE_DAY + timedelta(hours=14)
        part.learn(visits(known.ids, day * ONE_DAY, late, np.arange(40) < 20))
    pages = known.answered(np.full(40, instant(START + 12 * ONE_DAY)))
    curves = ask(part, pages, START + 20 * ONE_DAY)
    chances = np.array([curves.unchanged(np.full(40, age)) for age in np.linspace(0, 12, 500)])
    assert (chances[0] == 1).all()
    assert (np.diff(chances, axis=0) <= 1e-12).all()
    assert (chances[-1][:20] < chances[-1][20:]).all()


def visits(page: Any, since: timedelta, until: Any, changed: Any) -> Outcomes:
    return Outcomes.known(
        visit=np.arange(len(page)),
        page=page,
        at=instant(until),
        since=instant(START + since),
        changed=np.asarray(changed, dtype=np.int8),
    )


def test_kin_have_one_brand_on_one_host_or_one_category() -> None:
    known = KnownKin()
    facts = {
        "host": ["a", "a", "b", "a", "a", ""],
        "brand": ["x", "x", "x", None, None, None],
        "category": ["c", "d", "c", "c", "c", None],
    }
    known.place(np.arange(6), facts)
    group = known.kin.of(np.arange(7)).tolist()
    assert group[0] == group[1] != group[2]
    assert group[3] == group[4] not in (group[0], -1)
    assert group[6] == -1
    known.place(np.array([9]), {"host": ["b"], "brand": ["x"], "category": [None]})
    assert known.kin.of(np.array([2, 9])).tolist() == [group[2]] * 2
    again = KnownKin()
    again.restore(unpack(pack({"kin": known.state()}))["kin"])
    assert again.missing(np.array([3, 9, 11])).tolist() == [11]


# ------------------------------------------------------------------------------------------- files


def test_traits_are_kept_as_a_model(tmp_path: Path) -> None:
    for number, traits in enumerate((Traits(), ALL, Traits(kin_prior=math.inf))):
        folder = tmp_path / str(number)
        save_traits(folder, traits, {"seed": 3})
        assert load_version(folder) == traits
    with pytest.raises(InputError, match="already there"):
        save_traits(folder, ALL, {})


@pytest.mark.parametrize(
    ("spoilt", "why"),
    [
        ({"memory_days": -1.0}, "memory_days is -1.0"),
        ({"echo": None}, "echo is None"),
        ({"x": 1}, "not the traits"),
    ],
)
def test_traits_that_cannot_be_are_refused(tmp_path: Path, spoilt: Any, why: str) -> None:
    save_traits(tmp_path / "a", ALL, {})
    manifest = json.loads((tmp_path / "a" / MANIFEST).read_text())
    del manifest["manifest_sha256"]
    manifest["traits"] |= spoilt
    (tmp_path / "a" / MANIFEST).write_text(_sealed(manifest))
    with pytest.raises(InputError, match=why):
        load_traits(tmp_path / "a")


# ---------------------------------------------------------------------------------- what is fitted


@pytest.fixture(scope="module")
def kin_store() -> MemoryStore:
    """Pages that change with their kin, all visits by coins."""
    store = MemoryStore()
    asyncio.run(fill(store, pages=PAGES, days=16, bursts=False, together=True))
    return store


@pytest.fixture
def few_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer candidates, so that tests are quick."""
    few = {"memory_days": (10.0, 50.0), "kin_prior": (0.3, math.inf)}
    monkeypatch.setattr(choosing, "CHOICES", few)


def judged(first: int = 7, last: int = 13) -> JudgedTime:
    return JudgedTime(START + first * ONE_DAY, START + last * ONE_DAY, ONE_DAY / 4)


@pytest.mark.usefixtures("few_choices")
def test_kin_that_change_together_are_found_out(kin_store: MemoryStore) -> None:
    traits, about = asyncio.run(fit_traits(kin_store, judged()))
    assert traits.kin_prior == 0.3
    found = about["fitting"]
    assert found["log_loss"] < 0.9 * found["usual_log_loss"]
    assert asyncio.run(fit_traits(kin_store, judged()))[0] == traits


@pytest.mark.usefixtures("few_choices")
def test_visits_that_predictions_chose_are_not_looked_at(kin_store: MemoryStore) -> None:
    """What decides is the same, whatever the visits of the policy would have been foretold."""
    material = asyncio.run(material_of(kin_store, judged(), seed=0))
    half = np.arange(len(material.visits)) % 2 == 0
    purpose = np.where(half, Purpose.POLICY, Purpose.EXPLORE).astype(np.int8)
    less = replace(material, visits=replace(material.visits, purpose=purpose))
    found, whole = replayed(less, ALL), replayed(material, ALL)
    assert 0 < len(found.changed) < len(whole.changed)
    none = replace(less, visits=replace(material.visits, purpose=np.zeros_like(purpose)))
    assert len(replayed(none, ALL).changed) == 0


def test_of_a_large_store_whole_groups_of_kin_are_taken(
    kin_store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("salticus.crawl.fitting.MOST", 500)
    material = asyncio.run(material_of(kin_store, judged(), seed=1))
    assert 300 < len(material.visits) <= 500
    group = material.kin.of(np.arange(1, PAGES + 1))
    taken = np.isin(np.arange(1, PAGES + 1), material.pages.ids)
    share = np.bincount(group, taken) / np.bincount(group)
    assert ((share == 0) | (share == 1)).sum() >= len(share) - 1


# ------------------------------------------------------------------------------------ in a crawl


async def made(folder: Path, **world: Any) -> Trained:
    store = await SqliteStore.open(folder / "salticus.db")
    await fill(store, pages=PAGES, days=22, **world)
    config = Config(tick=ONE_DAY / 4, models=Models(str(folder / "models"), least=200))
    crawl = Crawl(config, store, VirtualClock(NOW))
    found = await train_crawl(crawl, ModelSpec(model="traits"))
    await store.close()
    return found


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traits")
    with pytest.MonkeyPatch.context() as patch:
        few = {"memory_days": (10.0, 50.0), "kin_prior": (0.3, math.inf)}
        patch.setattr(choosing, "CHOICES", few)
        asyncio.run(made(folder, bursts=False, together=True))
    return folder


def test_traits_that_foretell_better_take_over(trained: Path) -> None:
    told = Registry(trained / "models").judgement(1)
    assert told is not None
    assert told.promoted, told.why
    assert told.candidate_figures["log_loss"] + 0.01 < told.incumbent_figures["log_loss"]  # type: ignore[operator]
    stage = Stage(trained, 'policy = "leap"\ntick = "6h"\n')
    (model,) = stage.json("models")["models"]
    assert model["serves"]
    assert model["traits"].endswith("kin 0.3")
    assert f"fitted: {model['traits']}" in stage.json("status")["predictor"]
    assert stage.json("models", "pin", "0")["serving"] == 0
    assert stage.json("models", "unpin")["pinned"] is False
    assert stage.json("models", "roll-back")["serving"] == 1
    why = stage.json("why", "http://shop1.example/1")
    assert why["estimate"]["traits"] == model["traits"]


@pytest.mark.usefixtures("few_choices")
def test_traits_of_pages_that_change_at_random_do_no_harm(tmp_path: Path) -> None:
    found = asyncio.run(made(tmp_path, bursts=False))
    assert not found.promoted, found.why


# ------------------------------------------------------------------------------------------ serving


class Running:
    """A store with visits, a registry with traits, and ticks of a quarter of a day."""

    def __init__(self, folder: Path, store: MemoryStore) -> None:
        self.registry, self.store = Registry(folder / "models"), store
        save_traits(self.registry.path(1), ALL, {})
        self.registry.pin(1, START)
        self.visits = [outcomes for _, outcomes in ticks(store.history(), ONE_DAY / 4)]

    def serving(self, last: int) -> Serving:
        sources = Sources(self.store.facts, lambda: self.until(last))
        return Serving(registry=self.registry, followed=Followed(sources))

    def until(self, last: int) -> Iterator[Outcomes]:
        yield from self.visits[:last]

    def pages(self, last: int) -> Pages:
        pages = replace(blank_pages(PAGES), ids=np.arange(1, PAGES + 1))
        answer = pages.last_answer.copy()
        for outcomes in self.visits[:last]:
            answer[outcomes.page - 1] = outcomes.at
        return replace(pages, merchant=np.arange(PAGES) % 3).answered(answer)

    def curves(self, part: Serving, last: int) -> Any:
        return ask(part, self.pages(last), START + last * ONE_DAY / 4)


@pytest.fixture
def running(tmp_path: Path, kin_store: MemoryStore) -> Running:
    return Running(tmp_path, kin_store)


def test_a_page_whose_kin_have_changed_is_thought_stale(running: Running) -> None:
    part = running.serving(40)
    rhythm = Rhythm.survival
    curves = running.curves(part, 40)
    assert part.traits_told() == ALL.told()
    ages = np.full(PAGES, 1.0)
    plain = rhythm(part, running.pages(40), START + 10 * ONE_DAY)
    assert not np.allclose(curves.unchanged(ages), plain.unchanged(ages), atol=0.01)
    assert np.isfinite(curves.worth(ages, 0.25)).all()


def test_what_was_stored_when_traits_took_over_is_learnt_once(running: Running) -> None:
    """Visits may be stored before the tick in which they are learnt."""
    early, late = running.serving(43), running.serving(40)
    for part in (early, late):
        running.curves(part, 40)
        for outcomes in running.visits[40:43]:
            part.learn(outcomes)
    one, other = (part.learnt_["until"] for part in (early, late))
    assert np.array_equal(one, other)
    ages = np.linspace(0, 5, PAGES)
    first, second = (running.curves(part, 43).unchanged(ages) for part in (early, late))
    assert np.allclose(first, second, atol=0.05)  # cut otherwise, so that paces differ a little
    assert np.array_equal(early.pages_["a"], late.pages_["a"])


def test_it_does_not_matter_how_the_stored_visits_are_cut(running: Running) -> None:
    part, other = running.serving(40), running.serving(40)
    whole = running.visits[0]
    for more in running.visits[1:40]:
        whole = whole.join(more)
    pieces = [whole.take(np.arange(k, min(k + 97, len(whole)))) for k in range(0, len(whole), 97)]
    other.followed.sources = Sources(running.store.facts, lambda: iter(pieces))
    for each in (part, other):
        running.curves(each, 40)
    assert pack({"p": part.state()}) == pack({"p": other.state()})


def test_after_a_kill_it_predicts_to_the_bit_what_it_would_have(running: Running) -> None:
    part = running.serving(40)
    running.curves(part, 40)
    part.learn(running.visits[40])
    blob = pack({"p": part.state()})
    again = running.serving(0)  # nothing may be asked of the history
    again.restore(unpack(blob)["p"])
    for number in range(41, 45):
        for each in (part, again):
            each.learn(running.visits[number])
        one, other = (running.curves(each, number + 1) for each in (part, again))
        ages = np.linspace(0, 5, PAGES)
        assert np.array_equal(one.unchanged(ages), other.unchanged(ages))
        assert again.version_ == 1
    assert pack({"p": part.state()}) == pack({"p": again.state()})


def test_the_rhythm_goes_on_and_takes_over_from_broken_traits(
    running: Running, caplog: Any
) -> None:
    part, rhythm = running.serving(40), Rhythm()
    for number in range(44):
        for each in (part, rhythm):
            curves = running.curves(each, number)  # type: ignore[arg-type]
            each.learn(running.visits[number])
    assert part.traits_told() == ALL.told()
    part.rhythm_.pages_["a"][:] = np.nan  # type: ignore[union-attr]
    curves, plain = (running.curves(each, 44) for each in (part, rhythm))  # type: ignore[arg-type]
    assert part.version_ == 0
    assert part.traits_told() is None
    ages = np.linspace(0, 5, PAGES)
    assert np.array_equal(curves.unchanged(ages), plain.unchanged(ages))
    errors = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    (error,) = errors
    assert error.startswith("model 1 cannot serve, another will:")


def test_a_version_without_traits_behaves_as_before(running: Running) -> None:
    part = Versioned(Followed(Sources(running.store.facts, lambda: running.until(40))))
    part.use_model(ALL)
    running.curves(part, 40)  # type: ignore[arg-type]
    part.use_model(None)
    assert "traits" not in part.state()
    assert part.traits_told() is None
