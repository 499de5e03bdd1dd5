"""ONNX trees against onnxruntime: every mode, every way of two classes, and the converters' own files."""

from __future__ import annotations

import itertools
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from ocf import Explainer
from ocf.errors import ModelError, UnsupportedModelError
from ocf.models.user_model import as_user_model
from ocf.readers import read_model
from ocf.readers.conformance import check_conformance
from ocf.readers.files import load_model
from ocf.trees.links import show

from .onnx_models import MODES, Drawn, drawn, drawn_of_version_5, listed, model_of, value

AB = ("a", "b")
CASES = {
    **{mode: (3, Drawn(modes=(mode,))) for mode in MODES},
    "values": (1, Drawn(base=1)),
    "values of doubles": (3, Drawn(double=True, base=1)),
    "floats as doubles": (1, Drawn(double=True)),
    "mean": (3, Drawn(aggregate="AVERAGE", base=1)),
    "shares": (1, Drawn(2, AB, ids=(0,), positive=True)),
    "shares of doubles": (3, Drawn(2, AB, ids=(0,), positive=True, double=True)),
    "shares through a softmax": (3, Drawn(2, AB, ids=(0,), positive=True, post="SOFTMAX")),
    "positive margins": (3, Drawn(2, (0, 1), ids=(0,), positive=True, post="LOGISTIC", base=1)),
    "margins": (1, Drawn(2, (0, 1), ids=(0,), base=1)),
    "curves of margins": (3, Drawn(2, (3, 7), ids=(0,), post="LOGISTIC", base=1)),
    "two margins": (1, Drawn(2, AB, post="LOGISTIC")),
    "two scores": (3, Drawn(2, AB)),
    "three shares": (1, Drawn(3, ("a", "b", "c"), positive=True)),
    "three scores": (3, Drawn(3, (0, 1, 2), base=3)),
    "softmax": (3, Drawn(3, ("a", "b", "c"), post="SOFTMAX", base=3)),
    "curves": (3, Drawn(3, ("a", "b", "c"), post="LOGISTIC")),
}
NEW = {
    "new values": (Drawn(), ""),
    "new doubles": (Drawn(double=True), ""),
    "new mean": (Drawn(aggregate="AVERAGE"), ""),
    "new classes": (Drawn(3, trees=4), "argmax"),
    "new labels": (Drawn(3, trees=4, double=True), "labels"),
}


def made(name: str, seed: int) -> Any:
    if name in NEW:
        return drawn_of_version_5(seed, *NEW[name])
    version, how = CASES[name]
    return drawn(seed, how, version)


def run(model: Any, rows: np.ndarray) -> list[Any]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    kind = np.float64 if session.get_inputs()[0].type == "tensor(double)" else np.float32
    return list(session.run(None, {session.get_inputs()[0].name: rows.astype(kind)}))


def numbers() -> np.ndarray:
    rng = np.random.default_rng(0)
    rows = rng.choice([*range(5), 0.1, 2.5, 1 / 3, np.nan], size=(200, 3))
    return np.concatenate([rows, np.nextafter(rows, -np.inf), np.nextafter(rows, np.inf), np.full((1, 3), np.nan)])


@pytest.mark.parametrize("name", [*CASES, *NEW])
@pytest.mark.parametrize("seed", range(3))
def test_the_read_model_answers_as_onnxruntime_does(name: str, seed: int) -> None:
    model = made(name, seed)
    read = read_model(model)
    check_conformance(read)
    rows, ensemble = numbers(), read.ensemble
    shown = run(model, rows)
    scores = ensemble.scores(rows)
    np.testing.assert_allclose(read.scores(rows), scores, atol=1e-6)
    if not read.classes:
        np.testing.assert_allclose(show(ensemble, scores), np.ravel(shown[0]), rtol=1e-5, atol=1e-6)
        return
    found = np.array(read.classes)[ensemble.decide(scores)]
    np.testing.assert_array_equal(np.array(read.classes)[read.decide(rows)], shown[0])
    assert (found != shown[0]).mean() < 0.02  # within rounding of a tie
    if read.probabilities is not None:
        np.testing.assert_allclose(show(ensemble, scores), shown[1], atol=1e-6)
        np.testing.assert_array_equal(read.probabilities(rows), shown[1])


