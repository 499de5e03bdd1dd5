"""Costs of ending in a class, as what each leaf adds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ocf.arrays import FloatArray
from ocf.errors import ProblemError
from ocf.problem.problem import Problem
from ocf.problem.targets import class_index
from ocf.support.amounts import real_number
from ocf.support.messages import quoted


def class_offsets(classes: Sequence[Any], problem: Problem, class_costs: Mapping[Any, float]) -> FloatArray:
    """Cost of ending in each leaf, inf for classes without one, (n_leaves,); ``L(y)`` of section 3.9.

    Parameters
    ----------
    classes : sequence of labels
        By index.
    problem : Problem
        Of a single tree.
    class_costs : mapping of class label to float
        As `checked_class_costs` gives them.
    """
    tree = problem.ensemble
    decided = tree.decide(tree.base_score + tree.contributions)
    prices = np.full(len(classes), np.inf)
    for label, price in class_costs.items():
        prices[classes.index(label)] = price
    return np.asarray(prices[decided.astype(np.int64)])


def checked_class_costs(classes: Sequence[Any], class_costs: Mapping[Any, float]) -> dict[Any, float]:
    """Class costs by label, refused where they make no sense.

    Parameters
    ----------
    classes : sequence of labels
        Empty for a regressor, which is refused.
    class_costs : mapping of class label to float
        Finite, at least 0; a label may be given as text.
    """
    if not classes:
        raise ProblemError("class costs need a classifier, and the model is a regressor")
    out = {}
    for label, price in class_costs.items():
        known = classes[class_index(label, classes, "class_costs")]
        if not 0 <= real_number(price) < math.inf:
            raise ProblemError(f"the cost of class {quoted(label)} must be a number of at least 0, not {quoted(price)}")
        if known in out:
            raise ProblemError(f"class_costs names the class {quoted(known)} twice")
        out[known] = float(price)
    if not out:
        raise ProblemError("class_costs is empty: give each admissible class its cost")
    return out
