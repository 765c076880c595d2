"""All commands of `salticus`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from salticus.cli import (
    analyze,
    changes,
    clicks,
    exchange,
    explaining,
    feeds,
    freshness,
    learning,
    listing,
    logs,
    market,
    measure,
    models,
    pages,
    panel,
    policies,
    running,
    schedulers,
    searching,
    settings,
    showing,
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


_PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "A crawl": (running.init, pages.add, settings.doctor, running.run, running.status),
    "What it found": (
        changes.changes,
        searching.search,
        listing.pages,
        showing.show,
        showing.get,
        explaining.fresh,
        explaining.why,
        showing.alerts,
        freshness.freshness,
        schedulers.insta,
        schedulers.arms,
    ),
    "Its pages and its data": (
        pages.visit,
        listing.forget,
        exchange.export,
        running.backup,
    ),
    "Logs and policies": (
        policies.policies,
        simulating.simulate,
        analyze.analyze,
        studying.calibrate,
    ),
    "Models": (learning.train, learning.evaluate, learning.predict),
    "To try things out": (measure.demo, measure.mall),
}
for heading, commands in _PANELS.items():
    for command in commands:
        app.command(rich_help_panel=heading)(command)

feed = typer.Typer(help="Take in merchants' feeds, and judge them.", no_args_is_help=True)
feed.command("import")(feeds.feed_import)
feed.command("report")(feeds.feed_report)
app.add_typer(feed, name="feed", rich_help_panel="Its pages and its data")

click = typer.Typer(help="Take in what readers did.", no_args_is_help=True)
click.command("import")(clicks.clicks_import)
app.add_typer(click, name="clicks", rich_help_panel="Its pages and its data")

watched = typer.Typer(help="Watch a sample of pages closely.")
watched.callback(invoke_without_command=True)(panel.panel_)
watched.command("plan")(panel.panel_plan)
watched.command("show")(panel.panel_show)
watched.command("end")(panel.panel_end)
app.add_typer(watched, name="panel", rich_help_panel="A crawl")

config = typer.Typer(help="Print, check and reload the settings.", no_args_is_help=True)
config.command("default")(settings.config_default)
config.command("check")(settings.config_check)
config.command("show")(settings.config_show)
config.command("reload")(settings.config_reload)
app.add_typer(config, name="config", rich_help_panel="A crawl")

registry = typer.Typer(
    help="The models of the crawl: list, compare, pin, roll back.", invoke_without_command=True
)
registry.callback()(models.models)
registry.command("list")(models.models_list)
registry.command("compare")(models.models_compare)
registry.command("pin")(models.models_pin)
registry.command("unpin")(models.models_unpin)
registry.command("roll-back")(models.models_roll_back)
app.add_typer(registry, name="models", rich_help_panel="Models")

bench = typer.Typer(help="Measure Salticus beside other tools.", no_args_is_help=True)
bench.command("fetch")(measure.bench_fetch)
bench.command("simulate")(measure.bench_simulate)
bench.command("policies")(measure.bench_policies)
bench.command("learn")(measure.bench_learn)
bench.command("tick")(measure.bench_tick)
app.add_typer(bench, name="bench", rich_help_panel="To try things out")

study = typer.Typer(help="Measure policies as the papers did.", no_args_is_help=True)
study.command("traces")(studying.traces)
study.command("predict")(studying.predict_study)
app.add_typer(study, name="study", rich_help_panel="Logs and policies")

log = typer.Typer(help="Check, describe, convert and make logs.", no_args_is_help=True)
log.command("check")(logs.log_check)
log.command("info")(logs.log_info)
log.command("convert")(exchange.log_convert)
make = typer.Typer(help="Make synthetic logs.", no_args_is_help=True)
make.command("market")(market.make_market)
log.add_typer(make, name="make")
app.add_typer(log, name="log", rich_help_panel="Logs and policies")
app.command("import", rich_help_panel="Its pages and its data")(exchange.import_)