@pytest.mark.parametrize("name", [*CASES, *NEW])
def test_explanations_equal_brute_force(name: str) -> None:
    grid = np.array(list(itertools.product(range(5), repeat=3)), np.int64)
    asked = 0
    for seed in range(3):
        model = made(name, seed)
        answers = np.ravel(run(model, grid)[0])
        for row in (7, 60, 111):
            if np.issubdtype(answers.dtype, np.floating):
                bound = float(np.quantile(answers, 0.8))
                target, wanted = (bound, None), answers.astype(float) >= bound
            else:
                target = next((label for label in answers.tolist() if label != answers[row]), None)
                wanted = answers == target
            if target is None:
                continue
            best = (np.abs(grid - grid[row]).sum(axis=1) / 4)[wanted].min()
            found = Explainer(model, data=grid).explain(grid[[row]], target=target)[0]
            assert found.status == "optimal"
            assert found.verified
            assert found.cost == pytest.approx(best, abs=1e-9)
            asked += 1
    assert asked


def test_probabilities_are_asked_for_as_onnxruntime_shows_them() -> None:
    grid = np.array(list(itertools.product(range(5), repeat=3)), np.int64)
    for name in ("shares", "positive margins", "two margins", "three shares", "softmax", "curves"):
        model = made(name, 1)
        shown = run(model, grid)[1][:, 1]
        wanted = shown >= np.quantile(shown, 0.9)
        best = (np.abs(grid - grid[31]).sum(axis=1) / 4)[wanted].min()
        explainer = Explainer(model, data=grid)
        asked = float(np.quantile(shown, 0.9))
        found = explainer.explain(grid[[31]], target=explainer.classes[1], probability=asked)[0]
        assert found.status == "optimal"
        assert found.cost == pytest.approx((np.abs(grid - grid[31]).sum(axis=1) / 4)[shown >= asked].min(), abs=1e-9)
        assert found.cost <= best


def test_a_threshold_that_is_moved_is_noticed() -> None:
    model = made("values", 0)
    read = read_model(model)
    other = made("values", 0)
    attribute = next(a for a in other.graph.node[0].attribute if a.name == "nodes_values")
    place = next(k for k, number in enumerate(attribute.floats) if number)
    attribute.floats[place] = float(np.nextafter(np.float32(attribute.floats[place]), np.float32(9)))
    wrong = read_model(other)
    with pytest.raises(Exception, match="differs from onnxruntime"):
        check_conformance(type(read)(**{**read.__dict__, "ensemble": wrong.ensemble}))


# -- graphs --------------------------------------------------------------------------------------------------------


def around(before: list[Any], behind: list[Any], inputs: list[Any], outputs: list[Any], **constants: Any) -> Any:
    how = Drawn(2, (0, 1), ids=(0,), positive=True)
    attributes = {**listed(np.random.default_rng(0), how), "classlabels_int64s": [0, 1]}
    node = helper.make_node("TreeEnsembleClassifier", ["x"], ["l", "p"], domain="ai.onnx.ml", **attributes)
    return model_of([*before, node, *behind], inputs, outputs, **constants)


LABEL = value("l", TensorProto.INT64, None)


def test_columns_may_be_inputs_of_their_own() -> None:
    names = ["age", "income", "years"]
    join = helper.make_node("Concat", names, ["x"], axis=1)
    model = around([join], [], [value(n, TensorProto.FLOAT, None, 1) for n in names], [LABEL])
    user = as_user_model(model)
    assert user.columns == ("age", "income", "years")
    check_conformance(user.trees)
    mixed = around(
        [helper.make_node("Concat", ["a", "b"], ["x"], axis=-1)],
        [],
        [value("a", TensorProto.FLOAT, None, 2), value("b", TensorProto.FLOAT, None, 1)],
        [LABEL],
    )
    check_conformance(read_model(mixed))


