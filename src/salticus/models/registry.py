"""The models of a crawl: numbered folders, which of them serves, and how it came about.

::

    models/0001/          a model as `salticus train` writes it, and judgement.json
    models/serving.json   which one serves, which served before, which are broken
    models/history.jsonl  what happened, a line each

Number 0 is what serves without a model. Nothing here opens a model.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from salticus.errors import InputError

NONE = 0
"""The number of no model: the predictor of the cold start serves."""

YOUNG = timedelta(days=14)
"""Visits of so long a time are needed before a model is trained."""

JUDGEMENT = "judgement.json"
_POINTER, _HISTORY, _LOCK = "serving.json", "history.jsonl", ".lock"
_T = TypeVar("_T")
_TOLD = 200  # characters of a fault that are kept


class Pointer(msgspec.Struct, frozen=True):
    """Which model serves, `since` when (ISO 8601), and whether by the user's word (`pinned`).

    `previous` are those that served before, the latest last; `broken` says by number what is
    wrong with models that could not serve.
    """

    serving: int = NONE
    since: str | None = None
    pinned: bool = False
    previous: tuple[int, ...] = ()
    broken: dict[str, str] = {}

    def chain(self) -> list[int]:
        """Who is to serve; if that one cannot, the next, and at last no model.

        >>> Pointer(serving=3, previous=(1, 2), broken={"3": "no such folder"}).chain()
        [2, 1, 0]
        """
        if self.serving == NONE:
            return [NONE]
        wanted = dict.fromkeys((self.serving, *reversed(self.previous)))
        return [n for n in wanted if n != NONE and str(n) not in self.broken] + [NONE]


class Event(msgspec.Struct, frozen=True):
    """What happened to a model: promoted, kept, pinned, unpinned, rolled back, took over, …"""

    at: str
    what: str
    version: int
    why: str = ""


class Judgement(msgspec.Struct, frozen=True):
    """What a model showed on the latest visits, beside the one that served then.

    `span` is the time from which it learnt, `judged` that in which it was judged, on so many
    `visits` to explore or of the panel. Figures are log loss, AUC and calibration error; None
    where there were too few visits. `promoted` tells whether it was the better one, and `why`.
    """

    at: str
    span: tuple[str, str]
    judged: tuple[str, str]
    visits: int
    incumbent: int
    candidate_figures: dict[str, float | None]
    incumbent_figures: dict[str, float | None]
    promoted: bool
    why: str


class Registry:
    """A folder of models; it need not be there yet. Changes are whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, version: int) -> Path:
        return self.folder / f"{version:04d}"

    def versions(self) -> list[int]:
        """The models that there are, oldest first."""
        if not self.folder.is_dir():
            return []
        names = (each.name for each in self.folder.iterdir() if each.is_dir())
        return sorted(int(name) for name in names if name.isascii() and name.isdigit())

    def following(self) -> int:
        """The number of the next model."""
        told = [event.version for event in self.history()]
        return max([*self.versions(), *told, NONE]) + 1

    def pointer(self) -> Pointer:
        """Who serves; InputError if that cannot be read."""
        return _read(self.folder / _POINTER, Pointer) or Pointer()

    def judgement(self, version: int) -> Judgement | None:
        """What a version showed; None if it was never judged."""
        return _read(self.path(version) / JUDGEMENT, Judgement)

    def history(self) -> list[Event]:
        """What happened, oldest first; lines that cannot be read are left out."""
        path = self.folder / _HISTORY
        events = []
        for line in path.read_bytes().splitlines() if path.is_file() else []:
            try:
                events.append(msgspec.json.decode(line, type=Event))
            except msgspec.MsgspecError:  # cut short by a crash
                continue
        return events

    # ------------------------------------------------------------------------------------ changes

    def judge(self, version: int, judgement: Judgement) -> None:
        """Keep what a version showed; if it was the better one, it serves unless one is pinned."""
        _write(self.path(version) / JUDGEMENT, judgement)
        with self._changing() as pointer:
            promoted = judgement.promoted and not pointer.pinned
            why = judgement.why
            if promoted:
                self._point(_serving(pointer, version, judgement.at))
            elif judgement.promoted:
                why += f"; but {pointer.serving} is pinned"
            self.note(judgement.at, "promoted" if promoted else "kept", version, why)

    def pin(self, version: int, at: datetime) -> None:
        """Let a version serve, whatever is trained later; 0 = none."""
        if version != NONE and not self.path(version).is_dir():
            raise InputError(f"{self.folder}: there is no model {version}; see `salticus models`")
        with self._changing() as pointer:
            rest = {n: why for n, why in pointer.broken.items() if n != str(version)}
            self._point(_serving(pointer, version, _iso(at)), pinned=True, broken=rest)
            self.note(at, "pinned", version)

    def unpin(self, at: datetime) -> None:
        """Let better models take over again."""
        with self._changing() as pointer:
            self._point(pointer, pinned=False)
            self.note(at, "unpinned", pointer.serving)

    def roll_back(self, at: datetime) -> int:
        """Let the one serve that served before; its number."""
        with self._changing() as pointer:
            if pointer.pinned:
                raise InputError(f"model {pointer.serving} is pinned: `salticus models unpin`")
            if not pointer.previous:
                raise InputError(f"{self.folder}: nothing served before {pointer.serving}")
            *rest, version = pointer.previous
            self._point(pointer, serving=version, since=_iso(at), previous=tuple(rest))
            self.note(at, "rolled back", version, f"from {pointer.serving}")
        return version

    def spoil(self, version: int, why: str, at: datetime) -> None:
        """A version cannot serve: it is passed over from now on."""
        with self._changing() as pointer:
            self._point(pointer, broken={**pointer.broken, str(version): why[:_TOLD]})
            self.note(at, "broken", version, why[:_TOLD])

    def note(self, at: datetime | str, what: str, version: int, why: str = "") -> None:
        """Write a line of history."""
        when = at if isinstance(at, str) else _iso(at)
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / _HISTORY).open("ab") as file:
            file.write(msgspec.json.encode(Event(when, what, version, why)) + b"\n")

    @contextmanager
    def _changing(self) -> Iterator[Pointer]:
        """The pointer, while nobody else changes it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / _LOCK).open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield self.pointer()

    def _point(self, pointer: Pointer, **changes: Any) -> None:
        _write(self.folder / _POINTER, msgspec.structs.replace(pointer, **changes))


def _serving(pointer: Pointer, version: int, at: str) -> Pointer:
    if version == pointer.serving:
        return pointer
    before = (*(n for n in pointer.previous if n != version), pointer.serving)
    return msgspec.structs.replace(pointer, serving=version, since=at, previous=before)


def _iso(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _write(path: Path, what: Any) -> None:
    """Write a file whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_bytes(msgspec.json.format(msgspec.json.encode(what), indent=2) + b"\n")
    part.replace(path)


def _read(path: Path, kind: type[_T]) -> _T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (msgspec.MsgspecError, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: damaged: {error}; remove it, or write it anew") from error
