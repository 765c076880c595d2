"""What became of the lines of a file of clicks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from salticus.signals.clicks import BAD, IDLE
from salticus.types import Mark

SHOWN = 10  # unknown pages that are named
_HELD = 1_000  # unknown pages that are counted


@dataclass(slots=True)
class LineTally:
    """Every line is counted once: ``lines == counted + unknown + those left out``.

    `clicks` and `impressions` are what the lines of known pages added; what they would have added
    beyond the cap for one hour of a page is `capped_clicks` and `capped_impressions`. A header and
    blanks at the top are no lines. `before` lines were counted by an `earlier` import of a file
    that begins so, and are not among `lines` either.
    """

    file: str
    format: str = ""
    lines: int = 0
    before: int = 0
    earlier: Mark | None = None
    counted: int = 0
    unknown: int = 0
    clicks: int = 0
    impressions: int = 0
    capped_clicks: int = 0
    capped_impressions: int = 0
    left: dict[str, tuple[int, int]] = field(default_factory=dict)
    strangers: Frequent = field(default_factory=lambda: Frequent(_HELD))

    def leave(self, reason: str, number: int) -> None:
        """Count a line that does not count; the first of its kind is remembered."""
        lines, first = self.left.get(reason, (0, number))
        self.left[reason] = lines + 1, first

    @property
    def read(self) -> int:
        """Lines that make sense, whether they count or not."""
        bad = sum(self.left[reason][0] for reason in self.left if reason in BAD)
        return self.lines - bad - self.left.get("blank", (0, 0))[0]

    @property
    def first_bad(self) -> tuple[int, str]:
        """The first line that makes no sense, and why; (0, "") if there is none."""
        bad = [(first, BAD[reason]) for reason, (_, first) in self.left.items() if reason in BAD]
        return min(bad, default=(0, ""))

    def as_json(self) -> dict[str, Any]:
        """All of it, for machines."""
        return {
            "file": self.file,
            "format": self.format,
            "lines": self.lines,
            "counted_before": self.before,
            "counted": self.counted,
            "clicks": self.clicks,
            "impressions": self.impressions,
            "capped_clicks": self.capped_clicks,
            "capped_impressions": self.capped_impressions,
            "left_out": {
                reason: {"lines": lines, "first_line": first}
                for reason, (lines, first) in self.left.items()
            },
            "unknown": self.unknown,
            "unknown_pages": self.strangers.distinct,
            "most_unknown": [
                {"url": url, "lines": lines} for url, lines in self.strangers.top(SHOWN)
            ],
        }

    def as_facts(self) -> dict[str, Any]:
        """The same for people, without what did not happen."""
        pages = self.strangers.distinct
        told = f"more than {_HELD:,}" if pages is None else f"{pages:,}"
        facts = {
            "format": self.format,
            "lines": self.lines,
            "counted before": self.before or None,
            "counted": self.counted,
            "clicks": self.clicks,
            "impressions": self.impressions,
            "clicks over the cap": self.capped_clicks or None,
            "impressions over the cap": self.capped_impressions or None,
            "of unknown pages": f"{self.unknown:,} (different: {told})" if self.unknown else None,
        }
        for reason, words in (BAD | IDLE).items():
            if reason in self.left:
                lines, first = self.left[reason]
                facts[words] = f"{lines:,} (first in line {first:,})"
        return {name: fact for name, fact in facts.items() if fact is not None}


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
