"""The command that studies a log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from salticus.cli.options import Json
from salticus.cli.output import print_facts, print_json


def analyze(
    folder: Annotated[Path, typer.Argument(help="A log: a folder of Parquet files.")],
    out: Annotated[Path | None, typer.Option(help="Write the report with charts here.")] = None,
    json: Json = False,
) -> None:
    """Study when, how often and where the pages of a log change, and what people click."""
    from rich.console import Console

    from salticus.exchange.folder import Log
    from salticus.lab.analyze.layout import facts_of, sheet_of
    from salticus.lab.analyze.study import study

    log = Log(folder)
    with Console(stderr=True).status("opening the log") as status:
        found = study(log, status.update)
        if out is not None:
            status.update("drawing")
            sheet_of(found).write(out)
    if json:
        print_json(found)
        return
    print_facts(str(found.log["name"]), facts_of(found))
    for note in found.notes:
        typer.echo(f"  note: {note}")
    if out is not None:
        typer.echo(f"  report: {out}")
