"""The log: the exchange format between live, training, simulation and everyone else's data."""

from salticus.log.read import read_pages, read_values
from salticus.log.write import export_log, export_rows

__all__ = ["export_log", "export_rows", "read_pages", "read_values"]
