"""The user's rules: which parts read a page, and whether the rules can be obeyed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import msgspec

from salticus import plugins
from salticus.config import Rule
from salticus.errors import ConfigError, PluginError
from salticus.extract import BUILTIN

# What the mark-up of pages may give, for rules that do not select it.
MARKED = frozenset(
    ("price", "currency", "availability", "list_price", "low_price", "high_price", "condition",
     "brand", "category", "title", "language", "country", "sku", "gtin")
)  # fmt: skip
BY_KIND = {"offer": ("offer", "markup"), "page": ("text",), "source": ("source",)}


class Route(msgspec.Struct, frozen=True):
    """How one page is read: by the parts `names` in turn, under a rule by its number (-1: none)."""

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
            enough = set(rule.value) <= set(rule.select)  # for the value
            return offers if kind in (None, "offer") else pages * (not enough)
        return (*offers, *pages) if kind is None else self.by_kind.get(kind, pages)


def check_rules(rules: Sequence[Rule]) -> None:
    """Refuse rules that can never be obeyed; ConfigError names the rule and the expression."""
    for rule in rules:
        try:
            _check(rule)
        except (ConfigError, PluginError) as error:
            raise ConfigError(f"{rule.named}: {error}") from error


def _check(rule: Rule) -> None:
    from salticus.extract.fields import Fields  # selectors need three parsers
    from salticus.extract.select import Css
    from salticus.extract.text import Ignored

    Fields(rule)
    try:
        Ignored(rule.ignore)
    except ConfigError as error:
        raise ConfigError(f"ignore: {error}") from error
    if rule.wait is not None:
        Css(rule.wait)
    if rule.extractor is not None:
        plugins.load("extractor", rule.extractor, BUILTIN)
    else:
        _check_names(rule)


def _check_names(rule: Rule) -> None:
    """Names that nothing can give are slips of the pen."""
    for setting in ("value", "tolerance"):
        unknown = set(getattr(rule, setting)) - set(rule.select) - MARKED
        if unknown:
            name = min(unknown)
            raise ConfigError(f"{setting} names {name!r}, which is not selected; add select.{name}")
