"""Properties draw sixty examples each, and others in every run: the whole must fit its time."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("brief", max_examples=60)
settings.load_profile("brief")
