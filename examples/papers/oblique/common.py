"""What the experiments share: the six data sets, the three kinds of models, and runs that resume.

Protocol (oblique, section 4 and the appendix): 80/20 splits, of Adult first the official one; TAO, 60 iterations at
most; CART grown in full and pruned; a random forest with scikit-learn's settings. Distances are in units of each
feature's range.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import joblib
import numpy as np
import pandas as pd
import runs
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedShuffleSplit, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from ocf.compare.datasets import Dataset, load_dataset, one_hot_pipeline
from ocf.oblique import TAOClassifierCV


@dataclass(frozen=True)
class Set:
    """A data set of the paper.

    Attributes
    ----------
    file : str
    depth : int
        Of the oblique tree.
    official : int, optional
        How many rows come first, for training, in the split of its publishers.
    large : bool
        The penalty of the oblique tree is chosen on a fifth of the training rows, not in cross-validation.
    """

    file: str
    depth: int
    official: int | None = None
    large: bool = False


SETS = {
    "MNIST": Set("mnist_5k", 9, large=True),
    "Adult": Set("adult", 12, official=30162, large=True),
    "Breast": Set("breast_cancer_wisconsin", 3),
    "Spambase": Set("spambase", 5),
    "Letter": Set("letter", 12, large=True),
    "Credit": Set("german_credit_full", 8),
}

#: Sets whose ordinal features are numbers to the paper, which takes them as continuous.
CONTINUOUS = ("Breast", "Letter", "MNIST", "Spambase")

#: Ordinal features with more levels than this are continuous in the other sets, too.
MANY_LEVELS = 20

#: What changes at the second and third level of constraints: names, or how many features drawn at random.
FIXED: dict[str, tuple[Any, Any]] = {
    "MNIST": ("blank", 200),
    "Adult": (["Sex"], ["Sex", "MaritalStatus"]),
    "Breast": (1, 2),
    "Spambase": (10, 30),
    "Letter": (4, 10),
    "Credit": (["personal_status_sex"], ["personal_status_sex", "credit_history"]),
}


@dataclass(frozen=True, eq=False)
class Split:
    """A data set cut into training and test part.

    Attributes
    ----------
    data : Dataset
    train, test : DataFrame
    y, y_test : (n,) arrays
    settings : dict
        Of the features.
    """

    data: Dataset
    train: pd.DataFrame
    test: pd.DataFrame
    y: np.ndarray
    y_test: np.ndarray
    settings: dict[str, dict[str, Any]]


@lru_cache(maxsize=1)
def split(name: str, folder: str | None, seed: int = 0) -> Split:
    """Load a set and cut it 80/20, or as its publishers do; rows with a gap are dropped, grey levels are in [0, 1]."""
    data = load_dataset(SETS[name].file, folder)
    whole = data.table.notna().all(axis=1)
    table, target = data.table[whole], data.target[whole]
    settings: dict[str, dict[str, Any]] = {}
    for feature, fact in data.settings.items():
        many = len(fact.get("levels", ())) > MANY_LEVELS
        if fact["kind"] == "numeric" or (fact["kind"] == "ordinal" and (many or name in CONTINUOUS)):
            table = table.assign(**{feature: table[feature].astype(float)})
            settings[feature] = {"kind": "numeric"}
        else:
            settings[feature] = {"kind": fact["kind"], "levels": fact["levels"]}
    if name == "MNIST":
        table = table / 255.0
        settings = {c: {"kind": "numeric", "bounds": [0.0, 1.0], "scale": 1.0} for c in table.columns}
    how: dict[str, Any] = {"test_size": 0.2, "random_state": seed, "stratify": target}
    if seed == 0 and (official := SETS[name].official) is not None:
        how = {"train_size": official, "shuffle": False}
    train, test, y, y_test = train_test_split(table, target.to_numpy(), **how)
    return Split(data, train, test, y, y_test, settings)


@lru_cache(maxsize=2)
def tao(name: str, folder: str | None, *, quick: bool = False) -> Any:
    """The oblique tree of a set's first split, kept for the next call.

    The folder of the environment variable ``OCF_MODELS``, if there is one, keeps it for the next experiment.
    """
    kept = _kept(name, quick)
    return joblib.load(kept) if kept is not None and kept.exists() else tao_cv(name, folder, quick=quick)


def _kept(name: str, quick: bool) -> Path | None:
    """File of a set's tree, if files are kept."""
    models = os.environ.get("OCF_MODELS")
    return Path(models) / f"tao-cv-{name}{'-quick' * quick}.joblib" if models else None


