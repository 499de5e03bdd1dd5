"""Across files: CatBoost's categories, one-hot, as statistics and in combinations, at every row of a small table."""

from __future__ import annotations

import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler, TargetEncoder

from ocf import Explainer
from ocf.errors import DataError, ModelError, UnsupportedModelError
from ocf.readers import read_model
from ocf.readers.base import UNSEEN, TreeModel
from ocf.readers.catboost_format import parse
from ocf.readers.conformance import check_conformance
from ocf.readers.files import load_model

catboost = pytest.importorskip("catboost")

SETTINGS = {
    "iterations": 6, "depth": 4, "verbose": 0, "logging_level": None, "thread_count": 1, "allow_writing_files": False,
}  # fmt: skip
WORDS = {"job": tuple("pqrstuv"), "city": ("x", "y y", "zürich", "w" * 70), "on": (False, True)}
#: With a word that no model has seen.
LEVELS = {1: (*WORDS["job"], "a new one"), 2: WORDS["city"], 3: WORDS["on"]}

KINDS = ("Borders", "Buckets", "BinarizedTargetMeanValue", "Counter")
DEEP = {"max_ctr_complexity": 4, "depth": 6, "iterations": 20, "model_size_reg": 0}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 300
    return pd.DataFrame({"a": rng.normal(size=n).round(1)} | {k: rng.choice(list(v), n) for k, v in WORDS.items()})


def classes(table: pd.DataFrame) -> np.ndarray:
    wanted = (table["a"] > 0) ^ table["job"].isin(["p", "q", "t"]) ^ (table["city"] == "zürich") ^ table["on"]
    return np.where(wanted, "yes", "no")


def fitted(table: pd.DataFrame, y: Any, values: bool = False, **settings: Any) -> Any:
    kind = catboost.CatBoostRegressor if values else catboost.CatBoostClassifier
    given = {k: v for k, v in (SETTINGS | settings).items() if v is not None}
    return kind(**given).fit(table, y, cat_features=list(WORDS))


def check_everywhere(model: Any, table: pd.DataFrame) -> TreeModel:
    """Scores of all combinations of words with numbers on both sides of every border, by the user's own object."""
    unnamed = read_model(model)
    assert unnamed.categories == {1: (UNSEEN,), 2: (UNSEEN,), 3: (UNSEEN,)}
    check_conformance(unnamed)
    assert unnamed.naming is not None
    read = unnamed.naming(LEVELS)
    check_conformance(read, table)
    cuts = read.ensemble.threshold[read.ensemble.feature == 0]
    cuts = np.unique(cuts[np.isfinite(cuts)])
    numbers = np.r_[cuts, np.nextafter(cuts, np.inf), np.nan]
    codes = np.array(list(itertools.product(numbers, *(range(len(v)) for v in LEVELS.values()))))
    rows = pd.DataFrame({"a": codes[:, 0]})
    for j, name in enumerate(WORDS, 1):
        rows[name] = [LEVELS[j][int(code)] for code in codes[:, j]]
    np.testing.assert_allclose(read.scores(rows), read.ensemble.scores(codes), rtol=0, atol=read.ensemble.rounding)
    assert len(np.unique(read.ensemble.scores(codes))) > 10
    return read


def combinations(model: Any, path: Path) -> set[str]:
    """Kinds of combinations that a model counts."""
    model.save_model(str(path), format="json")
    found = json.loads(path.read_text(encoding="utf-8"))["features_info"].get("ctrs", [])
    return {"+".join(e["combination_element"].removeprefix("cat_feature_") for e in c["elements"]) for c in found}


@pytest.mark.parametrize("policy", ["SymmetricTree", "Depthwise", "Lossguide"])
@pytest.mark.parametrize("one_hot", [1, 2, 10])
def test_one_hot_and_statistics(policy: str, one_hot: int, table: pd.DataFrame) -> None:
    read = check_everywhere(fitted(table, classes(table), grow_policy=policy, one_hot_max_size=one_hot), table)
    assert len(read.ensemble.sets)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", ["two", "three", "values"])
