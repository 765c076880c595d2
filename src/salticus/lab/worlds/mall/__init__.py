"""A mall: any log of values served over HTTP on loopback, with its own access log and truth."""

from salticus.lab.worlds.mall.access import AccessEntry, read_entries
from salticus.lab.worlds.mall.audit import (
    AnsweredVisits,
    Audit,
    audit,
    freshness_over,
    true_freshness,
)
from salticus.lab.worlds.mall.faults import Fault, parse_fault
from salticus.lab.worlds.mall.from_log import stock_from_log
from salticus.lab.worlds.mall.generate import generate
from salticus.lab.worlds.mall.server import Mall, serve
from salticus.lab.worlds.mall.stock import MallPage, Stock, offer_text

__all__ = [
    "Audit",
    "AccessEntry",
    "Fault",
    "Mall",
    "MallPage",
    "Stock",
    "AnsweredVisits",
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
