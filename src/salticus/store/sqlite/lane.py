"""A thread with a connection of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

from salticus.store.sqlite.database import explained

P = ParamSpec("P")
T = TypeVar("T")


class Lane:
    """Runs what it is given one after the other, in the order given, off the event loop.

    Whatever SQLite complains of is raised as StoreError.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="salticus-store")

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The answer of `work` once its turn has come."""

        def explain() -> T:
            with explained(self.path):
                return work(*args, **kwargs)

        return await asyncio.get_running_loop().run_in_executor(self._thread, explain)

    def close(self) -> None:
        """Let what was given end, and the thread with it."""
        self._thread.shutdown()
