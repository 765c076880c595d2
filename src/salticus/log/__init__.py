"""The log: the exchange format between live, training, simulation and everyone else's data."""

from salticus.log.folder import Log
from salticus.log.read import read_pages, read_values
from salticus.log.violation import Violation
from salticus.log.write import export_log, export_rows

__all__ = ["Log", "Violation", "export_log", "export_rows", "read_pages", "read_values"]
