"""Probabilities of an answer, in exact arithmetic where a level decides."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ocf.regional.query import exact_probability, probability, reaches


def test_empty_cells_add_nothing() -> None:
    counts = np.array([[0, 0], [4, 3]])
    assert probability(counts) == 0.375
    assert exact_probability(counts) == Fraction(3, 8)


def test_level_is_a_decimal() -> None:
    counts = np.array([[10, 9]] * 7)  # the mean of these float64 shares may lie beside 0.9
    assert reaches(counts, 0.9)
    assert not reaches(counts, 0.9000001)
    assert reaches(np.array([[1, 1], [5, 1]]), 0.6)
