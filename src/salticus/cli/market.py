"""Commands that make logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from salticus.cli.options import Json
from salticus.cli.output import bar, print_facts, print_json


def make_market(
    out: Annotated[Path, typer.Option(help="A new folder for the log.")],
    offers: Annotated[int, typer.Option(min=1)] = 10_000,
    days: Annotated[int, typer.Option(min=1)] = 120,
    seed: Annotated[int, typer.Option(help="Fixes the market.")] = 0,
    preset: Annotated[str, typer.Option(help="han2019 or han2020.")] = "han2020",
    json: Json = False,
) -> None:
    """Make a synthetic market of offers: the truth, its readers, and what a crawler saw of it."""
    from salticus.lab.worlds import market

    with bar(offers) as told:
        rows = market.make_market(
            out, market.MarketSize(offers, days), seed=seed, preset=preset, told=told
        )
    if json:
        print_json({"out": str(out), "rows": rows})
    else:
        print_facts(f"wrote {out}", rows)
