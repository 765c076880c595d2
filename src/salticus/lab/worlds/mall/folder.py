"""A mall that another process can crawl: a folder with its addresses, settings and access log."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import numpy as np

from salticus.clock import meanwhile, run_fast
from salticus.config import load
from salticus.crawl.opening import clock_of
from salticus.errors import InputError, SalticusError
from salticus.lab.worlds.mall.faults import FLOODS, PATHS, Fault
from salticus.lab.worlds.mall.press import Press, PressSettings, make_press
from salticus.lab.worlds.mall.render import STYLES
from salticus.lab.worlds.mall.server import Mall, serve
from salticus.lab.worlds.mall.shoppers import Shopping, go_shopping, shopping_of
from salticus.lab.worlds.mall.stock import Stock, generate, stock_from_log
from salticus.lab.worlds.mall.zoo import INSTEAD, RAW, SPOILT
from salticus.types import moment

Opened = Callable[[int], None]

_PLAIN = ("hang", "reset", "truncated", *FLOODS, "401", "403", "404", "410", "500")
_PAGES: tuple[Mapping[str, object], ...] = (
    *({"kind": kind} for kind in sorted({*SPOILT, *INSTEAD, *RAW} - {*PATHS})),
    *({"kind": "redirect", "to": to} for to in ("loop", "private", "inside", "metadata", "home")),
    *({"kind": "moved", "to": to} for to in ("offer", "shop", "home")),
    {"kind": "slow", "seconds": 1.0},
    *({"kind": kind} for kind in _PLAIN),
)
_SHOPS = ("huge-robots", "huge-sitemap", "sitemap-cycle", "xml-bomb", "calendar")

_SETTINGS = """\
# A crawl of the mall in this folder.
store = "salticus.db"
budget = "100%"
tick = "2h"

[fetch]
contact = "mall@example.org"
delay = "{delay}s"
timeout = "5s"
allow_private = ["127.0.0.1"]

[clock]
speed = {speed}
world_origin = {world}
wall_origin = {wall}
"""
_CLOCK = """path = "clock"  # world time; it passes only while a crawl keeps up with it
"""
_DESK = """
[desk]
listen = "{desk}"
"""


@dataclass(frozen=True)
class Plot:
    """What to build: a generated mall, or the log in folder `log`.

    `speed` is world seconds a wall second; `delay` the seconds between two requests to a shop. The
    shops write their offers in the styles of `markup` in turn; the last `zoo` shops are zoos.
    `shoppers` click at the crawler's desk as the log's people did, and on the articles of the
    publishers of the `press`. With `wait`, time passes only while a crawl with the settings of the
    mall keeps up with it.
    """

    _: KW_ONLY
    shops: int = 20
    offers: int = 2000
    days: float = 30
    seed: int = 0
    speed: float = 3600.0
    delay: float = 0.05
    page_size: int | None = None
    faults: Sequence[Fault] = ()
    log: Path | None = None
    markup: Sequence[str] = ("jsonld",)
    zoo: int = 0
    shoppers: bool = False
    wait: bool = True
    press: PressSettings = PressSettings()

    def truth(self) -> Press:
        """The truth of shops and publishers; the same for the same plot."""
        shops = self.stock()
        start = moment(shops.times.min())
        return make_press(shops, self.press, start=start, days=self.days, seed=self.seed)

    def people(self, press: Press) -> Shopping:
        """What people do: the log's in the shops, and readers on the articles of the press."""
        if self.log is None:
            return press.readers
        both = shopping_of(self.log, press.shops, seed=self.seed).join(press.readers)
        return both.take(np.argsort(both.at, kind="stable"))

    def stock(self) -> Stock:
        """The truth of the shops alone, the pages of each in its style."""
        if unknown := sorted({*self.markup} - {*STYLES}):
            raise InputError(f"no markup is called {unknown[0]!r}; known: {', '.join(STYLES)}")
        if self.log is not None:
            made = stock_from_log(self.log, self.shops)
        else:
            made = generate(self.shops, self.offers, self.days, self.seed)
        styles, dressed = self.markup, msgspec.structs.replace
        pages = [dressed(page, markup=styles[page.shop % len(styles)]) for page in made.pages]
        return replace(made, pages=pages)


def paths(folder: Path) -> dict[str, Path]:
    """The files of a mall's folder."""
    return {
        "settings": folder / "salticus.toml",
        "urls": folder / "urls.txt",
        "sources": folder / "sources.txt",
        "access": folder / "access.jsonl",
        "clock": folder / "clock",
    }


