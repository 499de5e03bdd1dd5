"""Reader of CatBoost models: classifiers and regressors of numbers and categories, with trees of every growing policy.

How CatBoost compares stands in `ocf.readers.catboost_format`; a value is cast to float32 before that. Leaf values are
added in float64, multiplied by a scale, and a bias is added. Of two classes the second is given where its probability
exceeds the threshold, of several the largest score wins.

A model keeps no names of categories, only hashes of their texts. So it is read once without any, each category column
having a single category that the model has never seen, and once more with the levels of the user's table
(`TreeModel.naming`). The library itself tells their hashes. The trees come from its own JSON; scores and decisions from
the user's object.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ocf.arrays import FloatArray
from ocf.errors import DataError, ModelError, UnsupportedModelError
from ocf.readers.base import UNSEEN, Rows, TreeModel, brief, whole
from ocf.readers.catboost_files import CLASSES, MAGIC, VALUES, load_file
from ocf.readers.catboost_format import parse
from ocf.readers.catboost_trees import Grower
from ocf.readers.sklearn_common import stack_trees
from ocf.readers.trees import category_text, fit_columns
from ocf.support.messages import listed
from ocf.trees.ensemble import Decision
from ocf.trees.links import logit

#: One of these stands first in the library's JSON.
_KEYS = (b'"features_info"', b'"oblivious_trees"', b'"ctr_data"', b'"scale_and_bias"')

#: Width of the zone around a threshold in which the library's own sigmoid may decide.
_LINK_SLACK = 1e-12

_NUMBERS = "encode such columns before the model, for example by OneHotEncoder or TargetEncoder in a Pipeline"


def matches(model: object) -> bool:
    """Whether the object is a model of CatBoost, without importing the library."""
    return bool(_class_names(model))


def _class_names(model: object) -> set[str]:
    classes = type(model).__mro__
    return {c.__name__ for c in classes if c.__module__.split(".")[0] == "catboost"} - {"_CatBoostBase"}


def sniff(data: bytes) -> bool:
    """Whether a file that begins with `data` looks like CatBoost's binary format or its JSON."""
    return data.startswith(MAGIC) or (data.lstrip().startswith(b"{") and any(key in data for key in _KEYS))


def load(path: Path) -> Any:
    """Model of a binary or JSON file; see `ocf.readers.catboost_files.load_file`."""
    return load_file(Path(path))


def read(model: Any) -> TreeModel:
    """Ensemble of a fitted CatBoostClassifier or CatBoostRegressor.

    Parameters
    ----------
    model : CatBoostClassifier or CatBoostRegressor
        Never changed.

    Raises
    ------
    ModelError
        It is not fitted.
    UnsupportedModelError
        Columns of text or embeddings, a loss without a class or value, or a ranker.
    """
    names = _class_names(model)
    if not names & {"CatBoostClassifier", "CatBoostRegressor"}:
        raise UnsupportedModelError(
            f"a {type(model).__name__} does not say what its scores mean: train a CatBoostClassifier or "
            "CatBoostRegressor"
        )
    if not model.is_fitted():
        raise ModelError(f"this {type(model).__name__} is not fitted: call its fit(X, y) first")
    with whole(model):
        _refuse_text(model)
        return _read(model, {})


def _refuse_text(model: Any) -> None:
    """Refuse a model that sees words of a text, or numbers made of one, which its trees do not keep."""
    found = (("text", model.get_text_feature_indices()), ("embeddings", model.get_embedding_feature_indices()))
    for what, places in found:
        if len(places):
            names = listed([str(model.feature_names_[j]) for j in places])
            raise UnsupportedModelError(
                f"this {type(model).__name__} has columns of {what} ({names}), and CatBoost writes no JSON of such a "
                "model: train it without them, or on numbers that are made of them before, and give ocf that table"
            )


def _read(model: Any, levels: Mapping[int, tuple[Any, ...]]) -> TreeModel:
    """Ensemble of a model whose category columns have these levels, and one that the model has never seen."""
    import catboost

    own = sorted(model.get_cat_feature_indices())
    categories = {j: (*(v for v in levels.get(j, ()) if v != UNSEEN), UNSEEN) for j in own}
    texts = {j: [category_text(value) for value in categories[j]] for j in own}
    document = _document(model, texts)
    decision = _decision(model, document, "CatBoostClassifier" in _class_names(model))
    parsed = parse(document, len(decision.classes) if decision.kind == "argmax" else 1)
    if parsed.width > len(model.feature_names_) or list(parsed.categories) != own:
        raise ModelError("the columns of this CatBoost model are others than its trees': save or fit it again")
    hashes = {j: np.array([parsed.hashes[text] for text in texts[j]], np.int32) for j in own}
    grower = Grower(parsed, hashes)
    trees = [grower.grow(tree) for tree in parsed.trees]
    columns, named = _columns(tuple(map(str, model.feature_names_)))
    library = _CatBoost(model, columns, named, decision, categories)
    return TreeModel(
        ensemble=stack_trees(
            trees,
            feature_names=columns,
            weights=np.full(len(trees), parsed.scale),
            base_score=parsed.bias,
            decision=decision,
        ),
        native=model,
        scores=library.scores,
        decide=library.decide,
        library=f"catboost {catboost.__version__}",
        categories=categories,
        probabilities=library.probabilities if decision.classes else None,
        naming=partial(_read, model) if own else None,
    )


