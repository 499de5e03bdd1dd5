"""skops files of a stranger: whatever they say, they are read as scikit-learn reads them, or refused in a sentence.

Each mutant is used in a child process, as a model that slips through could end the process.
"""

from __future__ import annotations

import io
import json
import os
import random
import resource
import struct
import traceback
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

from ocf.errors import ModelError, OcfError
from ocf.models.user_model import as_user_model
from ocf.readers import linear
from ocf.readers.conformance import check_conformance
from ocf.readers.files import load_model
from ocf.readers.isolation import is_isolation_forest, read_isolation_forest
from ocf.readers.skops_format import read_skops

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


@pytest.fixture(scope="module")
def saved() -> dict[str, Parts]:
    """Members of the archives of good models."""
    return {name: _members(skops_io.dumps(model.fit(rows, wanted))) for name, (model, rows, wanted) in MODELS.items()}


def _members(data: bytes) -> Parts:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _write(parts: Parts, path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def _use(path: Path) -> None:
    """Do with a model file what a command does: load it, compare it with its library, and ask it about rows."""
    native = load_model(path)
    last = native.steps[-1][1] if hasattr(native, "steps") else native
    if is_isolation_forest(last):
        read_isolation_forest(last)
    elif linear.matches(last):
        linear.read(last).decide(NUMBERS)
    else:
        model = as_user_model(native)
        check_conformance(model.trees)
        table = TABLE if model.columns is not None and len(model.columns) == 3 else NUMBERS
        scores = model.trees.ensemble.scores(model.encode(table))
        if model.classes:
            np.testing.assert_array_equal(model.trees.ensemble.decide(scores), model.decide(table))


def _parts_of(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if "__loader__" in schema:
            yield schema
        for value in schema.values():
            yield from _parts_of(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _parts_of(value)


def _with_attribute(parts: Parts, path: tuple[str, ...], change: Callable[[dict[str, Any]], None]) -> Parts:
    """Members with the part of an attribute changed; `path` leads there through the attributes' names."""
    schema = json.loads(parts["schema.json"])
    part = schema
    for name in path:
        part = part["content"]["content"][name] if name != "[]" else part["content"][0]
    change(part)
    return {**parts, "schema.json": json.dumps(schema).encode()}


# -- one fault each ----------------------------------------------------------------------------------------


def _array_of(parts: Parts, field: str) -> str:
    """Name of the first array whose elements have a field."""
    return next(name for name, data in parts.items() if f"'{field}'".encode() in data[:400])


def _with_node(parts: Parts, field: str, node: int, value: Any) -> Parts:
    name = _array_of(parts, field)
    nodes = np.load(io.BytesIO(parts[name]))
    nodes[field][node] = value
    stream = io.BytesIO()
    np.save(stream, nodes)
    return {**parts, name: stream.getvalue()}


@pytest.mark.parametrize("kind", ["tree", "isolation", "boosting", "adaboost", "pipeline"])
@pytest.mark.parametrize(
    ("field", "node", "value", "fault"),
    [
        ("left_child", 0, 10**9, "outside"),
        ("right_child", 0, -7, "outside"),
        ("left_child", -1, -5, "outside"),
        ("left_child", 0, 0, "outside"),
        ("left_child", -1, 1, "outside"),
        ("right_child", -1, 1, "single child"),
        ("feature", 0, 10**6, "one of the 2 features"),
        ("feature", 0, -3, "one of the 2 features"),
        ("threshold", 0, np.nan, "numbers"),
        ("n_node_samples", 1, -4, "samples"),
        ("missing_go_to_left", 0, 9, "numbers"),
    ],
)
def test_nodes_that_lead_out_of_the_tree(
    saved: dict[str, Parts], kind: str, field: str, node: int, value: Any, fault: str, tmp_path: Path
) -> None:
    path = _write(_with_node(saved[kind], field, node, value), tmp_path / "model.skops")
    with pytest.raises(ModelError, match=rf"tree_\.nodes .*({fault}).*save the model again"):
        load_model(path)


@pytest.mark.parametrize(
    ("field", "node", "value", "fault"),
    [
        ("left", 0, 2**32 - 1, "outside"),
        ("right", 0, 0, "outside"),
        ("feature_idx", 0, 77, "one of the 3 columns"),
        ("bitset_idx", None, 2**31, "category sets"),
        ("is_categorical", None, 1, "category"),
        ("is_leaf", 0, 5, "0 or 1"),
        ("num_threshold", 0, np.nan, "numbers"),
    ],
)
def test_histogram_nodes_that_lead_out_of_the_tree(
    saved: dict[str, Parts], field: str, node: int | None, value: Any, fault: str, tmp_path: Path
) -> None:
    parts = saved["histogram"]
    nodes = np.load(io.BytesIO(parts[_array_of(parts, "is_leaf")]))
    if node is None:
        wanted = nodes["is_leaf"] == 0
        if field == "bitset_idx":
            parts = _with_node(parts, "is_categorical", int(np.flatnonzero(wanted)[0]), 1)
        node = int(np.flatnonzero(wanted)[0])
    path = _write(_with_node(parts, field, node, value), tmp_path / "model.skops")
    with pytest.raises(ModelError, match=rf"_predictors.*{fault}"):
        load_model(path)


@pytest.mark.parametrize(
    ("kind", "attribute", "content", "must"),
    [
        ("tree", ("n_features_in_",), "3", "a name for each column"),
        ("tree", ("n_features_in_",), '"x"', "whole number"),
        ("tree", ("tree_",), "null", "a tree"),
        ("forest", ("estimators_",), "null", "list of trees"),
        ("forest", ("feature_names_in_",), "null", "a name for each column"),
        ("forest", ("n_jobs",), '"many"', "whole number"),
        ("bagging", ("estimators_features_",), "null", "list"),
        ("adaboost", ("estimator_weights_",), "[]", "number, text|weight"),
        ("boosting", ("learning_rate",), "null", "finite number"),
        ("boosting", ("learning_rate",), "1e999", "finite number"),
        ("boosting", ("n_trees_per_iteration_",), "1", "column for each score"),
        ("boosting", ("init_",), "3", "estimator"),
        ("histogram", ("_baseline_prediction",), "NaN", "finite number"),
        ("histogram", ("_bin_mapper",), "null", "bin mapper"),
        ("histogram", ("n_trees_per_iteration_",), "2", "stage"),
        ("isolation", ("offset_",), "null", "finite number"),
        ("isolation", ("_decision_path_lengths",), "0", "each tree"),
        ("isolation", ("max_samples_",), "-1", "whole number"),
        ("pipeline", ("steps",), "null", "pairs of a name"),
        ("support vectors", ("_n_support",), "0", "support vectors of each class"),
        ("support vectors", ("_sparse",), "true", "dense"),
        ("support vectors", ("support_vectors_",), "null", "support vector"),
    ],
)
def test_attributes_of_a_wrong_type(
    saved: dict[str, Parts], kind: str, attribute: tuple[str, ...], content: str, must: str, tmp_path: Path
) -> None:
    def change(part: dict[str, Any]) -> None:
        part.clear()
        part.update({"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": content})

    path = _write(_with_attribute(saved[kind], attribute, change), tmp_path / "model.skops")
    with pytest.raises(ModelError, match=must) as error:
        load_model(path)
    assert "model.skops" in str(error.value)
    assert "save the model again" in str(error.value)


def test_attribute_in_the_place_of_a_method(saved: dict[str, Parts], tmp_path: Path) -> None:
    path = _write(
        {**saved["tree"], "schema.json": saved["tree"]["schema.json"].replace(b'"max_depth"', b'"predict"', 1)},
        tmp_path / "model.skops",
    )
    with pytest.raises(ModelError, match=r"predict stands in the place of a method"):
        load_model(path)


@pytest.mark.parametrize("count", [2**40, -1])
def test_array_of_a_shape_that_it_does_not_have(saved: dict[str, Parts], count: int, tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (count,)})
    name = next(name for name in saved["tree"] if name.endswith(".npy"))
    path = _write({**saved["tree"], name: stream.getvalue() + bytes(8)}, tmp_path / "model.skops")
    with pytest.raises(ModelError, match=r"is an array of shape .* in 8 bytes"):
        load_model(path)


def test_array_of_pickled_objects(saved: dict[str, Parts], tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.save(stream, np.array([Path("x")], object), allow_pickle=True)
    name = next(name for name in saved["tree"] if name.endswith(".npy"))
    path = _write({**saved["tree"], name: stream.getvalue()}, tmp_path / "model.skops")
    with pytest.raises(ModelError, match="is an array of object"):
        load_model(path)


def test_file_that_unpacks_to_far_more_than_itself(saved: dict[str, Parts], tmp_path: Path) -> None:
    path = _write(saved["tree"], tmp_path / "model.skops")
    data = bytearray(path.read_bytes())
    for start in (i for i in range(len(data)) if data[i : i + 4] == b"PK\x01\x02"):
        struct.pack_into("<I", data, start + 24, 2**32 - 2)  # the size that the directory states
    path.write_bytes(data)
    with pytest.raises(ModelError, match=r"unpacks to [0-9,]{13,} bytes"):
        load_model(path)


def test_one_array_in_more_places_than_memory_has_room_for(
    saved: dict[str, Parts], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    schema = json.loads(saved["forest"]["schema.json"])
    trees = schema["content"]["content"]["estimators_"]["content"]
    for _ in range(200):
        copy = json.loads(json.dumps(trees[0]))
        for part in _parts_of(copy):
            part.pop("__id__", None)  # parts with one id are one object
        trees.append(copy)
    path = _write({**saved["forest"], "schema.json": json.dumps(schema).encode()}, tmp_path / "model.skops")
    assert len(load_model(path).estimators_) == 203
    arrays = sum(len(data) for name, data in saved["forest"].items() if name != "schema.json")
    monkeypatch.setattr("ocf.readers.skops_format.MAX_UNPACKED", 2 * arrays)
    monkeypatch.setattr("ocf.readers.skops_format.MAX_RATIO", 0)
    monkeypatch.setattr("ocf.readers.skops_format.check_sizes", lambda *_: None)
    with pytest.raises(ModelError, match="uses of the same arrays"):
        load_model(path)


def test_part_that_holds_itself(saved: dict[str, Parts], tmp_path: Path) -> None:
    def change(part: dict[str, Any]) -> None:
        part["content"]["content"]["max_depth"] = {**part["content"]["content"]["criterion"], "__id__": part["__id__"]}

    path = _write(_with_attribute(saved["tree"], (), change), tmp_path / "model.skops")
    with pytest.raises(ModelError, match="holds itself"):
        load_model(path)


def test_deep_schema(tmp_path: Path) -> None:
    text = '{"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "protocol": 2, "content": ['
    path = _write({"schema.json": (text * 400 + "]}" * 400).encode()}, tmp_path / "model.skops")
    with pytest.raises(ModelError, match=r"too many parts inside each other|RecursionError"):
        load_model(path)


def test_random_state_that_points_outside(saved: dict[str, Parts], tmp_path: Path) -> None:
    def change(part: dict[str, Any]) -> None:
        part["content"]["content"]["state"]["content"]["pos"] = {
            "__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": "1000000000",
        }  # fmt: skip

    path = _write(_with_attribute(saved["forest"], ("random_state",), change), tmp_path / "model.skops")
    with pytest.raises(ModelError, match="random_state must hold 624 numbers"):
        load_model(path)


@pytest.mark.parametrize("protocol", [0, 3, True, "2", None])
def test_protocol_of_another_time(saved: dict[str, Parts], protocol: Any, tmp_path: Path) -> None:
    schema = {**json.loads(saved["tree"]["schema.json"]), "protocol": protocol}
    path = _write({**saved["tree"], "schema.json": json.dumps(schema).encode()}, tmp_path / "model.skops")
    with pytest.raises(ModelError, match=r"protocol is .* ocf reads 1 and 2"):
        load_model(path)


# -- good files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MODELS)
def test_good_files_are_read_as_skops_reads_them(saved: dict[str, Parts], kind: str, tmp_path: Path) -> None:
    path = _write(saved[kind], tmp_path / "model.skops")
    ours = read_skops(path)
    theirs = skops_io.load(path, trusted=skops_io.get_untrusted_types(file=path))
    _, rows, _ = MODELS[kind]
    question = "score_samples" if kind == "isolation" else "predict"
    np.testing.assert_array_equal(getattr(ours, question)(rows), getattr(theirs, question)(rows))
    assert skops_io.dumps(ours)  # every attribute is of a type that can be saved again
    assert vars(ours).keys() == vars(theirs).keys()


# -- many mutants ------------------------------------------------------------------------------------------

_NUMBERS = (0, 1, -1, -2, 255, 2**31 - 1, -(2**31), 2**40, 2**63 - 1, -(2**63))
_FLOATS = (np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324)
_CONTENTS = ("null", "true", "1e999", "NaN", "-1", "0", "1099511627776", '"x"', "[]", "{}", "1.5", '"\\ud800"')


def _flip(data: bytes, rng: random.Random, times: int) -> bytes:
    changed = bytearray(data)
    for _ in range(times):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _mutant_of_array(data: bytes, rng: random.Random) -> bytes:
    place = 128 + 8 * rng.randrange(max(1, (len(data) - 128) // 8))
    kind = rng.randrange(4)
    if kind == 0 or len(data) < place + 8:
        return _flip(data, rng, rng.choice([1, 3, 10]))
    if kind == 1:
        return data[: rng.randrange(len(data))]
    value = struct.pack("<q", rng.choice(_NUMBERS)) if kind == 2 else struct.pack("<d", rng.choice(_FLOATS))
    return data[:place] + value + data[place + 8 :]


def _mutant_of_schema(data: bytes, rng: random.Random) -> bytes:
    schema = json.loads(data)
    parts = list(_parts_of(schema))
    kind, part = rng.randrange(6), rng.choice(parts)
    if kind == 0:
        return _flip(data, rng, rng.choice([1, 3]))
    if kind == 1:
        rng.choice([p for p in parts if p["__loader__"] == "JsonNode"])["content"] = rng.choice(_CONTENTS)
    elif kind == 2:  # one part in the place of another
        other = json.loads(json.dumps({k: v for k, v in rng.choice(parts).items() if k != "__id__"}))
        part.clear()
        part.update(other)
    elif kind == 3:
        part.pop(rng.choice(list(part)))
    elif kind == 4:
        part[rng.choice(list(part))] = rng.choice([None, [], {}, -1, "x", 1e300, 2**70, True])
    else:
        part["__id__"] = rng.choice(parts).get("__id__")
    return json.dumps(schema).encode()


def _mutant(parts: Parts, rng: random.Random) -> Parts:
    changed = dict(parts)
    arrays = [name for name in parts if name != "schema.json"]
    for _ in range(rng.choice([1, 1, 2])):
        if rng.random() < 0.5:
            name = rng.choice(arrays)
            changed[name] = _mutant_of_array(parts[name], rng)
        else:
            changed["schema.json"] = _mutant_of_schema(parts["schema.json"], rng)
    return changed


def _in_a_child(path: Path) -> str:
    """What comes of using a file: nothing if it is read or refused, else what went wrong."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
        said = ""
        try:
            _use(path)
        except OcfError:
            pass
        except BaseException:
            said = traceback.format_exc()
        os.write(sender, said.encode(errors="replace")[-3000:])
        os._exit(0)
    os.close(sender)
    with os.fdopen(receiver, "rb") as stream:
        said = stream.read().decode()
    _, status = os.waitpid(child, 0)
    return said if status == 0 else f"signal {os.WTERMSIG(status)}"


@pytest.mark.parametrize("kind", MODELS)
def test_mutants_are_read_or_refused(saved: dict[str, Parts], kind: str, tmp_path: Path) -> None:
    _use(_write(saved["forest"], tmp_path / "model.skops"))  # what the children need is imported once
    for seed in range(25):
        path = _write(_mutant(saved[kind], random.Random(f"{kind} {seed}")), tmp_path / "model.skops")
        fault = _in_a_child(path)
        assert not fault, f"seed {seed}: {fault}"
