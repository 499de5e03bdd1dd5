"""skops files of a stranger: whatever they say, they are read as scikit-learn reads them, or refused in a sentence.

Each mutant is used in a child process, as a model that slips through could end the process.
"""

from __future__ import annotations

import io
import json
import random
import struct
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle.isolated import run_isolated

from ocf.errors import ModelError
from ocf.models.user_model import as_user_model
from ocf.readers import linear
from ocf.readers.conformance import check_conformance
from ocf.readers.files import load_model
from ocf.readers.isolation import is_isolation_forest, read_isolation_forest
from ocf.readers.skops_format import read_skops

from .skops_files import MODELS, NUMBERS, TABLE, Parts, parts_of, skops_io, with_attribute, written


def use(path: Path) -> None:
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


@pytest.mark.parametrize("count", [2**40, -1])
def test_array_of_a_shape_that_it_does_not_have(archives: dict[str, Parts], count: int, tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (count,)})
    name = next(name for name in archives["tree"] if name.endswith(".npy"))
    path = written({**archives["tree"], name: stream.getvalue() + bytes(8)}, tmp_path / "model.skops")
    with pytest.raises(ModelError, match=r"is an array of shape .* in 8 bytes"):
        load_model(path)


def test_array_of_pickled_objects(archives: dict[str, Parts], tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.save(stream, np.array([Path("x")], object), allow_pickle=True)
    name = next(name for name in archives["tree"] if name.endswith(".npy"))
    path = written({**archives["tree"], name: stream.getvalue()}, tmp_path / "model.skops")
    with pytest.raises(ModelError, match="is an array of object"):
        load_model(path)


def test_file_that_unpacks_to_far_more_than_itself(archives: dict[str, Parts], tmp_path: Path) -> None:
    path = written(archives["tree"], tmp_path / "model.skops")
    data = bytearray(path.read_bytes())
    for start in (i for i in range(len(data)) if data[i : i + 4] == b"PK\x01\x02"):
        struct.pack_into("<I", data, start + 24, 2**32 - 2)  # the size that the directory states
    path.write_bytes(data)
    with pytest.raises(ModelError, match=r"unpacks to [0-9,]{13,} bytes"):
        load_model(path)


def test_one_array_in_more_places_than_memory_has_room_for(
    archives: dict[str, Parts], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    schema = json.loads(archives["forest"]["schema.json"])
    trees = schema["content"]["content"]["estimators_"]["content"]
    for _ in range(200):
        copy = json.loads(json.dumps(trees[0]))
        for part in parts_of(copy):
            part.pop("__id__", None)  # parts with one id are one object
        trees.append(copy)
    path = written({**archives["forest"], "schema.json": json.dumps(schema).encode()}, tmp_path / "model.skops")
    assert len(load_model(path).estimators_) == 203
    arrays = sum(len(data) for name, data in archives["forest"].items() if name != "schema.json")
    monkeypatch.setattr("ocf.readers.skops_format.MAX_UNPACKED", 2 * arrays)
    monkeypatch.setattr("ocf.readers.skops_format.MAX_RATIO", 0)
    monkeypatch.setattr("ocf.readers.skops_format.check_sizes", lambda *_: None)
    with pytest.raises(ModelError, match="uses of the same arrays"):
        load_model(path)


def test_part_that_holds_itself(archives: dict[str, Parts], tmp_path: Path) -> None:
    def change(part: dict[str, Any]) -> None:
        part["content"]["content"]["max_depth"] = {**part["content"]["content"]["criterion"], "__id__": part["__id__"]}

    path = written(with_attribute(archives["tree"], (), change), tmp_path / "model.skops")
    with pytest.raises(ModelError, match="holds itself"):
        load_model(path)


def test_deep_schema(tmp_path: Path) -> None:
    text = '{"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "protocol": 2, "content": ['
    path = written({"schema.json": (text * 400 + "]}" * 400).encode()}, tmp_path / "model.skops")
    with pytest.raises(ModelError, match=r"too many parts inside each other|RecursionError"):
        load_model(path)


@pytest.mark.parametrize("protocol", [0, 3, True, "2", None])
def test_protocol_of_another_time(archives: dict[str, Parts], protocol: Any, tmp_path: Path) -> None:
    schema = {**json.loads(archives["tree"]["schema.json"]), "protocol": protocol}
    path = written({**archives["tree"], "schema.json": json.dumps(schema).encode()}, tmp_path / "model.skops")
    with pytest.raises(ModelError, match=r"protocol is .* ocf reads 1 and 2"):
        load_model(path)


@pytest.mark.parametrize("kind", MODELS)
def test_good_files_are_read_as_skops_reads_them(archives: dict[str, Parts], kind: str, tmp_path: Path) -> None:
    path = written(archives[kind], tmp_path / "model.skops")
    ours = read_skops(path)
    theirs = skops_io.load(path, trusted=skops_io.get_untrusted_types(file=path))
    _, rows, _ = MODELS[kind]
    question = "score_samples" if kind == "isolation" else "predict"
    np.testing.assert_array_equal(getattr(ours, question)(rows), getattr(theirs, question)(rows))
    assert skops_io.dumps(ours)  # every attribute is of a type that can be saved again
    assert vars(ours).keys() == vars(theirs).keys()


@pytest.mark.parametrize("skops", ["0.13", "0.14"])
@pytest.mark.parametrize("kind", ["boosting", "histogram"])
def test_losses_under_the_names_of_before(archives: dict[str, Parts], kind: str, skops: str, tmp_path: Path) -> None:
    """scikit-learn before 1.9 calls their module `_loss`; skops before 0.14 took some for objects without a state."""
    schema = json.loads(archives[kind]["schema.json"])
    losses = [part for part in parts_of(schema) if part["__class__"].startswith("Cy")]
    assert losses
    for part in losses:
        part["__module__"] = "_loss"
        if skops == "0.13" and part["__class__"] == "CyHalfMultinomialLoss":
            part.pop("__reduce__", None)
            part["__loader__"] = "ObjectNode"
            part["content"] = {
                "__class__": "str",
                "__module__": "builtins",
                "__loader__": "JsonNode",
                "content": "null",
            }
    older = written({**archives[kind], "schema.json": json.dumps(schema).encode()}, tmp_path / "older.skops")
    rows = MODELS[kind][1]
    expected = read_skops(written(archives[kind], tmp_path / "model.skops")).predict(rows)
    np.testing.assert_array_equal(load_model(older).predict(rows), expected)


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
    parts = list(parts_of(schema))
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_mutants_are_read_or_refused(archives: dict[str, Parts], kind: str, tmp_path: Path) -> None:
    use(written(archives["forest"], tmp_path / "model.skops"))  # what the children need is imported once
    for seed in range(25):
        path = written(_mutant(archives[kind], random.Random(f"{kind} {seed}")), tmp_path / "model.skops")
        ending = run_isolated(partial(use, path))
        assert ending.end in ("done", "refused"), f"seed {seed}: {ending}"
