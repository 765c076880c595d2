"""Whether the user's rules can be obeyed."""

from __future__ import annotations

from collections.abc import Sequence

from salticus import plugins
from salticus.config import Rule
from salticus.errors import ConfigError, PluginError
from salticus.extract import BUILTIN

# What the mark-up of pages may give, for rules that do not select it.
MARKED = frozenset(
    ("price", "currency", "availability", "list_price", "low_price", "high_price", "condition",
     "brand", "category", "title", "language", "country", "sku", "gtin")
)  # fmt: skip


def check_rules(rules: Sequence[Rule]) -> None:
    """Refuse rules that can never be obeyed; ConfigError names the rule and the expression."""
    for rule in rules:
        try:
            _check(rule)
        except (ConfigError, PluginError) as error:
            raise ConfigError(f"{rule.named}: {error}") from error


def _check(rule: Rule) -> None:
    from salticus.extract.fields import Fields  # selectors need three parsers
    from salticus.extract.ignore import Ignored
    from salticus.extract.select import Css

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
