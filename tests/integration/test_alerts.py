"""A shop with a new layout: an alert, no change, and the end of the alert when it is mended."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from salticus.checks.fetch_server import Server, reply
from salticus.config import Config, parse
from salticus.crawl.manual import visit_now
from salticus.crawl.opening import stored
from salticus.types import NewPage

OFFER = """<title>Tent {0}</title><h1>Tent {0}</h1><script type="application/ld+json">
{{"@type": "Product", "name": "Tent {0}", "offers": {{"price": "{0}9.90", "priceCurrency": "EUR"}}}}
</script>"""
FAILS_AT_TIMES = """
from salticus.types import Value

class Mine:
    fast = True

    def extract(self, content):
        return Value("page", {b"well": "well"}[content.body.split()[1][:-5]])
"""
PATHS = [f"/{number}" for number in range(1, 5)]


def page(number: int, *, marked: bool) -> bytes:
    body = OFFER.format(number)
    return (body if marked else body.partition("<script")[0]).encode()


def shelve(server: Server, *, marked: bool) -> None:
    for number, path in enumerate(PATHS, 1):
        body = page(number, marked=marked)
        server.routes[path] = reply(body, Content_Type="text/html")


def wide(folder: Path) -> dict[str, Any]:
    fetch = {"contact": "a@example.org", "delay": 0, "allow_private": ["127.0.0.1"]}
    return {"store": str(folder / "s.db"), "fetch": fetch}


def settings(folder: Path) -> Config:
    return parse(wide(folder))


async def told(config: Config) -> tuple[list[tuple[str, bool]], int]:
    """The alerts (kind, over) so far, and how many new values."""
    async with stored(config) as store:
        alerts = await store.alerts(past=True)
        return [(a.kind, a.until is not None) for a in alerts], await store.last_change()


def test_availability_in_words_of_the_shop_is_kept_as_it_is(tmp_path: Path) -> None:
    async def main() -> None:
        rule = {"match": "*", "select": {"availability": "css:.stock"}}
        config = parse(wide(tmp_path) | {"pages": [rule]})
        async with Server({}) as server:
            body = page(1, marked=True) + b"<p class=stock>ask Mr Smith"
            server.routes["/1"] = reply(body, Content_Type="text/html")
            async with stored(config) as store:
                await store.add([NewPage(server.url("/1"), kind="offer")], at=1)
            (seen,) = await visit_now(config, [server.url("/1")])
            assert (seen.status, seen.value) == ("ok", "19.9 EUR ask Mr Smith")

    asyncio.run(main())


def test_pages_that_cannot_be_read_are_an_alert(tmp_path: Path) -> None:
    async def main() -> None:
        (tmp_path / "mine.py").write_text(FAILS_AT_TIMES)
        rule = {"match": "*", "extractor": f"{tmp_path}/mine.py:Mine"}
        config = parse(wide(tmp_path) | {"pages": [rule]})
        async with Server({}) as server:
            urls = [server.url(f"/{number}") for number in range(9)]
            for number in range(9):
                body = b"<h1>Tent, %s</h1>" % (b"well" if number % 3 else b"ill")
                server.routes[f"/{number}"] = reply(body, Content_Type="text/html")
            async with stored(config) as store:
                await store.add([NewPage(url) for url in urls], at=1)
            statuses = [seen.status for seen in await visit_now(config, urls)]
            assert (statuses.count("broken"), statuses.count("ok")) == (3, 6)
            assert (await told(config))[0] == [("broken", False)]

    asyncio.run(main())


def test_a_new_layout_is_an_alert_and_not_a_change(tmp_path: Path) -> None:
    async def main() -> None:
        config = settings(tmp_path)
        async with Server({}) as server:
            urls = [server.url(path) for path in PATHS]
            async with stored(config) as store:
                await store.add([NewPage(url, kind="offer") for url in urls], at=1)
            shelve(server, marked=True)
            assert {seen.status for seen in await visit_now(config, urls)} == {"ok"}
            assert await told(config) == ([], 4)
            shelve(server, marked=False)
            lost = await visit_now(config, urls)
            assert {seen.status for seen in lost} == {"lost"}
            assert [seen.value for seen in lost] == [f"{n}9.9 EUR" for n in range(1, 5)], "kept"
            assert await told(config) == ([("layout", False)], 4)
            shelve(server, marked=True)
            assert {seen.status for seen in await visit_now(config, urls)} == {"ok"}
            assert await told(config) == ([("layout", True)], 4)

    asyncio.run(main())
