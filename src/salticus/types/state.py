"""Work on columns that several stages share; what a part keeps by page id, and how it is stored."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from salticus.types import DAY, Bools, Floats, Ints, Times

State = dict[str, NDArray[Any]]

_PIECE = 1 << 22  # bytes


@runtime_checkable
class Remembers(Protocol):
    """A part that has learnt something worth keeping over a restart.

    Law: after ``b.restore(a.state())`` the parts a and b decide alike.
    """

    def state(self) -> State: ...

    def restore(self, state: State) -> None: ...


class Keyed:
    """One float a page, kept while pages come, go and change places.

    >>> credit = Keyed()
    >>> credit.put(np.array([3, 5]), np.array([0.3, 0.5]))
    >>> credit.get(np.array([5, 9]), np.array([0.0, 0.9]))
    array([0.5, 0.9])
    """

    def __init__(self) -> None:
        self.ids = np.empty(0, dtype=np.int64)
        self.values = np.empty(0)

    def holds(self, ids: Ints) -> bool:
        """Whether exactly these are kept."""
        return ids is self.ids or np.array_equal(ids, self.ids)

    def get(self, ids: Ints, default: Floats) -> Floats:
        """The value of each id (ascending); `default` where none is kept."""
        if self.holds(ids):
            return self.values.copy()
        if not len(self.ids):
            return default.copy()
        at, known = self.rows(ids)
        return np.where(known, self.values[at], default)

    def put(self, ids: Ints, values: Floats) -> None:
        """Keep exactly these."""
        self.ids, self.values = ids, values

    def rows(self, ids: Ints) -> tuple[Ints, Bools]:
        """Where the ids are kept, and which of them are: the row of the others means nothing."""
        return places(self.ids, ids)


def places(ids: Ints, wanted: Ints) -> tuple[Ints, Bools]:
    """The place of each wanted id among `ids` (ascending), and whether it is there at all.

    >>> places(np.array([3, 5]), np.array([5, 4]))
    (array([1, 1]), array([ True, False]))
    """
    if not len(ids):
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=np.bool_)
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return at, ids[at] == wanted


def rank_within(groups: Ints) -> Ints:
    """Position of each element among those of its group.

    >>> rank_within(np.array([7, 8, 7, 7, 8]))
    array([0, 0, 1, 2, 1])
    """
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    rank = np.empty(len(groups), dtype=np.int64)
    rank[order] = np.arange(len(groups)) - np.searchsorted(ordered, ordered)
    return rank


def pack(states: Mapping[str, State]) -> bytes:
    """One blob of arrays, without pickle."""
    return b"".join(packed(states))


def packed(states: Mapping[str, State]) -> Iterator[bytes]:
    """The same in pieces, so that the whole need not be in memory beside the arrays."""
    sink = _Sink()
    arrays = ((f"{part}/{name}", a) for part, state in states.items() for name, a in state.items())
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:  # type: ignore[call-overload]
        for name, array in arrays:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                for piece in _pieces(np.asarray(array, order="C")):
                    entry.write(piece)
                    if len(sink.waiting) >= _PIECE:
                        yield sink.taken()
    yield sink.taken()


def _pieces(array: NDArray[Any]) -> Iterator[bytes | memoryview]:
    """An array as NumPy keeps it in a file, some of it at a time."""
    header = io.BytesIO()
    told = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(header, told)
    yield header.getvalue()
    raw = array.reshape(-1).view(np.uint8)
    for start in range(0, len(raw), _PIECE):
        yield raw[start : start + _PIECE].data


class _Sink:
    """A file that cannot be read again; what was written to it is taken off."""

    def __init__(self) -> None:
        self.waiting = bytearray()

    def write(self, some: bytes) -> int:
        self.waiting += some
        return len(some)

    def flush(self) -> None:
        """Nothing waits elsewhere."""

    def taken(self) -> bytes:
        waiting, self.waiting = bytes(self.waiting), bytearray()
        return waiting


def unpack(blob: bytes) -> dict[str, State]:
    """The inverse of `pack`."""
    states: dict[str, State] = {}
    with np.load(io.BytesIO(blob), allow_pickle=False) as flat:
        for key in flat.files:
            part, _, name = key.partition("/")
            states.setdefault(part, {})[name] = flat[key]
    return states


def part_of(state: State, prefix: str) -> State:
    """The columns whose names begin so, by the rest of their names.

    >>> part_of({"week_pace": 1, "a": 2}, "week_")
    {'pace': 1}
    """
    return {name.removeprefix(prefix): c for name, c in state.items() if name.startswith(prefix)}


def covered(cost: Floats, budget: float) -> int:
    """How many, from the first on, a budget pays for.

    >>> covered(np.array([1.0, 5.0, 1.0]), budget=6)
    2
    """
    return int(np.searchsorted(np.cumsum(cost), budget + 1e-9, side="right"))


def later(times: Times, days: Floats) -> Times:
    """The times so many days later; NaT stays NaT.

    >>> later(np.array(["2026-01-01", "NaT"], dtype="M8[us]"), np.array([1.5, 2.0])).tolist()
    [datetime.datetime(2026, 1, 2, 12, 0), None]
    """
    return np.asarray(times + np.rint(days * DAY.astype(np.int64)).astype("m8[us]"))
