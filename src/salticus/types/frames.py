"""Polars, which is imported when it is first used: that takes a sixth of a second."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["pl"]

if TYPE_CHECKING:
    import polars as pl
else:

    class _Polars:
        def __getattr__(self, name: str) -> Any:
            return getattr(import_module("polars"), name)

    pl = _Polars()
