"""Ensembles of trees as plain arrays."""
