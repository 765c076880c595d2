"""`changedetection`: the data folder of changedetection.io.

Each watch has a folder, named by its id, whose history.txt has a line ``epoch,snapshot`` for the
first check and for every one that found a change. What the watches are stands in url-watches.json,
in later versions in a watch.json beside each history. Checks that found nothing are not kept, but
for the last one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import polars as pl

from salticus.errors import InputError
from salticus.exchange.convert.base import ConvertOptions, File, Problem, SourceRows, the_only
from salticus.exchange.convert.scan import MARK

SETTINGS = ("changedetection.json", "url-watches.json")
_USUAL = timedelta(hours=3)  # what it checks by when nothing is set
_LATEST = 10**11  # seconds since 1970; the histories have no more digits
_MOST = 10**5  # of any unit in an interval
_MD5 = re.compile(r"([0-9a-f]{32})\.\w+(?:\.br)?")

Row = tuple[Any, ...]
T = TypeVar("T")


class WatchedPage(msgspec.Struct, frozen=True):
    """A watched page."""

    url: str = ""
    title: str | None = None
    tag: str | None = None
    tags: list[str] = []
    last_checked: float = 0
    last_error: Any = None
    time_between_check: dict[str, int | None] | None = None
    time_between_check_use_default: bool = False


class Tag(msgspec.Struct, frozen=True):
    """A label of watches."""

    title: str | None = None


class Application(msgspec.Struct, frozen=True):
    """What concerns all watches."""

    tags: dict[str, Tag] | None = None


class CheckDefaults(msgspec.Struct, frozen=True):
    """How often is checked where a watch does not say."""

    time_between_check: dict[str, int | None] | None = None


class Settings(msgspec.Struct, frozen=True):
    """The part of the settings that matters here."""

    requests: CheckDefaults = CheckDefaults()
    application: Application = Application()


class Everything(msgspec.Struct, frozen=True):
    """The file of settings; earlier versions have the watches in it."""

    watching: dict[str, WatchedPage] = {}
    settings: Settings = Settings()


def read(sources: Sequence[Path], options: ConvertOptions) -> SourceRows:
    """The histories of all watches; their longest check interval is the resolution."""
    folder = the_only(sources, "data folder of changedetection.io")
    settings = _settings(folder)
    watches = {**settings.watching, **_beside(folder, "watch.json", WatchedPage)}
    tags = {**(settings.settings.application.tags or {}), **_beside(folder, "tag.json", Tag)}
    files, rows = list[File](), list[Row]()
    for name, watch in sorted(watches.items()):
        page = (watch.url or None, watch.title or None, _tags(watch, tags))
        path = folder / name / "history.txt"
        rows += [(len(files), *page, *seen) for seen in _history(path, watch)]
        files.append(File(path, {"url": "url", "time": "epoch", "value": "snapshot"}))
    schema = {
        "file": pl.Int32, "url": pl.String, MARK + "title": pl.String, MARK + "tags": pl.String,
        "line": pl.UInt32, "at": pl.Int64, "value": pl.String, "problem": pl.Int8,
        "shown": pl.String,
    }  # fmt: skip
    frame = pl.DataFrame(rows, schema=schema, orient="row").lazy()
    return SourceRows(
        files=files,
        rows=frame.with_columns((pl.col("at") * 1_000_000).cast(pl.Datetime("us", "UTC"))),
        source=folder.name,
        values_are="digests",
        resolution=_longest(watches, settings.settings.requests),
        caveats="checks that found nothing are not kept, but for the last: a change lies at most "
        "one check interval before the visit that found it",
    )


def _settings(folder: Path) -> Everything:
    for name in SETTINGS:
        if (folder / name).is_file():
            return _json(folder / name, Everything)
    raise InputError(f"{folder}: neither {SETTINGS[0]} nor {SETTINGS[1]} is in it")


def _beside(folder: Path, name: str, kind: type[T]) -> dict[str, T]:
    """What stands in files of that name, by the folder that each is in."""
    return {path.parent.name: _json(path, kind) for path in sorted(folder.glob(f"*/{name}"))}


def _json(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind, strict=False)
    except (OSError, UnicodeDecodeError, msgspec.MsgspecError, RecursionError) as error:
        raise InputError(f"{path}: not as changedetection.io writes it ({error})") from error


def _tags(watch: WatchedPage, tags: dict[str, Tag]) -> str | None:
    known = [tags.get(name, Tag()).title or name for name in watch.tags]
    return ",".join(known) or watch.tag or None


def _history(path: Path, watch: WatchedPage) -> Iterator[Row]:
    """Line, time, digest, problem and text of every check that is known."""
    text = path.read_text("utf-8", "replace") if _is_file(path) else ""
    last, digest = 0, None
    for number, line in enumerate(text.splitlines(), 1):
        epoch, _, snapshot = (part.strip() for part in line.partition(","))
        if not line.strip():
            continue
        if not re.fullmatch(r"[0-9]{1,11}", epoch):
            yield number, None, None, Problem.BAD_TIME.value, line
        elif not snapshot:
            yield number, None, None, Problem.NO_VALUE.value, line
        else:
            last, digest = int(epoch), _digest(path.parent / Path(snapshot).name)
            yield number, last, digest, None, None
    seen_later = last + 1 <= watch.last_checked < _LATEST and not watch.last_error
    if digest is not None and seen_later:
        yield 0, int(watch.last_checked), digest, None, None


def _digest(snapshot: Path) -> str:
    """Snapshots are named by their MD5; older ones are not, and must be read."""
    if found := _MD5.fullmatch(snapshot.name):
        return found[1]
    if _is_file(snapshot):
        return blake2b(snapshot.read_bytes(), digest_size=12).hexdigest()
    return snapshot.name


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no file can have
        return False


def _longest(watches: dict[str, WatchedPage], requests: CheckDefaults) -> timedelta:
    """The longest check interval of any watch."""
    usual = _interval(requests.time_between_check) or _USUAL
    own = (
        None if watch.time_between_check_use_default else _interval(watch.time_between_check)
        for watch in watches.values()
    )
    return max((interval or usual for interval in own), default=usual)


def _interval(parts: dict[str, int | None] | None) -> timedelta:
    units = ("weeks", "days", "hours", "minutes", "seconds")
    numbers = {unit: (parts or {}).get(unit) or 0 for unit in units}
    return timedelta(**{unit: max(0, min(n, _MOST)) for unit, n in numbers.items()})
