"""Where pages and what was learnt of them are kept. `open_store` is the only way in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from salticus import plugins
from salticus.config.file import split_url

if TYPE_CHECKING:
    from salticus.store.base import Store

BUILTIN = {
    "memory": "salticus.store.memory.store:MemoryStore",
    "sqlite": "salticus.store.sqlite.store:SqliteStore",
}


async def open_store(url: str, *, keep_content: bool = True, create: bool = True) -> Store:
    """The store at a URL: ``sqlite:PATH``, a plain path, ``memory:NAME``, ``file.py:Class:PLACE``.

    What stands before the colon names the kind of store, as for other parts: a built-in name, an
    entry point in the group ``salticus.store``, ``file.py:Class`` or ``module:Class``. `create` and
    `keep_content` are those of `Store.open`.

    >>> import asyncio
    >>> asyncio.run(open_store("nosuch:place"))
    Traceback (most recent call last):
    salticus.errors.PluginError: no store is called 'nosuch'; known: memory, sqlite
    """
    kind, place = split_url(url)
    made: type[Store] = plugins.load("store", kind, BUILTIN)
    return await made.open(place, keep_content=keep_content, create=create)