@pytest.mark.parametrize("to", [TensorProto.FLOAT, TensorProto.DOUBLE])
@pytest.mark.parametrize("given", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_casts_before_the_trees_are_followed(given: int, to: int) -> None:
    cast = helper.make_node("Cast", ["given"], ["x"], to=to)
    same = helper.make_node("Identity", ["l"], ["label"])
    zipped = helper.make_node("ZipMap", ["p"], ["shown"], domain="ai.onnx.ml", classlabels_int64s=[0, 1])
    row = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    named = helper.make_value_info("shown", helper.make_sequence_type_proto(helper.make_map_type_proto(7, row)))
    model = around(
        [cast],
        [same, zipped],
        [value("given", given, None, 3)],
        [value("label", TensorProto.INT64, None), named],
    )
    read = read_model(model)
    check_conformance(read)
    assert read.probabilities is not None
    assert read.probabilities(np.zeros((2, 3))).shape == (2, 2)
    assert read.ensemble.decide(read.ensemble.scores(numbers())).tolist() == read.decide(numbers()).tolist()


def test_a_read_model_goes_through_pickle() -> None:
    read = read_model(made("softmax", 0))
    rows = numbers()
    before = read.decide(rows)
    again = pickle.loads(pickle.dumps(read))
    np.testing.assert_array_equal(again.decide(rows), before)


def refused(model: Any) -> str:
    with pytest.raises((ModelError, UnsupportedModelError)) as caught:
        read_model(model)
    return str(caught.value)


def edited(model: Any, **changes: Any) -> Any:
    """The model with other attributes of its trees."""
    node = next(n for n in model.graph.node if n.op_type.startswith("TreeEnsemble"))
    kept = [a for a in node.attribute if a.name not in changes]
    del node.attribute[:]
    node.attribute.extend([*kept, *(helper.make_attribute(k, v) for k, v in changes.items() if v is not None)])
    return model


def test_what_is_not_read_is_refused_by_name() -> None:
    float_input = [value("x", TensorProto.FLOAT, None, 3)]
    scaler = helper.make_node("Scaler", ["g"], ["x"], "scales", domain="ai.onnx.ml", offset=[0.0], scale=[2.0])
    assert "the node 'scales' (Scaler)" in refused(
        around([scaler], [], [value("g", TensorProto.FLOAT, None, 3)], [LABEL])
    )
    normal = helper.make_node("Normalizer", ["p"], ["n"], domain="ai.onnx.ml")
    shown = value("n", TensorProto.FLOAT, None, 2)
    assert "the node Normalizer" in refused(around([], [normal], float_input, [LABEL, shown]))
    assert "no tensors of floats" in refused(around([], [], [value("x", TensorProto.INT64, None, 3)], [LABEL]))
    last = helper.make_node("ArgMax", ["p"], ["b"], axis=1, select_last_index=1)
    assert "ArgMax" in refused(around([], [last], float_input, [value("b", TensorProto.INT64, None)]))
    assert "no label" in refused(around([], [], float_input, [value("p", TensorProto.FLOAT, None, 2)]))
    session = onnxruntime.InferenceSession(made("values", 0).SerializeToString(), providers=["CPUExecutionProvider"])
    assert "give ocf onnx.load(path)" in refused(session)
    for name, change, message in (
        ("values", {"aggregate_function": "MAX"}, "joined by MAX"),
        ("values", {"post_transform": "LOGISTIC"}, "onnxruntime leaves it out"),
        ("softmax", {"post_transform": "SOFTMAX_ZERO"}, "SOFTMAX_ZERO"),
        ("margins", {"base_values": [0.1, 0.2]}, "a way of its own"),
        ("values", {"nodes_modes": ["BRANCH_MEMBER"]}, "does not fit"),
    ):
        assert message in refused(edited(made(name, 0), **change)), (name, change)
    model = made("values", 0)
    model.opset_import[1].version = 6
    assert "version 6 of ai.onnx.ml" in refused(model)
    assert "predicts 2 values at once" in refused(drawn(0, Drawn(2)))


def test_models_of_spark_are_sent_to_onnx() -> None:
    model = type("RandomForestClassificationModel", (), {"__module__": "pyspark.ml.classification"})()
    assert "pyspark.ml.classification.RandomForestClassificationModel is not read: export its trees" in refused(model)


def test_scores_that_some_rows_lack_are_refused() -> None:
    model = made("three scores", 0)
    node = model.graph.node[0]
    ids = next(a for a in node.attribute if a.name == "class_ids")
    kept = [k for k, c in enumerate(ids.ints) if c != 2 or k == 2]
    changes = {a.name: [(a.ints or a.floats)[k] for k in kept] for a in node.attribute if a.name.startswith("class_")}
    assert "some rows get no score for the classes [2]" in refused(edited(model, base_values=None, **changes))


@pytest.mark.parametrize("name", ["values", "softmax", "new values", "new labels"])
def test_damaged_attributes_are_refused(name: str) -> None:
    """Each number of each list is moved out of its place in turn; what is read still conforms."""
    good, refusals = made(name, 2), 0
    lists = [a.name for a in good.graph.node[0].attribute if len(a.ints) > 2 and a.name.startswith(("nodes", "class"))]
    for attribute in lists:
        for place in (0, 1, -1):
            for other in (-1, 10**6, 1):
                model = made(name, 2)
                ints = next(a for a in model.graph.node[0].attribute if a.name == attribute).ints
                ints[place] = other
                try:
                    read = read_model(model)
                except (ModelError, UnsupportedModelError):
                    refusals += 1
                else:
                    check_conformance(read)
    assert refusals > 10


# -- files ---------------------------------------------------------------------------------------------------------


def test_a_file_is_known_by_its_content(tmp_path: Path) -> None:
    model = made("softmax", 0)
    path = tmp_path / "model.bin"
    onnx.save(model, path)
    assert load_model(path) == model
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ModelError, match="no ONNX file, or damaged"):
        load_model(path)