async def mall_until_stopped(folder: Path, plot: Plot, opened: Opened = lambda pages: None) -> None:
    """Serve the mall until SIGTERM or Ctrl-C; `opened` is called with the number of pages."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await open_mall(folder, plot, stop, opened)


async def open_mall(folder: Path, plot: Plot, stop: asyncio.Event, opened: Opened) -> None:
    """Serve the mall until told to stop, by the clock of its own settings. `urls.txt` is written
    last, when all shops are open; then `opened` is called with the number of pages in it. Articles
    are not among them: the publishers' sources are in `sources.txt`."""
    files, press = paths(folder), plot.truth()
    desk = None
    if plot.shoppers:
        with socket.create_server(("127.0.0.1", 0)) as free:
            desk = f"127.0.0.1:{free.getsockname()[1]}"
    _furnish(folder, plot, moment(press.shops.times.min()), desk)
    mall = Mall(
        press.stock,
        clock_of(load(files["settings"])),
        faults=[*plot.faults, *cages(press.shops, plot.zoo)],
        seed=plot.seed,
        page_size=plot.page_size,
        log_path=files["access"],
        publishers=press.publishers,
    )
    shoppers: AbstractAsyncContextManager[None] = nullcontext()
    if desk is not None:
        shoppers = meanwhile(go_shopping(plot.people(press), mall, desk))
    async with shoppers:
        await serve(mall, _announced(folder, press, mall, stop, opened))


def _furnish(folder: Path, plot: Plot, start: datetime, desk: str | None) -> None:
    """Write the settings of a crawl of this mall, whose world begins at `start`, now."""
    folder.mkdir(parents=True, exist_ok=True)
    if paths(folder)["urls"].exists():
        raise InputError(f"{folder} holds a mall already; choose another folder, or delete it")
    if plot.wait:
        paths(folder)["clock"].write_bytes(bytes(8))
    world, wall = start.isoformat(), datetime.now(UTC).isoformat()
    text = _SETTINGS.format(delay=plot.delay, speed=float(plot.speed), world=world, wall=wall)
    text += _CLOCK if plot.wait else ""
    text += _DESK.format(desk=desk) if desk else ""
    paths(folder)["settings"].write_text(text, "utf-8")


async def _announced(
    folder: Path, press: Press, mall: Mall, stop: asyncio.Event, opened: Opened
) -> None:
    files, offers = paths(folder), mall.urls[: press.first]
    if press.publishers:
        sources = (f"http://{mall.hosts[each.shop]}{each.path}" for each in press.sources)
        files["sources"].write_text("\n".join(sources) + "\n", "utf-8")
    part = files["urls"].with_suffix(".part")
    part.write_text("\n".join(offers) + "\n", "utf-8")
    part.rename(files["urls"])
    opened(len(offers))
    await stop.wait()


def urls_of(folder: Path, press: Press) -> list[str]:
    """The URL of each row of the stock of the mall that is open in `folder`."""
    files = paths(folder)
    offers = files["urls"].read_text("utf-8").split()
    named = files["sources"].read_text("utf-8").split() if press.publishers else []
    shown = zip(press.sources, named, strict=True)
    return press.urls(offers, {each.shop: urlsplit(url).netloc for each, url in shown})


def cages(stock: Stock, shops: int) -> list[Fault]:
    """The faults of a mall whose last `shops` shops are zoos: one beast every other page, and one
    that is the shop's."""
    first = stock.shops - shops
    caged = sorted((page.shop, page.path) for page in stock.pages if page.shop >= first)[::2]
    told: list[dict[str, object]] = [
        {**beast, "hosts": str(shop), "paths": path}
        for (shop, path), beast in zip(caged, cycle(_PAGES), strict=False)
    ]
    for shop in range(first, stock.shops):
        told.append({"kind": _SHOPS[shop % len(_SHOPS)], "hosts": str(shop)})
    return [msgspec.convert({**one, "share": 1.0}, Fault) for one in told]


@asynccontextmanager
async def neighbour_mall(folder: Path, plot: Plot) -> AsyncIterator[None]:
    """A mall is open in `folder`, in a process of its own, until the end of the block."""
    spelt = msgspec.json.encode(plot, enc_hook=str).decode()
    command = [sys.executable, "-m", "salticus.lab.worlds.mall.folder", str(folder), spelt]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.DEVNULL)
    try:
        while not await asyncio.to_thread(paths(folder)["urls"].exists):  # written last
            if process.returncode is not None:
                code = process.returncode
                raise SalticusError(f"the mall could not be opened (exit code {code})")
            await asyncio.sleep(0.05)
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


if __name__ == "__main__":  # in a process of its own, as a crawler meets the web
    chosen = msgspec.json.decode(sys.argv[2], type=Plot, dec_hook=lambda kind, text: kind(text))
    run_fast(mall_until_stopped(Path(sys.argv[1]), chosen))
