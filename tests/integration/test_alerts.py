"""A shop with a new layout: an alert, no change, and the end of the alert when it is mended."""

from __future__ import annotations

import asyncio
from pathlib import Path

from salticus.checks.fetch_server import Server, reply
from salticus.config import Config, parse
from salticus.crawl.opening import stored
from salticus.crawl.visiting import visit_now
from salticus.types import NewPage

OFFER = """<title>Tent {0}</title><h1>Tent {0}</h1><script type="application/ld+json">
{{"@type": "Product", "name": "Tent {0}", "offers": {{"price": "{0}9.90", "priceCurrency": "EUR"}}}}
</script>"""
PATHS = [f"/{number}" for number in range(1, 5)]


def page(number: int, *, marked: bool) -> bytes:
    body = OFFER.format(number)
    return (body if marked else body.partition("<script")[0]).encode()


def shelve(server: Server, *, marked: bool) -> None:
    for number, path in enumerate(PATHS, 1):
        body = page(number, marked=marked)
        server.routes[path] = reply(body, Content_Type="text/html")


def settings(folder: Path) -> Config:
    fetch = {"contact": "a@example.org", "delay": 0, "allow_private": ["127.0.0.1"]}
    return parse({"store": str(folder / "s.db"), "fetch": fetch})


async def told(config: Config) -> tuple[list[tuple[str, bool]], int]:
    """The alerts (kind, over) so far, and how many new values."""
    async with stored(config) as store:
        alerts = await store.alerts(past=True)
        return [(a.kind, a.until is not None) for a in alerts], await store.last_change()


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
