"""Watches hosts as a whole: what befalls most of a host's pages is the host's affair."""

from __future__ import annotations

from collections import defaultdict, deque

from salticus.types import Alert, Observation

KINDS = {
    "blocked": "blocked",
    "broken": "broken",
    "certificate": "certificate",
    "lost": "layout",
    "soft_404": "missing",
    "network": "unreachable",
    "timeout": "unreachable",
}
WINDOW = 10  # visits of a host that are looked back on
FEWEST = 3  # visits that must have gone wrong in the same way
SURE = frozenset({"certificate"})  # one such visit tells of the whole host
FEW = frozenset({"broken"})  # the fewest are enough: what cannot be read is no page's own affair


class Watch:
    """Raises an alert when most of a host's last visits went wrong in the same way.

    Most is more than half of the last ten, and three at least; of pages that cannot be read three
    are enough. The alert is over when the kind has left all but a fifth of them. Hosts with which
    all is well cost nothing.

    >>> watch = Watch()
    >>> bad = Observation(1, 1, 5, "policy", 1.0, "lost", fault="no price")
    >>> [len(watch.see("a.example", bad)) for _ in range(4)]
    [0, 0, 1, 0]
    """

    def __init__(self) -> None:
        self._past: dict[str, deque[str]] = {}
        self._open: defaultdict[str, set[str]] = defaultdict(set)

    def restore(self, alerts: list[tuple[str, str]]) -> None:
        """Alerts (host, kind) that were open when the last run ended; their end is to be told, at
        the latest after four visits in a row that went well."""
        for host, kind in alerts:
            if kind not in KINDS.values():  # raised by others, who also end it
                continue
            self._open[host].add(kind)
            self._past.setdefault(host, deque(maxlen=WINDOW)).append(kind)

    def see(self, host: str, seen: Observation) -> tuple[Alert, ...]:
        """What a visit to the host means for it: alerts that begin or end now."""
        kind = KINDS.get(seen.status, "")
        past = self._past.get(host)
        if past is None:
            if not kind:
                return ()
            past = self._past[host] = deque(maxlen=WINDOW)
        past.append(kind)
        told = (*self._begun(host, kind, seen), *self._ended(host, seen.at))
        if not any(past):
            del self._past[host], self._open[host]
        return told

    def _begun(self, host: str, kind: str, seen: Observation) -> tuple[Alert, ...]:
        past = self._past[host]
        many = kind in FEW or 2 * past.count(kind) > len(past)
        most = many and past.count(kind) >= FEWEST
        if not kind or kind in self._open[host] or not (most or kind in SURE):
            return ()
        self._open[host].add(kind)
        return (Alert(host, kind, seen.at, seen.fault or seen.status),)

    def _ended(self, host: str, at: int) -> tuple[Alert, ...]:
        past = self._past[host]
        over = sorted(kind for kind in self._open[host] if 5 * past.count(kind) <= len(past))
        self._open[host].difference_update(over)
        return tuple(Alert(host, kind, at, over=True) for kind in over)
