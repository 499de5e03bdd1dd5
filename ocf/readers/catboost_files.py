"""CatBoost's files: JSON written anew from its checked parts, and binary files that a child process opens first.

The library trusts the files that it loads. Of a JSON file it gets the parts that ocf has checked and no others. A
binary file is only known to the library: a child process, which may crash, loads it and writes it as JSON, and the
library opens it here only if that JSON passes the same checks.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ocf.errors import MissingDependencyError, ModelError, UnsupportedModelError
from ocf.readers.base import brief
from ocf.readers.catboost_format import (
    ELEMENT_KEYS,
    NUMBER_KEYS,
    SPLIT_KEYS,
    STATISTIC_KEYS,
    TABLE_KEYS,
    WORD_KEYS,
    parse,
)
from ocf.readers.document import DocumentPart, load_json
from ocf.support.optional import optional

#: First bytes of a binary file.
MAGIC = b"CBM1"

#: Seconds of the clock that the child may take.
_SECONDS = 600

#: Losses of classifiers, and of regressors whose predictions are the scores themselves.
CLASSES = ("Logloss", "CrossEntropy", "MultiClass", "MultiClassOneVsAll")
VALUES = ("RMSE", "MAE", "Quantile", "MAPE", "Huber", "Expectile", "LogCosh", "Lq")

#: Python's types of class labels, by the library's names of them.
_LABELS: dict[str, tuple[type, ...]] = {"Integer": (int,), "Float": (int, float), "String": (str,), "Boolean": (bool,)}


def load_file(path: Path) -> Any:
    """Model of a file, loaded by CatBoost itself.

    Returns
    -------
    CatBoostClassifier or CatBoostRegressor
        As the loss that it was trained on says.

    Raises
    ------
    ModelError
        The file is empty, truncated, corrupt or of another format.
    UnsupportedModelError
        See `ocf.readers.catboost_format.parse`.
    MissingDependencyError
        CatBoost is not installed.
    """
    binary = path.read_bytes()[: len(MAGIC)] == MAGIC
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "model.json"
        try:
            if binary:
                _in_a_child(path, copy)
            document = load_json((copy if binary else path).read_bytes())
            checked, loss = _checked(document)
            copy.write_text(_dumped(checked), encoding="utf-8")
        except MissingDependencyError:
            raise
        except ModelError as cause:
            raise type(cause)(f"{path}: {cause}") from cause
        library = _library(path)
        model = library.CatBoostClassifier() if loss in CLASSES else library.CatBoostRegressor()
        try:
            return model.load_model(str(path if binary else copy), format="cbm" if binary else "json")
        except library.CatBoostError as cause:
            raise ModelError(f"{path}: CatBoost cannot load it ({brief(cause)}): save the model again") from cause


def _library(path: Path) -> Any:
    return optional("catboost", "catboost", f"re-predicting with the model in {path}")


# -- binary files --------------------------------------------------------------------------------------------------


def _in_a_child(path: Path, copy: Path) -> None:
    """Have a binary file written as JSON by a process that may crash."""
    _library(path)  # in a fork it need not be imported again
    if sys.platform == "linux":
        failed = _forked(path, copy) != 0
    else:  # elsewhere a fork is not safe
        program = f"import {__name__} as f, pathlib, sys; f.convert(*map(pathlib.Path, sys.argv[1:]))"
        command = [sys.executable, "-c", program, str(path), str(copy)]
        failed = subprocess.run(command, capture_output=True, check=False, timeout=_SECONDS).returncode != 0
    if failed:
        raise ModelError("CatBoost cannot open the file: it is damaged, save the model again")


def _forked(path: Path, copy: Path) -> int:
    """Status of a child that has converted a file."""
    with warnings.catch_warnings():
        # Python warns of forks beside threads; the child uses none of its parent's
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    status = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_SECONDS)
        faulthandler.disable()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nowhere, stream)
        convert(path, copy)
        status = 0
    finally:
        os._exit(status)


def convert(path: Path, copy: Path) -> None:
    """Write a binary file as JSON.

    Parameters
    ----------
    path, copy : Path
        Of the binary file, and of the JSON.
    """
    import catboost

    catboost.CatBoost().load_model(str(path), format="cbm").save_model(str(copy), format="json")


# -- checked documents ---------------------------------------------------------------------------------------------


def _checked(document: Any) -> tuple[dict[str, Any], str]:
    """A document with all that predictions need, and nothing that has not been checked, and its loss."""
    top = DocumentPart(document)
    loss = top["model_info"]["params"]["loss_function"]["type"].text()
    if loss not in CLASSES + VALUES:
        raise UnsupportedModelError(
            f"CatBoost's loss {loss[:40]!r} is not read: train with one of {', '.join(CLASSES + VALUES)}"
        )
    info: dict[str, Any] = {"params": {"flat_params": {"loss_function": loss}, "loss_function": _loss(loss)}}
    labels = _class_labels(top["model_info"]) if loss in CLASSES else ()
    if labels:
        info["class_params"] = top["model_info"]["class_params"].value
    if "binclass_probability_threshold" in top["model_info"]:
        share = top["model_info"]["binclass_probability_threshold"]
        share.printed_numbers()
        info["binclass_probability_threshold"] = share.value
    parse(document, len(labels) if loss in CLASSES[2:] else 1)
    return _written(top, info), loss


def _loss(name: str) -> dict[str, Any]:
    return {"type": name, "params": {}}


def _class_labels(info: DocumentPart) -> Sequence[Any]:
    """Class labels in the order of their numbers."""
    part = info["class_params"]
    part.refuse_other_than(("class_label_type", "class_names", "class_to_label", "classes_count"))
    kind, names = part["class_label_type"], part["class_names"].parts()
    if kind.text() not in _LABELS:
        raise kind.error(f"{kind.value[:40]!r} is no type of labels")
    for name in names:
        if not isinstance(name.value, _LABELS[kind.value]) or isinstance(name.value, bool) != (kind.value == "Boolean"):
            raise name.error(f"a label of type {kind.value} is expected")
        if kind.value == "String":
            name.text()
        if kind.value in ("Integer", "Float"):
            name.number()
    labels = [name.value for name in names]
    if len(set(labels)) != len(labels) or len(labels) < 2:
        raise part["class_names"].error("two different labels or more are expected")
    if part["class_to_label"].numbers(len(labels)).tolist() != list(range(len(labels))):
        raise part["class_to_label"].error("the labels are not numbered in their order")
    part["classes_count"].integer()
    return labels


def _written(top: DocumentPart, info: Mapping[str, Any]) -> dict[str, Any]:
    features = top["features_info"]
    for part in features["float_features"].parts() if "float_features" in features else []:
        if not isinstance(part["has_nans"].value, bool):
            raise part["has_nans"].error("true or false is expected")
    known = {"float_features": NUMBER_KEYS, "categorical_features": WORD_KEYS, "ctrs": STATISTIC_KEYS}
    written: dict[str, Any] = {"model_info": info, "features_info": {}}
    for kind, keys in known.items():
        if kind in features:
            written["features_info"][kind] = [_fields_of(part, keys) for part in features[kind].parts()]
    for statistic in written["features_info"].get("ctrs", ()):
        statistic["elements"] = [_fields_of(DocumentPart(element), ELEMENT_KEYS) for element in statistic["elements"]]
        table = top["ctr_data"][statistic["identifier"]]
        written.setdefault("ctr_data", {})[statistic["identifier"]] = _fields_of(table, TABLE_KEYS)
    symmetric = "oblivious_trees" in top
    trees = top["oblivious_trees" if symmetric else "trees"].parts()
    written["oblivious_trees" if symmetric else "trees"] = [(_symmetric if symmetric else _free)(t) for t in trees]
    return written | {"scale_and_bias": top["scale_and_bias"].value}


def _symmetric(tree: DocumentPart) -> dict[str, Any]:
    some = "splits" in tree and tree["splits"].value is not None
    splits = [_split(split) for split in tree["splits"].parts()] if some else []
    return {"splits": splits, "leaf_values": tree["leaf_values"].value}


def _free(tree: DocumentPart) -> dict[str, Any]:
    top: dict[str, Any] = {}
    waiting = [(tree, top)]
    while waiting:
        node, written = waiting.pop()
        if "split" not in node:
            # the library asks for a weight, which scores do not need
            written |= {"value": node["value"].value, "weight": 0}
            continue
        written["split"] = _split(node["split"])
        for side in ("left", "right"):
            written[side] = {}
            waiting.append((node[side], written[side]))
    return top


def _split(part: DocumentPart) -> dict[str, Any]:
    if "ctr_target_border_idx" in part:
        part["ctr_target_border_idx"].integer()
    return _fields_of(part, SPLIT_KEYS)


def _dumped(document: Mapping[str, Any]) -> str:
    """A document with numbers in 17 digits, as the library writes them: it does not read fewer to the last bit."""
    try:
        return re.sub(r'"\\u0000([^"]*)"', r"\1", json.dumps(_floats_as_text(document)))
    except RecursionError:
        raise ModelError("the trees are nested too deeply: the model is corrupt, save it again") from None


def _floats_as_text(value: Any) -> Any:
    if isinstance(value, float):
        return f"\0{value:.17g}"
    if isinstance(value, Mapping):
        return {key: _floats_as_text(item) for key, item in value.items()}
    return [_floats_as_text(item) for item in value] if isinstance(value, list) else value


def _fields_of(part: DocumentPart, keys: Sequence[str]) -> dict[str, Any]:
    if "feature_id" in part:
        part["feature_id"].text()
    return {key: part[key].value for key in keys if key in part}
