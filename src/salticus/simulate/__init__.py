"""Runs the loop on a replayed log, and keeps the score."""

from salticus.simulate.contest import Contest, simulate
from salticus.simulate.stage import Rules

__all__ = ["Contest", "Rules", "simulate"]
