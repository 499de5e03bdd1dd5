"""Data sets by name: those that scikit-learn ships, and those of a folder with one JSON of feature facts each.

A folder is given as `folder` or by the environment variable ``OCF_DATA``. For each set it holds ``NAME.csv`` or
``NAME.csv.gz``, whose last column is ``target``, and ``NAME.json`` with the type, levels and actionability of each
feature.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ocf.errors import DataError
from ocf.words import nearest

#: Data sets that scikit-learn ships.
SHIPPED = ("breast_cancer", "iris", "wine", "diabetes_progression")


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table, what is to be predicted, and what is known of the features.

    Attributes
    ----------
    name : str
    table : DataFrame (n, n_features)
    target : Series (n,)
    settings : dict
        Of features, as `ocf.inference.infer_space` takes them.
    desired : object
        The favourable class; None for regression or when there is none.
    """

    name: str
    table: pd.DataFrame
    target: pd.Series[Any]
    settings: dict[str, dict[str, Any]]
    desired: Any = None


def load_dataset(name: str, folder: str | Path | None = None) -> Dataset:
    """Load a data set by name.

    Parameters
    ----------
    name : str
    folder : path, optional
        Default: the environment variable ``OCF_DATA``.

    Raises
    ------
    DataError
        No such set, or the folder is missing.
    """
    if name in SHIPPED:
        return _shipped(name)
    folder = folder or os.environ.get("OCF_DATA")
    if not folder:
        raise DataError(
            f"data set {nearest(name, SHIPPED)}; others need a folder: set OCF_DATA or give the option --data"
        )
    root = Path(folder)
    if not root.is_dir():
        raise DataError(f"the data folder {str(root)!r} does not exist")
    facts_file = root / f"{name}.json"
    if not facts_file.exists():
        known = sorted(p.stem for p in root.glob("*.json"))
        raise DataError(f"the data folder has no set {nearest(name, [*SHIPPED, *known])}")
    facts = json.loads(facts_file.read_text())
    table = pd.read_csv(root / facts.get("file", f"{name}.csv"))
    target = table.pop("target")
    settings = {feature: _settings(fact) for feature, fact in facts["features"].items()}
    for feature, setting in settings.items():
        if setting["kind"] == "numeric":
            table[feature] = table[feature].astype(float)
    return Dataset(name, table, target, settings, facts["target"].get("desired"))


def _settings(fact: dict[str, Any]) -> dict[str, Any]:
    setting = {"kind": fact["type"], "actionability": fact.get("actionable", "free")}
    if fact["type"] == "numeric":
        setting["bounds"] = [float(fact["min"]), float(fact["max"])]
    else:
        setting["levels"] = fact["levels"]
    return setting


def _shipped(name: str) -> Dataset:
    from sklearn import datasets

    loaders = {
        "breast_cancer": (datasets.load_breast_cancer, 1),
        "iris": (datasets.load_iris, None),
        "wine": (datasets.load_wine, None),
        "diabetes_progression": (datasets.load_diabetes, None),
    }
    load, desired = loaders[name]
    bunch = load(as_frame=True)
    return Dataset(name, bunch.data, bunch.target, {}, desired)


def one_hot_pipeline(dataset: Dataset, model: Any) -> Any:
    """Pipeline that encodes the categorical features of a data set as indicators and passes the others on.

    Parameters
    ----------
    dataset : Dataset
    model : estimator
        Not fitted yet.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder

    categorical = [c for c, setting in dataset.settings.items() if setting["kind"] == "categorical"]
    if not categorical:
        return model
    levels = [dataset.settings[c]["levels"] for c in categorical]
    encode = ColumnTransformer(
        [("levels", OneHotEncoder(categories=levels, sparse_output=False), categorical)],
        remainder="passthrough",
        verbose_feature_names_out=False,
    )
    return Pipeline([("encode", encode), ("model", model)])
