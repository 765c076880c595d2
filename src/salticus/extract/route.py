"""Which parts read a page, and where: by its kind and by the user's rule for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import msgspec

from salticus.config import Rule

BY_KIND = {"offer": ("offer", "markup"), "page": ("text",), "source": ("source",)}


class Route(msgspec.Struct, frozen=True):
    """How one page is read: by the parts `names` in turn, under the rule of that number
    (-1 = none)."""

    kind: str | None
    rule: int
    names: tuple[str, ...]


class Routes:
    """The parts of every kind. Kinds that are not listed are read like pages.

    A page of unknown kind is read like an offer first, then like a page. A rule may name another
    part. With selectors, only what the value still needs of the mark-up is read besides.

    >>> Routes().route(None, -1).names
    ('offer', 'markup', 'text')
    >>> Routes([Rule("*", select={"hours": "#hours"})]).route("page", 0).names
    ()
    """

    def __init__(
        self, rules: Sequence[Rule] = (), extractors: Mapping[str, str] | None = None
    ) -> None:
        self.rules = tuple(rules)
        own = {kind: (name,) for kind, name in (extractors or {}).items()}
        self.by_kind = {**BY_KIND, **own}
        self.route = cache(self._route)

    @property
    def names(self) -> list[str]:
        """All parts that any page may need."""
        listed = {name for names in self.by_kind.values() for name in names}
        return sorted(listed | {rule.extractor for rule in self.rules if rule.extractor})

    def _route(self, kind: str | None, number: int) -> Route:
        rule = self.rules[number] if number >= 0 else None
        kind = kind or (rule.kind if rule else None)
        return Route(kind, number, self._chosen(kind, rule))

    def _chosen(self, kind: str | None, rule: Rule | None) -> tuple[str, ...]:
        offers, pages = self.by_kind["offer"], self.by_kind["page"]
        if rule is not None and rule.extractor:
            return (rule.extractor,)
        if rule is not None and rule.select and kind != "source":
            return offers if kind in (None, "offer") else pages * (not _enough(rule))
        return (*offers, *pages) if kind is None else self.by_kind.get(kind, pages)


def _enough(rule: Rule) -> bool:
    """Whether all that the value needs is selected."""
    return set(rule.value) <= set(rule.select)
