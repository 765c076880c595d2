"""Commands that set up and run a crawl."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import signal
import tomllib
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, settings, span
from salticus.cli.output import print_facts, print_json, print_wrapped
from salticus.clock import collect_rarely, run_fast
from salticus.config import Config, parse
from salticus.config.default import default_text
from salticus.errors import ConfigError, InputError, PluginError
from salticus.views.words import counted

if TYPE_CHECKING:
    from salticus.crawl.loop import Loop
    from salticus.views.progress import Progress


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
    _raise_file_limit()
    collect_rarely()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    length = span("for", for_)

    def read() -> Config:
        return settings(config, policy=policy, budget=budget, tick=tick, seed=seed)

    tally = run_fast(_crawl(read, once=once, length=length))
    if json:
        print_json(tally)
        return
    print_facts("crawled", tally)
    if alerts := asyncio.run(_open_alerts(read())):
        typer.echo(f"{counted(alerts, 'open alert')}: see `salticus alerts`")


async def _open_alerts(config: Config) -> int:
    from salticus.crawl.opening import stored

    async with stored(config) as store:
        return len(await store.alerts())


def _raise_file_limit() -> None:
    """Let thousands of hosts have a connection each; many systems allow 1,024 files at first."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))


class _Reins:
    """What signals ask of a crawl: to end, or to begin again with the settings read anew.

    A crawl of `length` (wall time) ends by itself; that counts from when it was first ready.
    """

    def __init__(self, length: timedelta | None) -> None:
        self.ended = self.again = False
        self.length = length
        self._ends_at: float | None = None
        self._loop: Loop | None = None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end)
        loop.add_signal_handler(signal.SIGHUP, self._reload)

    def take(self, loop: Loop) -> datetime:
        """From now on it is this loop that is stopped. Returns the world time at which it ends."""
        from salticus.schedule.ticks import FOREVER

        self._loop = loop
        if self.ended or self.again:
            loop.stop()
        if self.length is None:
            return FOREVER
        clock = loop.parts.ticks.clock
        if self._ends_at is None:
            self._ends_at = clock.wall() + self.length.total_seconds()
        left = timedelta(seconds=max(0.0, self._ends_at - clock.wall()))
        return clock.now() + left * clock.speed

    def _end(self) -> None:
        self.ended = True
        self._stop()

    def _reload(self) -> None:
        self.again = True
        self._stop()

    def _stop(self) -> None:
        if self._loop is not None:
            self._loop.stop()


async def _crawl(
    read: Callable[[], Config], *, once: bool, length: timedelta | None
) -> dict[str, float]:
    """Crawl, and when told to reload begin again with new settings, or the old if they are wrong.

    The store carries everything from one to the next, as it does across a restart.
    """
    from salticus.views.progress import Progress

    config, reins, tried = read(), _Reins(length), None
    with Progress() as progress:
        while True:
            try:
                await _stretch(config, reins, progress, once=once)
            except (ConfigError, PluginError) as error:
                if tried is None:
                    raise
                _warn(error)
                config, tried = tried, None
                continue
            if reins.ended or not reins.again:
                return progress.tally()
            reins.again = False
            config, tried = _reread(read, config), config


async def _stretch(config: Config, reins: _Reins, progress: Progress, *, once: bool) -> None:
    """Crawl until the time is over, or until the reins are drawn."""
    from salticus.crawl.assembly import crawler
    from salticus.web.desk import desk

    async with crawler(config, once=once, companions=(desk,)) as loop:
        loop.watchers.append(progress)
        await loop.run(reins.take(loop), once=once)


def _reread(read: Callable[[], Config], config: Config) -> Config:
    """The settings as they stand in the file now; the old ones if those cannot be used."""
    try:
        config = read()
    except (ConfigError, PluginError) as error:
        _warn(error)
    else:
        typer.echo("salticus: the settings were read again", err=True)
    return config


def _warn(error: Exception) -> None:
    typer.echo(f"salticus: the crawl goes on with its old settings: {error}", err=True)


def status(config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """Show what the store holds and how the crawl fares."""
    from salticus.views.status import status_of

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
    from salticus.crawl.opening import stored

    async with stored(config) as store:
        await store.backup(path)
