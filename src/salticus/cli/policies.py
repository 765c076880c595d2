"""The command that tells what policies there are."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from salticus.cli.options import Json
from salticus.cli.output import facts_of, print_columns, print_json, steps
from salticus.errors import ConfigError


def policies(
    name: Annotated[str | None, typer.Argument(help="A policy, or file.py:Class.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw its visits to this HTML, SVG or PNG file.")
    ] = None,
    json: Json = False,
) -> None:
    """List the policies, or describe one and draw what it does."""
    if name is None:
        if plot is not None:
            raise ConfigError("--plot draws one policy; name it")
        _list(json)
        return
    about = _about(name, plot)
    if json:
        print_json(about)
        return
    where = "" if about["where"] == about["name"] else f" ({about['where']})"
    words = [f"{about['name']}{where}", about["summary"], about["text"]]
    typer.echo("\n\n".join(filter(None, words)))


def _list(json: bool) -> None:
    from salticus.views.policies import policies

    every = policies()
    if json:
        print_json(every)
        return
    print_columns(("policy", "what it does"), [(one.name, one.summary) for one in every])


def _about(name: str, plot: Path | None) -> dict[str, Any]:
    from salticus.views.policies import policy

    about = facts_of(policy(name))
    if plot is None:
        return about
    from salticus.charts.policies import write_habits
    from salticus.charts.sheet import checked
    from salticus.lab.simulate.habits import habits

    checked(plot)
    with steps() as told:
        told(f"letting {name} settle")
        found = [asdict(habit) for habit in habits(name)]
    write_habits(about, found, plot)
    return {**about, "habits": found}
