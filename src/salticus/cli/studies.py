"""Commands that repeat all experiments of a paper, and write its report."""

from __future__ import annotations

from os import cpu_count
from pathlib import Path
from typing import Any, Literal

import typer

from salticus.cli import options, output
from salticus.cli.options import opt

SCALE: str = opt("small", "tiny (seconds), small (under an hour) or full (many hours).")
LOG: Path | None = opt(None, "Study this log instead of a synthetic market.")
JOBS: int | None = opt(None, "Processes. [default: one a core]", min=1)


def study_han2019(
    scale: str = SCALE,
    log: Path | None = LOG,
    out: Path = opt(Path("han2019"), "Folder for report.html, results.json and CSV files."),
    jobs: int | None = JOBS,
    seed: int = options.SEED,
    json: bool = options.JSON,
) -> None:
    """Make every table and figure of Han et al. (2019), with published figures beside ours."""
    from salticus.lab.studies.han2019.run import study

    with output.steps() as told:
        report = study(scale, log=log, jobs=jobs or cpu_count() or 1, seed=seed, told=told)
    publish(report, out, json)


def study_han2020(
    scale: str = SCALE,
    log: Path | None = LOG,
    models: Path | None = opt(None, "Folder with change, click and impression. [default: trained]"),
    copies: Literal["none", "fresh"] = opt("none", "What copies there are at the start."),
    out: Path = opt(Path("han2020"), "Folder for report.html, results.json and CSV files."),
    jobs: int | None = JOBS,
    seed: int = options.SEED,
    json: bool = options.JSON,
) -> None:
    """Make every table and figure of Han et al. (2020), with published figures beside ours."""
    from salticus.lab.studies.han2020.run import Given, study

    given, processes = Given(log, models, copies), jobs or cpu_count() or 1
    with output.steps() as told:
        report = study(scale, given, jobs=processes, seed=seed, told=told)
    publish(report, out, json)


def publish(report: dict[str, Any], out: Path, json: bool) -> None:
    """Write the report of a paper's study, and print what holds and what does not."""
    from salticus.charts.paper import claims_table
    from salticus.lab.studies.paper import write_study

    files = write_study(report, out)
    if json:
        output.json(report)
        return
    output.table(report["title"], *claims_table(report))
    for note in report["notes"]:
        typer.echo(f"note: {note}")
    typer.echo(f"report: {files[0]}")
