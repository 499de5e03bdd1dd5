"""The exact box search: branch-and-bound over integer ranks of cells, for the best point or for all boxes around.

Source: Blanchart, An exact counterfactual-example-based approach to tree-ensemble models interpretability (2021).
"""

from ocf.solvers.box.algorithm_5 import Improvements, algorithm_5
from ocf.solvers.box.decomposition import PureBox, decompose
from ocf.solvers.box.dive import backtrack
from ocf.solvers.box.enumeration import NearestBoxes
from ocf.solvers.box.search import BoxResult, solve_cells

__all__ = [
    "BoxResult",
    "Improvements",
    "NearestBoxes",
    "PureBox",
    "algorithm_5",
    "backtrack",
    "decompose",
    "solve_cells",
]
