"""Everything that is done with a page in a worker, in one go."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from msgspec.structs import replace

from salticus import plugins
from salticus.config import Extract, Rule
from salticus.errors import ExtractError
from salticus.extract import BUILTIN
from salticus.extract.base import Content, Extractor
from salticus.extract.canonical_link import canonical_link
from salticus.extract.route import Route
from salticus.types import Reading, Status

MEMORY = 2 * 10**9  # bytes that a worker may take beyond what it takes when it starts


class PageReader:  # imports inside, because parsers take a while, and the crawler itself needs none
    """Reads pages: the parts of the route in turn, the rule's fields, the judgement, the links.

    Raises nothing but ExtractError, and PluginError if a part cannot be loaded.
    """

    def __init__(self, config: Extract, rules: Sequence[Rule] = ()) -> None:
        self.config = config
        self.rules = tuple(rules)
        self.part = cache(self._part)
        self._fields = cache(self._made_fields)

    def read(self, content: Content, route: Route) -> Reading:
        """What the body of a page says."""
        rule = self._rule(route)
        try:
            found, own = self._first(content, route)
        except ExtractError as error:
            with suppress(ExtractError):  # the first says more
                verdict = self._judged(content, Reading(), rendered=False)
                if verdict.status is not Status.OK:
                    return verdict
            raise error from None
        if rule is not None and (rule.select or rule.value) and route.kind != "source":
            found = self._selected(content, found, route)
        if not (own and found.value is not None) and not found.entries:
            found = self._judged(content, found, rendered=rule is not None and rule.render)
        return self._linked(content, found, route)

    def _first(self, content: Content, route: Route) -> tuple[Reading, bool]:
        """The first reading that has something to say, and whether a part of the user's has it."""
        found = Reading()
        for name in route.names:
            said = extract(self.part(name, route.rule), content)
            if said.value is not None or said.status is not Status.OK or said.entries:
                return said, name not in BUILTIN
            found = said if said.fault else found
        return found, False

    def _selected(self, content: Content, found: Reading, route: Route) -> Reading:
        from salticus.extract.document import document_of

        fields = self._fields(route.rule)
        made: Reading = fields.read(document_of(content), found.value, route.kind)
        return replace(made, fault=made.fault or found.fault, canonical=found.canonical)

    def _judged(self, content: Content, found: Reading, *, rendered: bool) -> Reading:
        from salticus.extract.document import document_of
        from salticus.extract.judge import judge

        if found.status is not Status.OK:
            return found
        document = document_of(content)
        if found.value is None and found.fault is None and document.opaque:
            return replace(found, fault=f"not text: the body is {document.opaque}")
        return judge(document, found.value, rendered=rendered) or found

    def _linked(self, content: Content, found: Reading, route: Route) -> Reading:
        if found.status is not Status.OK:
            return found
        if self.config.links and route.kind != "source":
            from salticus.extract.links import links_of

            found = replace(found, entries=links_of(content))
        return replace(found, canonical=found.canonical or canonical_link(content))

    def _rule(self, route: Route) -> Rule | None:
        return self.rules[route.rule] if route.rule >= 0 else None

    def _part(self, name: str, rule: int) -> Extractor:
        kind: Any = plugins.load("extractor", name, BUILTIN)
        if name != "text":
            return kind()  # type: ignore[no-any-return]
        ignore = self.rules[rule].ignore if rule >= 0 else ()
        return kind(ignore=ignore, pdf=self.config.pdf)  # type: ignore[no-any-return]

    def _made_fields(self, rule: int) -> Any:
        from salticus.extract.fields import Fields

        return Fields(self.rules[rule])


def extract(part: Extractor, content: Content) -> Reading:
    """What the part finds; whatever it raises becomes an ExtractError that names the URL."""
    try:
        found = part.extract(content)
        return found if isinstance(found, Reading) else Reading(found)
    except Exception as error:
        raise failure(content.url, error) from error


def failure(url: str, error: BaseException) -> ExtractError:
    """The error for a page whose extractor raised `error`."""
    if isinstance(error, ExtractError) and str(error).startswith(url):
        return error
    if isinstance(error, MemoryError):
        return ExtractError(f"{url}: the extractor needed more than {MEMORY / 1e9:g} GB")
    reason = f"{type(error).__name__}: {error}"
    return ExtractError(f"{url}: {reason[:500]}")
