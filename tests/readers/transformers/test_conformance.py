"""Across files: what a reader says of columns, against what the transformers do with random rows."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from oracle.transformer_cases import CASES
from sklearn.tree import DecisionTreeClassifier

from ocf.features.inference import infer_space
from ocf.features.lattice import Lattice
from ocf.features.space import FeatureSpace
from ocf.models.encoding import Encoding
from ocf.models.user_model import as_user_model
from ocf.readers.transformers.column import Column
from ocf.readers.transformers.flow import pieces

READ = [name for name, case in CASES.items() if not case.refused and not case.adds]


def encoding_of(name: str) -> Encoding:
    """The way from the table of a case to the columns behind its step."""
    case = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        user = as_user_model(case.fitted(DecisionTreeClassifier(max_depth=2))).saying(case.monotone)
    space = infer_space(case.table, case.settings)
    return Encoding(space, user.encode, space.from_frame(case.table)[0], user.preprocessing.read, user.numbers)


def drawn(space: FeatureSpace, n: int, seed: int) -> np.ndarray:
    """Coded rows: numbers within the bounds and at codes, and levels."""
    rng = np.random.default_rng(seed)
    rows = []
    for feature in space.features:
        if feature.discrete:
            rows.append(rng.integers(0, len(feature.levels), n).astype(float))
        else:
            values = np.concatenate([rng.uniform(feature.lower, feature.upper, n), [-9.0, 0.0, 1.0, 2.0]])
            values = np.round(values) if feature.kind == "integer" else values
            rows.append(rng.choice(values, n))
    return np.column_stack(rows)


def faults(encoding: Encoding, columns: tuple[Column, ...]) -> list[str]:
    """What is not true of what is said of columns."""
    space, found = encoding.space, []
    a, b = drawn(space, 300, 0), drawn(space, 300, 1)
    encoded = {"a": encoding.encode(space.to_frame(a)), "b": encoding.encode(space.to_frame(b))}
    for i, feature in enumerate(space.features):
        crossed = b.copy()
        crossed[:, i] = a[:, i]
        z = encoding.encode(space.to_frame(crossed))
        for j, column in enumerate(columns):
            same = encoded["a" if column.feature == i else "b"][:, j]
            if not np.array_equal(z[:, j], same, equal_nan=True):
                found.append(f"column {j} is moved otherwise than by feature {column.feature} alone ({i})")
        if not feature.discrete:
            found += _shape_faults(encoding, columns, i)
    return found


def _shape_faults(encoding: Encoding, columns: tuple[Column, ...], i: int) -> list[str]:
    feature = encoding.space.features[i]
    lattice, found = Lattice.of(feature), []
    breaks = [k for c in columns if c.feature == i for k in c.breaks]
    low, high = feature.lower - 3, feature.upper + 3
    ends = lattice.values(np.array([k + step for k in breaks for step in (-1, 0)], np.int64))
    values = np.concatenate([lattice.rounded(np.linspace(low, high, 999)), ends, [-9.0, 0.0]])
    values = np.unique(np.clip(np.clip(values, *encoding.domain[i]), *encoding.known_range[i]))
    z = encoding.varied(i, values)
    for j, column in enumerate(columns):
        if column.feature != i:
            continue
        first, last = pieces(column.breaks, *column.span(*lattice.keys(encoding.domain[i]).tolist()))
        keys, room = lattice.keys(values), 0.0 if column.exact else 1e-12 * np.abs(z[:, j]).max()
        for start, stop in zip(first, last, strict=True):
            steps = np.diff(z[(start <= keys) & (keys <= stop), j])
            if not ((steps >= -room).all() or (steps <= room).all()):
                found.append(f"column {j} turns between {lattice.values(np.array([start, stop]))}")
        if column.affine:
            line = np.polynomial.Polynomial.fit(values, z[:, j], 1)
            if not np.allclose(line(values), z[:, j], rtol=1e-9, atol=1e-9):
                found.append(f"column {j} is no line")
    return found


@pytest.mark.parametrize("name", READ)
def test_columns_are_as_they_are_read(name: str) -> None:
    encoding = encoding_of(name)
    assert encoding.columns
    assert not any(column.mixed for column in encoding.columns)
    assert faults(encoding, encoding.columns) == []


@pytest.mark.parametrize(
    ("name", "lie"),
    [
        ("StandardScaler", {"feature": 1}),
        ("StandardScaler", {"feature": -1}),
        ("FunctionTransformer(known)", {"breaks": ()}),
        ("SimpleImputer(missing_values=-9)", {"breaks": (), "feature": 1}),
        ("PowerTransformer", {"affine": True}),
        ("OneHotEncoder", {"feature": 0, "discrete": False}),
    ],
)
def test_lies_about_columns_are_noticed(name: str, lie: dict[str, Any]) -> None:
    encoding = encoding_of(name)
    place = 1 if name.startswith("SimpleImputer") else 0
    columns = list(encoding.columns)
    columns[place] = replace(columns[place], **lie)
    assert faults(encoding, tuple(columns))
