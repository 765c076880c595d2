"""Commands that lay Salticus beside what was published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from salticus.cli.options import Json
from salticus.cli.output import print_json, print_table
from salticus.errors import ConfigError
from salticus.log.place import in_place


def calibrate(
    preset: Annotated[
        str | None, typer.Option(help="han2019, han2020 or both; of a log, the one it was made by.")
    ] = None,
    offers: Annotated[int, typer.Option(min=1000, help="Offers of the market.")] = 30_000,
    days: Annotated[int, typer.Option(min=62, help="Days of the market.")] = 120,
    seed: Annotated[int, typer.Option(help="Fixes the market and every chance.")] = 1,
    log: Annotated[Path | None, typer.Option(help="Measure this log instead.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the table as Markdown.")] = None,
    json: Json = False,
) -> None:
    """Measure the synthetic market, or a log, against the published statistics."""
    from salticus.studies.calibration import run
    from salticus.studies.calibration.table import HEADER, markdown, summary

    presets = _presets(preset)
    if log is None:
        table = run.calibrate(presets, offers=offers, days=days, seed=seed, tell=_tell)
    else:
        table = run.calibrate_log(log, presets if preset else None, seed=seed, tell=_tell)
    if out is not None:
        with in_place(out) as part:
            part.write_text(markdown(table), "utf-8")
    if json:
        print_json({**summary(table), "rows": table})
        return
    for name in dict.fromkeys(row.preset for row in table):
        print_table(name, HEADER, [row.cells() for row in table if row.preset == name])
    typer.echo(f"{summary(table)['ok']} of {len(table)} hold")


def _presets(name: str | None) -> tuple[str, ...]:
    from salticus.studies.calibration.published import PRESETS

    if name in (None, "both"):
        return PRESETS
    if name not in PRESETS:
        raise ConfigError(f"no preset is called {name!r}; known: {', '.join(PRESETS)}, both")
    return (name,)


def _tell(text: str) -> None:
    typer.echo(text, err=True)
