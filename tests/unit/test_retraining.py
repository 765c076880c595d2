"""Models from the visits of a crawl: trained beside it, judged on what came, listed and chosen."""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from salticus.clock import SystemClock, VirtualClock
from salticus.config import Config, Models
from salticus.crawl.contest import Foretold, verdict
from salticus.crawl.opening import Crawl
from salticus.crawl.retraining import Retraining, grown_up, next_training
from salticus.crawl.training import Trained, train_all, train_crawl
from salticus.models.registry import Judgement, Registry
from salticus.models.training.run import ModelSpec
from salticus.store.sqlite.store import SqliteStore
from salticus.testing import START

from .cli_stage import Stage
from .crawled import click, fill

DAY = timedelta(days=1)
NOW = START + 31 * DAY
SMALL = ModelSpec(model="trees", fitting={"trees": 20, "least": 20, "refit": False})


@pytest.fixture(scope="module")
def bursts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl of pages that change by bursts, which no rate tells; and a model of it."""
    folder = tmp_path_factory.mktemp("crawl")
    asyncio.run(made(folder, bursts=True, pages=40))
    return folder


async def made(folder: Path, **world: Any) -> Trained:
    store = await SqliteStore.open(folder / "salticus.db")
    await fill(store, days=24, **world)
    config = Config(tick=DAY / 4, models=Models(str(folder / "models"), least=200))
    found = await train_crawl(Crawl(config, store, VirtualClock(NOW)), SMALL)
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


def test_models_of_clicks_are_judged_by_all_pages_beside_counts(
    bursts: Path, tmp_path: Path
) -> None:
    """What people click is clear from the brand, and soon from counts too: either may win."""
    shutil.copy(bursts / "salticus.db", tmp_path)

    async def crawl() -> list[Trained]:
        store = await SqliteStore.open(tmp_path / "salticus.db")
        await click(store, pages=40, days=24)
        models = Models(str(tmp_path / "models"), least=100)
        config = Config(predictor="gamma", tick=DAY / 4, models=models)
        found = await train_all(Crawl(config, store, VirtualClock(NOW)), SMALL)
        await store.close()
        return found

    found = {trained.task: trained for trained in asyncio.run(crawl())}
    told = found["click"].judgement
    assert isinstance(told, Judgement), found["click"].why
    assert told.visits == 40 * 3
    assert list(found) == ["click", "impression"], "no model of changes could serve"
    new, old = told.candidate_figures, told.incumbent_figures
    assert new["poisson"] is not None
    assert old["poisson"] is not None
    assert new["poisson"] < old["poisson"] + 0.02, "counts bound what it can lose"
    assert found["click"].promoted == (Registry(tmp_path / "models/click").pointer().serving == 1)
    assert found["impression"].version is None
    assert "0 of " in found["impression"].why
    stage = Stage(tmp_path, 'policy = "leap"\ntick = "6h"\n')
    assert stage.json("models")["click"]["models"][0]["judgement"]["visits"] == told.visits
    assert stage.json("models", "pin", "1", "--task", "click")["serving"] == 1
    assert stage.json("models", "compare", "1", "0", "--task", "click")["visits"] == told.visits
    assert stage.json("models", "pin", "0", "--task", "click")["serving"] == 0


def test_with_too_little_to_learn_from_nothing_is_trained(tmp_path: Path) -> None:
    found = asyncio.run(made(tmp_path, pages=2, bursts=False))
    assert (found.version, found.promoted) == (None, False)
    assert "visits to explore or of the panel" in found.why
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
    return Foretold(changed, chances, np.ones(len(changed)))


@pytest.mark.parametrize(
    ("found", "promoted", "why"),
    [
        (foretold(0.3, 0.6), True, "better"),
        (foretold(0.6, 0.3), False, "worse"),
        (foretold(0.3, 0.3), False, "worse"),
        (foretold(0.3, 0.6, n=150), False, "not enough yet: 150 visits"),
        (
            Foretold(np.zeros(500, dtype=bool), np.full((500, 2), 0.1), np.ones(500)),
            False,
            "not enough yet",
        ),
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
    found = Foretold(changed, np.stack([np.full(2000, 0.3), sharp], axis=1), np.ones(2000))
    assert verdict(found, 200) == (False, "it ranks worse: AUC 0.5000 against 1.0000")


# ------------------------------------------------------------------------------- beside the crawl


def retraining(folder: Path, command: str) -> Retraining:
    """With a program in place of a training."""
    program = [sys.executable, "-c", command]
    return Retraining(program, Registry(folder / "models"), DAY, SystemClock())


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("raise SystemExit('no room on the disk')", "no room on the disk"),
        ("print('[')", "it said what is not understood: Input data was truncated"),
        ("import os; os.kill(os.getpid(), 9)", "it ended with -9"),
    ],
)
def test_a_training_that_fails_is_told_and_stops_nothing(
    tmp_path: Path, command: str, why: str
) -> None:
    part = retraining(tmp_path, command)
    asyncio.run(part._train(asyncio.Event()))
    (event,) = part.registry.history()
    assert (event.what, event.why) == ("failed", why)


def test_what_came_of_each_training_is_told(tmp_path: Path, caplog: Any) -> None:
    told: list[dict[str, Any]] = [{"version": 1, "task": "change", "why": "better"}]
    told += [{"version": None, "task": "click", "why": "not enough yet"}]
    part = retraining(tmp_path, f"import json; print(json.dumps({told!r}))")
    with caplog.at_level("INFO"):
        asyncio.run(part._train(asyncio.Event()))
    assert [r.getMessage().rpartition(": ")[2] for r in caplog.records] == [x["why"] for x in told]
    assert part.registry.history() == []


def test_a_stop_ends_the_training_too(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    tell = f"import os, time; open({str(pipe)!r}, 'w').write(str(os.getpid()))"
    part = retraining(tmp_path, f"{tell}; time.sleep(9e3)")

    async def stopped() -> int:
        stop = asyncio.Event()
        running = asyncio.create_task(part.run(stop, part.clock.now()))
        pid = int(await asyncio.to_thread(pipe.read_text))
        stop.set()
        await running
        return pid

    pid = asyncio.run(stopped())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert part.registry.history() == []


KILLED = """
import asyncio, sys
from datetime import timedelta
from pathlib import Path
from salticus.clock import SystemClock, VirtualClock
from salticus.config import Config, Models
from salticus.crawl.opening import Crawl
from salticus.crawl.retraining import Retraining, train_command
from salticus.models.registry import Judgement, Registry

