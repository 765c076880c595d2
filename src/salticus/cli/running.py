"""Commands that set up and run a crawl."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, ask, settings, span
from salticus.cli.output import facts_of, print_facts, print_json, print_wrapped
from salticus.config import Config, parse
from salticus.config.default import default_text
from salticus.errors import InputError
from salticus.views.words import counted


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
    text = default_text(contact=contact, budget=budget)
    parse(tomllib.loads(text))
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    if json:
        print_json({"config": str(path)})
    else:
        first = "" if contact else "Write your contact into it. "
        print_wrapped(
            f"wrote {path}. {first}Next: `salticus add URL`, or for a whole shop "
            "`salticus add --sitemap URL`; then `salticus doctor` and `salticus run`."
        )


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
    """Crawl: visit pages on the budget, until stopped.

    Ctrl-C and SIGTERM end it once the visits in flight are done. With SIGHUP, or
    `salticus config reload`, it reads its settings again and goes on.
    """
    from salticus.crawl.running import Run
    from salticus.views.progress import Progress
    from salticus.web.desk import desk

    length = span("for", for_)

    def read() -> Config:
        return settings(config, policy=policy, budget=budget, tick=tick, seed=seed)

    def told(news: str) -> None:
        typer.echo(f"salticus: {news}", err=True)

    with Progress() as progress:
        Run(progress, (desk,), told, once=once, length=length).run(read)
    tally = progress.tally()
    if json:
        print_json(tally)
        return
    print_facts("crawled", tally)
    from salticus.views.alerts import alerts_of

    if alerts := len(ask(config, alerts_of)):
        typer.echo(f"{counted(alerts, 'open alert')}: see `salticus alerts`")


def status(config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """Show what the store holds and how the crawl fares."""
    from salticus.views.status import status

    found = ask(config, status)
    if json:
        print_json(found)
        return
    facts = facts_of(found)
    print_facts(facts.pop("store"), facts)


def backup(
    path: Annotated[Path, typer.Argument(help="The copy; it must not exist yet.")],
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Copy the store, also while a crawl is running."""
    from salticus.views.export import backup

    ask(config, lambda crawl: backup(crawl, path))
    if json:
        print_json({"backup": str(path), "bytes": path.stat().st_size})
    else:
        typer.echo(f"copied to {path} ({path.stat().st_size:,} bytes)")
