"""Commands about logs: whether one is sound, and what it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from salticus.cli.options import Json
from salticus.cli.output import print_facts, print_json

Folder = Annotated[Path, typer.Argument(help="The folder of a log.")]


def log_check(folder: Folder, json: Json = False) -> None:
    """Check a log: every violation with file, column, row and what to do; exit code 1 if any."""
    from salticus.exchange.check import check
    from salticus.exchange.folder import Log
    from salticus.exchange.info import rows_of

    found = check(folder)
    violations = [each for each in found if each.level == "violation"]
    warnings = [each for each in found if each.level == "warning"]
    rows = {} if violations else rows_of(Log(folder))
    if json:
        lists = {"violations": violations, "warnings": warnings}
        print_json({"folder": str(folder), "ok": not violations, "rows": rows, **lists})
    else:
        for each in found:
            typer.echo(f"{'warning: ' if each.level == 'warning' else ''}{each}")
        counts = ", ".join(f"{n:,} {table}" for table, n in rows.items())
        bad = f"not sound: violations {len(violations)}, warnings {len(warnings)}"
        typer.echo(bad if violations else f"ok: {counts}")
    if violations:
        raise typer.Exit(1)


def log_info(folder: Folder, json: Json = False) -> None:
    """Describe a log: rows, pages, change rates, visits, clicks, and what it can be used for."""
    from salticus.exchange.info import info

    facts = info(folder)
    if json:
        print_json(facts)
        return
    uses = facts.pop("uses")
    print_facts(facts.pop("name"), {name.replace("_", " "): fact for name, fact in facts.items()})
    print_facts("can be used to", uses)
