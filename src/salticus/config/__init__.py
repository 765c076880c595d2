"""Settings: one TOML file, read, checked, and typed."""

from salticus.config.file import load, parse
from salticus.config.sections import Config, Extract, Fetch, Hook, Host, Rule, Time
from salticus.config.units import (
    Budget,
    Hours,
    Size,
    Span,
    Tolerance,
    duration,
    matches,
    size,
)

__all__ = [
    "Budget",
    "Config",
    "Extract",
    "Fetch",
    "Hook",
    "Host",
    "Hours",
    "Rule",
    "Size",
    "Span",
    "Time",
    "Tolerance",
    "duration",
    "load",
    "matches",
    "parse",
    "size",
]