def test_tensors_in_other_files_are_refused() -> None:
    model = made("values of doubles", 0)
    tensor = next(a.t for a in model.graph.node[0].attribute if a.name == "nodes_values_as_tensor")
    tensor.data_location = TensorProto.EXTERNAL
    assert "keeps tensors in another file" in refused(model)


# -- the converters ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_files_of_the_converters_are_read(n_classes: int, tmp_path: Path) -> None:
    from catboost import CatBoostClassifier, CatBoostRegressor
    from lightgbm import LGBMClassifier, LGBMRegressor
    from onnxmltools import convert_lightgbm, convert_xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType
    from skl2onnx import to_onnx
    from sklearn.ensemble import (
        GradientBoostingClassifier,
        GradientBoostingRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )
    from xgboost import XGBClassifier, XGBRegressor

    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 3)).astype(np.float32)
    score = x[:, 0] + x[:, 1] * x[:, 2]
    y = (score.argsort().argsort() * n_classes // 80) if n_classes else score
    two = [FloatTensorType([None, 3])]
    forest, boosting, gradient, extreme, cat = (
        (RandomForestClassifier, GradientBoostingClassifier, LGBMClassifier, XGBClassifier, CatBoostClassifier)
        if n_classes
        else (RandomForestRegressor, GradientBoostingRegressor, LGBMRegressor, XGBRegressor, CatBoostRegressor)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small = {"n_estimators": 3, "max_depth": 2}
        models = [to_onnx(kind(**small).fit(x, y), x[:1]) for kind in (forest, boosting)]
        light = gradient(n_estimators=3, num_leaves=4, verbose=-1).fit(x, y)
        models.append(convert_lightgbm(light, initial_types=[("x", two[0])]))
        models.append(convert_xgboost(extreme(**small).fit(x, y), initial_types=[("x", two[0])]))
        cats = cat(iterations=3, depth=2, verbose=0, allow_writing_files=False).fit(x, y)
        cats.save_model(str(tmp_path / "cats.onnx"), format="onnx")
        models.append(load_model(tmp_path / "cats.onnx"))
    for model in models:
        read = read_model(model)
        check_conformance(read, x)
        assert len(read.classes) == n_classes
        assert (read.probabilities is not None) == (n_classes > 0)
