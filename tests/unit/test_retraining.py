"""Models from the visits of a crawl: trained beside it, judged on what came, listed and chosen."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from salticus.assemble import next_training
from salticus.clock import SystemClock
from salticus.predict.registry import Registry
from salticus.retraining import Retraining
from salticus.store.sqlite import SqliteStore
from salticus.testing import START
from salticus.train.contest import Foretold, verdict
from salticus.train.run import Request
from salticus.train.stored import Terms, train_stored
from .cli_stage import Stage
from .crawled import fill

DAY = timedelta(days=1)
TERMS = Terms(DAY / 4, 200, START + 31 * DAY)
SMALL = Request(model="trees", fitting={"trees": 20, "least": 20, "refit": False})


@pytest.fixture(scope="module")
def bursts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl of pages that change by bursts, which no rate tells; and a model of it."""
    folder = tmp_path_factory.mktemp("crawl")
    asyncio.run(made(folder, bursts=True, pages=40))
    return folder


async def made(folder: Path, **world: Any) -> dict[str, Any]:
    store = await SqliteStore.open(folder / "salticus.db")
    await fill(store, days=24, **world)
    found = await train_stored(store, Registry(folder / "models"), SMALL, TERMS)
    await store.close()
    return found


def test_a_model_that_knows_more_takes_over(bursts: Path) -> None:
    registry = Registry(bursts / "models")
    told = registry.judgement(1)
    assert told is not None
    assert told.promoted, told.why
    assert registry.pointer().chain() == [1, 0]
    assert told.visits > 300
    new, old = told.candidate_figures, told.incumbent_figures
    assert new["log_loss"] + 0.05 < old["log_loss"]  # type: ignore[operator]
    assert told.span[1] == told.judged[0] < told.judged[1]


def test_with_too_little_to_learn_from_nothing_is_trained(tmp_path: Path) -> None:
    found = asyncio.run(made(tmp_path, pages=2, bursts=False))
    assert found == {"version": None, "promoted": False, "why": found["why"]}
    assert "visits to explore or of the panel" in found["why"]
    assert not (tmp_path / "models").exists()


def test_commands_list_compare_pin_and_roll_back(bursts: Path) -> None:
    stage = Stage(bursts, 'policy = "leap"\ntick = "6h"\n')
    assert stage.json("models", "list")["serving"] == 1
    assert stage.json("models")["models"][0]["judgement"]["promoted"]
    found = stage.json("models", "compare", "0", "1")
    assert found["A"]["log_loss"] > found["B"]["log_loss"]
    assert not found["better"]
    told = Registry(bursts / "models").judgement(1)
    assert told is not None
    assert found["B"]["log_loss"] == pytest.approx(told.candidate_figures["log_loss"])
    assert stage.json("models", "pin", "0")["serving"] == 0
    assert stage.json("models", "unpin")["pinned"] is False
    assert stage.json("models", "roll-back")["serving"] == 1
    assert stage.json("status")["predictor"].startswith("model 1, chosen")


# ---------------------------------------------------------------------------------- who is better


def foretold(new: float, old: float, n: int = 1000) -> Foretold:
    """Two predictors that give one chance to all visits, of which 30 % find a change."""
    changed = np.arange(n) % 10 < 3
    spread = np.where(changed, 0.02, -0.02) * (np.arange(n) % 7 - 3) / 3
    chances = np.stack([np.full(n, new) + spread, np.full(n, old) + spread], axis=1)
    return Foretold(changed, chances)


@pytest.mark.parametrize(
    ("found", "promoted", "why"),
    [
        (foretold(0.3, 0.6), True, "better"),
        (foretold(0.6, 0.3), False, "worse"),
        (foretold(0.3, 0.3), False, "worse"),
        (foretold(0.3, 0.6, n=150), False, "not enough yet: 150 visits"),
        (Foretold(np.zeros(500, dtype=bool), np.full((500, 2), 0.1)), False, "not enough yet"),
    ],
)
def test_log_loss_decides(found: Foretold, promoted: bool, why: str) -> None:
    assert verdict(found, 200)[0] is promoted
    assert verdict(found, 200)[1].startswith(why)


def test_one_that_ranks_worse_is_kept_back() -> None:
    """Right on the whole, but without a notion of which pages."""
    rng = np.random.default_rng(0)
    changed = rng.random(2000) < 0.3
    sharp = np.where(changed, 0.05, 0.01)  # ranks perfectly, and says far too little
    found = Foretold(changed, np.stack([np.full(2000, 0.3), sharp], axis=1))
    assert verdict(found, 200) == (False, "it ranks worse: AUC 0.5000 against 1.0000")


# ------------------------------------------------------------------------------- beside the crawl


async def trained(command: str, folder: Path, *, until: str) -> Registry:
    """Run a program in place of a training until a file is there, then stop."""
    registry, clock, stop = Registry(folder / "models"), SystemClock(), asyncio.Event()
    part = Retraining([sys.executable, "-c", command], registry, timedelta(0), clock)
    running = asyncio.create_task(part.run(stop, clock.now()))
    while not (folder / until).exists():
        await asyncio.sleep(0.005)
    stop.set()
    await running
    return registry


def test_a_training_that_fails_is_told_and_stops_nothing(tmp_path: Path) -> None:
    command = "raise SystemExit('no room on the disk')"
    registry = asyncio.run(trained(command, tmp_path, until="models/history.jsonl"))
    (event,) = registry.history()
    assert (event.what, event.why) == ("failed", "no room on the disk")


def test_a_stop_ends_the_training_too(tmp_path: Path) -> None:
    """Of which there is one at a time, at the lowest priority."""
    command = (
        "import os, pathlib, time; p = pathlib.Path('pid.part'); p.write_text(str(os.getpid())); "
        "p.rename('pid'); time.sleep(600)"
    )
    with contextlib.chdir(tmp_path):
        registry = asyncio.run(trained(command, tmp_path, until="pid"))
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert registry.history() == []


def test_the_next_training_waits_for_its_time(tmp_path: Path, bursts: Path) -> None:
    none, some = Registry(tmp_path), Registry(bursts / "models")
    assert next_training(none, DAY, START, DAY / 12) == START + DAY / 12
    assert next_training(some, DAY, START, DAY / 12) == TERMS.now + DAY
    later = TERMS.now + 9 * DAY
    assert next_training(some, DAY, later, DAY / 12) == later + DAY / 12
