"""A table and its forests behind steps, and how their splits are pulled back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from ocf.features.inference import infer_space
from ocf.features.space import FeatureSpace
from ocf.models.encoding import Encoding
from ocf.models.lift import Lifted, lift
from ocf.models.user_model import as_user_model
from ocf.trees.ensemble import Ensemble

RNG = np.random.default_rng(0)
N = 120
TABLE = pd.DataFrame({"income": RNG.lognormal(3, 1, N), "debt": RNG.normal(size=N), "age": RNG.integers(18, 90, N)})
LABELS = (np.log(TABLE.income) - TABLE.debt + 0.02 * TABLE.age + RNG.normal(0, 0.3, N) > 4).astype(int)


def forest() -> RandomForestClassifier:
    return RandomForestClassifier(20, max_depth=6, random_state=0)


def lifted(
    model: Any, table: pd.DataFrame, missing: frozenset[int] = frozenset(), settings: Any = None
) -> tuple[Ensemble, Lifted, Encoding, FeatureSpace]:
    """Ensemble over model columns and over features, and how they hang together."""
    user = as_user_model(model)
    functions = [name for name, step in user.preprocessing.steps if getattr(step, "func", None) in WORDED]
    user = user.saying(dict.fromkeys(functions, "increasing"))
    space = infer_space(table, settings)
    coded = space.from_frame(table)
    base = coded[~np.isnan(coded).any(axis=1)][0]
    encoding = Encoding(space, user.encode, base, user.preprocessing.read, user.numbers)
    return user.trees.ensemble, lift(user.trees.ensemble, encoding, missing), encoding, space


def assert_same_leaves(ensemble: Ensemble, over_features: Lifted, encoding: Encoding, space: FeatureSpace) -> None:
    """On the data's rows and on random ones at, next to and between the thresholds."""
    rng = np.random.default_rng(1)
    trees = over_features.ensemble
    columns = []
    for i, feature in enumerate(space.features):
        if feature.discrete:
            pool = np.arange(len(feature.levels), dtype=float)
        else:
            own = (trees.feature == i) & np.isfinite(trees.threshold)
            cuts = trees.threshold[own].astype(feature.float_dtype)
            inf = cuts.dtype.type(np.inf)
            near = [cuts, np.nextafter(cuts, inf), np.nextafter(cuts, -inf)]
            pool = np.concatenate([*near, rng.uniform(feature.lower, feature.upper, 30)]).astype(cuts.dtype)
            if feature.kind == "integer":
                pool = np.round(pool)
        columns.append(rng.choice(pool, 400).astype(float))
    points = np.column_stack(columns)
    expected = ensemble.apply(encoding.encode(space.to_frame(points)))
    np.testing.assert_array_equal(over_features.apply(points), expected)


def log(x: np.ndarray) -> np.ndarray:
    return np.log1p(np.maximum(x, 0.0))


def cube(x: np.ndarray) -> np.ndarray:
    return x * x * x


#: Functions that the user says are increasing.
WORDED = (log, cube)


def with_holes() -> pd.DataFrame:
    return TABLE.astype({"age": float}).mask(np.random.default_rng(2).random(TABLE.shape) < 0.2)
