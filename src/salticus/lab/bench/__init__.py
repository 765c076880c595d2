"""What Salticus costs, beside bare loops and others: the benches, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from salticus import plugins

BENCHES = {
    "fetch": "salticus.lab.bench.fetch:bench",
    "learn": "salticus.lab.bench.learn:bench",
    "policies": "salticus.lab.bench.policies:bench",
    "simulate": "salticus.lab.bench.replay:bench",
    "tick": "salticus.lab.bench.tick:bench",
}


def run_bench(name: str, told: Callable[[str], None], **chosen: Any) -> list[dict[str, Any]]:
    """The rows of a bench, with its own choice of what is None."""
    bench = plugins.load("bench", name, BENCHES)
    given = {key: value for key, value in chosen.items() if value is not None}
    return list(bench(told=told, **given))
