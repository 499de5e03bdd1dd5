"""What the experiments share: the six data sets, the three kinds of models, and runs that resume.

Protocol (oblique, section 4 and the appendix): 80/20 split; TAO, 60 iterations at most; CART grown
in full and pruned; a random forest with scikit-learn's settings. Distances are in units of each feature's range.
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
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from ocf.compare.datasets import Dataset, load_dataset, one_hot_pipeline
from ocf.oblique import TAOClassifier, TAOClassifierCV


@dataclass(frozen=True)
class Set:
    """A data set of the paper: its file, and the depth of its oblique tree."""

    file: str
    depth: int


SETS = {
    "MNIST": Set("mnist_5k", 9),
    "Adult": Set("adult", 12),
    "Breast": Set("breast_cancer_wisconsin", 3),
    "Spambase": Set("spambase", 5),
    "Letter": Set("letter", 12),
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
    """Load a set and cut it 80/20; rows with a gap are dropped, grey levels are in [0, 1]."""
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
    train, test, y, y_test = train_test_split(
        table, target.to_numpy(), test_size=0.2, random_state=seed, stratify=target
    )
    return Split(data, train, test, y, y_test, settings)


def tao(name: str, folder: str | None, *, quick: bool = False, verbose: bool = False) -> Any:
    """The oblique tree of a set, in a Pipeline where there are categories.

    Kept for the next call, and in the folder of the environment variable ``OCF_MODELS``, if there is one, for the next
    experiment.
    """
    return _tao(name, folder, quick, verbose)


@lru_cache(maxsize=2)
def _tao(name: str, folder: str | None, quick: bool, verbose: bool) -> Any:
    kept = Path(os.environ.get("OCF_MODELS", "")) / f"tao-{name}{'-quick' if quick else ''}.joblib"
    if "OCF_MODELS" in os.environ and kept.exists():
        return joblib.load(kept)
    model = _trained(name, folder, quick, verbose)
    if "OCF_MODELS" in os.environ:
        kept.parent.mkdir(parents=True, exist_ok=True)
        joblib.dump(model, kept)
    return model


def _trained(name: str, folder: str | None, quick: bool, verbose: bool) -> Any:
    the = split(name, folder)
    depth, most = (min(SETS[name].depth, 4), 5) if quick else (SETS[name].depth, 60)
    tree = TAOClassifier(depth, init="random", max_iter=most, random_state=0, verbose=verbose)
    if quick:
        return one_hot_pipeline(the.data, tree).fit(the.train, the.y)
    a, b, y_a, y_b = train_test_split(the.train, the.y, test_size=0.2, random_state=1, stratify=the.y)
    scores = {}
    for penalty in PENALTIES:
        fitted = one_hot_pipeline(the.data, clone(tree).set_params(C=penalty)).fit(a, y_a)
        rows = fitted[:-1].transform(b) if hasattr(fitted, "steps") else b
        for alpha in PRUNINGS:
            scores[penalty, alpha] = last_step(fitted).pruned(alpha).score(rows, y_b)
    best = max(scores, key=lambda settings: (scores[settings], settings[1]))
    return one_hot_pipeline(the.data, tree.set_params(C=best[0], ccp_alpha=best[1])).fit(the.train, the.y)


#: Inverse strengths of the l1 penalty, and of pruning, of which those are taken that are best on a fifth of the
#: training rows.
PENALTIES = (0.01, 0.1, 1.0, 10.0)
PRUNINGS = (0.0, 0.0003, 0.001, 0.003, 0.01)


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


def tao_cv(name: str, folder: str | None, seed: int = 0, *, quick: bool = False) -> Any:
    """The oblique tree of a set whose penalty is chosen in 5-fold cross-validation.

    Parameters
    ----------
    name : str
        Of a set.
    folder : str, optional
        Of the data.
    seed : int
        Of the split.
    quick : bool
        Depth 4 at most, 5 iterations.
    """
    the = split(name, folder, seed)
    depth, most = (min(SETS[name].depth, 4), 5) if quick else (SETS[name].depth, 60)
    tree = TAOClassifierCV(depth, max_iter=most, random_state=0)
    return one_hot_pipeline(the.data, tree).fit(the.train, the.y)


def last_step(model: Any) -> Any:
    """The classifier at the end of a Pipeline, or the model itself."""
    return model[-1] if hasattr(model, "steps") else model


def arguments(description: str) -> argparse.ArgumentParser:
    """Options that all experiments of oblique trees take."""
    parser = runs.arguments(description, "two sets, shallow trees, few rows")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="data sets (default: all six)")
    return parser
