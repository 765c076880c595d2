"""Settings: one TOML file, read, checked, and typed."""

from salticus.config.file import check_hours, load, parse
from salticus.config.sections import (
    Caps,
    Config,
    Desk,
    Extract,
    Fetch,
    Hook,
    Host,
    Models,
    Rule,
    Scope,
    Sources,
    Time,
)
from salticus.config.units import (
    Budget,
    ClickScore,
    CrawlRate,
    Hours,
    Share,
    Size,
    Span,
    Tolerance,
    duration,
    matches,
    size,
)

__all__ = [
    "Budget", "Caps", "ClickScore", "Config", "CrawlRate", "Desk", "Extract", "Fetch", "Hook",
    "Host", "Hours", "Models", "Rule", "Scope", "Share", "Size", "Sources", "Span", "Time",
    "Tolerance", "check_hours", "duration", "load", "matches", "parse", "size",
]  # fmt: skip
