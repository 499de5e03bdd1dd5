"""LightGBM's models, read and compared with the library at, just above and around every threshold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ocf.errors import DataError, ModelError, UnsupportedModelError
from ocf.readers import lightgbm as reader
from ocf.readers.base import TreeModel
from ocf.readers.lightgbm_format import parse, read_text
from ocf.trees.ensemble import Ensemble, SplitKind

from .boosted import LINKS, N, check_decisions, codes, same, table
from .lightgbm_models import FAST, MULTICLASS, VALUES, estimator, labels, lgb, train

#: Of the library: values no farther from zero are zero.
ZERO = float(np.float32(1e-35))


def probes(ensemble: Ensemble, x: np.ndarray, limit: int = 400) -> np.ndarray:
    """Rows of `x` moved to every threshold and next to it, and to the edges of the library's zero."""
    rng = np.random.default_rng(2)
    zone = [e for z in (-ZERO, ZERO) for e in (z, np.nextafter(z, -1), np.nextafter(z, 1))]
    edges = {f: [0.0, -0.0, 1e-40, -1e-40, *zone] for f in range(x.shape[1])}
    for k in np.flatnonzero(ensemble.kind == SplitKind.AXIS)[:limit]:
        b = ensemble.threshold[k]
        edges[int(ensemble.feature[k])] += [b, np.nextafter(b, -np.inf), np.nextafter(b, np.inf)]
    rows = [x[:50], np.full((1, x.shape[1]), np.nan)]
    for f, values in edges.items():
        moved = x[rng.integers(0, len(x), len(values))].copy()
        moved[:, f] = values
        rows.append(moved)
    return np.concatenate(rows)


def check(native: Any, x: np.ndarray) -> TreeModel:
    """The three promises: same leaves, same scores, same decisions."""
    model = reader.read(native)
    ensemble = model.ensemble
    points = probes(ensemble, x)
    booster = native if isinstance(native, lgb.Booster) else native.booster_
    theirs = booster.predict(points, pred_leaf=True).reshape(len(points), -1)
    np.testing.assert_array_equal(ensemble.apply(points) - ensemble.leaf_offsets[:-1], theirs)
    np.testing.assert_allclose(model.scores(points), ensemble.scores(points), rtol=0, atol=ensemble.rounding)
    check_decisions(model, points, rtol=1e-12)
    return model


@pytest.mark.parametrize("objective", ["binary", *MULTICLASS, *VALUES])
@pytest.mark.parametrize("boosting", ["gbdt", "dart", "rf"])
def test_boosters_of_every_objective(objective: str, boosting: str) -> None:
    extra = {"bagging_freq": 1, "bagging_fraction": 0.6} if boosting == "rf" else {}
    check(train(objective, boosting=boosting, **extra), table())


@pytest.mark.parametrize("objective", ["regression", "regression_l1", "fair", "quantile", "mape"])
def test_regression_on_the_square_root(objective: str) -> None:
    x = table()
    native = estimator("LGBMRegressor", reg_sqrt=True, objective=objective)
    model = check(native.fit(x, labels(x, "regression") - 0.5), x)
    assert model.ensemble.decision.link == "signed_square"


@pytest.mark.parametrize("objective", ["binary", "multiclassova"])
@pytest.mark.parametrize("boosting", ["gbdt", "rf"])
def test_the_parameter_of_the_sigmoid_is_part_of_the_score(objective: str, boosting: str) -> None:
    x = table()
    native = train(objective, sigmoid=2.5, boosting=boosting, bagging_freq=1, bagging_fraction=0.6)
    model = check(native, x)
    shown = native.predict(x).reshape(N, -1)
    np.testing.assert_allclose(LINKS["logistic"](model.ensemble.scores(x)), shown, rtol=1e-12)


def test_saturated_one_against_all_classes_are_within_the_slack() -> None:
    x = table()
    y = np.digitize(x[:, 0], [-0.5, 0.5])
    native = estimator("LGBMClassifier", objective="multiclassova", learning_rate=1.0, n_estimators=60, sigmoid=3.0)
    native.fit(np.c_[x[:, :1], x[:, :1]], y)
    model = reader.read(native)
    points = np.random.default_rng(0).normal(size=(500, 2))
    scores = np.sort(model.ensemble.scores(points), axis=1)
    wrong = model.ensemble.decide(model.ensemble.scores(points)) != model.decide(points)
    assert np.all((scores[:, -1] - scores[:, -2])[wrong] <= 2 * model.ensemble.rounding)
    # exp(-s) of two high scores vanishes beside one
    assert model.ensemble.decision.slack > 1e-9


