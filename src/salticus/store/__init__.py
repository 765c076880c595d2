"""Where pages and what was learnt of them are kept."""

BUILTIN = {"sqlite": "salticus.store.sqlite:SqliteStore"}
