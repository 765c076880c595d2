"""Properties that are worked out once, when first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class lazy(Generic[T]):
    """Like functools.cached_property, which before Python 3.12 takes a lock: a microsecond each.

    >>> class Page:
    ...     @lazy
    ...     def title(self) -> str:
    ...         return "asked"
    >>> Page().title
    'asked'
    """

    def __init__(self, find: Callable[[Any], T]) -> None:
        self.find = find
        self.name = find.__name__
        self.__doc__ = find.__doc__

    def __get__(self, owner: Any, kind: type | None = None) -> T:
        found: T = self.find(owner)
        owner.__dict__[self.name] = found
        return found
