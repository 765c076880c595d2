"""Commands about the settings, and whether all is well with them."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, settings
from salticus.cli.output import print_json, print_wrapped
from salticus.config.default import default_text

if TYPE_CHECKING:
    from salticus.views.finding import Finding


def config_default(json: Json = False) -> None:
    """Print a settings file with all settings, explained."""
    if json:
        print_json({"toml": default_text()})
    else:
        typer.echo(default_text(), nl=False)


def config_check(
    file: Annotated[Path, typer.Argument(help="The settings, a TOML file.")] = DEFAULT,
    json: Json = False,
) -> None:
    """Check a settings file; exit code 1 if it cannot be used.

    Keys, values, selectors and credentials are looked at. `salticus doctor`
    checks the store and a page as well.
    """
    from salticus.views.doctor import settings_of

    found = [each for each in asyncio.run(settings_of(file))[1] if each.level == "fail"]
    if json:
        print_json({"file": str(file), "ok": not found, "problems": found})
    elif not found:
        typer.echo(f"{file} is in order")
    else:
        for finding in found:
            _print_finding(finding)
    if found:
        raise typer.Exit(1)


def config_show(config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """Print the settings in force, defaults included; secrets are shown as ***."""
    from salticus.views.settings import as_toml, effective

    told = effective(settings(config))
    if json:
        print_json(told)
    else:
        typer.echo(as_toml(told), nl=False)


def config_reload(config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """Let the crawl that is running read its settings again."""
    from salticus.crawl.running import reload

    process = reload(settings(config))
    if json:
        print_json({"process": process})
    else:
        typer.echo(f"process {process} reads its settings again; its messages say how it went")


def doctor(
    url: Annotated[
        str | None, typer.Argument(help="A page to try; one of the store if not given.")
    ] = None,
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Check settings and store, and try one page; with advice.

    The page is fetched once, politely, and nothing is stored: it tells what
    robots.txt says, what comes back, and what would be read of it. Exit code 1
    if anything fails.
    """
    found = asyncio.run(_examined(config, url, json=json))
    counts = Counter(finding.level for finding in found)
    if json:
        print_json({"ok": not counts["fail"], "findings": found})
    else:
        typer.echo(f"{counts['ok']} ok, {counts['warn']} to look at, {counts['fail']} failed")
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
    print_wrapped(f"{finding.about}: {finding.said}", f"{finding.level:<4}  ")
    if finding.advice:
        print_wrapped(finding.advice, "      → ")
