"""The log: the exchange format between live, training, simulation and everyone else's data."""

from salticus.exchange.folder import Log
from salticus.exchange.read import read_pages, read_values
from salticus.exchange.violation import Violation
from salticus.exchange.write import export_log, export_rows

__all__ = ["Log", "Violation", "export_log", "export_rows", "read_pages", "read_values"]
