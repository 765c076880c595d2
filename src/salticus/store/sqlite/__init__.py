"""The default store: one SQLite file. Only `open_store` leads here."""
