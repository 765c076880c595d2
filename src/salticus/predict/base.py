"""The contract of prediction: how likely is a page still what we hold?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from salticus.types import Columns, Floats, Ints, Outcomes, Pages, Survival


@dataclass(frozen=True, slots=True)
class Evidence(Columns):
    """What change rates rest on: Gamma(a, b) posteriors, and the priors that they began with.

    The mean a/b is that of the prior, a₀/b₀, at weight b₀/b, and for the rest what was seen of the
    page itself: a − a₀ changes in b − b₀ days, older ones counting for less.
    """

    a: Floats
    b: Floats
    prior_a: Floats
    prior_b: Floats


class Predictor(Protocol):
    """History and metadata → probability that each page is unchanged, ahead of its last answer.

    A constructor is given what it takes of these: ``facts(ids)``, what is known of pages without
    visiting them (column by column: host, brand, category, title, …), ``history()``, the outcomes
    of all stored visits in order of time, chunk by chunk, `registry`, the crawl's models,
    `followed`, what all its models look at, and `seed`.

    Laws: the survival laws; recovers a known rate under every spacing of the visits; failed and
    dropped visits teach nothing; the order of pages does not matter; to be asked changes nothing.
    What a predictor may be able to do beside that are the protocols below.
    """

    def survival(self, pages: Pages, now: datetime) -> Survival:
        """The curves of all pages; they hold until the next `meet` or `learn`."""

    def learn(self, outcomes: Outcomes) -> None: ...


@runtime_checkable
class Meets(Protocol):
    """A predictor that is told once a tick which pages there are, before it is asked.

    Here is time for what takes long. What it learns of a page not met counts for that page alone.
    """

    def meet(self, pages: Pages, now: datetime) -> None: ...


@runtime_checkable
class Evident(Protocol):
    """A predictor that can tell what its change rates rest on."""

    def evidence(self, ids: Ints) -> Evidence: ...


@runtime_checkable
class Paced(Protocol):
    """A predictor that knows how fast pages change in each of the 168 hours of the week from Monday
    00:00 UTC on, 1 on average; pages × 168."""

    def paces(self, ids: Ints) -> Floats: ...


@runtime_checkable
class Explained(Protocol):
    """A predictor that can tell what each feature adds to a page's score, the largest first."""

    def contributions(self, page: int) -> list[tuple[str, float]]: ...


@runtime_checkable
class Traited(Protocol):
    """A predictor that may have traits that were fitted, and can tell them; None if it has none."""

    def traits_told(self) -> str | None: ...


@runtime_checkable
class Retraces(Protocol):
    """A predictor that must be told when the stored history has become another."""

    def rebuild(self) -> None: ...


@runtime_checkable
class Quiet(Protocol):
    """A predictor that writes down what befalls its models, unless somebody only looks on:
    ``tells = False``."""

    tells: bool


def ask(predictor: Predictor, pages: Pages, now: datetime) -> Survival:
    """Let a predictor meet the pages, then ask it about them."""
    if isinstance(predictor, Meets):
        predictor.meet(pages, now)
    return predictor.survival(pages, now)
