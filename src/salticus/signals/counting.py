"""Files of clicks, taken in as streams: chunk by chunk, in bounded memory, and each only once."""

from __future__ import annotations

import functools
import io
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, cast

import msgspec

from salticus.errors import InputError
from salticus.signals.clicks import (
    AHEAD,
    BAD,
    IDLE,
    AccessLogReader,
    JsonLines,
    Left,
    LineReader,
    Table,
    looks_like,
)
from salticus.signals.opened import Lines, readable
from salticus.types import Count, Counted, Mark
from salticus.types.dates import HOUR_US
from salticus.urls import canonical

CHUNK = 50_000  # lines that are stored together
CHUNK_BYTES = 16_000_000  # of them
SHOWN = 10  # unknown pages that are named
_HELD = 1_000  # unknown pages that are counted

_EXPECTED = (
    "a table with a header (url, at, clicks, impressions), JSON objects with these keys, or lines "
    "of an access log"
)


class ClickStore(Protocol):
    """The part of a store that counts; see `Store.take` and `Store.marks`."""

    async def take(self, rows: Sequence[Count], mark: Mark | None = None) -> Counted: ...

    async def marks(self) -> list[Mark]: ...


@dataclass(frozen=True, slots=True)
class ClickFileOptions:
    """How lines are read; `now` is in µs.

    `format` is csv, jsonl, access, or None if the first line is to tell. `click` and `base` tell
    which page a line of an access log is about; `base` is also put before addresses that begin with
    a slash. With `again`, what was counted before is counted once more.
    """

    now: int
    format: str | None = None
    click: re.Pattern[str] | None = None
    base: str | None = None
    again: bool = False
    chunk: int = CHUNK


class ClickFile:
    """A file of clicks; ``-`` is standard input, which can be read only once."""

    def __init__(self, file: str) -> None:
        self.is_stdin = file == "-"
        self.path = Path(file)
        self.name = "standard input" if self.is_stdin else file

    @contextmanager
    def open(self) -> Iterator[io.BufferedReader]:
        """Its bytes as they are; what goes wrong is an InputError with its name."""
        with readable(self.name):
            if self.is_stdin:
                yield cast(io.BufferedReader, sys.stdin.buffer)
                return
            with self.path.open("rb") as file:
                yield file

    @property
    def size(self) -> int:
        """In bytes; 0 if nobody knows."""
        with self.open():
            return 0 if self.is_stdin else self.path.stat().st_size


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
        strangers = self.strangers.top(SHOWN)
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
            "most_unknown": [{"url": url, "lines": lines} for url, lines in strangers],
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
        self.counts = Counter[str]()
        self._whole = True

    @property
    def distinct(self) -> int | None:
        """How many names there were; None if they were too many to tell."""
        return len(self.counts) if self._whole else None

    def add(self, counts: Mapping[str, int]) -> None:
        self.counts.update(counts)
        if len(self.counts) > self.size:
            self._whole = False
            ordered = self.top(len(self.counts))
            least = ordered[self.size][1]
            kept = {name: count - least for name, count in ordered[: self.size] if count > least}
            self.counts = Counter(kept)

    def top(self, most: int) -> list[tuple[str, int]]:
        """The most frequent names with their counts; of equals the first by name."""
        return sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))[:most]


async def take_in(
    store: ClickStore, file: ClickFile, terms: ClickFileOptions, progress: Callable[[int], None]
) -> LineTally:
    """Count what a file says, chunk by chunk, each with a mark of how far it goes.

    A file that begins like one that was counted is read from where that ended: so one that was
    broken off goes on, and a log that has grown is counted once. `progress` is told the bytes read.
    InputError if not a single line makes sense, or if the format is not known.
    """
    marks = [] if terms.again or file.is_stdin else await store.marks()
    last = None
    if marks:
        with file.open() as stream:
            last = Lines(stream).latest(marks)
    tally = LineTally(file.name)
    with file.open() as stream:
        lines = Lines(stream)
        rows = _Rows(lines, terms, tally)
        if last is not None:
            rows.skip_counted(last)
        for sums in rows.chunks():
            mark = msgspec.structs.replace(rows.mark, file=file.name, at=terms.now)
            await _keep(store, sums, None if file.is_stdin else mark, tally)
            progress(lines.place if file.is_stdin else stream.tell())
    number, why = tally.first_bad
    if number and not tally.read and not tally.before:
        raise InputError(
            f"{file.name}:{number}: {why}, and no line is better; expected {_EXPECTED}"
        )
    return tally


_Sums = dict[tuple[str, int], list[int]]  # (URL, hour) -> clicks, impressions, lines


