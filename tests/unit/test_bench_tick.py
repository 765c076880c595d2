"""The bench of ticks at a small size: every figure is there, and a model takes over."""

from __future__ import annotations

import math

from salticus.lab.bench.tick import bench


def test_every_figure_of_a_tick_is_measured() -> None:
    (row,) = bench(sizes=(500,))
    assert row["pages"] == 500
    assert row["visits"] > 0
    times = [row[name] for name in ("plan s", "first s", "save s", "restart s", "model s")]
    stalls = [row[name] for name in ("stall ms", "later ms", "model ms")]
    assert all(math.isfinite(figure) and figure >= 0 for figure in (*times, *stalls))
