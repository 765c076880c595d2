"""Commands that set up, check and run a crawl."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from salticus.cli import options, output
from salticus.cli.options import REQUIRED, arg, ask, opt, settings, span, waited
from salticus.config import Config, parse
from salticus.config.file import default_text
from salticus.errors import InputError

if TYPE_CHECKING:
    from salticus.views.trial import Finding


def init(
    folder: Path = arg(Path(), "Where to write salticus.toml."),
    contact: str = opt("", "E-mail or web address for site owners."),
    budget: str = opt("100%", "Visits: 10%, 0.1 or 5000."),
    json: bool = options.JSON,
) -> None:
    """Write a settings file with comments."""
    path = folder / options.SETTINGS
    if path.exists():
        raise InputError(f"{path} exists already; edit it, or choose another folder")
    text = default_text(contact=contact, budget=budget)
    parse(tomllib.loads(text))
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    first = "" if contact else "Write your contact into it. "
    said = (
        f"wrote {path}. {first}Next: `salticus add URL`, or for a whole shop "
        "`salticus add --sitemap URL`; then `salticus doctor` and `salticus run`."
    )
    output.answer({"config": str(path)}, json, lambda _: output.wrapped(said))


def run(
    config: Path = options.CONFIG,
    once: bool = opt(False, "Spend what the budget has saved up, then end.", "--once"),
    for_: str | None = opt(None, "End after this long, e.g. 10m.", "--for"),
    policy: str | None = opt(None, "A name, or file.py:Class."),
    budget: str | None = opt(None, "Visits: 10%, 0.1 or 5000."),
    tick: str | None = opt(None, "Planning step, e.g. 2h."),
    seed: int | None = opt(None, "Random seed, for repeatable runs."),
    json: bool = options.JSON,
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
        output.json(tally)
        return
    output.facts("crawled", tally)
    from salticus.views.alerts import alerts_of
    from salticus.views.times import counted

    if alerts := len(ask(config, alerts_of)):
        typer.echo(f"{counted(alerts, 'open alert')}: see `salticus alerts`")


def status(config: Path = options.CONFIG, json: bool = options.JSON) -> None:
    """Show what the store holds and how the crawl fares."""
    from salticus.views.status import status

    found = ask(config, status)
    facts = output.facts_of(found, "store")
    output.answer(found, json, lambda _: output.facts(found.store, facts))


def backup(
    path: Path = arg(REQUIRED, "The copy; it must not exist yet."),
    config: Path = options.CONFIG,
    json: bool = options.JSON,
) -> None:
    """Copy the store, also while a crawl is running."""
    ask(config, lambda crawl: crawl.store.backup(path))
    size = path.stat().st_size
    output.answer({"backup": str(path), "bytes": size}, json, f"copied to {path} ({size:,} bytes)")


def config_default(json: bool = options.JSON) -> None:
    """Print a settings file with all settings, explained."""
    output.answer({"toml": default_text()}, json, default_text().rstrip("\n"))


def config_check(
    file: Path = arg(options.SETTINGS, "The settings, a TOML file."), json: bool = options.JSON
) -> None:
    """Check a settings file; exit code 1 if it cannot be used.

    Keys, values, selectors and credentials are looked at. `salticus doctor`
    checks the store and a page as well.
    """
    from salticus.views.settings import settings_of

    found = [each for each in waited(settings_of(file))[1] if each.level == "fail"]
    if json:
        output.json({"file": str(file), "ok": not found, "problems": found})
    elif not found:
        typer.echo(f"{file} is in order")
    else:
        for finding in found:
            _print_finding(finding)
    if found:
        raise typer.Exit(1)


def config_show(config: Path = options.CONFIG, json: bool = options.JSON) -> None:
    """Print the settings in force, defaults included; secrets are shown as ***."""
    from salticus.views.settings import as_toml, effective

    told = effective(settings(config))
    output.answer(told, json, lambda _: typer.echo(as_toml(told), nl=False))


def config_reload(config: Path = options.CONFIG, json: bool = options.JSON) -> None:
    """Let the crawl that is running read its settings again."""
    from salticus.crawl.running import reload

    process = reload(settings(config))
    said = f"process {process} reads its settings again; its messages say how it went"
    output.answer({"process": process}, json, said)


def doctor(
    url: str | None = arg(None, "A page to try; one of the store if not given."),
    config: Path = options.CONFIG,
    json: bool = options.JSON,
) -> None:
    """Check settings and store, and try one page; with advice.

    The page is fetched once, politely, and nothing is stored: it tells what
    robots.txt says, what comes back, and what would be read of it. Exit code 1
    if anything fails.
    """
    found = waited(_examined(config, url, json=json))
    counts = Counter(finding.level for finding in found)
    said = f"{counts['ok']} ok, {counts['warn']} to look at, {counts['fail']} failed"
    output.answer({"ok": not counts["fail"], "findings": found}, json, said)
    if counts["fail"]:
        raise typer.Exit(1)


async def _examined(config: Path, url: str | None, *, json: bool) -> list[Finding]:
    from salticus.views.doctor import examine

    found = []
    async for finding in examine(config, url):
        found.append(finding)
        if not json:
            _print_finding(finding)
    return found


def _print_finding(finding: Finding) -> None:
    output.wrapped(f"{finding.about}: {finding.said}", f"{finding.level:<4}  ")
    if finding.advice:
        output.wrapped(finding.advice, "      → ")
