"""Commands that set up and run a crawl."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import signal
import tomllib
from datetime import timedelta
from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, settings, span
from salticus.cli.output import print_facts, print_json
from salticus.clock import collect_rarely, run_fast
from salticus.config import Config, parse
from salticus.errors import InputError

TEMPLATE = """\
# Settings of one crawl. Everything but the contact may be left out.
store = "salticus.db"
budget = {budget}        # 10% or 0.1: visits per page and day; from 1 up: visits a day in all
tick = "2h"            # how often visits are planned
policy = "uniform"     # a name, or path/to/file.py:Class
# max_interval = "7d"  # no page waits longer, if budget and politeness permit

[fetch]
contact = {contact}  # an e-mail or web address for site owners; sent with every request
delay = "1s"           # between two requests to a host
per_host = 1           # requests to a host at once
timeout = "30s"
max_size = "10 MB"

# [[hosts]]            # other manners for some hosts; the first match wins
# match = "*.example.org"
# delay = "5s"
"""


def init(
    folder: Annotated[Path, typer.Argument(help="Where to write salticus.toml.")] = Path(),
    contact: Annotated[str, typer.Option(help="E-mail or web address for site owners.")] = "",
    budget: Annotated[str, typer.Option(help="Visits: 10%, 0.1 or 5000.")] = "100%",
    json: Json = False,
) -> None:
    """Write a settings file with comments."""
    path = folder / DEFAULT
    if path.exists():
        raise InputError(f"{path} exists already; edit it, or choose another folder")
    text = TEMPLATE.format(contact=dumps(contact), budget=dumps(budget))
    parse(tomllib.loads(text))
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    if json:
        print_json({"config": str(path)})
    else:
        typer.echo(f"wrote {path}; add pages with `salticus add URL...`, then `salticus run`")


def run(
    config: ConfigFile = DEFAULT,
    once: Annotated[
        bool, typer.Option("--once", help="Spend what the budget has saved up, then end.")
    ] = False,
    for_: Annotated[
        str | None, typer.Option("--for", help="End after this long, e.g. 10m.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="A name, or file.py:Class.")] = None,
    budget: Annotated[str | None, typer.Option(help="Visits: 10%, 0.1 or 5000.")] = None,
    tick: Annotated[str | None, typer.Option(help="Planning step, e.g. 2h.")] = None,
    seed: Annotated[int | None, typer.Option(help="Fixes every chance.")] = None,
    json: Json = False,
) -> None:
    """Crawl: visit pages on the budget until stopped (SIGTERM ends visits in flight first)."""
    _raise_file_limit()
    collect_rarely()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    chosen = settings(config, policy=policy, budget=budget, tick=tick, seed=seed)
    length = span("for", for_)
    tally = run_fast(_crawl(chosen, once=once, length=length))
    if json:
        print_json(tally)
    else:
        print_facts("crawled", tally)


def _raise_file_limit() -> None:
    """Let thousands of hosts have a connection each; many systems allow 1,024 files at first."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))


async def _crawl(config: Config, *, once: bool, length: timedelta | None) -> dict[str, float]:
    from salticus.assemble import clock_of, crawler
    from salticus.report.progress import Progress
    from salticus.schedule.ticks import FOREVER

    clock = clock_of(config)
    until = FOREVER if length is None else clock.now() + length * clock.speed
    async with crawler(config, once=once) as loop:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, loop.stop)
        with Progress() as progress:
            loop.watchers.append(progress)
            await loop.run(until, once=once)
        return progress.tally()


def status(config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """Show what the store holds and how the crawl keeps its promises."""
    from salticus.report.status import status_of

    found = asyncio.run(status_of(settings(config)))
    if json:
        print_json(found)
    else:
        print_facts(f"{found.pop('store')}", found)


def backup(
    path: Annotated[Path, typer.Argument(help="The copy; it must not exist yet.")],
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Copy the store, also while a crawl is running."""
    asyncio.run(_backup(settings(config), path))
    if json:
        print_json({"backup": str(path), "bytes": path.stat().st_size})
    else:
        typer.echo(f"copied to {path} ({path.stat().st_size:,} bytes)")


async def _backup(config: Config, path: Path) -> None:
    from salticus.assemble import stored

    async with stored(config) as store:
        await store.backup(path)
