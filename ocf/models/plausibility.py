"""Plausible counterfactuals: points that isolation trees take long to tell from the rows of the wanted class.

Source: ocean, section 3.5, equation (33): the average depth over the isolation trees is at least ``delta``. The trees
join those of the model, so that cells, reduction, formulations and searches see one ensemble; the depth becomes one
more requirement on its leaves, and, as a soft term, a cost of its leaves.

Nomenclature
------------
=====================  =============================================================================
symbol                 meaning, shape
=====================  =============================================================================
``d[l]``               depth of leaf l of an isolation tree, with the correction for the rows that share
                       the leaf, as the library reckons it (`ocf.readers.isolation`)
``delta``              least average depth: ``sum over the isolation trees of d[leaf] >= delta T``
``lambda``             weight of the soft term: ``lambda`` times the average depth by which a point falls
                       short of the deepest that the trees know is added to the cost
=====================  =============================================================================
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from typing import Any
from uuid import uuid4

import numpy as np

from ocf.errors import ProblemError
from ocf.readers.isolation import is_isolation_forest, read_isolation_forest
from ocf.support.amounts import real_number
from ocf.support.messages import nearest

#: Who says which rows of the data are of the target -> in words.
ROWS_BY = {"prediction": "by the model's answers", "label": "by their labels"}


@dataclass(frozen=True, eq=False)
class Plausibility:
    """What a user asks of plausibility.

    Parameters
    ----------
    forest : estimator, Pipeline or None
        Isolation forest of scikit-learn or isotree, or a Pipeline that ends in one. A fitted one is taken as it is: it
        may have been fitted on the user's table or on the matrix that the model sees (`ocf.models.forest_columns`). An
        unfitted one is fitted on the rows of the data that the model gives the target, with the `seed` below where it
        has none of its own (isotree's has one, its `random_seed`). None: scikit-learn's, with the settings below. What
        is kept is a copy, so that fitting the user's own anew changes nothing that was asked.
    quantile : float
        Share of those rows that counts as outliers; their quantile of depths is the least average depth.
    depth : float, optional
        The least average depth itself, in place of the quantile.
    required : bool
        Whether a point must be that deep. False: only the soft term counts.
    weight : float
        Of the soft term: what a level of average depth is worth, in the unit of the cost.
    trees, samples, seed : int
        Of a forest that is made here: number of trees, rows per tree, and random seed. An isolation tree is as deep as
        the logarithm of its rows to base two; without `samples` the trees are as deep as those of the model, as in the
        paper, but no deeper than 8.
    by : {"prediction", "label"}, optional
        Which rows of the data are of the target: those to which the model gives it, or those that have it by the labels
        of the data, ``Explainer(…, labels=y)``. By default by label where there are labels. The answer says which.
    """

    forest: Any = None
    quantile: float = 0.1
    depth: float | None = None
    required: bool = True
    weight: float = 0.0
    trees: int = 100
    samples: int | None = None
    seed: int = 0
    by: str | None = None
    #: The same for wishes that say the same, and whose forests hold the same.
    key: str = field(default="", init=False, repr=False)

    def words(self) -> dict[str, Any]:
        """Its settings, with the class of a forest that was given."""
        said = {name: getattr(self, name) for name in SETTINGS}
        return said | {"forest": None if self.forest is None else type(self.forest).__name__}

    def __post_init__(self) -> None:
        def number(value: Any, low: float, high: float) -> bool:
            return low <= real_number(value) < high and math.isfinite(value)

        def whole(value: Any, low: int) -> bool:
            return bool(isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= low)

        rules = {
            "quantile": (number(self.quantile, 0, 1), "a share of at least 0 and below 1"),
            "depth": (self.depth is None or number(self.depth, -math.inf, math.inf), "a number"),
            "required": (isinstance(self.required, bool), "true or false"),
            "weight": (number(self.weight, 0, math.inf), "a number of at least 0"),
            "trees": (whole(self.trees, 1), "a whole number of at least 1"),
            "samples": (self.samples is None or whole(self.samples, 2), "a whole number of at least 2"),
            "seed": (whole(self.seed, 0), "a whole number of at least 0"),
            "by": (self.by in (None, *ROWS_BY), "'prediction' or 'label'"),
        }
        for name, (holds, words) in rules.items():
            if not holds:
                raise ProblemError(f"plausibility: {name} = {getattr(self, name)!r} should be {words}")
        if not self.required and self.weight == 0:
            raise ProblemError("plausibility: with required = false and no weight nothing is asked: give a weight")
        if self.forest is not None and not is_isolation_forest(last_step(self.forest)):
            read_isolation_forest(last_step(self.forest))  # says what it should be
        forest, digest = _held(self.forest)
        said = {name: getattr(self, name) for name in SETTINGS if name != "forest"}
        object.__setattr__(self, "forest", forest)
        object.__setattr__(self, "key", sha256(repr((digest, said)).encode()).hexdigest())

    @classmethod
    def parse(cls, wish: Any) -> Plausibility | None:
        """Wish from None or False (none), True (the defaults), a mapping of settings, a forest, or itself."""
        if wish is None or wish is False:
            return None
        if isinstance(wish, cls):
            return wish
        if wish is True:
            return cls()
        if not isinstance(wish, Mapping):
            return cls(forest=wish)
        for name in wish:
            if name not in SETTINGS:
                raise ProblemError(f"plausibility: unknown setting {nearest(name, SETTINGS)}")
        return cls(**wish)

    @property
    def has_hyperplanes(self) -> bool:
        """Whether the forest splits by hyperplanes, as isotree's extended ones do."""
        return int(getattr(last_step(self.forest), "ndim", 1)) > 1

    def __repr__(self) -> str:
        shown = {f.name: getattr(self, f.name) for f in fields(self) if f.repr and getattr(self, f.name) != f.default}
        return f"Plausibility({', '.join(f'{k}={v!r}' for k, v in shown.items())})"


#: What a user may say of plausibility (in a mapping or in the ``[plausibility]`` table of a problem file).
SETTINGS = tuple(f.name for f in fields(Plausibility) if f.init)


def last_step(forest: Any) -> Any:
    """The isolation forest itself."""
    return forest.steps[-1][1] if hasattr(forest, "steps") else forest


def _held(forest: Any) -> tuple[Any, str]:
    """A forest as it is now, which nobody fits anew, and a digest of what it holds."""
    if forest is None:
        return None, ""
    try:
        state = pickle.dumps(forest)
        return pickle.loads(state), sha256(state).hexdigest()
    except Exception:  # whatever is around a forest need not know how to be pickled
        return forest, uuid4().hex
