"""A store in memory, for tests and trials. `open_store("memory:")` makes one."""
