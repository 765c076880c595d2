"""What Salticus costs, beside bare loops and others: the benches, by name.

Each contest runs in a process of its own, and answers with what it measured.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from salticus import plugins
from salticus.errors import SalticusError

BENCHES = {
    "fetch": "salticus.lab.bench.fetch:bench",
    "learn": "salticus.lab.bench.learn:bench",
    "links": "salticus.lab.bench.links:bench",
    "models": "salticus.lab.bench.models:bench",
    "policies": "salticus.lab.bench.policies:bench",
    "simulate": "salticus.lab.bench.replay:bench",
    "tick": "salticus.lab.bench.tick:bench",
}

Told = Callable[[str], None]


def run_bench(name: str, told: Told, **chosen: Any) -> list[dict[str, Any]]:
    """The rows of a bench, with its own choice of what is None."""
    bench = plugins.load("bench", name, BENCHES)
    given = {key: value for key, value in chosen.items() if value is not None}
    return list(bench(told=told, **given))


def measured(name: str, module: str, *words: object, **environment: str) -> dict[str, float]:
    """What a module of the bench answers, started with these words; SalticusError if it fails."""
    command = [sys.executable, "-m", f"salticus.lab.bench.{module}", *map(str, words)]
    settings = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, check=False, env=settings)
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise SalticusError(f"{name}: {last}")
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=dict[str, float])


def answer(found: dict[str, Any]) -> None:
    """Tell the process that compares."""
    sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")


def peak() -> float:
    """Bytes, since the process began or `new_peak` was called."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def new_peak() -> float:
    """The peak of memory from now on, where the system lets it be set back."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak()
