"""A store in memory, for tests and trials. `open_store("memory:")` makes one."""

from salticus.store.memory.store import MemoryStore

__all__ = ["MemoryStore"]
