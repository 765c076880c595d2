"""The command line: all commands of `salticus`. It wires parts together, and holds no logic."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import typer

from salticus.cli import (
    demo,
    exchange,
    explaining,
    lab,
    models,
    pages,
    registry,
    running,
    showing,
    simulating,
)
from salticus.cli.options import opt
from salticus.errors import SalticusError
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
    version: bool = opt(False, "Print the version.", "--version", callback=_version, is_eager=True),
) -> None:
    pass


_PANELS: dict[str, tuple[Command, ...]] = {
    "A crawl": (
        running.init,
        pages.add,
        pages.discover,
        running.doctor,
        running.run,
        running.status,
    ),
    "What it found": (
        showing.changes,
        showing.new,
        showing.search,
        pages.pages,
        showing.show,
        showing.get,
        explaining.fresh,
        explaining.why,
        showing.sources,
        showing.alerts,
        explaining.freshness,
        explaining.insta,
        explaining.arms,
    ),
    "Its pages and its data": (pages.visit, pages.forget, exchange.export, running.backup),
    "Logs and policies": (simulating.policies, simulating.simulate, lab.analyze, lab.calibrate),
    "Models": (models.train, models.evaluate, models.predict),
    "To try things out": (demo.demo, lab.mall),
}
for heading, commands in _PANELS.items():
    for command in commands:
        app.command(rich_help_panel=heading)(command)


_GROUPS = (
    ("feed", exchange, "Its pages and its data", "Take in merchants' feeds, and judge them."),
    ("clicks", exchange, "Its pages and its data", "Take in what readers did."),
    ("panel", explaining, "A crawl", "Watch a sample of pages closely."),
    ("config", running, "A crawl", "Print, check and reload the settings."),
    ("models", registry, "Models", "The models of the crawl: list, compare, pin, roll back."),
    ("bench", lab, "To try things out", "Measure Salticus beside other tools."),
    ("study", lab, "Logs and policies", "Measure policies as the papers did."),
    ("log", exchange, "Logs and policies", "Check, describe, convert and make logs."),
)
_ALONE: dict[str, Command] = {"panel": explaining.panel_, "models": registry.models}


def _group(to: typer.Typer, first: str, home: ModuleType, about: str, **more: Any) -> typer.Typer:
    """Commands of two words: the functions of a module whose names begin with the first of them.
    This alone does what `_ALONE` says, or tells what there is."""
    group = typer.Typer(help=about, no_args_is_help=first not in _ALONE)
    if first in _ALONE:
        group.callback(invoke_without_command=True)(_ALONE[first])
    for name, command in vars(home).items():
        if name.startswith(f"{first}_") and command is not _ALONE.get(first):
            group.command(name.removeprefix(f"{first}_").replace("_", "-"))(command)
    to.add_typer(group, name=first, **more)
    return group


for first, home, heading, about in _GROUPS:
    group = _group(app, first, home, about, rich_help_panel=heading)
_group(group, "make", lab, "Make synthetic logs.")  # the last one is `log`
app.command("import", rich_help_panel="Its pages and its data")(exchange.import_)


def main() -> None:
    """Run `salticus`; our own errors become one line and exit code 2."""
    try:
        app()
    except SalticusError as error:
        sys.stderr.write(f"salticus: {error}\n")
        sys.exit(2)
