"""Name resolution in threads of its own."""

import asyncio
import socket
import threading
from typing import Any

import pytest

from salticus.fetch.address import ThreadsResolver

DEAD = threading.Event()  # never set: lookups that wait for it wait until they give up
BURIED = threading.Event()  # set when nobody waits for these names any more
FOUND = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", 80))]


def lookup(host: str, port: int, **options: Any) -> list[Any]:
    if host.startswith("dead"):
        DEAD.wait(3.0)
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")
    if host.startswith("buried"):
        BURIED.wait(600.0)
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")
    if host.startswith("bad"):
        raise UnicodeError("label too long")
    if host.startswith("six"):
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("2606:4700::1", port, 0, 0)),
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fe80::1", port, 0, 3)),
            (socket.AF_UNIX, socket.SOCK_STREAM, 0, "", "somewhere"),
        ]
    return FOUND


def test_names_become_addresses_and_zones_are_kept() -> None:
    async def main() -> None:
        resolver = ThreadsResolver(2, lookup)
        (found,) = await resolver.resolve("live", 80)
        assert (found["hostname"], found["host"], found["port"]) == ("live", "8.8.8.8", 80)
        six = [entry["host"] for entry in await resolver.resolve("six", 443)]
        assert six == ["2606:4700::1", "fe80::1%3"]
        await resolver.close()

    asyncio.run(main())


@pytest.mark.parametrize("name", ["bad", "dead"])
def test_what_fails_is_an_os_error(name: str) -> None:
    async def main() -> None:
        resolver = ThreadsResolver(2, lookup)
        with pytest.raises(OSError, match="no"):
            await resolver.resolve(name, 80)
        await resolver.close()

    asyncio.run(main())


def test_dead_names_do_not_hold_up_the_living() -> None:
    async def main() -> None:
        resolver = ThreadsResolver(64, lookup)
        dead = [asyncio.create_task(resolver.resolve(f"buried{i}", 80)) for i in range(60)]
        await asyncio.sleep(0)
        living = (resolver.resolve(f"live{i}", 80) for i in range(200))
        await asyncio.wait_for(asyncio.gather(*living), timeout=500)
        assert not any(task.done() for task in dead), "sooner than the dead give up"
        BURIED.set()
        await asyncio.gather(*dead, return_exceptions=True)
        await resolver.close()

    asyncio.run(main())


def test_there_are_no_more_threads_than_lookups_need() -> None:
    async def main() -> None:
        before = threading.active_count()
        idle = [thread.name for thread in threading.enumerate()].count("salticus-dns")
        resolver = ThreadsResolver(64, lookup)
        for _ in range(50):
            await resolver.resolve("live", 80)
        assert threading.active_count() - before <= 2
        await asyncio.gather(*(resolver.resolve(f"live{i}", 80) for i in range(500)))
        names = [thread.name for thread in threading.enumerate()]
        assert names.count("salticus-dns") - idle <= 64
        await resolver.close()

    asyncio.run(main())


def test_a_lookup_that_outlives_its_loop_does_no_harm() -> None:
    async def main() -> None:
        resolver = ThreadsResolver(2, lookup)
        task = asyncio.create_task(resolver.resolve("dead", 80))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    assert all(t.daemon for t in threading.enumerate() if t.name == "salticus-dns")
