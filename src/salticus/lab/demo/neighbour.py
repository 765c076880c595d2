"""A mall in a process of its own, as a crawler meets the web."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from salticus.errors import SalticusError
from salticus.lab.worlds.mall.folder import paths


@asynccontextmanager
async def neighbour_mall(folder: Path, options: Sequence[str]) -> AsyncIterator[None]:
    """Run `salticus mall FOLDER` with options until the end of the block."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "salticus", "mall", str(folder), *options, stdout=subprocess.DEVNULL
    )
    try:
        await _opened(process, paths(folder)["urls"])
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _opened(process: asyncio.subprocess.Process, sign: Path) -> None:
    """Until the mall is open; it writes its addresses last."""
    while not await asyncio.to_thread(sign.exists):
        if process.returncode is not None:
            raise SalticusError(f"the mall could not be opened (exit code {process.returncode})")
        await asyncio.sleep(0.05)
