"""Good skops files of several models, and the means to change one thing in them."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

skops_io = pytest.importorskip("skops.io")
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {"age": RNG.normal(40, 9, 90), "income": RNG.normal(5, 1, 90), "colour": RNG.choice(["red", "green", "blue"], 90)}
)
NUMBERS = TABLE[["age", "income"]]
LABELS = np.where(TABLE["age"] + 2 * TABLE["income"] > 50, "yes", "no")
THREE = np.where(TABLE["age"] > 45, "c", np.where(TABLE["income"] > 5, "b", "a"))
MODELS: dict[str, tuple[Any, pd.DataFrame, Any]] = {
    "tree": (DecisionTreeClassifier(max_depth=3), NUMBERS, LABELS),
    "forest": (RandomForestClassifier(3, max_depth=3, random_state=np.random.RandomState(0)), NUMBERS, THREE),
    "bagging": (BaggingClassifier(n_estimators=3, max_features=1, random_state=0), NUMBERS, THREE),
    "adaboost": (AdaBoostClassifier(n_estimators=3), NUMBERS, LABELS),
    "boosting": (GradientBoostingClassifier(n_estimators=3, max_depth=2), NUMBERS, THREE),
    "histogram": (HistGradientBoostingClassifier(max_iter=3, categorical_features=["colour"]), TABLE, LABELS),
    "isolation": (IsolationForest(n_estimators=3, random_state=0), NUMBERS, None),
    "pipeline": (make_pipeline(StandardScaler(), RandomForestClassifier(3, max_depth=3)), NUMBERS, LABELS),
    "support vectors": (SVC(kernel="linear"), NUMBERS, LABELS),
}
Parts = dict[str, bytes]


def members(data: bytes) -> Parts:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(parts: Parts, path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def parts_of(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if "__loader__" in schema:
            yield schema
        for value in schema.values():
            yield from parts_of(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from parts_of(value)


def with_attribute(parts: Parts, path: tuple[str, ...], change: Callable[[dict[str, Any]], None]) -> Parts:
    """Members with the part of an attribute changed; `path` leads there through the attributes' names."""
    schema = json.loads(parts["schema.json"])
    part = schema
    for name in path:
        part = part["content"]["content"][name] if name != "[]" else part["content"][0]
    change(part)
    return {**parts, "schema.json": json.dumps(schema).encode()}