@lru_cache(maxsize=2)
def cart(name: str, folder: str | None, seed: int = 0) -> Any:
    """CART, grown in full and pruned by the penalty that is best on a fifth of the training rows."""
    the = split(name, folder, seed)
    a, b, y_a, y_b = train_test_split(the.train, the.y, test_size=0.2, random_state=1, stratify=the.y)
    full = one_hot_pipeline(the.data, DecisionTreeClassifier(random_state=0)).fit(a, y_a)
    encoded = full[:-1].transform(a) if hasattr(full, "steps") else a
    last = full[-1] if hasattr(full, "steps") else full
    alphas = last.cost_complexity_pruning_path(encoded, y_a).ccp_alphas
    alphas = np.unique(np.quantile(np.maximum(alphas, 0.0), np.linspace(0, 1, 25)))
    errors = []
    for alpha in alphas:
        tree = one_hot_pipeline(the.data, DecisionTreeClassifier(random_state=0, ccp_alpha=alpha)).fit(a, y_a)
        errors.append(1 - tree.score(b, y_b))
    best = float(alphas[int(np.argmin(errors))])
    return one_hot_pipeline(the.data, DecisionTreeClassifier(random_state=0, ccp_alpha=best)).fit(the.train, the.y)


@lru_cache(maxsize=1)
def forest(name: str, folder: str | None, seed: int = 0) -> Any:
    """Random forest with scikit-learn's settings."""
    the = split(name, folder, seed)
    return one_hot_pipeline(the.data, RandomForestClassifier(random_state=0, n_jobs=1)).fit(the.train, the.y)


def tao_cv(
    name: str, folder: str | None, seed: int = 0, *, quick: bool = False, log: bool = False, folds: bool = False
) -> Any:
    """The oblique tree of a set with the penalty that is best on rows left out; that of the first split is kept.

    Parameters
    ----------
    name : str
        Of a set.
    folder : str, optional
        Of the data.
    seed : int
        Of the split.
    quick : bool
        Depth 4 at most, 5 iterations, two penalties, two folds.
    log : bool
        On log(1 + x) of each column, where all are numbers; such a tree is not kept.
    folds : bool
        In cross-validation on large sets, too; such a tree is not kept.
    """
    the, depth = split(name, folder, seed), SETS[name].depth
    cv = StratifiedShuffleSplit(1, test_size=0.2, random_state=0) if SETS[name].large and not folds else None
    tree = TAOClassifierCV(depth, max_iter=60, cv=cv, random_state=0)
    if quick:
        tree.set_params(max_depth=min(depth, 4), max_iter=5, Cs=(10.0, 1.0), cv=2)
    if log:
        return make_pipeline(FunctionTransformer(np.log1p), tree).fit(the.train, the.y)
    fitted, kept = one_hot_pipeline(the.data, tree).fit(the.train, the.y), _kept(name, quick)
    if kept is not None and seed == 0 and not folds:
        kept.parent.mkdir(parents=True, exist_ok=True)
        joblib.dump(fitted, kept)
    return fitted


def last_step(model: Any) -> Any:
    """The classifier at the end of a Pipeline, or the model itself."""
    return model[-1] if hasattr(model, "steps") else model


def arguments(description: str) -> argparse.ArgumentParser:
    """Options that all experiments of oblique trees take."""
    parser = runs.arguments(description, "two sets, shallow trees, few rows")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="data sets (default: all six)")
    return parser
