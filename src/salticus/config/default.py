"""The settings file as it is handed to people: every setting, with a word about it."""

from __future__ import annotations

import json
import re
from pathlib import Path

_FILE = Path(__file__).with_name("default.toml")


def default_text(*, contact: str = "", budget: str = "100%") -> str:
    """The default settings with comments, and these two filled in.

    Whatever has a default, or is an example, stands there as ``#name = value``.

    >>> 'contact = "me@example.org"' in default_text(contact="me@example.org")
    True
    """
    text = _FILE.read_text("utf-8")
    return _filled(_filled(text, "contact", contact), "budget", budget)


def _filled(text: str, name: str, value: str) -> str:
    head, tail = re.split(rf'(?m)^{name} = "[^"]*"', text, maxsplit=1)
    return f"{head}{name} = {json.dumps(value, ensure_ascii=False)}{tail}"
