"""Data and checks that the tests of all libraries of boosted trees share."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from ocf.readers.base import TreeModel
from ocf.trees.ensemble import Ensemble

N = 150
LINKS: dict[str, Callable[[Any], Any]] = {
    "identity": lambda s: s,
    "logistic": lambda s: 1 / (1 + np.exp(-s)),
    "exp": np.exp,
    "signed_square": lambda s: np.sign(s) * s**2,
}


def table(seed: int = 0, missing: float = 0.2) -> np.ndarray:
    """Three columns; the last two repeat values, and the last holds NaN."""
    rng = np.random.default_rng(seed)
    x = np.c_[rng.normal(size=N), rng.integers(0, 5, N), rng.normal(size=N).round(1)]
    x[rng.random(N) < missing, 2] = np.nan
    return x


def answers(x: np.ndarray, n_classes: int) -> np.ndarray:
    """Classes of one size, or without any number of them positive values below 1."""
    signal = x[:, 0] + 0.5 * x[:, 1] + np.random.default_rng(1).normal(size=len(x))
    if n_classes:
        return np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))
    return (signal - signal.min() + 0.1) / (np.ptp(signal) + 0.2)


def codes(frame: pd.DataFrame) -> np.ndarray:
    """The numbers that the libraries give to categories."""
    columns = [c.cat.codes.replace({-1: np.nan}) if c.dtype == "category" else c for _, c in frame.items()]
    return np.column_stack(columns).astype(np.float64)


def check_decisions(model: TreeModel, points: np.ndarray, rtol: float, atol: float = 0.0) -> None:
    """The ensemble decides as the library does, wherever rounding leaves no doubt."""
    scores, rule = model.ensemble.scores(points), model.ensemble.decision
    ours, theirs = model.ensemble.decide(scores), model.decide(points)
    if rule.kind == "value":
        assert theirs.dtype == np.float64
        np.testing.assert_allclose(theirs, LINKS[rule.link](ours), rtol=rtol, atol=atol)
        return
    assert theirs.dtype == np.int64
    if rule.kind == "threshold":
        clear = np.abs(scores[:, 0] - rule.threshold) > model.ensemble.rounding
    else:
        two = np.sort(scores, axis=1)[:, -2:]
        clear = two[:, 1] - two[:, 0] > 2 * model.ensemble.rounding
    assert clear.mean() > 0.5
    np.testing.assert_array_equal(ours[clear], theirs[clear])


def same(one: Ensemble, other: Ensemble) -> None:
    assert json.dumps(one.to_dict()) == json.dumps(other.to_dict())


def category_table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(3)
    color = pd.Categorical(rng.choice(list("xyzuv"), N), categories=["z", "y", "x", "w", "v", "u", "e u"])
    size = pd.Categorical(rng.choice([10, 20, 30], N), categories=[30, 10, 20])
    frame = pd.DataFrame({"width": rng.normal(size=N), "color": color, "size": size})
    y = (np.isin(color, ["x", "u"]) ^ (frame["width"] > 0) ^ (frame["size"] == 10)).astype(int)
    frame.loc[::11, "color"] = np.nan
    return frame, y.to_numpy()