command = train_command(Path(sys.argv[1]))
part = Retraining(command, Registry(Path(sys.argv[2])), timedelta(days=1), SystemClock())
asyncio.run(part.run(asyncio.Event(), part.clock.now()))
"""


def test_a_training_ends_when_its_crawl_is_killed(tmp_path: Path) -> None:
    """The settings are a pipe, which the training waits to read from, and opens until it ends."""
    settings = tmp_path / "salticus.toml"
    os.mkfifo(settings)
    crawl = subprocess.Popen([sys.executable, "-c", KILLED, settings, tmp_path / "models"])
    with settings.open("w") as pipe:  # waits for the training
        crawl.kill()
        crawl.wait()
        ended = select.poll()
        ended.register(pipe, 0)
        assert ended.poll(60_000), "it still waits for its settings"


def test_the_next_training_waits_for_its_time(tmp_path: Path, bursts: Path) -> None:
    none, some = Registry(tmp_path), Registry(bursts / "models")
    assert next_training(none, DAY, START) == START
    assert next_training(some, DAY, START) == NOW + DAY
    later = NOW + 9 * DAY
    assert next_training(some, DAY, later) == later


def test_a_young_crawl_trains_nothing() -> None:
    first = int((START - 10 * DAY).timestamp() * 1e6)
    assert grown_up(None, START) == START + 14 * DAY
    assert grown_up(first, START) == START + 4 * DAY
