"""Numbers kept for every page that was ever met, by id."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from salticus.types import Bools, Ints, distinct
from salticus.types.state import State, places


class Roster:
    """Several numbers a page, in rows that are ordered by id; pages come, and stay until `keep`.
    They are kept as what their defaults are: floats, or integers of some width.

    >>> roster = Roster(rate=0.5)
    >>> roster.rows(np.array([7, 3, 7]))
    array([1, 0, 1])
    >>> roster["rate"]
    array([0.5, 0.5])
    """

    def __init__(self, **defaults: float | np.generic) -> None:
        self.defaults = defaults
        self.ids: Ints = np.empty(0, dtype=np.int64)
        kinds = {name: np.asarray(default).dtype for name, default in defaults.items()}
        self.columns: dict[str, NDArray[Any]] = {n: np.empty(0, kind) for n, kind in kinds.items()}

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, ids: Ints) -> Ints:
        """The row of each id, a new one if need be: rows of others may move then."""
        rows, known = self.places(ids)
        if known.all():
            return rows
        new = distinct(ids[~known])
        at = np.searchsorted(self.ids, new)
        self.ids = np.insert(self.ids, at, new)
        for name, column in self.columns.items():
            self.columns[name] = np.insert(column, at, self.defaults[name])
        return np.searchsorted(self.ids, ids)

    def places(self, ids: Ints) -> tuple[Ints, Bools]:
        """The row of each id, and whether it has one."""
        if self.holds(ids):
            return np.arange(len(ids)), np.ones(len(ids), dtype=np.bool_)
        return places(self.ids, ids)

    def get(self, name: str, ids: Ints) -> NDArray[Any]:
        """The number of each id; the default where none is kept."""
        if not len(self.ids):
            return np.full(len(ids), self.defaults[name])
        rows, known = self.places(ids)
        return np.where(known, self.columns[name][rows], self.defaults[name])

    def keep(self, ids: Ints) -> None:
        """Have a row for exactly these ids (ascending): others are forgotten."""
        if not self.holds(ids):
            self.columns = {name: self.get(name, ids) for name in self.columns}
        self.ids = ids

    def holds(self, ids: Ints) -> bool:
        """Whether these are all pages, in the order of the rows; they are kept once then."""
        if ids is not self.ids and np.array_equal(ids, self.ids):
            self.ids = ids
        return ids is self.ids

    def state(self) -> State:
        return {"ids": self.ids, **self.columns}

    def restore(self, state: State) -> None:
        self.ids = state["ids"]
        self.columns = {name: state[name].astype(c.dtype) for name, c in self.columns.items()}
