"""Several completions of a row's missing values: the target is wanted of all of them, or of a share.

Each completion decides the splits of the features that are missing, and leaves trees over the others, on the same
cells. All these trees stand side by side in one ensemble, each once however many completions share it. What the target
asks of a completion is asked of the leaves of its own trees, so that all completions together are more rows of
requirements. A share of them is a union: of each smallest set of completions that makes up the share. Where an
isolation forest has a say, each completion has isolation trees of its own in the same way, and counts where it is deep
enough as well.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.errors import ProblemError
from ocf.problem.isolation_depth import IsolationDepth
from ocf.problem.requirements import Requirements, joined_requirements
from ocf.problem.targets import Target
from ocf.trees.ensemble import Ensemble, SplitKind
from ocf.trees.joining import append_trees, chosen_trees

#: Most smallest sets of completions that make up a share, each a problem of its own.
MOST_SETS = 500


@dataclass(frozen=True)
class Completions:
    """Which trees stand for each completion, and how many completions must have the target.

    Attributes
    ----------
    trees : tuple of (n_trees,) tuples of int
        Of each completion, in the order of the model's trees, by number in the joint ensemble.
    least : int
        How many of them must have the target.
    isolation : tuple of (n_isolation_trees,) tuples of int
        Isolation trees of each completion, by number in the forest of the plausibility; empty without one.
    """

    trees: tuple[tuple[int, ...], ...]
    least: int
    isolation: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        for name in ("trees", "isolation"):
            object.__setattr__(self, name, tuple(map(tuple, getattr(self, name))))

    def alternatives(
        self, target: Target, joint: Ensemble, trees: Ensemble, plausibility: IsolationDepth | None = None
    ) -> tuple[Requirements, ...]:
        """What target and plausibility ask of the leaves: one for each smallest set of completions that will do.

        Parameters
        ----------
        target : Target
        joint : Ensemble
            The model's trees of all completions.
        trees : Ensemble
            These and, behind them, the isolation trees of all completions.
        plausibility : IsolationDepth, optional
            Of which each completion has its trees.

        Raises
        ------
        ProblemError
            The target is a union itself, or no linear function of scores, or there are too many sets.
        """
        counted = Counter(zip(self.trees, self.isolation or [()] * len(self.trees), strict=True))
        asked = [self._asked(target, joint, own) for own, _ in counted]
        if plausibility is not None:
            deep = [own for _, own in counted]
            asked = [plausibility.added_to(a, trees, own) for a, own in zip(asked, deep, strict=True)]
        sets = tuple(itertools.islice(_smallest(list(counted.values()), self.least), MOST_SETS + 1))
        if len(sets) > MOST_SETS:
            raise ProblemError(
                f"{self.least} of {len(self.trees)} completions can be chosen in more than {MOST_SETS} ways: ask for "
                "all of them (share=1), or give fewer completions"
            )
        return tuple(joined_requirements([asked[k] for k in own]) for own in sets)

    @staticmethod
    def _asked(target: Target, joint: Ensemble, trees: tuple[int, ...]) -> Requirements:
        """What the target asks of one completion, over the leaves of all trees."""
        found = target.alternatives(chosen_trees(joint, np.array(trees)))
        if len(found) != 1 or found[0].curve is not None:
            raise ProblemError(
                "imputations need a target that asks for a sum of scores: name one class, without a probability of "
                "several; a model that averages probabilities (CalibratedClassifierCV, a soft vote) has no such sum, "
                "but each of its models has"
            )
        starts = joint.leaf_offsets
        own = np.concatenate([np.arange(starts[t], starts[t + 1]) for t in trees])
        gain = np.zeros((joint.n_leaves, found[0].gain.shape[1]))
        gain[own] = found[0].gain
        return replace(found[0], gain=gain)

    def check(self, joint: Ensemble, forest: Ensemble | None) -> None:
        """Refuse trees that there are not.

        Parameters
        ----------
        joint : Ensemble
        forest : Ensemble or None
            The isolation trees.

        Raises
        ------
        ProblemError
        """
        known, deep = range(joint.n_trees), range(0 if forest is None else forest.n_trees)
        if (
            not self.trees
            or not 1 <= self.least <= len(self.trees)
            or any(t not in known for o in self.trees for t in o)
            or any(t not in deep for o in self.isolation for t in o)
            or len(self.isolation) not in ({0} if forest is None else {len(self.trees)})
        ):
            raise ProblemError("the completions name trees that there are not, or ask for more than all of them")

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return {
            "trees": [list(own) for own in self.trees],
            "least": self.least,
            "isolation": [list(own) for own in self.isolation],
        }


def _smallest(weights: list[int], least: int) -> Iterator[tuple[int, ...]]:
    """Sets of places whose weights add up to at least so much, none of whose parts do."""
    order = sorted(range(len(weights)), key=lambda k: -weights[k])
    rest = [sum(weights[k] for k in order[n:]) for n in range(len(order) + 1)]

    def behind(n: int, lacking: int, chosen: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        # the lightest is taken last, so that a set which has just become heavy enough has no part that is
        if lacking <= 0:
            yield chosen
        elif rest[n] >= lacking:
            yield from behind(n + 1, lacking - weights[order[n]], (*chosen, order[n]))
            yield from behind(n + 1, lacking, chosen)

    return behind(0, least, ())


def completed_trees(
    trees: Ensemble, rows: FloatArray, missing: BoolArray
) -> tuple[Ensemble, tuple[tuple[int, ...], ...]]:
    """The trees of several completions side by side, with the splits of the missing features decided.

    Parameters
    ----------
    trees : Ensemble
        Of the model, or of an isolation forest, over features.
    rows : (n, n_features) float64
        Coded; each has values of the missing features.
    missing : (n_features,) bool

    Returns
    -------
    Ensemble
        In which NaN goes where the splits of missing features are decided to go.
    tuple of (n_trees,) tuples of int
        Which of its trees stand for each completion, in the order of the trees.
    """
    nodes = np.flatnonzero((trees.kind != SplitKind.LEAF) & missing[trees.feature])
    tree_of = np.searchsorted(trees.tree_offsets, nodes, side="right") - 1
    place: dict[tuple[int, bytes], int] = {}
    parts: list[Ensemble] = []
    used: list[tuple[int, ...]] = []
    for row in rows:
        left = trees.goes_left(row[None], np.zeros(len(nodes), np.int64), nodes)
        keys = [(t, left[tree_of == t].tobytes()) for t in range(trees.n_trees)]
        fresh = [key for key in keys if key not in place]
        if fresh:
            parts.append(chosen_trees(_decided(trees, nodes, left), np.array([t for t, _ in fresh])))
            place |= {key: len(place) + k for k, key in enumerate(fresh)}
        used.append(tuple(place[key] for key in keys))
    joint = parts[0]
    for part in parts[1:]:
        joint = append_trees(joint, part)
    return replace(joint, missing_left=joint.threshold == np.inf), tuple(used)


def _decided(trees: Ensemble, nodes: IntArray, left: BoolArray) -> Ensemble:
    """The trees with some splits decided."""
    kind, threshold, sets = trees.kind.copy(), trees.threshold.copy(), trees.set_index.copy()
    kind[nodes], threshold[nodes], sets[nodes] = SplitKind.AXIS, np.where(left, np.inf, -np.inf), -1
    return replace(trees, kind=kind, threshold=threshold, set_index=sets, missing_left=None)
