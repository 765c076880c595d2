"""The most frequent of many names, in bounded memory."""

from __future__ import annotations

from collections.abc import Mapping


class Frequent:
    """Counts names, but holds `size` of them at most.

    When there are more, the least frequent go, and what the first that went had is taken from all
    that stay (Misra & Gries 1982; merged as in Agarwal et al. 2012). Law: no count is too high, and
    none is too low by more than total / (size + 1).

    >>> seen = Frequent(2)
    >>> seen.add({"a": 5, "b": 1, "c": 3})
    >>> seen.top(9), seen.distinct
    ([('a', 4), ('c', 2)], None)
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.counts: dict[str, int] = {}
        self._whole = True

    @property
    def distinct(self) -> int | None:
        """How many names there were; None if they were too many to tell."""
        return len(self.counts) if self._whole else None

    def add(self, counts: Mapping[str, int]) -> None:
        """Count some names."""
        for name, count in counts.items():
            self.counts[name] = self.counts.get(name, 0) + count
        if len(self.counts) > self.size:
            self._whole = False
            ordered = self.top(len(self.counts))
            least = ordered[self.size][1]
            self.counts = {n: count - least for n, count in ordered[: self.size] if count > least}

    def top(self, most: int) -> list[tuple[str, int]]:
        """The most frequent names with their counts; of equals the first by name."""
        return sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))[:most]
