"""A mall: any log of values served over HTTP on loopback, with its own access log and truth."""

from salticus.lab.worlds.mall.audit import audit, read_entries

__all__ = ["audit", "read_entries"]
