"""Pages that sources showed at their first visits: nobody knows how old they are."""

from __future__ import annotations

import numpy as np

from salticus.predict.finder import Finder
from salticus.types import KINDS, Bools, Floats, Ints, Pages, days_between, instant
from salticus.types.state import places

WAITS = 14.0  # days for which a found page may wait, and is a new one
_OFFER, _SOURCE = KINDS.index("offer"), KINDS.index("source")


def backlog(pages: Pages, new: Ints) -> Bools:
    """Which pages were there at the first visit to a source and never visited themselves; `new`
    pages, by id, appeared later. Offers are for sale whenever they were found: only pages of hosts
    whose found pages turn out to be texts count."""
    never = np.isnat(pages.last_visit)
    held, texts = pages.found & ~never, np.zeros(int(pages.host.max(initial=-1)) + 1)
    np.add.at(texts, pages.host[held], np.where(pages.kind[held] == _OFFER, -1.0, 1.0))
    young = days_between(pages.added, instant(pages.tick.start)) < WAITS
    old = pages.found & young & never & (texts[pages.host] > 0.0) & (pages.kind != _SOURCE)
    rows, known = places(pages.ids, new)
    old[rows[known]] = False
    return np.asarray(old)


def left_of_old(pages: Pages, old: Bools, finder: Finder, sources: Ints, known: Bools) -> Floats:
    """Clicks that each of the old pages will get yet, by what sources of its host showed at first,
    or all sources; NaN if none showed any. The `known` ones of the finder have these rows."""
    shown = np.nan_to_num(finder.finds.shown_[known], nan=0.0)
    left = shown * finder.old_left(np.flatnonzero(known))
    hosts, host = int(pages.host.max(initial=-1)) + 1, pages.host[sources[known]]
    of_host = np.bincount(host, weights=left, minlength=hosts)
    many = np.bincount(host, weights=shown, minlength=hosts)
    usual = float(left.sum() / shown.sum()) if shown.any() else np.nan
    each = np.where(many > 0.0, of_host / np.maximum(many, 1.0), usual)
    return np.asarray(each[pages.host[old]])
