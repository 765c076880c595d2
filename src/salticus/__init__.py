"""Salticus keeps a local copy of web content fresh on a budget."""

__version__ = "0.1.0"
__all__ = ["__version__"]
