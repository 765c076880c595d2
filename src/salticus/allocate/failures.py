"""How likely pages answer after visits that failed: by their hosts, and by how often in a row."""

from __future__ import annotations

import numpy as np

from salticus.types import Outcomes, Pages
from salticus.types.arrays import Floats, Instant, Ints, distinct
from salticus.types.state import State, places

_DEAD = 0.2  # of pages that do not answer for the first time
_USUAL, _TRIES = 0.9, 0.5  # the share of answers before any, and how many visits that is worth


class Failures:
    """Failed visits in a row, of the pages that did not answer last.

    A visit fails because the host did, this once, or because the page is dead. With p the share of
    answers among the last answers of a host's pages and all failures since, a page answers after n
    failures with probability p/(1 + o), with the odds o = d/((1 − d)(1 − p)ⁿ) of being dead: soon
    again on a host that seldom fails, hardly ever after several. It is never less than
    `Pages.answering`, by which a silent page is tried again after a time. Laws: it falls with every
    failure; to learn outcomes in one go or in several is the same.

    Cost: 16 bytes for each page that did not answer last.
    """

    def __init__(self) -> None:
        self.ids_: Ints = np.empty(0, dtype=np.int64)  # ascending
        self.times_: Ints = np.empty(0, dtype=np.int64)

    def learn(self, outcomes: Outcomes) -> None:
        made = outcomes.take(outcomes.made)
        if not len(made) or (not len(self.ids_) and made.answered.all()):
            return
        made = made.take(np.lexsort((made.at, made.page)))
        start = np.flatnonzero(np.diff(made.page, prepend=made.page[0] - 1))
        end = np.append(start[1:], len(made))
        answer = np.maximum.reduceat(np.where(made.answered, np.arange(len(made)), -1), start)
        since = np.maximum(answer + 1, start)
        before = np.where(answer < start, self.times(made.page[start]), 0)
        self._keep(made.page[start], before + end - since)

    def times(self, ids: Ints) -> Ints:
        """Failed visits in a row of pages, 0 for those that answered last."""
        if not len(self.ids_):
            return np.zeros(len(ids), dtype=np.int64)
        row, known = places(self.ids_, ids)
        return np.where(known, self.times_[row], 0)

    def answering(self, pages: Pages, now: Instant, silent: Ints) -> Floats:
        """The chance that the `silent` pages (rows), whose last visits failed, answer now."""
        hosts = int(pages.host.max(initial=-1)) + 1
        host, times = pages.host[silent], np.maximum(self.times(pages.ids[silent]), 1)
        visited = np.bincount(pages.host[~np.isnat(pages.last_visit)], minlength=hosts)
        answers = visited - np.bincount(host, minlength=hosts)
        failed = np.bincount(host, weights=times, minlength=hosts)
        p = ((answers + _USUAL * _TRIES) / (answers + failed + _TRIES))[host]
        alive = (1.0 - _DEAD) * (1.0 - p) ** times
        return np.maximum(p * alive / (alive + _DEAD), pages.answering(now, silent))

    def _keep(self, ids: Ints, times: Ints) -> None:
        every = distinct(np.concatenate([self.ids_, ids]))
        found = np.zeros(len(every), dtype=np.int64)
        found[np.searchsorted(every, self.ids_)] = self.times_
        found[np.searchsorted(every, ids)] = times
        self.ids_, self.times_ = every[found > 0], found[found > 0]

    def state(self) -> State:
        return {"ids": self.ids_, "times": self.times_}

    def restore(self, state: State) -> None:
        self.ids_, self.times_ = state["ids"], state["times"]
