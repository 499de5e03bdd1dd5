"""Pieces that formulations share, as Pyomo blocks."""
