"""Sites that name more than anyone wants: what is stored, told and spent stays within bounds."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from salticus.checks.fetch_server import Server, reply
from salticus.config import Config, parse
from salticus.crawl.assembly import crawler
from salticus.crawl.manual import visit_now
from salticus.crawl.opening import stored
from salticus.types import NewPage

CHILDREN = 60
MOST_NAMING = 8  # sources from which links to a page are kept


def settings(folder: Path, **said: Any) -> Config:
    fetch = {"contact": "a@example.org", "delay": 0, "allow_private": ["127.0.0.1"]}
    return parse({"store": str(folder / "s.db"), "fetch": fetch, "explore": 0, **said})


def index(server: Server, children: int = CHILDREN) -> str:
    """A sitemap index whose children all answer with that same index; its URL."""
    named = (f"<sitemap><loc>{server.url(f'/{n}.xml')}</loc></sitemap>" for n in range(children))
    body = f"<sitemapindex>{''.join(named)}</sitemapindex>".encode()
    for path in ("/index.xml", *(f"/{n}.xml" for n in range(children))):
        server.routes[path] = reply(body, Content_Type="application/xml")
    return server.url("/index.xml")


async def added(config: Config, url: str) -> None:
    async with stored(config) as store:
        await store.add([NewPage(url, kind="source")], at=1)


async def links(config: Config) -> int:
    async with stored(config) as store:
        return len(list(store.scan("links")))


def test_children_that_answer_alike_add_few_links(tmp_path: Path) -> None:
    async def main() -> None:
        config = settings(tmp_path)
        async with Server({}) as server:
            url = index(server)
            await added(config, url)
            assert len(await visit_now(config, [url])) == CHILDREN + 1
        assert await links(config) <= MOST_NAMING * CHILDREN

    asyncio.run(main())


def test_sources_that_sources_name_are_read_on_the_budget(tmp_path: Path) -> None:
    async def main() -> None:
        config = settings(tmp_path, budget=20)
        async with Server({}) as server:
            url = index(server)
            await added(config, url)
            assert len(await visit_now(config, [url])) == 21
            assert len(await visit_now(config, [url])) == 1, "nothing is left of the day's budget"
            async with crawler(config, once=True) as loop:
                await loop.run(once=True)
        async with stored(config) as store:
            purposes = [row["purpose"] for row in store.scan("visits")]
        assert sorted(purposes) == ["discover"] * 20 + ["manual"] * 2

    asyncio.run(main())


def test_a_flood_is_an_alert_with_advice(tmp_path: Path) -> None:
    async def main() -> None:
        config = settings(tmp_path, caps={"source_pages": 10, "budget_pages": 5})
        async with Server({}) as server:
            url = index(server)
            await added(config, url)
            await visit_now(config, [url])
        async with stored(config) as store:
            alerts = {alert.host: alert.fault for alert in await store.alerts()}
            assert {alert.kind for alert in await store.alerts()} == {"flood"}
            assert len((await store.table()).ids) == 11
        assert alerts["*"] == "10 pages were found; caps.budget_pages = 5 count for the budget"
        del alerts["*"]
        (fault,) = alerts.values()
        assert fault.endswith("of its entries were left out by caps.source_pages = 10")

    asyncio.run(main())


def test_found_pages_raise_a_budget_in_per_cent_no_further_than_the_cap(tmp_path: Path) -> None:
    async def main() -> None:
        config = settings(tmp_path, budget="100%", caps={"budget_pages": 5})
        async with Server({}) as server:
            url = index(server)
            await added(config, url)
            await visit_now(config, [url])
            async with crawler(config, once=True) as loop:
                await loop.run(once=True)
        async with stored(config) as store:
            visits = [row for row in store.scan("visits") if row["purpose"] != "manual"]
        assert len(visits) == 6, "the page added by hand, and five of those found"

    asyncio.run(main())
