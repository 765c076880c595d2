"""The hours in which a host may be visited, in wall time."""

from __future__ import annotations

from datetime import datetime, timedelta

from salticus.clock import Clock
from salticus.config import Hours

_STEP = timedelta(minutes=1)  # where clocks are put back, an opening may seem to lie in the past


class Window:
    """A host's hours, which are world time, as seen from the wall clock by which turns are taken.

    Law: nothing begins at a wall time that `holds` denies.
    """

    def __init__(self, hours: Hours, clock: Clock) -> None:
        self.hours = hours
        self.clock = clock

    def holds(self, wall: float) -> bool:
        """Whether the host may be visited at a wall time."""
        return self.hours.holds(self._world(wall))

    def opening(self, wall: float) -> float:
        """The first wall time from `wall` on at which the host may be visited."""
        world = self._world(wall)
        return wall if self.hours.holds(world) else self._wall(self._opening(world))

    def open_for(self, start: float, end: float) -> float:
        """How many of the wall seconds between `start` and `end` lie inside."""
        world, last = self._world(start), self._world(end)
        inside = timedelta()
        while world < last:
            if self.hours.holds(world):
                closing = min(max(self.hours.closing(world), world + _STEP), last)
                inside += closing - world
                world = closing
            else:
                world = self._opening(world)
        return inside.total_seconds() / self.clock.speed

    def _opening(self, world: datetime) -> datetime:
        return max(self.hours.opening(world), world + _STEP / 60)

    def _world(self, wall: float) -> datetime:
        ahead = (wall - self.clock.wall()) * self.clock.speed
        return self.clock.now() + timedelta(seconds=ahead)

    def _wall(self, world: datetime) -> float:
        ahead = (world - self.clock.now()).total_seconds()
        return self.clock.wall() + ahead / self.clock.speed
