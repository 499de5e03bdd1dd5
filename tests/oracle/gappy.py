"""Small whole-number tables with gaps and codes, and the cheapest change of a row by trying all of them.

Every admissible row is put to the user's own ``predict``, so that nothing of ocf's reading is shared. Costs are written
out anew.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from xgboost import XGBClassifier

NUMBERS, WORD, LEVELS = ("a", "b", "c"), "w", ("ash", "elm", "fir")

#: Values of the number columns that are no codes.
VALUES = range(6)

#: What the codes stand for does not matter here.
CODES = (-9, -8)

NORMS: dict[str, Any] = {"l0": "l0", "l1": "l1", "l2": "l2", "mix": {"l0": 0.3, "l1": 1.0, "l2": 0.5}}


def gappy_table(seed: int, *, missing: float = 0.25, codes: float = 0.0, n: int = 150) -> tuple[pd.DataFrame, Any]:
    """Numbers, a word, and classes to which gaps and codes matter.

    Parameters
    ----------
    seed : int
    missing, codes : float
        Shares of the cells that are missing, or codes (of numbers only).
    n : int
        Rows.
    """
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({name: rng.integers(0, 6, n).astype(float) for name in NUMBERS})
    for name in NUMBERS:
        table[name] = table[name].mask(rng.random(n) < codes, rng.choice(CODES, n).astype(float))
    table[WORD] = pd.Series(rng.choice(LEVELS, n), dtype=object)
    score = table["a"].clip(0) - table["b"].clip(0) + 2 * (table[WORD] == "elm") + (table["c"] > 3)
    table = table.mask(rng.random(table.shape) < missing)
    score = score + 2 * table["a"].isna() - 3 * table["b"].isna() + table[WORD].isna() - 2 * (table["c"] == -9)
    return table, (score + rng.normal(0, 0.5, n) > 1.5).astype(int).to_numpy()


def _encoded(*, indicator: bool) -> Any:
    number = make_pipeline(SimpleImputer(strategy="median", add_indicator=indicator), StandardScaler())
    word = make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), OneHotEncoder(handle_unknown="ignore"))
    return make_column_transformer((number, list(NUMBERS)), (word, [WORD]))


def _native() -> Any:
    return make_column_transformer((OrdinalEncoder(), [WORD]), remainder="passthrough")


MODELS: dict[str, Callable[[], Any]] = {
    "forest behind imputers": lambda: make_pipeline(
        _encoded(indicator=False), RandomForestClassifier(4, max_depth=3, random_state=1)
    ),
    "forest behind indicators": lambda: make_pipeline(
        _encoded(indicator=True), RandomForestClassifier(4, max_depth=4, random_state=2)
    ),
    "forest": lambda: make_pipeline(_native(), RandomForestClassifier(4, max_depth=4, random_state=3)),
    "hist": lambda: make_pipeline(
        _native(), HistGradientBoostingClassifier(max_iter=4, max_depth=3, min_samples_leaf=5, random_state=0)
    ),
    "xgboost": lambda: make_pipeline(_native(), XGBClassifier(n_estimators=4, max_depth=3, n_jobs=1)),
    "lightgbm": lambda: make_pipeline(
        _native(), LGBMClassifier(n_estimators=4, num_leaves=7, min_child_samples=5, verbose=-1, n_jobs=1)
    ),
}


@dataclass(frozen=True)
class Gappy:
    """A question about one row: what its values may become, and what that costs.

    Attributes
    ----------
    model : estimator
    row : DataFrame (1, n_columns)
    norm : str or dict
    supplying, becoming : dict of feature to float
        Prices; those that are not there stay.
    codes : tuple of float
        Of the number columns.
    fixed : tuple of str
        Features that may not change.
    permitted : dict of feature to (lowest, highest) or levels
    """

    model: Any
    row: pd.DataFrame
    norm: Any
    supplying: dict[str, float] = field(default_factory=dict)
    becoming: dict[str, float] = field(default_factory=dict)
    codes: tuple[float, ...] = ()
    fixed: tuple[str, ...] = ()
    permitted: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    def special(self, name: str, value: Any) -> bool:
        return bool(pd.isna(value)) or (name != WORD and value in self.codes)

    def choices(self, name: str) -> list[tuple[Any, float]]:
        """All values that a feature may take, with their costs."""
        old = self.row[name].iloc[0]
        found = [(old, 0.0)]
        if name in self.fixed:
            return found
        ordinary: list[Any] = list(LEVELS) if name == WORD else [float(v) for v in VALUES]
        if name in self.permitted:
            wanted = self.permitted[name]
            ordinary = [v for v in ordinary if (v in wanted if name == WORD else wanted[0] <= v <= wanted[1])]
            if not self.special(name, old) and old not in ordinary:
                found = []
        if self.special(name, old):
            price = self.supplying.get(name)
            return found + ([] if price is None else [(v, self.apart(price)) for v in ordinary])
        found += [(v, self.moved(name, old, v)) for v in ordinary if v != old]
        if name in self.becoming:
            gone = self.codes if name != WORD and self.codes else (None if name == WORD else math.nan,)
            found += [(v, self.apart(self.becoming[name])) for v in gone]
        return found

    def mix(self) -> tuple[float, float, float]:
        mix = {self.norm: 1.0} if isinstance(self.norm, str) else self.norm
        return mix.get("l0", 0.0), mix.get("l1", 0.0), mix.get("l2", 0.0)

    def apart(self, price: float) -> float:
        l0, l1, l2 = self.mix()
        return l0 + price * (l1 + l2)

    def moved(self, name: str, old: Any, new: Any) -> float:
        l0, l1, l2 = self.mix()
        d = 1.0 if name == WORD else abs(new - old) / 5.0
        return l0 + l1 * d + l2 * d * d

    def cheapest(self, target: int) -> float:
        """Cost of the cheapest row of the target, by trying all; infinite where there is none."""
        names = list(self.row.columns)
        choices = [self.choices(name) for name in names]
        rows = list(itertools.product(*([v for v, _ in own] for own in choices)))
        if not rows:
            return math.inf
        cost = np.array([sum(parts) for parts in itertools.product(*([c for _, c in own] for own in choices))])
        table = pd.DataFrame({name: [row[k] for row in rows] for k, name in enumerate(names)})
        for name in names:
            table[name] = table[name].astype(object if name == WORD else float)
        met = np.asarray(self.model.predict(table)) == target
        return float(cost[met].min()) if met.any() else math.inf
