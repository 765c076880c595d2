"""What visits to sources have seen of the links of a log; compiled, as there are many visits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from salticus.exchange.linked import LinkTruth
from salticus.predict.links import SourceVisits
from salticus.types import Bools, Floats, Ints
from salticus.types.compiled import compiled

UNSEEN = -1
_WEEK = 7.0


class Sight(NamedTuple):
    """Of each page the step in which it was `seen` first, on which source (`via`), in how many
    steps before its link may have appeared (`gap`), and in which step its link last `stands`; of
    each link whether it was ever `looked` at, and whether it was `shown` at the last visit; of each
    source the `visits`, the step of the `last`, the `next` link that nobody has looked at, the
    `oldest` that may be shown, and how many links of a week it shows over how many steps."""

    seen: Ints
    via: Ints
    gap: Floats
    stands: Ints
    looked: Bools
    shown: Bools
    visits: Ints
    last: Ints
    next: Ints
    oldest: Ints
    entries: Floats
    span: Floats


def blind(truth: LinkTruth) -> Sight:
    """Nothing was seen yet."""
    pages, links, sources = truth.pages, len(truth.page), truth.sources
    return Sight(
        seen=np.full(pages, UNSEEN),
        via=np.full(pages, -1),
        gap=np.zeros(pages),
        stands=np.full(pages, UNSEEN),
        looked=np.zeros(links, dtype=np.bool_),
        shown=np.zeros(links, dtype=np.bool_),
        visits=np.zeros(sources, dtype=np.int64),
        last=np.full(sources, -1),
        next=truth.first[:-1].copy(),
        oldest=truth.first[:-1].copy(),
        entries=np.zeros(sources),
        span=np.zeros(sources),
    )


def look(
    sight: Sight, truth: LinkTruth, sources: Ints, step: int, *, shared: bool = False
) -> tuple[SourceVisits, Ints]:
    """Visit sources, one after the other: what that tells of their links, and the pages that nobody
    saw before, in order. A page on several sources counts for the first, or, `shared`, for all."""
    day = truth.step.total_seconds() / 86_400
    links = truth.first, truth.page, truth.appeared, truth.vanished
    told, found = _look(sight, links, sources, (step, _WEEK / day), shared)
    days, new, kept, gone = told
    return SourceVisits(sources, days * day, new, kept, gone), np.sort(found)


@compiled
def _look(
    sight: Sight,
    links: tuple[Ints, Ints, Ints, Ints],
    sources: Ints,
    time: tuple[int, float],
    shared: bool,
) -> tuple[Floats, Ints]:
    first, page, appeared, vanished = links
    step, week = time
    told = np.zeros((4, len(sources)))
    found = []
    for k in range(len(sources)):
        source = sources[k]
        told[0, k] = gap = step - sight.last[source]
        sight.last[source] = step
        sight.visits[source] += 1
        link, many, begin = sight.oldest[source], 0, step
        sight.oldest[source] = first[source + 1]
        while link < first[source + 1] and appeared[link] <= step:
            stands, fresh = vanished[link] >= step, link >= sight.next[source]
            if fresh and stands:
                sight.looked[link] = True
                unseen = sight.seen[page[link]] == UNSEEN
                told[1, k] += unseen or shared
                if unseen:
                    sight.seen[page[link]] = step
                    sight.via[page[link]] = source
                    sight.gap[page[link]] = gap
                    found.append(page[link])
            elif sight.shown[link]:
                told[2 if stands else 3, k] += 1
            sight.shown[link] = stands and (fresh or sight.shown[link])
            if sight.shown[link]:
                sight.stands[page[link]] = step
                sight.oldest[source] = min(sight.oldest[source], link)
                if appeared[link] > step - week:
                    many += 1
                    begin = min(begin, appeared[link])
                    end = appeared[link]
            link += 1
        sight.next[source] = link
        sight.oldest[source] = min(sight.oldest[source], link)
        sight.entries[source] = many
        sight.span[source] = end - begin if many else 0
    return told, np.array(found, dtype=np.int64) if len(found) else np.empty(0, dtype=np.int64)