@pytest.mark.filterwarnings("ignore")
def test_kinds_of_statistics(kind: str, task: str, table: pd.DataFrame) -> None:
    score = table["a"] + 2.0 * (classes(table) == "yes")
    y = {"two": classes(table), "three": np.digitize(score, [0, 1.5]), "values": score}[task]
    several = kind in ("Borders", "Buckets") and task == "values"
    # a prior, since without one a category that no row has counts nothing of nothing
    simple = f"{kind}:Prior=1" + (":TargetBorderCount=4" if several else "")
    check_everywhere(fitted(table, y, task == "values", simple_ctr=[simple]), table)


def test_statistics_are_compared_in_the_librarys_own_float32(table: pd.DataFrame, tmp_path: Path) -> None:
    """A model whose borders are the very numbers of its categories, which are not greater than themselves."""
    document = json.loads(_document(table))
    splits = {s["split_index"]: s for tree in document["oblivious_trees"] for s in tree["splits"]}
    info, moved = document["features_info"], 0
    number = sum(len(f["borders"]) for f in info["float_features"])
    number += sum(len(f.get("values", ())) for f in info["categorical_features"])
    for ctr in info["ctrs"]:
        flat = document["ctr_data"][ctr["identifier"]]["hash_map"]
        values = _numbers_of(ctr, flat) if ctr["ctr_type"] == "Borders" else np.zeros(0)
        if len(values) >= len(ctr["borders"]):
            ctr["borders"] = values[(len(values) - len(ctr["borders"])) // 2 :][: len(ctr["borders"])].tolist()
            moved += 1
        for k, border in enumerate(ctr["borders"], number):
            if k in splits:
                splits[k]["border"] = border
        number += len(ctr["borders"])
    assert moved
    path = tmp_path / "m.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    check_everywhere(load_model(path), table)


def _numbers_of(ctr: dict[str, Any], flat: list[Any]) -> np.ndarray:
    """The number of each category whose hits and misses are counted."""
    counts = np.array([(flat[k + 2], flat[k + 1] + flat[k + 2]) for k in range(0, len(flat) - 2, 3)], np.float32)
    share = (counts[:, 0] + np.float32(ctr["prior_numerator"])) / (counts[:, 1] + np.float32(ctr["prior_denomerator"]))
    return np.unique(share * np.float32(ctr["scale"]))


@pytest.mark.parametrize("settings", [{}, {"one_hot_max_size": 4}, {"boosting_type": "Ordered"}, {"nan_mode": "Max"}])
def test_combinations(settings: dict[str, Any], table: pd.DataFrame, tmp_path: Path) -> None:
    holes = table.assign(a=table["a"].mask(table.index % 9 == 0))
    model = fitted(holes, classes(table), **(DEEP | settings))
    check_everywhere(model, holes)
    kinds = combinations(model, tmp_path / "m.json")
    assert any("value+float_feature" in kind for kind in kinds)
    assert any("exact_value" in kind or kind.startswith("value+value") for kind in kinds)


@pytest.mark.parametrize("settings", [{}, DEEP])
@pytest.mark.parametrize("target", ["yes", "no"])
def test_answers_equal_brute_force_in_the_users_words(
    settings: dict[str, Any], target: str, table: pd.DataFrame
) -> None:
    model = fitted(table, classes(table), **settings)
    rows = table[model.predict(table) != target].iloc[:3]
    found = Explainer(model, data=table).explain(rows, target=target, norm="l0")
    grid = pd.DataFrame(itertools.product(np.unique(table["a"]), *WORDS.values()), columns=table.columns)
    good = grid[model.predict(grid) == target]
    for answer, (_, row) in zip(found, rows.iterrows(), strict=True):
        assert answer.status == "optimal", answer.message
        assert answer.verified, answer.checks
        assert model.predict(answer.counterfactual)[0] == target
        assert (answer.counterfactual.dtypes == table.dtypes).all()
        # numbers between those of the table cost the same as they do
        assert answer.cost <= (good != row).sum(axis=1).min()
        if answer.cost < (good != row).sum(axis=1).min():
            assert answer.counterfactual["a"].item() not in set(table["a"])


def test_whole_numbers_as_categories(table: pd.DataFrame) -> None:
    rng = np.random.default_rng(1)
    numbers = table.assign(job=rng.integers(-2, 4, len(table)))
    y = (numbers["job"].isin([-1, 2]) ^ numbers["on"]).astype(int)
    model = fitted(numbers, y)
    with pytest.raises(DataError, match="describe it as kind 'categorical'"):
        Explainer(model, data=numbers)
    explainer = Explainer(model, data=numbers, features={"job": {"kind": "categorical"}})
    answer = explainer.explain(numbers[model.predict(numbers) == 0].iloc[:1], target=1)[0]
    assert answer.verified
    assert answer.status == "optimal"


def test_missing_categories_and_strange_ones_are_refused(table: pd.DataFrame) -> None:
    model = fitted(table, classes(table))
    holes = table.assign(job=table["job"].mask(table.index % 7 == 0))
    explainer = Explainer(model, data=holes)
    assert explainer.explain(holes.iloc[[1]])[0].verified
    with pytest.raises(DataError, match="category columns take no missing values"):
        explainer.explain(holes.iloc[[0]])
    naming = read_model(model).naming
    assert naming is not None
    with pytest.raises(UnsupportedModelError, match=r"words and whole numbers are read as categories, not 0\.5"):
        naming({1: (0.5,)})


def behind(step: Any, table: pd.DataFrame, places: list[Any], y: Any, **settings: Any) -> Any:
    kind = catboost.CatBoostClassifier(
        **{k: v for k, v in (SETTINGS | settings).items() if v is not None}, cat_features=places
    )
    return make_pipeline(step, kind).fit(table, y)


def filled() -> Any:
    return make_column_transformer(
        (StandardScaler(), ["a"]),
        (SimpleImputer(strategy="constant", fill_value="none"), ["job"]),
        (OrdinalEncoder(dtype=int), ["city"]),
        remainder="passthrough",
    )


STEPS = {
    "as they are": (lambda: make_column_transformer((StandardScaler(), ["a"]), remainder="passthrough"), [1, 2, 3]),
    "in a table": (lambda: filled().set_output(transform="pandas"), ["simpleimputer__job", "ordinalencoder__city"]),
    "filled and numbered": (filled, [1, 2, 3]),
    "moved": (
        lambda: make_column_transformer(("passthrough", ["on", "job", "city"]), (StandardScaler(), ["a"])),
        [0, 1, 2],
    ),
    "some of them": (
        lambda: make_column_transformer((TargetEncoder(), ["city"]), remainder="passthrough"),
        [2, 3],
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_category_columns_behind_steps_are_read_by_what_these_make_of_each_level(
    name: str, table: pd.DataFrame
) -> None:
    step, places = STEPS[name]
    model = behind(
        step(), table, places, classes(table), **DEEP | {"iterations": 4, "depth": 3, "max_ctr_complexity": 2}
    )
    explainer = Explainer(model, data=table)
    row = table.iloc[[0]]
    wanted = "no" if model.predict(row)[0] == "yes" else "yes"
    found = explainer.explain(row, target=wanted, norm="l0", progress=False)[0]
    cuts = explainer.prepared.trees.threshold[explainer.prepared.trees.feature == 0]
    numbers = np.unique(np.r_[cuts[np.isfinite(cuts)], np.nextafter(cuts[np.isfinite(cuts)], np.inf), row["a"]])
    grid = pd.DataFrame(itertools.product(numbers, *(table[k].unique() for k in WORDS)), columns=table.columns)
    met = grid[model.predict(grid) == wanted]
    least = (met.astype(object) != row.iloc[0]).sum(axis=1).min()
    assert (found.status, found.verified, found.cost) == ("optimal", True, least)
    gap = row.assign(job=None)
    if "filled" in name or "table" in name:  # the imputer's own word is no level of the table
        filled_row = explainer.explain(gap, target="yes", progress=False)[0]
        assert filled_row.verified, filled_row.message
        assert filled_row.counterfactual["job"].isna().all()


def test_categories_behind_steps_survive_processes_and_are_refused_where_numbers_move_them(table: pd.DataFrame) -> None:
    y = classes(table)
    model = behind(STEPS["moved"][0](), table, [0, 1, 2], y)
    explainer = Explainer(model, data=table)
    again = pickle.loads(pickle.dumps(explainer.prepared))
    assert again.model.trees.categories == explainer.prepared.model.trees.categories
    counted = table.assign(on=np.arange(len(table)) % 40)
    model = behind(STEPS["moved"][0](), counted, [0, 1, 2], y)
    with pytest.raises(DataError, match="describe it as kind 'categorical'"):
        Explainer(model, data=counted)
    assert (
        Explainer(model, data=counted, features={"on": {"kind": "categorical"}})
        .explain(counted.iloc[[0]], target="opposite", progress=False)[0]
        .verified
    )
    plain = make_pipeline(
        STEPS["moved"][0](),
        catboost.CatBoostClassifier(iterations=2, verbose=0, thread_count=1, allow_writing_files=False),
    )
    inside = GridSearchCV(plain, {"catboostclassifier__depth": [2]}, cv=2)
    with pytest.raises(UnsupportedModelError, match="inside a GridSearchCV: give ocf that Pipeline"):
        Explainer(inside.fit(table, y, catboostclassifier__cat_features=[0, 1, 2]), data=table)


def _twice(hash_map: list[Any]) -> list[Any]:
    return hash_map + hash_map[:3]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d["features_info"]["ctrs"][0].update(ctr_type="FloatTargetMeanValue"), "'FloatTargetMeanValue'"),
        (lambda d: d["features_info"]["ctrs"][0]["elements"][0].update(cat_feature_index=1), "another combination"),
        (lambda d: d["features_info"]["ctrs"][0].update(target_border_idx=9), "9 is not between 0"),
        (lambda d: d["features_info"].update(quantum_features=[1]), "does not know the part 'quantum_features'"),
        (lambda d: next(iter(d["ctr_data"].values())).update(hash_stride=9), "no multiple of 9"),
        (lambda d: next(iter(d["ctr_data"].values()))["hash_map"].append("1"), "no multiple of"),
        (lambda d: d.update(ctr_data={}), "there is no "),
        (
            lambda d: d["features_info"]["float_features"][0].update(log_scale=True),
            "does not know the part 'log_scale'",
        ),
        (lambda d: d["features_info"]["ctrs"][0].update(decay=0.5), "does not know the part 'decay'"),
        (lambda d: d["oblivious_trees"][0]["splits"][0].update(soft=1), "does not know the part 'soft'"),
        (lambda d: next(iter(d["ctr_data"].values())).update(bits=8), "does not know the part 'bits'"),
        (lambda d: d["oblivious_trees"][0]["splits"][0].update(split_index=0), "the split is not number 0"),
        (lambda d: d["oblivious_trees"][0]["leaf_values"].pop(), "15 entries where 16 belong"),
        (lambda d: d["features_info"]["categorical_features"][0].update(flat_feature_index=0), "stand in one column"),
        (lambda d: d["features_info"]["float_features"][0].update(nan_value_treatment="AsNull"), "'AsNull'"),
    ],
)
def test_damaged_documents_are_refused_by_the_place(change: Any, said: str, table: pd.DataFrame) -> None:
    document = json.loads(_document(table))
    parse(document, 1)
    change(document)
    with pytest.raises((ModelError, UnsupportedModelError), match=said):
        parse(document, 1)


def _document(table: pd.DataFrame, kept: dict[str, str] = {}) -> str:  # noqa: B006
    if not kept:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.json"
            fitted(table, classes(table)).save_model(str(path), format="json")
            kept["text"] = path.read_text(encoding="utf-8")
    return kept["text"]
