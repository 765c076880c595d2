"""All commands of `salticus`."""

from __future__ import annotations

from typing import Annotated

import typer

from salticus.cli import (
    analyze,
    exchange,
    logs,
    market,
    measure,
    pages,
    running,
    simulating,
    studying,
)
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
    studying.calibrate,
    measure.demo,
    measure.mall,
):
    app.command()(command)

bench = typer.Typer(help="Measure Salticus beside other tools.", no_args_is_help=True)
bench.command("fetch")(measure.bench_fetch)
bench.command("simulate")(measure.bench_simulate)
app.add_typer(bench, name="bench")

log = typer.Typer(help="Check, describe, convert and make logs.", no_args_is_help=True)
log.command("check")(logs.log_check)
log.command("info")(logs.log_info)
log.command("convert")(exchange.log_convert)
make = typer.Typer(help="Make synthetic logs.", no_args_is_help=True)
make.command("market")(market.make_market)
log.add_typer(make, name="make")
app.add_typer(log, name="log")
app.command("import")(exchange.import_)
