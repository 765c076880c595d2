"""What a `MemoryStore` keeps of ticks."""

from __future__ import annotations

from collections.abc import Sequence

from salticus.types import Findings, Gauge, Member, Observation, Sample, Sighting

_GONE = ("gone", "soft_404")
_ANSWERED = ("ok", "not_modified")


class GaugeBook:
    """Observations by visit, and the sums and samples of ticks."""

    def __init__(self) -> None:
        super().__init__()
        self._observations: dict[int, Observation] = {}
        self._gauges: dict[int, Gauge] = {}
        self._samples: dict[int, tuple[int, float, float]] = {}
        self._panel: dict[int, Member] = {}
        self._forgotten: dict[int, tuple[int, str]]

    async def gauge(self, tick: Gauge, sample: Sample) -> None:
        self._gauges[tick.at] = tick
        drawn = zip(
            sample.visit.tolist(), sample.stale.tolist(), sample.demand.tolist(), strict=True
        )
        self._samples |= {visit: (tick.at, stale, demand) for visit, stale, demand in drawn}

    async def gauged(self, start: int, end: int) -> tuple[list[Gauge], Findings]:
        ticks = [self._gauges[at] for at in sorted(self._gauges) if start <= at < end]
        table: list[tuple[float | None, ...]] = []
        for visit, (at, stale, demand) in sorted(self._samples.items()):
            seen = self._observations.get(visit)
            if seen is not None and start <= at < end:
                drawn = (seen.propensity, seen.chance, stale, demand)
                table.append((seen.page, at, *drawn, self._found(self._first(seen, at))))
        return ticks, Findings.of(table)

    def _first(self, seen: Observation, at: int) -> Observation:
        """The first visit to the page since then: an urgent one may have come before."""
        since = [o for o in self._observations.values() if o.page == seen.page and o.at >= at]
        return min([seen, *since], key=lambda o: o.at)

    def _found(self, seen: Observation) -> float | None:
        """Whether the copy was out of date; None if the visit cannot tell."""
        if seen.status in _GONE:
            past = [o for o in self._observations.values() if o.page == seen.page]
            known = [o for o in past if o.at < seen.at and o.status in (*_GONE, *_ANSWERED)]
            return float(not known or max(known, key=lambda o: o.at).status in _ANSWERED)
        if seen.status not in _ANSWERED:
            return None
        if seen.since is None:
            return 1.0
        return None if seen.changed is None else float(seen.changed)

    async def empanel(self, members: Sequence[Member]) -> None:
        self._panel = {member.page: member for member in members}

    async def panel(self) -> list[Member]:
        return [self._panel[p] for p in sorted(self._panel) if p not in self._forgotten]

    async def sightings(self) -> list[Sighting]:
        seen = sorted(self._observations.values(), key=lambda o: (o.page, o.at, o.visit))
        return [
            Sighting(o.page, o.at, o.purpose, o.digest if o.status in _ANSWERED else None)
            for o in seen
            if (member := self._panel.get(o.page)) is not None
            and self._first_at(member) <= o.at <= (o.at if member.until is None else member.until)
        ]

    def _first_at(self, member: Member) -> int:
        """When the copy was taken that there was when the panel began."""
        of_page = [o for o in self._observations.values() if o.page == member.page]
        known = [o.at for o in of_page if o.at < member.since and o.status in _ANSWERED]
        return max(known, default=member.since)

    def _forget_gauges(self, before: int) -> None:
        self._gauges = {at: tick for at, tick in self._gauges.items() if at >= before}
        self._samples = {v: drawn for v, drawn in self._samples.items() if drawn[0] >= before}
