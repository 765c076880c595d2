"""Processor time in a measure that a slow or busy machine does not change."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def within(millions: float) -> Iterator[None]:
    """What is done meanwhile takes no longer than counting so many millions (20 to 50 ms each).

    Garbage waits: to look through all that other tests have loaded may take a second.
    """
    unit = _count_a_million()
    gc.disable()
    try:
        start = time.process_time()
        yield
        spent = time.process_time() - start
    finally:
        gc.enable()
    unit = max(unit, _count_a_million())
    assert spent < millions * unit, f"as long as counting {spent / unit:.2f} millions"


def _count_a_million() -> float:
    start = time.process_time()
    for _ in range(1_000_000):
        pass
    return time.process_time() - start
