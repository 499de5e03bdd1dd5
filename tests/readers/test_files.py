"""Models from files: right ones load, damaged and dangerous ones get an error that says what to do."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from ocf.errors import ModelError, OcfError
from ocf.readers import read_model
from ocf.readers.conformance import check_conformance
from ocf.readers.files import load_model

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"age": RNG.normal(40, 9, 90), "colour": RNG.choice(["red", "green", "blue"], 90)})
NUMBERS = TABLE[["age"]]
LABELS = np.where(TABLE["age"] + 9 * (TABLE["colour"] == "red") > 42, "yes", "no")
PREPARE = ColumnTransformer(
    [
        ("numbers", make_pipeline(SimpleImputer(), StandardScaler(), MinMaxScaler()), ["age"]),
        ("one_hot", OneHotEncoder(), ["colour"]),
        ("ordinal", OrdinalEncoder(), ["colour"]),
    ]
)

SKOPS_MODELS = {
    "tree": DecisionTreeClassifier(),
    "extra tree": ExtraTreeClassifier(),
    "forest": RandomForestClassifier(3, random_state=np.random.RandomState(0)),
    "extra trees": ExtraTreesClassifier(3),
    "bagging": BaggingClassifier(n_estimators=3),
    "adaboost": AdaBoostClassifier(n_estimators=3),
    "boosting": GradientBoostingClassifier(n_estimators=3),
    "boosting exponential": GradientBoostingClassifier(n_estimators=3, loss="exponential"),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=3),
    "isolation": IsolationForest(n_estimators=3),
}


@pytest.fixture
def forest() -> RandomForestClassifier:
    return RandomForestClassifier(3, random_state=0).fit(NUMBERS, LABELS)


# ---------------------------------------------------------------------------------------------------- skops


@pytest.mark.parametrize("kind", SKOPS_MODELS)
def test_skops(kind: str, tmp_path: Path) -> None:
    skops_io = pytest.importorskip("skops.io")
    model = SKOPS_MODELS[kind].fit(NUMBERS, LABELS)
    skops_io.dump(model, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict(NUMBERS), model.predict(NUMBERS))
    if kind != "isolation":
        check_conformance(read_model(loaded))


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "quantile", "huber", "poisson", "gamma"])
def test_skops_losses(loss: str, tmp_path: Path) -> None:
    skops_io = pytest.importorskip("skops.io")
    models: list[Any] = []
    if loss not in ("poisson", "gamma"):
        models.append(GradientBoostingRegressor(n_estimators=2, loss=loss))
    if loss != "huber":
        models.append(HistGradientBoostingRegressor(max_iter=2, loss=loss, quantile=0.5))
    for model in models:
        skops_io.dump(model.fit(NUMBERS, np.exp(TABLE["age"] / 20)), tmp_path / "model.skops")
        check_conformance(read_model(load_model(tmp_path / "model.skops")))


def test_skops_pipeline_and_categories(tmp_path: Path) -> None:
    skops_io = pytest.importorskip("skops.io")
    pipeline = make_pipeline(PREPARE, RandomForestClassifier(3)).fit(TABLE, LABELS)
    native = HistGradientBoostingClassifier(max_iter=3, categorical_features=["colour"]).fit(TABLE, LABELS)
    for model in (pipeline, native):
        skops_io.dump(model, tmp_path / "model.skops")
        loaded = load_model(tmp_path / "model.skops")
        np.testing.assert_array_equal(loaded.predict(TABLE), model.predict(TABLE))


@pytest.mark.parametrize(
    ("model", "culprit"),
    [
        (make_pipeline(FunctionTransformer(np.log1p), DecisionTreeClassifier()), r"numpy\S*\.log1p"),
        (make_pipeline(FunctionTransformer(partial(np.add, 1)), DecisionTreeClassifier()), r"numpy\S*\.add"),
        (make_pipeline(FunctionTransformer(OneHotEncoder().fit_transform), DecisionTreeClassifier()), "OneHotEncoder"),
        (KNeighborsClassifier(), "KNeighborsClassifier"),
    ],
)
def test_skops_with_types_off_the_list(model: Any, culprit: str, tmp_path: Path) -> None:
    skops_io = pytest.importorskip("skops.io")
    path = tmp_path / "model.skops"
    skops_io.dump(model, path)
    with pytest.raises(ModelError, match=rf"does not load from a file: .*{culprit}"):
        load_model(path)


def test_skops_that_names_an_evil_type(forest: Any, tmp_path: Path) -> None:
    skops_io = pytest.importorskip("skops.io")
    path = tmp_path / "model.skops"
    skops_io.dump(forest, path)
    _rewrite_schema(
        path,
        lambda text: text.replace('"RandomForestClassifier"', '"system"', 1).replace(
            '"sklearn.ensemble._forest"', '"os"', 1
        ),
    )
    with pytest.raises(ModelError, match=r"os\.system"):
        load_model(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: "{}",
    ],
)
def test_skops_with_a_damaged_schema(change: Callable[[str], str], forest: Any, tmp_path: Path) -> None:
    skops_io = pytest.importorskip("skops.io")
    path = tmp_path / "model.skops"
    skops_io.dump(forest, path)
    _rewrite_schema(path, change)
    with pytest.raises(ModelError, match="save the model again"):
        load_model(path)


def test_skops_without_the_state_of_its_objects(forest: Any, tmp_path: Path) -> None:
    skops_io = pytest.importorskip("skops.io")
    path = tmp_path / "model.skops"
    skops_io.dump(forest, path)
    _rewrite_schema(path, lambda text: text.replace("content", "c"))
    with pytest.raises(ModelError, match=r"not fitted|another version"):
        read_model(load_model(path))


def _rewrite_schema(path: Path, change: Callable[[str], str]) -> None:
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["schema.json"] = change(parts["schema.json"].decode()).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


def test_zip_that_is_not_skops(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.writestr("readme.txt", "nothing here")
    pytest.importorskip("skops.io")
    with pytest.raises(ModelError, match="cannot be read as a skops file"):
        load_model(tmp_path / "model.zip")


def test_corrupt_tree_inside_a_good_file_is_refused_before_the_library_scores_with_it(forest: Any) -> None:
    tree = forest.estimators_[0].tree_
    state = tree.__getstate__()
    state["nodes"]["left_child"][0] = 0  # a walk would never end
    tree.__setstate__(state)
    with pytest.raises(ModelError, match="do not form a tree"):
        read_model(forest)


# --------------------------------------------------------------------------------------------------- pickle


@pytest.mark.parametrize("compress", [0, 3, ("gzip", 3), ("bz2", 3), ("xz", 3)])
def test_joblib_only_when_trusted(compress: Any, forest: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    joblib.dump(forest, path, compress=compress)
    with pytest.raises(ModelError, match=r"runs any code.*--trust-pickle"):
        load_model(path)
    np.testing.assert_array_equal(load_model(path, trust_pickle=True).predict(NUMBERS), forest.predict(NUMBERS))


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_pickle_only_when_trusted(protocol: int, forest: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps(forest, protocol=protocol))
    with pytest.raises(ModelError, match=r"runs any code.*--trust-pickle"):
        load_model(path)
    np.testing.assert_array_equal(load_model(path, trust_pickle=True).predict(NUMBERS), forest.predict(NUMBERS))


def test_untrusted_pickle_runs_nothing(tmp_path: Path) -> None:
    class Mischief:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "ran",))

    (tmp_path / "model.pkl").write_bytes(pickle.dumps(Mischief()))
    with pytest.raises(ModelError):
        load_model(tmp_path / "model.pkl")
    assert not (tmp_path / "ran").exists()


def test_pickle_of_an_absent_package(tmp_path: Path) -> None:
    (tmp_path / "model.pkl").write_bytes(b"\x80\x02cno_such_package\nModel\n.")
    with pytest.raises(ModelError, match="'no_such_package'"):
        load_model(tmp_path / "model.pkl", trust_pickle=True)


# -------------------------------------------------------------------------------------- other libraries' files


def test_xgboost(tmp_path: Path) -> None:
    xgboost = pytest.importorskip("xgboost")
    native = xgboost.XGBClassifier(n_estimators=3, max_depth=2).fit(NUMBERS, LABELS == "yes")
    for name in ("model.json", "model.ubj", "renamed.dat"):
        (tmp_path / name).write_bytes(native.get_booster().save_raw("ubj" if name == "model.ubj" else "json"))
        check_conformance(read_model(load_model(tmp_path / name)))


def test_lightgbm(tmp_path: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    native = lightgbm.LGBMClassifier(n_estimators=3, verbose=-1).fit(NUMBERS, LABELS == "yes")
    native.booster_.save_model(tmp_path / "model.txt")
    check_conformance(read_model(load_model(tmp_path / "model.txt")))


# -------------------------------------------------------------------------------------------------- bad files


@pytest.mark.parametrize("trust_pickle", [False, True])
def test_files_that_are_none(tmp_path: Path, trust_pickle: bool) -> None:
    load = partial(load_model, trust_pickle=trust_pickle)
    with pytest.raises(ModelError, match=r"there is no file .*check the path"):
        load(tmp_path / "absent.json")
    with pytest.raises(ModelError, match="is a directory"):
        load(tmp_path)
    with pytest.raises(ModelError, match="cannot be read"):
        load("model\0.json")
    for content in (b"", b" \n"):
        (tmp_path / "empty.json").write_bytes(content)
        with pytest.raises(ModelError, match="is empty"):
            load(tmp_path / "empty.json")
    for content, name in ((b"hello", "model.txt"), (b"a,b\n1,2\n", "data.csv"), (b"[1, 2]", "model.json")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelError, match="no model file that ocf knows"):
            load(tmp_path / name)
    (tmp_path / "model.skops").write_bytes(b"hello")
    with pytest.raises(ModelError, match="is no skops file"):
        load(tmp_path / "model.skops")


def _saved_models(folder: Path) -> list[Path]:
    """One small file in each format that is installed."""
    model = DecisionTreeClassifier(max_depth=2).fit(NUMBERS, LABELS)
    joblib.dump(model, folder / "model.joblib")
    paths = [folder / "model.joblib"]
    try:
        import skops.io

        skops.io.dump(model, folder / "model.skops")
        paths.append(folder / "model.skops")
    except ImportError:
        pass
    try:
        import xgboost

        booster = xgboost.XGBClassifier(n_estimators=2, max_depth=2).fit(NUMBERS, LABELS == "yes").get_booster()
        for kind in ("json", "ubj"):
            (folder / f"model.{kind}").write_bytes(booster.save_raw(kind))
            paths.append(folder / f"model.{kind}")
    except ImportError:
        pass
    try:
        import lightgbm

        booster = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1).fit(NUMBERS, LABELS == "yes").booster_
        booster.save_model(folder / "model.txt")
        paths.append(folder / "model.txt")
    except ImportError:
        pass
    return paths


def test_truncated_anywhere(tmp_path: Path) -> None:
    for path in _saved_models(tmp_path):
        data = path.read_bytes()
        if path.suffix == ".txt":  # what follows the trees is not needed to read them
            data = data[: data.index(b"end of trees")]
        for part in np.linspace(0, 0.9, 8):
            path.write_bytes(data[: int(part * len(data))])
            with pytest.raises(ModelError):
                load_model(path, trust_pickle=True)


@settings(max_examples=60, deadline=None)
@given(
    data=st.binary(max_size=200),
    prefix=st.sampled_from([b"", b"PK\x03\x04", b"\x80\x05", b"\x1f\x8b", b"tree\n", b"{L"]),
)
def test_random_bytes(data: bytes, prefix: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("random") / "model.bin"
    path.write_bytes(prefix + data)
    with pytest.raises(OcfError):
        load_model(path)
