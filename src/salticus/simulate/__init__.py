"""Runs the loop on a replayed log, and keeps the score."""
