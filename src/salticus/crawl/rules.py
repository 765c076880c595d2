"""What the settings say of when pages are visited, as columns: intervals, hours, importance."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from salticus.config import Rule
from salticus.types import Bools, Floats, Ints, Tick

_DAY = timedelta(days=1)


class RuleColumns:
    """The rules by number; -1 stands for pages without a rule.

    >>> columns = RuleColumns([Rule("*", interval=_DAY / 4)])
    >>> columns.interval(np.array([0, -1]))
    array([0.25,  nan])
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = rules

    def interval(self, rule: Ints) -> Floats:
        """Fixed intervals in days, NaN = none."""
        return self._column(rule, [r.interval and r.interval / _DAY for r in self.rules], np.nan)

    def max_interval(self, rule: Ints, otherwise: float) -> Floats:
        """Maximum intervals in days, `otherwise` where the rule has none."""
        spans = [r.max_interval and r.max_interval / _DAY for r in self.rules]
        return self._column(rule, spans, otherwise)

    def min_interval(self, rule: Ints) -> Floats:
        """Minimum intervals in days, 0 = none."""
        spans = [r.min_interval and r.min_interval / _DAY for r in self.rules]
        return self._column(rule, spans, 0.0)

    def importance(self, rule: Ints) -> Floats:
        """The factors on demand, 1 where the rule has none."""
        return self._column(rule, [r.importance for r in self.rules], 1.0)

    def paused(self, rule: Ints) -> Bools:
        """Which pages are not to be visited."""
        return self._column(rule, [r.pause for r in self.rules], False)

    def open(self, rule: Ints, tick: Tick) -> Bools:
        """Which pages may be visited at any moment of the tick.

        A page is not visited in a tick that begins before its hours do or ends after them: so it
        need not be known when in the tick its turn comes.
        """
        hours = [r.hours is None or r.hours.spans(tick.start, tick.end) for r in self.rules]
        return self._column(rule, hours, True)

    def _column(self, rule: Ints, values: Sequence[Any], otherwise: Any) -> NDArray[Any]:
        """The value of each page's rule."""
        given = [otherwise if value is None else value for value in values]
        return np.array([*given, otherwise])[rule]
