"""A heap whose keys can be changed, in arrays: which row comes first, at O(log n) a change.

Four children a node, so that a walk down touches half as many places of memory as with two. Rows
of equal keys come in the order of their numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from salticus.types import Floats, Ints
from salticus.types.compiled import compiled

_FAN = 4


class Heap(NamedTuple):
    """`rows` in heap order with their `keys`, the `place` of each row (-1: not in), and the `size`.

    >>> heap = empty(3)
    >>> for row, key in enumerate((5.0, 2.0, 9.0)):
    ...     put(heap, row, key)
    >>> put(heap, 0, 1.0)  # now it comes first
    >>> [pop(heap) for _ in range(4)]
    [0, 1, 2, -1]
    """

    keys: Floats
    rows: Ints
    place: Ints
    size: Ints


def empty(n: int) -> Heap:
    """A heap for rows 0 to n − 1."""
    place, size = np.full(n, -1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return Heap(np.empty(n), np.empty(n, dtype=np.int64), place, size)


@compiled
def fill(heap: Heap, keys: Floats) -> None:
    """Hold exactly the rows whose key is below infinity. Cost: linear."""
    size = 0
    for row in range(len(keys)):
        heap.place[row] = -1
        if keys[row] < np.inf:
            heap.keys[size], heap.rows[size], heap.place[row] = keys[row], row, size
            size += 1
    heap.size[0] = size
    for at in range((size - 2) // _FAN, -1, -1):
        _down(heap, at, heap.keys[at], heap.rows[at])


@compiled
def put(heap: Heap, row: int, key: float) -> None:
    """Add the row, or give it another key."""
    at = heap.place[row]
    if at < 0:
        at = heap.size[0]
        heap.size[0] += 1
    elif _before(heap.keys[at], row, key, row):
        _down(heap, at, key, row)
        return
    _up(heap, at, key, row)


@compiled
def pop(heap: Heap) -> int:
    """Take out the row that comes first; -1 if there is none."""
    if heap.size[0] == 0:
        return -1
    row = heap.rows[0]
    remove(heap, row)
    return int(row)


@compiled
def remove(heap: Heap, row: int) -> None:
    """Take out the row, if it is in."""
    at = heap.place[row]
    if at < 0:
        return
    heap.place[row] = -1
    heap.size[0] -= 1
    last = heap.size[0]
    if at < last:
        _down(heap, at, heap.keys[last], heap.rows[last])
        _up(heap, at, heap.keys[at], heap.rows[at])


@compiled
def _before(key: float, row: int, other_key: float, other_row: int) -> bool:
    return key < other_key or (key == other_key and row < other_row)


@compiled
def _set(heap: Heap, at: int, key: float, row: int) -> None:
    heap.keys[at], heap.rows[at], heap.place[row] = key, row, at


@compiled
def _up(heap: Heap, at: int, key: float, row: int) -> None:
    while at > 0:
        above = (at - 1) // _FAN
        if not _before(key, row, heap.keys[above], heap.rows[above]):
            break
        _set(heap, at, heap.keys[above], heap.rows[above])
        at = above
    _set(heap, at, key, row)


@compiled
def _down(heap: Heap, at: int, key: float, row: int) -> None:
    size = heap.size[0]
    while _FAN * at + 1 < size:
        best = _FAN * at + 1
        for child in range(best + 1, min(best + _FAN, size)):
            if _before(heap.keys[child], heap.rows[child], heap.keys[best], heap.rows[best]):
                best = child
        if not _before(heap.keys[best], heap.rows[best], key, row):
            break
        _set(heap, at, heap.keys[best], heap.rows[best])
        at = best
    _set(heap, at, key, row)


class Book(NamedTuple):
    """All that decisions read and write; `tally` is the credit of exploration and its quota."""

    due: Heap
    waiting: Heap
    last: Floats
    interval: Floats
    tally: Floats


@compiled
def open_book(numbers: Floats, places: Ints) -> Book:
    """The book in two arrays, because every array that is handed to compiled code costs time."""
    n = numbers.shape[1] - 2
    due = Heap(numbers[0, :n], places[0, :n], places[1, :n], places[0, n:])
    waiting = Heap(numbers[1, :n], places[2, :n], places[3, :n], places[2, n:])
    return Book(due, waiting, numbers[2, :n], numbers[3, :n], numbers[2, n:])


@compiled
def _enter(book: Book, row: int) -> None:
    """Put the page where its last visit and its interval say."""
    last, interval = book.last[row], book.interval[row]
    if last == -np.inf or interval < np.inf:
        remove(book.waiting, row)
        put(book.due, row, last if last == -np.inf else last + interval)
    else:
        remove(book.due, row)
        put(book.waiting, row, last)


@compiled
def _move(book: Book, row: int, at: float) -> None:
    book.last[row] = at
    _enter(book, row)


@compiled
def _first(book: Book) -> int:
    """The row that comes first; every 1/explore-th time one of those that are never due."""
    tally = book.tally
    tally[0] = min(tally[0] + tally[1], 1.0 + tally[1])
    turn = tally[0] > 1.0 - 1e-9 or book.due.size[0] == 0
    if turn and book.waiting.size[0] > 0:
        tally[0] = max(tally[0] - 1.0, 0.0)
        return int(book.waiting.rows[0])
    return int(book.due.rows[0]) if book.due.size[0] > 0 else -1


@compiled
def take_next(numbers: Floats, places: Ints) -> int:
    """Take the row that comes first off the book; -1 if there is none."""
    book = open_book(numbers, places)
    row = _first(book)
    if row >= 0:
        remove(book.due, row)
        remove(book.waiting, row)
    return row


@compiled
def note_visit(numbers: Floats, places: Ints, row: int, at: float) -> None:
    """The page was visited at that time."""
    _move(open_book(numbers, places), row, at)


@compiled
def set_interval(numbers: Floats, places: Ints, row: int, interval: float) -> None:
    """Give a page another interval."""
    book = open_book(numbers, places)
    book.interval[row] = interval
    if book.due.place[row] >= 0 or book.waiting.place[row] >= 0:
        _enter(book, row)


@compiled
def plan_visits(numbers: Floats, places: Ints, visits: int, start: float, spacing: float) -> Ints:
    """The rows of so many visits to come, each entered again as visited in its turn."""
    book = open_book(numbers, places)
    rows = np.empty(visits, dtype=np.int64)
    for k in range(visits):
        row = _first(book)
        if row < 0:
            return rows[:k]
        _move(book, row, start + k * spacing)
        rows[k] = row
    return rows