@pytest.mark.parametrize(
    ("name", "objective"),
    [
        ("LGBMClassifier", "binary"),
        ("LGBMClassifier", "cross_entropy"),
        ("LGBMClassifier", "multiclass"),
        ("LGBMClassifier", "multiclassova"),
        ("LGBMRegressor", "regression"),
        ("LGBMRegressor", "poisson"),
        ("LGBMRegressor", "binary"),
    ],
)
@pytest.mark.parametrize("named", [False, True])
def test_estimators(name: str, objective: str, named: bool) -> None:
    x = table()
    y = labels(x, "binary" if objective == "cross_entropy" else objective)
    if name == "LGBMClassifier" and objective != "cross_entropy":
        y = np.array(["no", "yes", "maybe"])[y]
    columns = ["first column", "b", "c"]
    native = estimator(name, objective=objective).fit(pd.DataFrame(x, columns=columns) if named else x, y)
    model = check(native, x)
    predicted = native.predict(pd.DataFrame(x, columns=columns) if named else x)
    if name == "LGBMClassifier":
        assert model.ensemble.decision.classes == tuple(native.classes_.tolist())
        predicted = np.array([model.ensemble.decision.classes.index(label) for label in predicted])
    np.testing.assert_array_equal(model.decide(x), predicted)


def test_two_classes_of_a_multiclass_objective() -> None:
    x = table()
    check(estimator("LGBMClassifier", objective="multiclass", num_class=2).fit(x, labels(x, "binary")), x)


def test_own_objective_of_a_regressor() -> None:
    x = table()
    native = estimator("LGBMRegressor", objective=lambda y, p: (p - y, np.ones_like(p)))
    check(native.fit(x, labels(x, "regression")), x)


def stopped(objective: str, boosting: str) -> Any:
    """A booster that still holds the rounds after its best one."""
    x = table()
    y = np.random.default_rng(0).permutation(labels(x, objective))
    options = {**FAST, "objective": objective, "boosting": boosting, "bagging_freq": 1, "bagging_fraction": 0.6}
    data = lgb.Dataset(x[:120], y[:120])
    return lgb.train(
        options | ({"num_class": 3} if objective == "multiclass" else {}),
        data,
        40,
        valid_sets=[lgb.Dataset(x[120:], y[120:], reference=data)],
        callbacks=[lgb.early_stopping(5, verbose=False)],
        keep_training_booster=True,
    )


@pytest.mark.parametrize("objective", ["binary", "multiclass"])
@pytest.mark.parametrize("boosting", ["gbdt", "rf"])
def test_early_stopping(objective: str, boosting: str, tmp_path: Path) -> None:
    native = stopped(objective, boosting)
    assert 0 < native.best_iteration < native.current_iteration()
    expected = check(native, table()).ensemble
    assert expected.n_trees == native.best_iteration * (3 if objective == "multiclass" else 1)
    native.save_model(tmp_path / "model.txt")
    same(reader.read(reader.load(tmp_path / "model.txt")).ensemble, expected)


@pytest.mark.filterwarnings("ignore:The argument 'eval_set'")
def test_early_stopping_of_an_estimator() -> None:
    x = table()
    y = labels(x, "binary")
    native = estimator("LGBMClassifier", n_estimators=300)
    stop = lgb.early_stopping(5, verbose=False)
    native.fit(x[:120], y[:120], eval_set=[(x[120:], y[120:])], callbacks=[stop])
    assert check(native, x).ensemble.n_trees == native.best_iteration_ < 300


@pytest.mark.parametrize("objective", ["binary", "multiclass", "tweedie"])
@pytest.mark.parametrize("boosting", ["gbdt", "rf"])
def test_files_give_the_ensemble_of_the_object(objective: str, boosting: str, tmp_path: Path) -> None:
    native = train(objective, boosting=boosting, bagging_freq=1, bagging_fraction=0.6)
    path = tmp_path / "model.txt"
    native.save_model(path)
    assert reader.sniff(path.read_bytes()[:64])
    expected = reader.read(native).ensemble
    same(read_text(parse(path.read_text())), expected)
    same(check(reader.load(path), table()).ensemble, expected)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    same(reader.read(reader.load(path)).ensemble, expected)


def test_printed_thresholds_are_those_in_memory() -> None:
    native = train("regression", rounds=20)
    ensemble = reader.read(native).ensemble
    frame = native.trees_to_dataframe()
    splits = frame[frame["split_feature"].notna()]
    theirs = np.sort(splits["threshold"].to_numpy(float))
    theirs[theirs == -ZERO] = np.nextafter(
        -ZERO, -1
    )  # the library takes this end of the zone for zero, which goes right
    ours = np.sort(ensemble.threshold[ensemble.kind == SplitKind.AXIS])
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("params", [{"use_missing": False}, {"max_bin": 4}, {"extra_trees": True}])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_missing_values(params: dict[str, Any], missing: float) -> None:
    """Without NaN in the training column, or with use_missing=false, NaN counts as zero."""
    x = table(missing=missing)
    native = train("regression", x=x, **params)
    check(native, x)
    check(train("regression", x=x - 1), x - 1)


