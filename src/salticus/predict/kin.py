"""Kin: pages that may change together, as far as is known without their history."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from salticus.features.following import Facts
from salticus.features.metadata import Hashes, hashes
from salticus.types import Ints
from salticus.types.state import State, places

_MOST = 50_000  # groups; each takes a kilobyte


def _none() -> Ints:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Kin:
    """Pages by id, ascending, and the group of kin that each is in, from 0 on; -1: in none."""

    ids: Ints = field(default_factory=_none)
    group: Ints = field(default_factory=_none)

    def of(self, ids: Ints) -> Ints:
        """The group of each page; -1 for those that are not known."""
        if not len(self.ids):
            return np.full(len(ids), -1, dtype=np.int64)
        place, known = places(self.ids, ids)
        return np.where(known, self.group[place], -1)

    def __len__(self) -> int:
        """How many groups there are."""
        return int(self.group.max(initial=-1)) + 1


class KnownKin:
    """The kin of a crawl's pages: those of one brand on one host, or of one category where no
    brand is told. A page stays where it was placed first.

    There are 50,000 groups at most, those first that have more pages; the others have no kin.
    """

    def __init__(self) -> None:
        self.kin = Kin()
        self._numbers: dict[int, int] = {}  # of groups, by their keys

    def place(self, ids: Ints, facts: Facts) -> None:
        """Have a group for these pages (ascending), of which none has one yet."""
        keys = kin_keys(facts)
        new, many = np.unique(keys, return_counts=True)
        for key in new[np.lexsort((new, -many))].tolist():
            if len(self._numbers) < _MOST:
                self._numbers.setdefault(key, len(self._numbers))
        group = np.array([self._numbers.get(key, -1) for key in keys.tolist()], dtype=np.int64)
        at = np.searchsorted(self.kin.ids, ids)
        self.kin = Kin(np.insert(self.kin.ids, at, ids), np.insert(self.kin.group, at, group))

    def missing(self, ids: Ints) -> Ints:
        """Those of the pages that have no place yet."""
        return np.asarray(ids[~places(self.kin.ids, ids)[1]])

    def state(self) -> State:
        keys = np.array(list(self._numbers), dtype=np.uint64)
        return {"ids": self.kin.ids, "group": self.kin.group, "keys": keys}

    def restore(self, state: State) -> None:
        self.kin = Kin(state["ids"], state["group"])
        self._numbers = {key: number for number, key in enumerate(state["keys"].tolist())}


def kin_keys(facts: Facts) -> Hashes:
    """A number for each page, the same for those that are kin.

    >>> facts = {"host": ["a", "a", "a"], "brand": ["x", None, "x"], "category": ["b", "c", None]}
    >>> keys = kin_keys(facts)
    >>> (keys[0] == keys[2], keys[0] == keys[1])
    (np.True_, np.False_)
    """
    texts = list(_names(zip(facts["host"], facts["brand"], facts["category"], strict=True)))
    known = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    return hashes(known)[[known[text] for text in texts]]


def _names(
    rows: Iterable[tuple[str | None, str | None, str | None]],
) -> Iterable[tuple[str, str | None, str | None]]:
    for host, brand, category in rows:
        yield host or "", brand or None, None if brand else category or None
