"""Probabilities of an answer over a region, from a random forest."""
