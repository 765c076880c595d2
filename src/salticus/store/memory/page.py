"""A page in a `MemoryStore`: what people see, and what a visit needs."""

from __future__ import annotations

import math
import re
from fnmatch import fnmatchcase
from typing import Any
from unicodedata import normalize

import msgspec

from salticus.store.news import place_of
from salticus.store.nouns import HIT_FIELDS, Edit, Hit, PageState, Query, plain
from salticus.types import ANSWERED, STATUS, NewPage, Observation, Record, Target, Value

_IDLE = ("gone", "soft_404", "disallowed", "unsafe")
_WORDS = ("title", "brand", "category", "merchant", "gtin", "sku", "mpn", "id")


class Page(msgspec.Struct):
    """A page and its history's latest turn; `alias` is the page that it has become."""

    state: PageState
    revision: int = 0
    found: bool = False
    origin: int | None = None  # the page added by hand that led to this one, if it was found
    left_out: int = 0  # entries of a source that the caps kept out
    alias: int | None = None
    own_cost: float | None = None
    value: Value | None = None
    valued: int | None = None  # when the value was found
    digest: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    content: tuple[bytes, str] | None = None

    @property
    def target(self) -> Target:
        """What is needed to visit the page."""
        state = self.state
        validators = (None, None) if self.left_out else (self.etag, self.last_modified)
        held = (*validators, self.digest, state.last_answer, tuple(state.tags))
        return Target(state.page, state.url, state.host, state.kind, *held)

    @property
    def known_fields(self) -> dict[str, str]:
        """What the value tells of the page, or a merchant's feed as long as there is none."""
        value = self.value or (self.state.told and self.state.told.value)
        return value.fields if value else {}

    # ---------------------------------------------------------------------------------- by hand

    def take(self, new: NewPage, revision: int) -> None:
        """Take the settings that are given."""
        state = self.state
        given = (new.kind, new.max_interval, new.demand) != (None, None, None) or new.tags
        if not given and (new.found or not (self.found or state.idle)):
            return
        self.revision = revision
        if not new.found:
            self.found, state.idle = False, 0
        state.kind = state.kind if new.kind is None else new.kind
        state.tags = sorted({*state.tags, *new.tags})
        state.demand = state.demand if new.demand is None else new.demand
        if new.max_interval is not None:
            state.max_interval = new.max_interval

    def edit(self, edit: Edit, revision: int) -> None:
        """Change what is to be changed."""
        self.revision = revision
        settings = (edit.kind, edit.add_tags, edit.max_interval, edit.demand)
        self.take(NewPage("", *settings, found=True), revision)
        state = self.state
        state.tags = sorted({*state.tags} - {*edit.remove_tags})
        state.max_interval = None if state.max_interval == math.inf else state.max_interval
        state.paused = state.paused if edit.paused is None else edit.paused
        if edit.cost is not None:
            self.own_cost = None if edit.cost == math.inf else edit.cost
            state.cost = 1.0 if self.own_cost is None else self.own_cost

    def like(self, other: Page) -> None:
        """Take over what another page was set to."""
        state, model = self.state, other.state
        state.kind, state.tags, state.cost = model.kind, model.tags[:], model.cost
        state.max_interval, state.demand = model.max_interval, model.demand
        self.own_cost, self.found, self.origin = other.own_cost, other.found, other.origin

    def inherit(self, old: Page) -> None:
        """Take over what was asked for the page that has become this one."""
        mine, its = self.state, old.state
        mine.kind = its.kind if mine.kind is None else mine.kind
        mine.demand = its.demand if mine.demand is None else mine.demand
        limits = [days for days in (mine.max_interval, its.max_interval) if days is not None]
        mine.max_interval = min(limits, default=None)
        mine.tags = sorted({*mine.tags, *its.tags})
        mine.idle, self.found = min(mine.idle, its.idle), self.found and old.found

    # --------------------------------------------------------------------------------- by visits

    def visited(self, record: Record) -> None:
        """Take up what a visit taught."""
        state, seen = self.state, record.observation
        state.last_visit, state.status, state.fault = seen.at, seen.status, seen.fault
        state.visits += 1
        state.idle += seen.status in _IDLE
        if seen.changed:
            state.changes += 1
            state.last_change = seen.at
        if seen.value is not None:
            self.value, self.digest, self.valued = seen.value, seen.digest, seen.at
            state.kind = seen.value.kind if state.kind is None else state.kind
        if record.content is not None:
            self.content = record.content, record.content_type
        if STATUS[seen.status] in ANSWERED:
            self._answered(seen)
        else:
            state.failures += 1
        if seen.status == "ok":
            place = place_of(record.canonical) or (None, None)
            state.canonical = None if place[0] == state.url else place[0]

    def stays(self, before: Page) -> None:
        """Keep what the page was `before`, where that is newer than what was taken up since."""
        state, old = self.state, before.state
        if _newer(old.last_visit, state.last_visit):
            state.last_visit, state.status = old.last_visit, old.status
            state.fault, state.idle = old.fault, old.idle
        if _newer(old.last_answer, state.last_answer):
            state.last_answer, state.canonical = old.last_answer, old.canonical
            self.etag, self.last_modified = before.etag, before.last_modified
        if _newer(old.last_change, state.last_change):
            state.last_change = old.last_change
        if _newer(before.valued, self.valued):
            self.value, self.digest, self.valued = before.value, before.digest, before.valued
        if old.told is not None and (state.last_answer is None or old.told.at > state.last_answer):
            state.told = old.told

    def _answered(self, seen: Observation) -> None:
        self.state.last_answer, self.state.idle, self.state.told = seen.at, 0, None
        if seen.status == "ok" or seen.etag is not None:
            self.etag = seen.etag
        if seen.status == "ok" or seen.last_modified is not None:
            self.last_modified = seen.last_modified


