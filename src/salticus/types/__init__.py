"""The nouns: what the stages hand to one another.

Rows at the edge (a `Target` is fetched, an `Observation` is stored), columns in the mathematics
(`Pages`, `Plan`, `Outcomes`). Times are µs or aware UTC datetimes in rows and ``datetime64[us]``
(UTC, NaT = never) in columns; spans in columns are floats in days; rates are per day.
"""

from salticus.types.arrays import (
    DAY,
    NEVER,
    UNPLANNED,
    Bools,
    Codes,
    Columns,
    Floats,
    Instant,
    Ints,
    Times,
    days_between,
    distinct,
    instant,
    moment,
    unplanned,
)
from salticus.types.columns import (
    Counts,
    Draw,
    Findings,
    Grant,
    Outcomes,
    Pages,
    Plan,
    Sample,
    Tick,
)
from salticus.types.inputs import STEP, Bytes, Examples, Floats32, Inputs, Ints32, Metadata
from salticus.types.prospects import FoundPages, Harvest, Looks, Prospects, usual_days
from salticus.types.rows import (
    Alert,
    Change,
    Count,
    Counted,
    Entry,
    Fetched,
    Find,
    Gauge,
    HostState,
    Mark,
    Member,
    NewPage,
    Observation,
    Reading,
    Record,
    Request,
    Sighting,
    Signal,
    Target,
    Told,
    Value,
)
from salticus.types.survival import Anchored, Foreseeing, Survival, Valued, changing
from salticus.types.words import (
    ANSWERED,
    CHANGED,
    KINDS,
    PURPOSE,
    STATUS,
    UNCHANGED,
    UNKNOWN,
    Purpose,
    Status,
)

__all__ = [
    "ANSWERED", "Alert", "Anchored", "Bools", "Bytes", "CHANGED", "Change", "Codes",
    "Columns", "Count", "Counted", "Counts", "DAY", "Draw", "Entry", "Examples", "Fetched",
    "Find", "Findings", "Floats", "Floats32", "Foreseeing", "FoundPages", "Gauge", "Grant",
    "Harvest", "HostState", "Inputs", "Instant", "Ints", "Ints32", "KINDS", "Looks", "Mark",
    "Member", "Metadata", "NEVER", "NewPage",
    "Observation", "Outcomes", "PURPOSE", "Pages", "Plan", "Prospects", "Purpose", "Reading",
    "Record", "Request", "STATUS", "STEP", "Sample", "Sighting", "Signal", "Status", "Survival",
    "Target", "Tick", "Times", "Told", "UNCHANGED", "UNKNOWN", "UNPLANNED", "Value", "Valued",
    "changing", "days_between", "distinct", "instant", "moment", "unplanned", "usual_days",
]  # fmt: skip
