"""Shops and publishers on one budget, over HTTP: articles are found soon, and no shop forgotten."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from salticus.cli import app
from salticus.lab.demo import busiest_day
from salticus.lab.studies.live import LiveSettings, crawl_live, live_world
from salticus.lab.worlds.mall.audit import audit
from salticus.lab.worlds.mall.press import PressSettings

DAY = timedelta(days=1)
SMALL = LiveSettings(
    press=PressSettings(publishers=4, articles=12.0, categories=2, shown=15, dead=2),
    shops=3,
    offers=60,
    clicks=300.0,
    days=4,
    warmup=2,
    tick="2h",
    speed=21_600.0,
    seed=4,
)
BUDGET = 400


def test_new_articles_are_found_and_fetched_within_the_budget(tmp_path: Path) -> None:
    world = live_world(SMALL)
    crawl = asyncio.run(crawl_live(tmp_path, world, SMALL, "leap", BUDGET))
    assert busiest_day(crawl.at) <= BUDGET
    report = audit(crawl.log, delay=SMALL.delay)
    assert report.clean, str(report)
    start, end = world.start + SMALL.warmup * DAY, world.start + SMALL.days * DAY
    score = crawl.judged(world, start, end)
    print(score)
    assert len(world.press.rows(start, end)) > 20
    assert score.fetched > 0.8
    assert 0.0 < score.delay < 6.0, "every publisher is looked at several times a day"
    assert score.read > 0.7
    assert score.staleness < 0.5
    offers = set(crawl.copies.rows[crawl.copies.rows < world.press.first].tolist())
    assert offers == set(range(world.press.first)), "and no shop is forgotten for them"
    dead = [entry for entry in crawl.log if entry.status in (404, 410)]
    assert len(dead) < 0.1 * BUDGET, "dead feeds take next to nothing of four days' visits"


@pytest.mark.soak
def test_the_study_crawls_within_the_budget_and_tells_how_each_did(tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    small = {"publishers": 2, "shops": 1, "offers": 30, "days": 3, "warmup": 1, "tick": "2h"}
    options = [word for name, value in small.items() for word in (f"--{name}", str(value))]
    command = ["study", "live", "--budget", "150", "--speed", "21600", *options]
    done = CliRunner().invoke(app, [*command, "--json", str(out)])
    assert done.exit_code == 0, done.output
    found = json.loads(out.read_text("utf-8"))
    assert [row["crawl"] for row in found["rows"]] == ["leap", "miniflux", "shops alone"]
    assert all(0 < row["visits"] <= 3 * 150 for row in found["rows"])
    both, rival, alone = found["rows"]
    assert both["fetched"] > 0.5
    assert rival["to_sources"] > 0
    assert (alone["to_sources"], alone["delay"]) == (0, None), "there is nothing to find in shops"