@pytest.mark.parametrize(
    ("center", "spread"),
    [(0, 1e-3), (1e3, 1e-3), (1.7e9, 1e4), (1.7e9, 1e-6), (0, 1e-30), (0, 1e-34), (0, 1e-35), (0, 1e300)],
)
def test_hostile_scales(center: float, spread: float) -> None:
    x = table(missing=0.1)
    scaled = center + spread * x
    data = lgb.Dataset(scaled, labels(x, "regression"))
    check(lgb.train({**FAST, "max_bin": 512}, data, 5), scaled)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**31), st.integers(-116, 900))
def test_neighbouring_float64_values(seed: int, exponent: int) -> None:
    """Columns of a few adjacent float64 values: thresholds lie between neighbours."""
    rng = np.random.default_rng(seed)
    values = np.full(8, 2.0**exponent)
    for i in range(1, 8):
        values[i] = np.nextafter(values[i - 1], np.inf)
    x = rng.choice(values, (60, 2)) * rng.choice([-1, 1])
    y = (x[:, 0] > np.median(x[:, 0])).astype(float)
    check(lgb.train(FAST, lgb.Dataset(x, y), 3), x)


def test_trees_without_a_split() -> None:
    x = table()
    model = check(estimator("LGBMRegressor").fit(x, np.ones(N)), x)
    assert model.ensemble.n_leaves == 1
    np.testing.assert_array_equal(model.ensemble.scores(x), 1.0)


def categorical_table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(3)
    # not in alphabetical order, one category never seen, and an ordered column, which splits by threshold
    color = pd.Categorical(rng.choice(list("xyzuv"), N), categories=list("zyxwvu"))
    grade = pd.Categorical(rng.choice(["low", "mid", "top"], N), categories=["low", "mid", "top"], ordered=True)
    size = pd.Categorical(rng.choice([10, 20, 30], N), categories=[30, 10, 20])
    frame = pd.DataFrame({"a width": rng.normal(size=N), "color": color, "grade": grade, "size": size})
    y = (np.isin(color, ["x", "u"]) ^ (frame["a width"] > 0) ^ (frame["size"] == 10)).astype(int)
    frame.loc[::11, "color"] = np.nan
    return frame, y.to_numpy()


@pytest.mark.parametrize("one_hot", [1, 100])
@pytest.mark.parametrize("kind", ["booster", "classifier"])
def test_categories_of_a_table(kind: str, one_hot: int, tmp_path: Path) -> None:
    frame, y = categorical_table()
    native = estimator(
        "LGBMClassifier", min_data_per_group=1, cat_smooth=0.1, cat_l2=0, max_cat_to_onehot=one_hot, num_leaves=12
    ).fit(frame, y)
    model = check(native if kind == "classifier" else native.booster_, codes(frame))
    assert (model.ensemble.kind == SplitKind.SUBSET).any()
    assert model.ensemble.feature_names == ("a_width", "color", "grade", "size")
    np.testing.assert_array_equal(model.scores(frame), model.scores(codes(frame)))
    np.testing.assert_array_equal(model.scores(frame.iloc[:, ::-1]), model.scores(frame))
    np.testing.assert_array_equal(model.decide(frame), native.predict(frame))
    np.testing.assert_array_equal(model.decide(codes(frame)), native.predict(frame))
    odd = np.column_stack([np.zeros(9), [np.nan, -1, -7, 3, 5, 6, 31, 32, 1e6], np.ones(9), np.arange(9)])
    np.testing.assert_allclose(model.scores(odd), model.ensemble.scores(odd), rtol=0, atol=model.ensemble.rounding)
    native.booster_.save_model(tmp_path / "model.txt")
    loaded = reader.read(reader.load(tmp_path / "model.txt"))
    np.testing.assert_array_equal(loaded.decide(frame), native.predict(frame))
    # words in any container stand for the codes; the ordered column, which splits by threshold, has words too
    assert loaded.categories == {1: tuple("zyxwvu"), 2: ("low", "mid", "top"), 3: (30, 10, 20)}
    words = frame.astype({"color": object, "grade": object, "size": "int64"})
    for read in (model, loaded):
        np.testing.assert_array_equal(read.scores(words), model.scores(frame))
        missing = model.scores(codes(frame.assign(color=pd.Categorical([None] * N, categories=list("zyxwvu")))))
        for nothing in ("pink", None):
            np.testing.assert_array_equal(read.scores(words.assign(color=nothing)), missing)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_integer_categories_of_an_array(missing: float) -> None:
    rng = np.random.default_rng(4)
    x = np.c_[rng.normal(size=N), rng.choice([0, 3, 31, 32, 40, 100], N).astype(float)]
    y = np.isin(x[:, 1], [0, 32, 100]) ^ (x[:, 0] > 0)
    x[rng.random(N) < missing, 1] = np.nan
    options = {**FAST, "min_data_per_group": 1, "cat_smooth": 0.1, "max_cat_to_onehot": 1}
    model = check(lgb.train(options, lgb.Dataset(x, y, categorical_feature=[1]), 5), x)
    assert model.ensemble.sets.any(axis=1).all()


