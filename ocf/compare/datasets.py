"""Data sets by name: those that come along, openml's, and those of a folder with one JSON of facts each.

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
from ocf.support.messages import nearest

#: Data sets that scikit-learn ships, and loans, which `ocf.compare.loans` generates.
SHIPPED = ("breast_cancer", "iris", "wine", "diabetes_progression", "loans")

#: A column of more different numbers than this holds values, not classes.
MOST_CLASSES = 50

#: Before the name or number of a set of openml.org, which is downloaded when it is first asked for.
OPENML = "openml:"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table, what is to be predicted, and what is known of the features.

    Attributes
    ----------
    name : str
    table : DataFrame (n, n_features)
    target : Series (n,)
    settings : dict
        Of features, as `ocf.features.inference.infer_space` takes them.
    desired : object
        The favourable class; None for regression or when there is none.
    """

    name: str
    table: pd.DataFrame
    target: pd.Series[Any]
    settings: dict[str, dict[str, Any]]
    desired: Any = None

    @property
    def regression(self) -> bool:
        """Whether a value is to be predicted and not a class: many different numbers."""
        return pd.api.types.is_numeric_dtype(self.target) and self.target.nunique() > MOST_CLASSES


def load_dataset(name: str, folder: str | Path | None = None) -> Dataset:
    """Load a data set by name.

    Parameters
    ----------
    name : str
        One of `SHIPPED`, ``openml:NAME`` or ``openml:NUMBER``, or a set of the folder.
    folder : path, optional
        Default: the environment variable ``OCF_DATA``.

    Raises
    ------
    DataError
        No such set, the folder is missing, or openml.org cannot be reached.
    """
    if name in SHIPPED:
        return _shipped(name)
    if name.startswith(OPENML):
        return _from_openml(name)
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


def dataset_files(name: str, folder: str | Path | None = None) -> list[Path]:
    """Files that a data set of a folder is read from; none for the others.

    Parameters
    ----------
    name : str
        As `load_dataset` takes it.
    folder : path, optional
        Default: the environment variable ``OCF_DATA``.
    """
    folder = folder or os.environ.get("OCF_DATA")
    if not folder or name in SHIPPED or name.startswith(OPENML):
        return []
    return [path for path in Path(folder).glob(f"{name}.*") if path.suffix in (".json", ".csv", ".gz")]


def described(table: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Settings of a table that comes without any: columns of words are categorical, with the levels they hold."""
    words = [c for c in table.columns if not pd.api.types.is_numeric_dtype(table[c])]
    return {c: {"kind": "categorical", "levels": sorted(table[c].dropna().unique().tolist())} for c in words}


def _from_openml(name: str) -> Dataset:
    from sklearn.datasets import fetch_openml

    wanted = name.removeprefix(OPENML)
    asked: dict[str, Any] = {"data_id": int(wanted)} if wanted.isdigit() else {"name": wanted, "version": "active"}
    try:
        bunch = fetch_openml(**asked, as_frame=True, parser="auto")
    except (OSError, ValueError) as error:
        raise DataError(f"the data set {name!r} cannot be had from openml.org: {error}") from None
    if bunch.target is None:
        raise DataError(f"the data set {name!r} names no column to be predicted")
    table = bunch.data.apply(lambda c: c if pd.api.types.is_numeric_dtype(c) else c.astype(object))
    return Dataset(name, table, bunch.target, described(table))


def _settings(fact: dict[str, Any]) -> dict[str, Any]:
    setting = {"kind": fact["type"], "actionability": fact.get("actionable", "free")}
    if fact["type"] == "numeric":
        low, high = float(fact["min"]), float(fact["max"])
        setting |= {"bounds": [low, high], "scale": high - low or 1.0}
    else:
        setting["levels"] = fact["levels"]
    return setting


def _shipped(name: str) -> Dataset:
    from sklearn import datasets

    from ocf.compare.loans import SETTINGS, make_loans

    if name == "loans":
        table = make_loans()
        return Dataset(name, table[list(SETTINGS)], table["granted"], SETTINGS, 1)

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
