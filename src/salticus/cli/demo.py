"""The command that crawls a mall of its own, and compares."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

import typer

from salticus.cli import options, output
from salticus.cli.options import arg, opt


def demo(
    folder: Path | None = arg(None, "Where to put everything."),
    compare: bool = opt(False, "At full size: 20,000 offers of 100 shops.", "--compare"),
    models: bool = opt(
        False,
        "Leap twice: once with models that are trained on what was crawled when the score begins.",
        "--models",
    ),
    seed: int = opt(0, "Random seed, for the same market and run."),
    seconds: float | None = opt(None, "How long each crawl takes, wall time."),
    offers: int | None = typer.Option(None, min=1),
    json: bool = options.JSON,
) -> None:
    """Crawl a mall of its own twice, once evenly and once with leap, and compare the copies."""
    from salticus.crawl.running import run_fast
    from salticus.lab.demo import FULL, MODELLED, PAGE, SMALL, run_demo, table_of

    where = folder or Path(mkdtemp(prefix="salticus-demo-"))
    course = replace(MODELLED if models else FULL if compare else SMALL, seed=seed)
    course = replace(course, seconds=seconds or course.seconds, offers=offers or course.offers)
    if not json:
        typer.echo(f"{course}; see {where}")
    with output.steps() as told:
        facts = run_fast(run_demo(where, course, told))
    facts["page"] = str(where / PAGE)
    if json:
        output.json(facts)
        return
    rows = table_of(facts, course.policies)
    output.table("what the crawls achieved", ("", *course.policies), rows)
    typer.echo(f"charts: {facts['page']}")