def _newer(old: int | None, new: int | None) -> bool:
    """Whether what was known is not older than what came after it."""
    return old is not None and (new is None or old >= new)


def fits(page: PageState, query: Query) -> bool:
    """Whether a page is one of those asked for."""
    patterns = ((page.url, query.url), (page.host, query.host))
    words = ((page.kind, query.kind), (page.status, query.status), (page.state, query.state))
    return (
        all(pattern is None or fnmatchcase(name, plain(pattern)) for name, pattern in patterns)
        and all(wanted in (None, word) for word, wanted in words)
        and (query.tag is None or query.tag in page.tags)
    )


def hit_of(page: PageState, words: str) -> Hit | None:
    """The page as a search for the words shows it; None if it does not have them all."""
    nothing = page.value is None and page.told is None
    if nothing or page.kind == "source" or page.state not in ("new", "well", "failing"):
        return None
    fields = page.told.value.fields if page.value is None and page.told else page.fields
    asked, said = _split(words), _split(" ".join(fields.get(name, "") for name in _WORDS))
    said += _split(page.url)
    if not asked or not {*asked[:-1]} <= {*said}:
        return None
    if not any(word.startswith(asked[-1]) for word in said):
        return None
    known = ("page", "url", "last_visit", "last_answer", "told")
    shown: dict[str, Any] = {name: fields.get(name) for name in HIT_FIELDS}
    return Hit(**shown, **{name: getattr(page, name) for name in known})


def _split(text: str) -> list[str]:
    """Words without case and accents; ASCII is enough for a fake."""
    plain = normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.findall("[a-z0-9]+", plain)


def row_of(columns: str, held: msgspec.Struct, **known: Any) -> dict[str, Any]:
    """A row of the exchange format: the columns that are named, of what is held or known."""
    every = msgspec.structs.asdict(held) | known
    return {"page_id": every["page"]} | {name: every[name] for name in columns.split()}
