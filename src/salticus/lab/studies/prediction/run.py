"""`salticus study predict`: one of four tables, of one log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from salticus.errors import ConfigError
from salticus.exchange.folder import Log
from salticus.lab.studies.prediction.arena import ArenaSettings, Told
from salticus.lab.studies.prediction.changes import change_study
from salticus.lab.studies.prediction.cold import cold_study
from salticus.lab.studies.prediction.daily import Dates, daily_study
from salticus.lab.studies.prediction.tasks import task_study
from salticus.lab.studies.prediction.verdicts import Row

TABLES = ("changes", "tasks", "daily", "cold")


@dataclass(frozen=True, slots=True)
class Days:
    """The days of a daily log: all three or none; and merchants that training leaves out."""

    start: datetime | None = None
    test: datetime | None = None
    end: datetime | None = None
    without: tuple[str, ...] = ()

    def dates(self) -> Dates | None:
        """The days, if they were given; ConfigError if only some were."""
        if self.start is None and self.test is None and self.end is None:
            return None
        if self.start is None or self.test is None or self.end is None:
            raise ConfigError("give the first day, that of the test and the end, or none of them")
        return Dates(self.start, self.test, self.end)


def run(table: str, log: Log, plan: ArenaSettings, told: Told, days: Days | None = None) -> Row:
    """The report of a table, as JSON can hold it."""
    if table == "daily":
        given = days or Days()
        return daily_study(log, plan, told, dates=given.dates(), without=given.without)
    return {"changes": change_study, "tasks": task_study, "cold": cold_study}[table](
        log, plan, told
    )