async def _keep(store: ClickStore, sums: _Sums, mark: Mark | None, tally: LineTally) -> None:
    rows = [Count(url, at, clicks, more) for (url, at), (clicks, more, _) in sums.items()]
    kept = await store.take(rows, mark)
    unknown = dict.fromkeys(kept.unknown, 0)
    clicks = impressions = 0
    for (url, _), (some, more, lines) in sums.items():
        if url in unknown:
            unknown[url] += lines
            tally.unknown += lines
        else:
            clicks, impressions = clicks + some, impressions + more
            tally.counted += lines
    tally.strangers.add(unknown)
    tally.clicks += kept.clicks
    tally.impressions += kept.impressions
    tally.capped_clicks += clicks - kept.clicks
    tally.capped_impressions += impressions - kept.impressions


class _Rows:
    """The lines of a file as sums by page and hour, chunk by chunk."""

    def __init__(self, lines: Lines, terms: ClickFileOptions, tally: LineTally) -> None:
        self.lines = lines
        self.terms = terms
        self.tally = tally
        self.first = next((line for line in lines if line is None or line.strip()), b"")
        self.place = f"{tally.file}:{max(lines.number, 1)}"
        self.is_new = True
        self.was_left = False
        tally.format = terms.format or self._format()
        self.has_header = tally.format == "csv"
        self.reader = self._reader(tally.format)
        self._spelt = functools.lru_cache(maxsize=10_000)(canonical)

    def _format(self) -> str:
        first = self.first or b""
        if first.lstrip().startswith(b"{"):
            return "jsonl"
        if looks_like(first):
            return "access"
        if Table(first).known:
            return "csv"
        what = repr(first[:60].decode("utf-8", "replace")) if first else "empty"
        what = "too long for a line" if self.first is None else what
        raise InputError(f"{self.place}: {what}; expected {_EXPECTED}; see --format")

    def _reader(self, format: str) -> LineReader:
        if format == "jsonl":
            return JsonLines()
        if format == "access":
            if self.terms.click is None and self.terms.base is None:
                raise InputError(
                    f"{self.tally.file}: which requests of this access log are clicks? say "
                    "--click '/go?url={url}' if they go through your site, or --base URL if it is "
                    "the log of the pages' own site"
                )
            return AccessLogReader(self.terms.click)
        table = Table(self.first or b"")
        if not table.known:
            raise InputError(
                f"{self.place}: no header of a table with the columns url (or page) and at (or "
                "time, timestamp)"
            )
        return table

    def skip_counted(self, mark: Mark) -> None:
        """Pass over what was counted before."""
        self.lines.skip(mark.place)
        self.tally.before = self.lines.number - self.has_header
        self.tally.earlier = mark
        self.is_new = False

    @property
    def mark(self) -> Mark:
        """How far the lines were read; without a last one that was cut in the middle, as in a log
        to which a server is just writing."""
        cut = self.was_left and self.lines.whole is not None
        return (cut and self.lines.whole) or self.lines.mark

    def chunks(self) -> Iterator[_Sums]:
        """Sums of so many lines; what is left out goes to the tally."""
        held = [self.first] if self.is_new and self.first != b"" and not self.has_header else []
        rest = chain(held, self.lines)
        while self._fill(sums := _Sums(), rest):
            yield sums

    def _fill(self, sums: _Sums, lines: Iterable[bytes | None]) -> bool:
        """Read lines until there are enough for a chunk; False if there were none."""
        number, end = 0, self.lines.place + CHUNK_BYTES
        for line in lines:
            number += 1
            self.tally.lines += 1
            try:
                row = self._row(line)
            except Left as left:
                self.was_left = True
                self.tally.leave(left.reason, self.lines.number)
            else:
                self.was_left = False
                held = sums.setdefault((row.url, row.at // HOUR_US * HOUR_US), [0, 0, 0])
                held[0] += row.clicks
                held[1] += row.impressions
                held[2] += 1
            if number >= self.terms.chunk or self.lines.place >= end:
                break
        return number > 0

    def _row(self, line: bytes | None) -> Count:
        if line is None:
            raise Left("long")
        if not line.strip():
            raise Left("blank")
        row = self.reader.read(line)
        if row.at < 0:
            raise Left("early")
        if row.at > self.terms.now + AHEAD:
            raise Left("future")
        url = row.url
        if self.terms.base is not None and url.startswith("/"):
            url = self.terms.base.rstrip("/") + url
        try:
            return Count(self._spelt(url)[0], row.at, row.clicks, row.impressions)
        except InputError:
            raise Left("url") from None
