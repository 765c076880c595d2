"""Loops over columns that are compiled to machine code when they are first called."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function as machine code (numba), kept on disk so that later runs need not compile it.

    For modules that are loaded only where they are used: numba itself takes half a second.
    Exact as NumPy is: no fast mathematics, no threads, so that the same input gives the same bits.
    """
    import numba

    try:
        kept: Callable[_P, _R] = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # nowhere to keep it
        kept = numba.njit(nogil=True)(function)
    return kept
