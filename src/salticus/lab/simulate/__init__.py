"""Runs the loop on a replayed log, and keeps the score."""

from salticus.lab.simulate.contest import Contest, simulate
from salticus.lab.simulate.stage import SimulationSettings

__all__ = ["Contest", "SimulationSettings", "simulate"]
