"""All commands of `salticus`."""

from __future__ import annotations

from typing import Annotated

import typer

from salticus.cli import analyze, measure, pages, running, simulating
from salticus.version import VERSION

app = typer.Typer(
    help="Keep a local copy of web content fresh on a budget.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"salticus {VERSION}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


for command in (
    running.init,
    pages.add,
    running.run,
    running.status,
    pages.show,
    pages.get,
    pages.export,
    running.backup,
    simulating.simulate,
    analyze.analyze,
    measure.demo,
    measure.mall,
):
    app.command()(command)

bench = typer.Typer(help="Measure Salticus beside other tools.", no_args_is_help=True)
bench.command("fetch")(measure.bench_fetch)
bench.command("simulate")(measure.bench_simulate)
app.add_typer(bench, name="bench")
