"""Fakes and makers for tests of parts: a tick, blank pages, a still world, a store in memory."""

from salticus.store.memory import MemoryStore
from salticus.testing.blank import START, a_grant, a_step, a_tick, blank_pages
from salticus.testing.world import StillWorld

__all__ = ["START", "MemoryStore", "StillWorld", "a_grant", "a_step", "a_tick", "blank_pages"]
