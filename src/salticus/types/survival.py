"""Survival curves: how likely pages are still what we hold, for all pages at once."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from salticus.types.arrays import Bools, Floats, Ints, Times


class Survival(Protocol):
    """Probability that a page is unchanged `ages` days after its last answer, for all pages.

    Laws: `unchanged` starts at 1, never rises, stays in [0, 1]; `integral` is its integral from 0.
    Together they give the worth of a visit, V(τ) = μ[∫₀^τ S − τS(τ)]. `rates` are changes a day in
    the long run, for policies that know of no more than that.
    """

    def unchanged(self, ages: Floats) -> Floats: ...

    def integral(self, ages: Floats) -> Floats: ...

    def rates(self) -> Floats: ...

    def take(self, rows: Ints | Bools) -> Survival: ...


@runtime_checkable
class Valued(Protocol):
    """A curve that knows V better than from its own parts, as one that sees the coming week does:
    V(τ) without μ, in days, for visits in steps of so many days."""

    def worth(self, ages: Floats, step: float) -> Floats: ...


@runtime_checkable
class Anchored(Protocol):
    """A curve for which it matters at which hour of the week a page's age begins to count."""

    def since(self, last: Times) -> Survival:
        """The same curves for pages that answered at these times; as many as there are rows."""


@runtime_checkable
class Answering(Protocol):
    """A curve that knows how likely a visit to each page is answered, better than `Pages` does."""

    @property
    def answers(self) -> Floats: ...
