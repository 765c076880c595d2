"""A mall: any log of values served over HTTP on loopback, with its own access log and truth."""

from salticus.worlds.mall.access import Entry, read_entries
from salticus.worlds.mall.audit import Audit, Visits, audit, freshness_over, true_freshness
from salticus.worlds.mall.faults import Fault, parse_fault
from salticus.worlds.mall.from_log import stock_from_log
from salticus.worlds.mall.generate import generate
from salticus.worlds.mall.server import Mall, serve
from salticus.worlds.mall.stock import Page, Stock, offer_text

__all__ = [
    "Audit",
    "Entry",
    "Fault",
    "Mall",
    "Page",
    "Stock",
    "Visits",
    "audit",
    "freshness_over",
    "generate",
    "offer_text",
    "parse_fault",
    "read_entries",
    "serve",
    "stock_from_log",
    "true_freshness",
]
