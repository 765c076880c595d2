"""Loops over columns that are compiled to machine code when they are first called."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, cast

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Compiled(Generic[_P, _R]):
    """A function that is compiled by numba when it is first called, and kept on disk so that later
    runs need not compile it. To load numba takes longer than most commands."""

    def __init__(self, function: Callable[_P, _R]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._made: Callable[_P, _R] | None = None

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return (self._made or self.made())(*args, **kwargs)

    def made(self) -> Callable[_P, _R]:
        """The machine code. Functions of a file call one another by their names there, so that all
        of them are made at once."""
        names = self.py_func.__globals__
        for name, part in list(names.items()):
            if isinstance(part, Compiled) and part.py_func.__globals__ is names:
                names[name] = part._make()
        return self._make()

    def _make(self) -> Callable[_P, _R]:
        if self._made is None:
            import numba

            try:
                made: Any = numba.njit(cache=True, nogil=True)(self.py_func)
            except RuntimeError:  # nowhere to keep it
                made = numba.njit(nogil=True)(self.py_func)
            self._made = cast(Callable[_P, _R], made)
        return self._made


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function as machine code.

    Exact as NumPy is: no fast mathematics, no threads, so that the same input gives the same bits.
    """
    return Compiled(function)
