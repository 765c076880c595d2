"""The default store: one SQLite file. Only `open_store` leads here."""

from salticus.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