def _document(model: Any, texts: Mapping[int, list[str]]) -> dict[str, Any]:
    """The model as the library writes it, with the hashes of texts."""
    import catboost

    pool = None
    if texts:
        n = max(map(len, texts.values()))
        columns = {j: (texts[j] * n)[:n] if j in texts else np.zeros(n) for j in range(len(model.feature_names_))}
        table = pd.DataFrame(columns).set_axis(list(model.feature_names_), axis=1)
        pool = catboost.Pool(table, cat_features=list(texts))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        try:
            model.save_model(str(path), format="json", pool=pool)
        except Exception as cause:
            # the library's own error: it writes no JSON of some kinds of columns
            raise UnsupportedModelError(f"CatBoost cannot write this model as JSON: {_NUMBERS}") from cause
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def _columns(names: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """Names of the columns, and whether the user gave them."""
    named = names != tuple(map(str, range(len(names))))
    return (names if named else tuple(f"x{j}" for j in range(len(names)))), named


def _decision(model: Any, document: dict[str, Any], classifier: bool) -> Decision:
    loss = document["model_info"]["params"]["loss_function"]["type"]
    if classifier:
        classes = tuple(np.asarray(model.classes_).tolist())
        if len(classes) < 2:
            raise ModelError(f"{type(model).__name__} was trained on a single class: train it on rows of two")
        if loss in ("Logloss", "CrossEntropy"):
            share = float(model.get_probability_threshold())
            if not 0 < share < 1:
                raise UnsupportedModelError(f"a probability threshold of {share} lets one class win everywhere")
            return Decision("threshold", classes, logit(share), link="logistic", slack=_LINK_SLACK)
        if loss in ("MultiClass", "MultiClassOneVsAll"):
            return Decision("argmax", classes, link="softmax" if loss == "MultiClass" else "logistic")
    elif loss in VALUES:
        return Decision("value")
    known = CLASSES if classifier else VALUES
    raise UnsupportedModelError(f"CatBoost's loss {loss!r} is not read: train with one of {', '.join(known)}")


# -- the user's own object -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _CatBoost:
    """The user's own object, given rows in the form that it takes."""

    native: Any
    columns: tuple[str, ...]
    named: bool
    decision: Decision
    categories: Mapping[int, tuple[Any, ...]]

    def _ask(self, rows: Rows, kind: str) -> NDArray[Any]:
        import catboost

        given = self._in_words(fit_columns(rows, self.columns, named=self.named))
        try:
            return np.asarray(self.native.predict(given, prediction_type=kind, thread_count=1))
        except catboost.CatBoostError as cause:
            raise DataError(
                f"CatBoost cannot score these rows ({brief(cause)}): give the columns and dtypes of the training data; "
                "category columns take no missing values, nor may they become missing"
            ) from cause

    def _in_words(self, rows: Rows) -> Rows:
        """Codes of categories as the user's values; what is missing is a category that the model has not seen."""
        if not self.categories or isinstance(rows, pd.DataFrame) or rows.dtype.kind != "f":
            return rows
        table = pd.DataFrame(rows, columns=list(self.columns) if self.named else None)
        for j, levels in self.categories.items():
            codes = np.where(np.isnan(rows[:, j]), len(levels) - 1, rows[:, j]).astype(np.int64)
            table.isetitem(j, np.array([*levels, UNSEEN], object)[codes])
        return table

    def scores(self, rows: Rows) -> FloatArray:
        return self._ask(rows, "RawFormulaVal").astype(np.float64).reshape(len(rows), -1)

    def decide(self, rows: Rows) -> NDArray[Any]:
        if not self.decision.classes:
            return self._ask(rows, "RawFormulaVal").astype(np.float64)
        # labels of booleans come back as words
        number = {str(label): k for k, label in enumerate(self.decision.classes)}
        return np.array([number[str(label)] for label in self._ask(rows, "Class").ravel().tolist()], np.int64)

    def probabilities(self, rows: Rows) -> FloatArray:
        return self._ask(rows, "Probability").astype(np.float64)
