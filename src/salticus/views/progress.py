"""How a crawl is going, while it goes."""

from __future__ import annotations

import sys
import time
from typing import Self

import numpy as np

from salticus.types import CHANGED, Outcomes, Status


class Progress:
    """Counts outcomes and, on a terminal, shows one line that is kept up to date."""

    def __init__(self, *, show: bool | None = None) -> None:
        self.show = sys.stderr.isatty() if show is None else show
        self.visits = self.changes = self.failures = self.dropped = 0
        self._start = time.monotonic()
        self._shown = 0.0

    def learn(self, outcomes: Outcomes) -> None:
        made = outcomes.take(outcomes.made)
        self.visits += len(made)
        self.dropped += len(outcomes) - len(made)
        self.changes += int(np.count_nonzero(made.changed == CHANGED))
        self.failures += int(np.count_nonzero(made.status > Status.NOT_MODIFIED))
        if self.show and time.monotonic() - self._shown > 0.2:
            self._draw()

    def _draw(self) -> None:
        self._shown = time.monotonic()
        rate = self.visits / max(1e-9, self._shown - self._start)
        sys.stderr.write(
            f"\r{self.visits:,} visits, {self.changes:,} changes, {self.failures:,} failed, "
            f"{rate:,.1f}/s "
        )
        sys.stderr.flush()

    def tally(self) -> dict[str, float]:
        """All counts, and the seconds they took."""
        return {
            "visits": self.visits,
            "changes": self.changes,
            "failures": self.failures,
            "dropped": self.dropped,
            "seconds": round(time.monotonic() - self._start, 1),
        }

    def __enter__(self) -> Self:
        self._start = time.monotonic()
        return self

    def __exit__(self, *unused: object) -> None:
        if self.show:
            self._draw()
            sys.stderr.write("\n")
