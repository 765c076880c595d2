"""All commands of `salticus`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from salticus.cli import (
    exchange,
    explaining,
    lab,
    models,
    pages,
    running,
    showing,
    simulating,
)
from salticus.cli.options import opt
from salticus.version import VERSION

Command = Callable[..., None]

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
        bool, opt("Print the version.", "--version", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


_PANELS: dict[str, tuple[Command, ...]] = {
    "A crawl": (running.init, pages.add, running.doctor, running.run, running.status),
    "What it found": (
        showing.changes,
        showing.search,
        pages.pages,
        showing.show,
        showing.get,
        explaining.fresh,
        explaining.why,
        showing.alerts,
        explaining.freshness,
        explaining.insta,
        explaining.arms,
    ),
    "Its pages and its data": (pages.visit, pages.forget, exchange.export, running.backup),
    "Logs and policies": (
        simulating.policies,
        simulating.simulate,
        lab.analyze,
        lab.calibrate,
    ),
    "Models": (models.train, models.evaluate, models.predict),
    "To try things out": (lab.demo, lab.mall),
}
for heading, commands in _PANELS.items():
    for command in commands:
        app.command(rich_help_panel=heading)(command)


_GROUPS: dict[tuple[str, str], tuple[Command, ...]] = {
    ("Its pages and its data", "Take in merchants' feeds, and judge them."): (
        exchange.feed_import,
        exchange.feed_report,
    ),
    ("Its pages and its data", "Take in what readers did."): (exchange.clicks_import,),
    ("A crawl", "Watch a sample of pages closely."): (
        explaining.panel_plan,
        explaining.panel_show,
        explaining.panel_end,
    ),
    ("A crawl", "Print, check and reload the settings."): (
        running.config_default,
        running.config_check,
        running.config_show,
        running.config_reload,
    ),
    ("Models", "The models of the crawl: list, compare, pin, roll back."): (
        models.models_list,
        models.models_compare,
        models.models_pin,
        models.models_unpin,
        models.models_roll_back,
    ),
    ("To try things out", "Measure Salticus beside other tools."): (
        lab.bench_fetch,
        lab.bench_simulate,
        lab.bench_policies,
        lab.bench_learn,
        lab.bench_tick,
    ),
    ("Logs and policies", "Measure policies as the papers did."): (
        lab.study_traces,
        lab.study_predict,
    ),
    ("Logs and policies", "Check, describe, convert and make logs."): (
        exchange.log_check,
        exchange.log_info,
        exchange.log_convert,
    ),
}
_ALONE: dict[str, Command] = {"panel": explaining.panel_, "models": models.models}


def _group(to: typer.Typer, about: str, members: tuple[Command, ...], **more: Any) -> typer.Typer:
    """Commands of two words, as in the names of the functions, under the first of them; this alone
    does what `_ALONE` says, or tells what there is."""
    first = members[0].__name__.partition("_")[0]
    group = typer.Typer(help=about, no_args_is_help=first not in _ALONE)
    if first in _ALONE:
        group.callback(invoke_without_command=True)(_ALONE[first])
    for member in members:
        group.command(member.__name__.partition("_")[2].replace("_", "-"))(member)
    to.add_typer(group, name=first, **more)
    return group


for (heading, about), members in _GROUPS.items():
    group = _group(app, about, members, rich_help_panel=heading)
_group(group, "Make synthetic logs.", (lab.make_market,))  # the last one is `log`
app.command("import", rich_help_panel="Its pages and its data")(exchange.import_)