@pytest.mark.parametrize("kind", ["booster", "estimator"])
def test_tables_are_matched_by_name_and_bad_ones_are_refused(kind: str) -> None:
    x = table()
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    native = estimator("LGBMClassifier").fit(frame, labels(x, "binary"))
    model = check(native if kind == "estimator" else native.booster_, x)
    np.testing.assert_array_equal(model.decide(frame[["c", "a", "b"]].assign(more=1)), model.decide(x))
    with pytest.raises(DataError, match=r"lacks the columns \['b'\]"):
        model.scores(frame.drop(columns="b"))
    with pytest.raises(DataError, match="a column per feature"):
        model.decide(x[:, :2])
    with pytest.raises(DataError, match="LightGBM cannot score"):
        model.decide(frame.assign(b="text"))


@pytest.mark.parametrize("kind", ["booster", "estimator"])
def test_models_of_arrays_take_tables_by_position(kind: str) -> None:
    x = table()
    native = estimator("LGBMClassifier").fit(x, labels(x, "binary"))
    model = reader.read(native if kind == "estimator" else native.booster_)
    assert model.ensemble.feature_names == ("Column_0", "Column_1", "Column_2")
    np.testing.assert_array_equal(model.decide(pd.DataFrame(x, columns=["a", "b", "c"])), model.decide(x))


def test_matches_by_module_only() -> None:
    assert reader.matches(lgb.LGBMClassifier())
    assert reader.matches(train(rounds=1))
    assert not reader.matches(lgb.Dataset(table()))
    assert not reader.matches(object())


def unsupported() -> dict[str, Callable[[], Any]]:
    x = table()
    y = labels(x, "binary")
    own: Callable[..., Any] = lambda y, p: (p - y, np.ones_like(p))  # noqa: E731
    return {
        "zero_as_missing=false": lambda: train(zero_as_missing=True),
        "linear_tree=false": lambda: train("regression", linear_tree=True),
        "'cross_entropy_lambda' gives neither": lambda: train("cross_entropy_lambda"),
        "a ranker has no class": lambda: estimator("LGBMRanker").fit(x, y, group=[N]),
        "'lambdarank' gives neither": lambda: estimator("LGBMRanker").fit(x, y, group=[N]).booster_,
        "pred_early_stop=True": lambda: estimator("LGBMClassifier", pred_early_stop=True).fit(x, y),
        "objective='binary'": lambda: estimator("LGBMClassifier", objective=own).fit(x, y),
        "use LGBMClassifier": lambda: estimator("LGBMRegressor", objective="multiclass", num_class=2).fit(x, y),
        "fit on both classes": lambda: estimator("LGBMClassifier").fit(x, np.zeros(N)),
    }


@pytest.mark.parametrize("remedy", unsupported())
def test_refusals_name_a_remedy(remedy: str) -> None:
    with pytest.raises(UnsupportedModelError, match=remedy):
        reader.read(unsupported()[remedy]())


def test_unfitted_models() -> None:
    with pytest.raises(ModelError, match="call fit"):
        reader.read(lgb.LGBMClassifier())
    with pytest.raises(ModelError, match="no trees"):
        reader.read(lgb.Booster(FAST, lgb.Dataset(table(), labels(table(), "regression"))))


def test_sniff() -> None:
    assert reader.sniff(b"tree\nversion=v4\n")
    assert not reader.sniff(b"")
    assert not reader.sniff(b'{"learner": {')


@pytest.mark.parametrize("objective", ["binary", "multiclass", "regression"])
def test_treelite_agrees(objective: str) -> None:
    treelite = pytest.importorskip("treelite")
    native = train(objective, x=table(missing=0.0))
    ensemble = reader.read(native).ensemble
    points = probes(ensemble, table(missing=0.0))[:60]
    margins = treelite.gtil.predict(
        treelite.frontend.from_lightgbm(native), points, nthread=1, pred_margin=True
    ).reshape(len(points), -1)
    np.testing.assert_allclose(margins, ensemble.scores(points), rtol=0, atol=ensemble.rounding)
