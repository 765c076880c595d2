"""Models that serve in a crawl: they take over, are passed over, and outlast a restart."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from salticus.config import Config
from salticus.errors import InputError
from salticus.features.metadata import Vocabulary
from salticus.features.names import all_names
from salticus.models.file import FORMAT, Saved, _sealed, asked, load_model, save_model
from salticus.models.linear import LinearModel
from salticus.models.model import Calibrated, Curve
from salticus.models.registry import Judgement, Registry
from salticus.predict.base import ask
from salticus.predict.followed import Followed, Sources
from salticus.predict.rhythm import Rhythm
from salticus.predict.serving import Serving
from salticus.predict.trust import Trust
from salticus.testing import START, MemoryStore, blank_pages
from salticus.types import CHANGED, NewPage, Observation, Outcomes, Pages, Record, Value, instant
from salticus.types.state import pack, unpack
from salticus.views.models import predictor_told

HOUR = timedelta(hours=1)
EDGES = (6, 24)
NAMES = all_names(EDGES)
N = 6


def a_model(which: str = "page_month", slope: float = 0.6, curve: Curve | None = None) -> Saved:
    one = np.array([[slope], [slope]])
    model = LinearModel(which, EDGES, one, -one, np.array([-0.5, 0.5]), np.empty(0))
    words = Vocabulary(("brand",), {"brand": np.array([3, 5], dtype=np.uint64)})
    metadata = words.encode(_frame())
    about = {"task": "change", "edges": list(EDGES), "inputs": asked(NAMES, 0, metadata)}
    curves = (Curve(), curve or Curve())
    return Saved(Calibrated(model, curves), (words.settings(), words.arrays()), about)


def _frame() -> Any:
    import polars as pl

    return pl.DataFrame({"brand": ["x"]})


class Crawl:
    """A store, a registry with two models, and visits that come every hour."""

    def __init__(self, folder: Path) -> None:
        self.registry = Registry(folder / "models")
        self.store = MemoryStore()
        asyncio.run(self.store.add([NewPage(f"http://h{n % 2}/{n}") for n in range(N)], at=0))
        self.visit = 0
        self.last: dict[int, int] = {}

    def add(self, version: int, saved: Saved) -> None:
        save_model(self.registry.path(version), saved)
        self.registry.judge(version, judged(promoted=True))

    def serving(self) -> Serving:
        sources = Sources(self.store.facts, self.store.history, self.store.past_counts)
        return Serving(registry=self.registry, followed=Followed(sources))

    def pages(self, now: datetime) -> Pages:
        last = [self.last.get(n + 1) for n in range(N)]
        times = np.array([np.iinfo(np.int64).min if t is None else t for t in last])
        pages = blank_pages(N).answered(times.view("M8[us]"))
        return replace(pages, ids=np.arange(1, N + 1))

    def hour(self, number: int) -> Outcomes:
        """Visits of some pages in an hour: stored, and as outcomes."""
        seen = []
        for page in (1 + number % N, 1 + (number * 5 + 2) % N):
            at = int(instant(START + number * HOUR).astype(np.int64)) + page * 1_000_000
            since, new = self.last.get(page), (number * page) % 3 == 0
            first = since is None
            value = Value("offer", str(number), {"brand": f"b{page % 2}"}) if new or first else None
            seen.append(
                Observation(
                    visit=self.visit,
                    page=page,
                    at=at,
                    purpose="explore",
                    propensity=0.1,
                    status="ok",
                    changed=None if first else new,
                    since=since,
                    value=value,
                    digest=None if value is None else str(number),
                )  # fmt: skip
            )
            self.visit, self.last[page] = self.visit + 1, at
        asyncio.run(self.store.record([Record(each) for each in seen]))
        return Outcomes.of(seen)

    def run(self, part: Any, hours: range) -> Any:
        """Ticks of two hours; the curves at the last one."""
        for number in hours:
            if number % 2 == 0:
                now = START + number * HOUR
                curves = ask(part, self.pages(now), now)
            part.learn(self.hour(number))
        return curves


def judged(*, promoted: bool) -> Judgement:
    told = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
    return Judgement(told[1], told, told, 300, 0, {}, {}, promoted, "for the test")


@pytest.fixture
def crawl(tmp_path: Path) -> Iterator[Crawl]:
    with np.errstate(all="ignore"):
        yield Crawl(tmp_path)


def chances(curves: Any) -> Any:
    return curves.unchanged(np.linspace(0.1, 3.0, N))


def is_rhythm(serving: Serving, pages: Pages, now: datetime) -> bool:
    mine, plain = (each(pages, now) for each in (serving.survival, super_of(serving)))
    return np.array_equal(chances(mine), chances(plain))


def super_of(serving: Serving) -> Any:
    return lambda pages, now: Rhythm.survival(serving, pages, now)


def test_without_a_model_it_is_the_rhythm_and_leaves_nothing_behind(crawl: Crawl) -> None:
    serving, rhythm = crawl.serving(), Rhythm()
    for number in range(40):
        now = START + number * HOUR
        curves = [ask(part, crawl.pages(now), now) for part in (serving, rhythm)]
        assert np.array_equal(chances(curves[0]), chances(curves[1]))
        outcomes = crawl.hour(number)
        serving.learn(outcomes)
        rhythm.learn(outcomes)
    assert not crawl.registry.folder.exists()


def test_a_model_takes_over_and_is_rolled_back(crawl: Crawl, caplog: Any) -> None:
    serving = crawl.serving()
    crawl.run(serving, range(30))
    crawl.add(1, a_model())
    crawl.run(serving, range(30, 33))
    assert serving.version_ == 1
    assert not is_rhythm(serving, crawl.pages(START), START + 34 * HOUR)
    assert "model 1 predicts changes from now on, not the rhythm alone" in caplog.text
    assert [event.what for event in crawl.registry.history()] == ["promoted", "took over"]
    assert crawl.registry.roll_back(START) == 0
    crawl.run(serving, range(34, 35))
    assert is_rhythm(serving, crawl.pages(START), START + 36 * HOUR)
    assert "the rhythm alone predicts changes from now on, not model 1" in caplog.text


def test_the_curve_goes_through_what_the_model_says_of_now(crawl: Crawl) -> None:
    """With all trust in it, of a page with news."""
    crawl.add(1, a_model())
    serving = crawl.serving()
    crawl.run(serving, range(49))
    serving.trust_ = Trust(usual=1.0)
    now = START + 50 * HOUR
    curves: Any = ask(serving, crawl.pages(now), now)
    page = 1 + 48 % N  # visited in the last hour that is known
    hazards = load_model(crawl.registry.path(1)).model.hazards(*serving.inputs(np.array([page])))
    assert curves.level[page - 1] == pytest.approx(-np.log1p(-hazards).sum(), rel=1e-9)


def test_features_have_the_part_that_the_model_gives_them(crawl: Crawl) -> None:
    crawl.add(1, a_model())
    serving = crawl.serving()
    assert serving.contributions(1) == [], "no model, no features"
    crawl.run(serving, range(49))
    page = 1 + 48 % N
    found = dict(serving.contributions(page))
    assert list(found) == ["page_month"], "the model looks at nothing else"
    assert found["page_month"] != 0
    assert serving.contributions(99) == [], "of a page that never answered nothing is known"


# ---------------------------------------------------------------------------------- broken models


def lost(folder: Path) -> None:
    shutil.rmtree(folder)


def without_arrays(folder: Path) -> None:
    (folder / "arrays.npz").unlink()


def of_another_version(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["format"] = FORMAT + 1
    (folder / "manifest.json").write_text(_sealed(manifest))


def damaged(folder: Path) -> None:
    raw = bytearray((folder / "arrays.npz").read_bytes())
    raw[len(raw) // 2] ^= 255
    (folder / "arrays.npz").write_bytes(raw)


def saying_nan(folder: Path) -> None:
    """All its numbers are finite; what it says of pages that changed long ago is not."""
    shutil.rmtree(folder)
    flat = Curve("isotonic", 0.0, 0.0, np.array([-1.0, 1.0]), np.array([-1.0, 1.0]))
    save_model(folder, a_model("page_recent", 1e308, flat))


def asking_too_much(folder: Path) -> None:
    """It looks at a feature that there is none of."""
    shutil.rmtree(folder)
    saved = a_model("page_moon")
    inputs = {**saved.manifest["inputs"], "names": [*NAMES, "page_moon"]}
    save_model(folder, replace(saved, manifest={**saved.manifest, "inputs": inputs}))


def of_one_horizon(folder: Path) -> None:
    shutil.rmtree(folder)
    saved = a_model()
    save_model(folder, replace(saved, manifest={**saved.manifest, "edges": [6]}))


BREAKS = [lost, without_arrays, of_another_version, damaged, saying_nan, asking_too_much,
          of_one_horizon]  # fmt: skip


@pytest.mark.parametrize("spoil", BREAKS)
def test_a_broken_model_is_passed_over_loudly(
    crawl: Crawl, caplog: Any, spoil: Callable[[Path], None]
) -> None:
    crawl.add(1, a_model(slope=0.5))
    crawl.add(2, a_model())
    spoil(crawl.registry.path(2))
    serving = crawl.serving()
    curves = crawl.run(serving, range(60))
    assert serving.version_ == 1
    assert np.isfinite(chances(curves)).all()
    errors = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    assert len(errors) == 1, errors
    assert errors[0].startswith("model 2 cannot serve, another will:")
    assert [e.version for e in crawl.registry.history() if e.what == "broken"] == [2]
    config = replace_models(Config(policy="leap"), crawl.registry.folder)
    assert predictor_told(config).startswith("model 1, chosen")
    assert "model 2 is broken" in predictor_told(config)
    spoil(crawl.registry.path(1))
    again = crawl.serving()  # nothing is in memory any more
    again.restore(serving.state())
    crawl.run(again, range(60, 72))
    assert again.version_ == 0
    assert is_rhythm(again, crawl.pages(START), START + 72 * HOUR)
    assert predictor_told(config).startswith("rhythm, chosen")


def replace_models(config: Config, folder: Path) -> Config:
    import msgspec

    models = msgspec.structs.replace(config.models, path=str(folder))
    return msgspec.structs.replace(config, models=models)


def test_a_registry_that_cannot_be_read_or_told_stops_nothing(crawl: Crawl, caplog: Any) -> None:
    crawl.add(1, a_model())
    serving = crawl.serving()
    crawl.run(serving, range(10))
    (crawl.registry.folder / "serving.json").write_text("{")
    crawl.run(serving, range(10, 20))
    assert serving.version_ == 1
    assert caplog.text.count("cannot be read") == 1
    shutil.rmtree(crawl.registry.folder)
    crawl.registry.folder.write_text("not a folder")
    again = crawl.serving()
    again.restore(serving.state())
    crawl.run(again, range(20, 30))
    assert again.version_ == 0


# ---------------------------------------------------------------------------------------- restart


def test_after_a_kill_it_predicts_to_the_bit_what_it_would_have(crawl: Crawl) -> None:
    """The state of a tick, and the outcomes since learnt again."""
    crawl.add(1, a_model())
    serving = crawl.serving()
    crawl.run(serving, range(41))
    blob = pack({"predictor": serving.state()})
    since = [crawl.hour(number) for number in range(41, 44)]
    again = crawl.serving()
    again.restore(unpack(blob)["predictor"])
    for part in (serving, again):
        part.learn(since[0].join(since[1]).join(since[2]))
    for hours in (44, 47, 52):
        now = START + hours * HOUR
        one, other = (ask(each, crawl.pages(now), now) for each in (serving, again))
        for name in ("a", "b", "level"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
        assert (again.version_, serving.version_) == (1, 1)
    assert pack({"p": serving.state()}) == pack({"p": again.state()})


def test_a_model_that_comes_late_knows_what_was_seen(crawl: Crawl) -> None:
    crawl.add(1, a_model())
    early = crawl.serving()
    crawl.run(early, range(50))
    late = crawl.serving()
    now = START + 50 * HOUR
    for part in (early, late):
        ask(part, crawl.pages(now), now)
    ids = np.arange(1, N + 1)
    one, other = (part.inputs(ids) for part in (early, late))
    assert np.array_equal(one[0].dense, other[0].dense, equal_nan=True)
    assert np.array_equal(one[1].codes, other[1].codes)
    assert np.count_nonzero(early.following_.answered() >= 0) == N  # type: ignore[union-attr]
    assert (whole_changes(crawl) > 0).any()


def whole_changes(crawl: Crawl) -> Any:
    return np.concatenate([chunk.changed == CHANGED for chunk in crawl.store.history()])


# --------------------------------------------------------------------------------------- registry


def test_pins_hold_against_better_models_until_they_are_taken_out(crawl: Crawl) -> None:
    registry = crawl.registry
    crawl.add(1, a_model())
    crawl.add(2, a_model(slope=0.5))
    registry.pin(1, START)
    crawl.add(3, a_model(slope=0.4))
    assert registry.pointer().chain() == [1, 2, 0]
    with pytest.raises(InputError, match="pinned"):
        registry.roll_back(START)
    registry.unpin(START)
    assert registry.roll_back(START) == 2
    registry.judge(3, judged(promoted=False))
    assert registry.pointer().serving == 2
    registry.pin(0, START)
    assert registry.pointer().chain() == [0]
    with pytest.raises(InputError, match="there is no model 9"):
        registry.pin(9, START)
    assert registry.following() == 4
    shutil.rmtree(registry.path(3))
    assert registry.following() == 4  # a number is never given twice


def test_a_pin_gives_a_broken_model_another_chance(crawl: Crawl) -> None:
    crawl.add(1, a_model())
    crawl.registry.spoil(1, "it broke", START)
    serving = crawl.serving()
    crawl.run(serving, range(4))
    assert serving.version_ == 0
    crawl.registry.pin(1, START)
    crawl.run(serving, range(4, 8))
    assert serving.version_ == 1
