"""Reader of skops files: a zip archive with a schema of named parts and the arrays that they refer to.

The file is a stranger's, and both `skops.io.load` and scikit-learn trust what it says: sizes, types of attributes,
indices into memory. So ocf builds the objects itself, and only those that a tree model consists of: each part of the
schema has a loader, each loader here takes just the classes that it is meant for, and the attributes of an object are
checked (`ocf.readers.sklearn_checks`) before the object exists. Nothing that is called while reading can reach outside
`ALLOWED`.

=================  ===========================================================================
part               what the file holds
=================  ===========================================================================
JsonNode           a number, text, true, false or null, as JSON in a string
NdArrayNode        an array or a NumPy scalar in NumPy's own format, or a list of parts (objects)
ObjectNode         a class, and a DictNode of its attributes
TreeNode           the arguments and the state of `sklearn.tree._tree.Tree`
LossNode           the arguments of a loss of `sklearn._loss`
RandomStateNode    the state of a random generator; RandomGeneratorNode likewise
the others         dict, list, tuple, set, slice, dtype, a type, `functools.partial(check_array)`
=================  ===========================================================================
"""

from __future__ import annotations

import functools
import io
import json
import math
import zipfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ocf.errors import ModelError
from ocf.readers.base import brief
from ocf.readers.sklearn_checks import check_attributes, check_loss, check_random_state, check_tree

#: Numbers of the format's versions, as skops 0.11 and later write and read them.
_PROTOCOLS = (1, 2)
#: Parts inside parts. A Pipeline of a ColumnTransformer of Pipelines has about 30.
_MAX_DEPTH = 150
#: A file may unpack to this many bytes, or to `MAX_RATIO` times its own size if that is more.
MAX_UNPACKED = 2**30
MAX_RATIO = 100
_MAX_SCHEMA = 2**28
#: Kinds of numbers and text that arrays may hold: no objects.
_KINDS = frozenset("biufUSVmM")


def _names(module: str, *types: str) -> frozenset[str]:
    return frozenset(f"{module}.{name}" for name in types)


_NUMPY_TYPES = _names("numpy", "bool", "bool_", "object_", "str_", "float32", "float64") | _names(
    "numpy", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"
)
_PLAIN_TYPES = _names("builtins", "str", "int", "float", "bool")
#: Module of the compiled losses, and what they call it themselves before scikit-learn 1.9.
_LOSS_MODULE, _OLD_LOSS_MODULE = "sklearn._loss._loss", "_loss"
_LOSSES = frozenset().union(
    *(
        _names(module, "CyHalfSquaredError", "CyAbsoluteError", "CyPinballLoss", "CyHuberLoss", "CyHalfPoissonLoss")
        | _names(module, "CyHalfGammaLoss", "CyExponentialLoss", "CyHalfBinomialLoss", "CyHalfMultinomialLoss")
        for module in (_LOSS_MODULE, _OLD_LOSS_MODULE)
    )
)
_OBJECTS = frozenset().union(
    # trees and their ensembles
    _names("sklearn.tree._classes", "DecisionTreeClassifier", "DecisionTreeRegressor"),
    _names("sklearn.tree._classes", "ExtraTreeClassifier", "ExtraTreeRegressor"),
    _names("sklearn.ensemble._forest", "RandomForestClassifier", "RandomForestRegressor"),
    _names("sklearn.ensemble._forest", "ExtraTreesClassifier", "ExtraTreesRegressor"),
    _names("sklearn.ensemble._bagging", "BaggingClassifier", "BaggingRegressor"),
    _names("sklearn.ensemble._weight_boosting", "AdaBoostClassifier"),
    _names("sklearn.ensemble._iforest", "IsolationForest"),
    _names("sklearn.ensemble._gb", "GradientBoostingClassifier", "GradientBoostingRegressor"),
    _names("sklearn.dummy", "DummyClassifier", "DummyRegressor"),
    # linear classifiers
    _names("sklearn.linear_model._logistic", "LogisticRegression", "LogisticRegressionCV"),
    _names("sklearn.linear_model._stochastic_gradient", "SGDClassifier"),
    _names("sklearn.linear_model._perceptron", "Perceptron"),
    _names("sklearn.linear_model._ridge", "RidgeClassifier"),
    _names("sklearn.svm._classes", "LinearSVC", "SVC"),
    # histogram gradient boosting, its binning, and its encoding of categories
    _names(
        "sklearn.ensemble._hist_gradient_boosting.gradient_boosting",
        "HistGradientBoostingClassifier",
        "HistGradientBoostingRegressor",
    ),
    _names("sklearn.ensemble._hist_gradient_boosting.binning", "_BinMapper"),
    _names("sklearn.ensemble._hist_gradient_boosting.predictor", "TreePredictor"),
    # losses and links of both kinds of boosting
    _names("sklearn._loss.loss", "HalfSquaredError", "AbsoluteError", "PinballLoss", "HuberLoss"),
    _names("sklearn._loss.loss", "HalfPoissonLoss", "HalfGammaLoss", "ExponentialLoss"),
    _names("sklearn._loss.loss", "HalfBinomialLoss", "HalfMultinomialLoss"),
    _names("sklearn._loss.link", "Interval", "IdentityLink", "LogLink", "LogitLink", "HalfLogitLink"),
    _names("sklearn._loss.link", "MultinomialLogit"),
    # which skops before 0.14 takes for an object without attributes
    _names(_OLD_LOSS_MODULE, "CyHalfMultinomialLoss"),
    _names(_LOSS_MODULE, "CyHalfMultinomialLoss"),
    # pipelines with the usual encoders and scalers
    _names("sklearn.pipeline", "Pipeline"),
    _names("sklearn.compose._column_transformer", "ColumnTransformer", "make_column_selector"),
    _names("sklearn.impute._base", "SimpleImputer"),
    _names("sklearn.preprocessing._data", "StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler"),
    _names("sklearn.preprocessing._encoders", "OneHotEncoder", "OrdinalEncoder"),
    _names("sklearn.preprocessing._function_transformer", "FunctionTransformer"),
    _names("sklearn.preprocessing._label", "LabelEncoder"),
)

#: Loader -> classes that a file may load with it. Code that a file could steer (partial, check_array) is here only
#: because HistGradientBoosting with category columns keeps it; neither reaches anything that is not in this table.
ALLOWED: dict[str, frozenset[str]] = {
    "JsonNode": _PLAIN_TYPES,
    "DictNode": _names("builtins", "dict"),
    "ListNode": _names("builtins", "list"),
    "TupleNode": _names("builtins", "tuple"),
    "SetNode": _names("builtins", "set"),
    "SliceNode": _names("builtins", "slice"),
    "TypeNode": _PLAIN_TYPES | _NUMPY_TYPES,
    "NdArrayNode": _NUMPY_TYPES | _names("numpy", "ndarray"),
    "DTypeNode": _names("numpy", "dtype"),
    "RandomStateNode": _names("numpy.random.mtrand", "RandomState"),
    "RandomGeneratorNode": _names("numpy.random._generator", "Generator"),
    "PartialNode": _names("functools", "partial"),
    "FunctionNode": _names("sklearn.utils.validation", "check_array"),
    "ObjectNode": _OBJECTS,
    "LossNode": _LOSSES,
    "TreeNode": _names("sklearn.tree._tree", "Tree"),
}


def read_skops(path: Path) -> Any:
    """Object that a skops file holds.

    Raises
    ------
    ModelError
        The file is damaged, names a class that is not in `ALLOWED`, or holds a model that would make scikit-learn read
        or write outside its memory; the message names the place.
    """
    try:
        limit = max(MAX_UNPACKED, MAX_RATIO * path.stat().st_size)
        with zipfile.ZipFile(path) as archive:
            check_sizes(archive, limit)
            schema = json.loads(archive.read("schema.json"))
            return _Reader(archive, schema, limit).read()
    except _ForeignError as cause:
        raise ModelError(
            f"{path} contains types that ocf does not load from a file: {cause}. Keep to scikit-learn's tree models "
            "and usual encoders, or load the file yourself and pass the object from Python"
        ) from None
    except ModelError as cause:
        raise ModelError(f"{path} cannot be read as a skops file ({cause}): {_REMEDY}") from cause
    except Exception as cause:  # a damaged archive can raise anything
        raise ModelError(f"{path} cannot be read as a skops file ({brief(cause)}): {_REMEDY}") from cause


_REMEDY = "it is damaged, or was saved by another version of its libraries; save the model again"


class _ForeignError(Exception):
    """Names of classes and functions that are not loaded from a file."""


def check_sizes(archive: zipfile.ZipFile, limit: int) -> None:
    """Refuse a small file that unpacks to a huge one.

    Parameters
    ----------
    archive : zipfile.ZipFile
    limit : int
        Bytes.

    Raises
    ------
    ModelError
        By its directory the archive, or its schema, is larger than it may be.
    """
    total = sum(part.file_size for part in archive.infolist())
    schema = archive.getinfo("schema.json").file_size
    if total > limit or schema > _MAX_SCHEMA:
        raise ModelError(f"it unpacks to {total:,} bytes, {schema:,} of them its schema")


class _Reader:
    """Builds the object of a schema; parts with one ``__id__`` are one object."""

    def __init__(self, archive: zipfile.ZipFile, schema: Any, bytes_left: int) -> None:
        self.archive, self.schema = archive, schema
        self.built: dict[int, Any] = {}
        self.open: set[int] = set()
        self.arrays: dict[str, NDArray[Any]] = {}
        self.bytes_left = bytes_left
        self.parts = self.depth = 0

    def read(self) -> Any:
        if not isinstance(self.schema, dict):
            _refuse("schema.json", "must be an object")
        protocol = self.schema.get("protocol")
        if isinstance(protocol, bool) or protocol not in _PROTOCOLS:
            _refuse("protocol", f"is {protocol!r}, ocf reads {' and '.join(map(str, _PROTOCOLS))}")
        foreign: set[str] = set()
        for part in _parts(self.schema):
            self.parts += 1
            foreign.update(_foreign(part))
            if not isinstance(part.get("__id__"), int | str | None):  # also of parts that are not needed
                _refuse("schema.json", f"has a part whose __id__ is {part['__id__']!r}, which is no number")
        if foreign:
            raise _ForeignError(", ".join(sorted(foreign)))
        return self.build(self.schema, "")

    def build(self, part: Any, where: str) -> Any:
        """Object of one part of the schema, at the place `where`."""
        if not isinstance(part, dict) or part.get("__loader__") not in _LOADERS:
            _refuse(where, "is no part that has a loader")
        known = part.get("__id__")
        if isinstance(known, int) and known in self.built:
            return self.built[known]
        if self.depth >= _MAX_DEPTH or (isinstance(known, int) and known in self.open):
            _refuse(where, "holds itself, or too many parts inside each other")
        self.depth += 1
        if isinstance(known, int):
            self.open.add(known)
        made = _LOADERS[part["__loader__"]](self, part, where)
        self.depth -= 1
        if isinstance(known, int):
            self.open.discard(known)
            self.built[known] = made
        return made

    def build_list(self, parts: Any, where: str) -> list[Any]:
        if not isinstance(parts, list):
            _refuse(where, "must be a list")
        return [self.build(part, f"{where}[{k}]") for k, part in enumerate(parts)]

    def build_exactly(self, part: Any, kind: type, where: str) -> Any:
        """Object of a part, of one plain type and no other."""
        made = self.build(part, where)
        if type(made) is not kind:
            _refuse(where, f"must be a {kind.__name__}, not a {type(made).__name__}")
        return made

    def array(self, name: Any, where: str) -> NDArray[Any]:
        """One array of the archive."""
        if not isinstance(name, str):
            _refuse(where, "names no array of the archive")
        if name not in self.arrays:
            self.arrays[name] = _array(self.archive.read(name), where)
        # a tree copies its arrays: one array must not serve any number of trees
        self.bytes_left -= self.arrays[name].nbytes
        if self.bytes_left < 0:
            _refuse(where, "is one of so many uses of the same arrays that they exceed the memory meant for a file")
        return self.arrays[name]


def _refuse(where: str, what: str) -> NoReturn:
    raise ModelError(f"{where or 'the model'} {what}")


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    """All dictionaries of a schema that describe a part."""
    stack = [schema]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            if "__class__" in value or "__loader__" in value:
                yield value
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)


def _name(part: dict[str, Any]) -> str:
    return f"{part.get('__module__')}.{part.get('__class__')}"


def _foreign(part: dict[str, Any]) -> Iterator[str]:
    """Name of the class or function of a part, if a file may not hold it there."""
    loader, name = str(part.get("__loader__")), _name(part)
    content = part.get("content")
    if loader == "MethodNode" and isinstance(content, dict):
        yield f"{name}.{content.get('func')}"
    elif loader not in ALLOWED:
        yield f"{name} ({loader})"
    elif name not in ALLOWED[loader]:
        yield name


def _import(part: dict[str, Any]) -> Any:
    """Class of a part whose name is in the table."""
    module = part["__module__"]
    return getattr(import_module(_LOSS_MODULE if module == _OLD_LOSS_MODULE else module), part["__class__"])


# -- plain data --------------------------------------------------------------------------------------------


def _json(reader: _Reader, part: dict[str, Any], where: str) -> Any:
    value = json.loads(part["content"]) if isinstance(part.get("content"), str) else [part]
    if not (value is None or isinstance(value, str | int | float)):
        _refuse(where, "must be a number, text, true, false or null")
    if isinstance(value, str):
        value.encode()  # half of a character cannot be shown
    return value


def _dict(reader: _Reader, part: dict[str, Any], where: str) -> dict[Any, Any]:
    content, types = part.get("content"), reader.build_list(_content(part.get("key_types")), where)
    if not isinstance(content, dict) or len(content) != len(types):
        _refuse(where, "must have one type for each key")
    if not all(isinstance(kind, type) and issubclass(kind, str | int | float | np.generic) for kind in types):
        _refuse(where, "has keys that are neither text nor numbers")
    made = {}
    for kind, (key, value) in zip(types, content.items(), strict=True):
        made[kind(key)] = reader.build(value, f"{where}.{key}".lstrip("."))
    return made


def _content(part: Any) -> Any:
    return part.get("content") if isinstance(part, dict) else None


def _list(reader: _Reader, part: dict[str, Any], where: str) -> list[Any]:
    return reader.build_list(part.get("content"), where)


def _tuple(reader: _Reader, part: dict[str, Any], where: str) -> tuple[Any, ...]:
    return tuple(_list(reader, part, where))


def _set(reader: _Reader, part: dict[str, Any], where: str) -> set[Any]:
    return set(_list(reader, part, where))


def _slice(reader: _Reader, part: dict[str, Any], where: str) -> slice:
    ends = [(part.get("content") or {}).get(end) for end in ("start", "stop", "step")]
    if not all(end is None or isinstance(end, int | str) for end in ends):
        _refuse(where, "must be a slice of numbers or names")
    return slice(*ends)


def _type(reader: _Reader, part: dict[str, Any], where: str) -> Any:
    return _import(part)


# -- arrays ------------------------------------------------------------------------------------------------


def _ndarray(reader: _Reader, part: dict[str, Any], where: str) -> Any:
    if part.get("type") not in ("json", "numpy"):
        _refuse(where, "must be an array of type json or numpy")
    if part["type"] == "json":
        return _objects(reader, part, where)
    array = reader.array(part.get("file"), where)
    if _name(part) == "numpy.ndarray":
        return array
    scalar = array[()]
    if array.ndim or not isinstance(scalar, _import(part)):
        _refuse(where, f"must be a single {part['__class__']}")
    return scalar


def _objects(reader: _Reader, part: dict[str, Any], where: str) -> NDArray[Any]:
    """Array of objects with one or two dimensions."""
    shape = reader.build_exactly(part.get("shape"), tuple, f"{where}.shape")
    if len(shape) not in (1, 2) or not all(type(n) is int and n >= 0 for n in shape):
        _refuse(where, f"has the shape {shape!r}, which no array of objects has")
    rows = reader.build_list(part.get("content"), where)
    made = np.empty(len(rows) if len(shape) == 1 else shape if math.prod(shape) <= reader.parts else 0, object)
    if len(rows) != shape[0] or made.shape != shape:
        _refuse(where, f"does not have the shape {shape}")
    for k, row in enumerate(rows):
        if len(shape) == 2 and (not isinstance(row, list) or len(row) != shape[1]):
            _refuse(f"{where}[{k}]", f"must be a list of {shape[1]}")
        made[k] = row
    return made


def _array(data: bytes, where: str) -> NDArray[Any]:
    """Array in NumPy's format, its size checked against the bytes that there are."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read_header is None:
        _refuse(where, f"is an array in version {version} of NumPy's format")
    shape, by_columns, dtype = read_header(stream)
    kinds = {field[0].base.kind for field in dtype.fields.values()} if dtype.fields else {dtype.kind}
    if dtype.hasobject or dtype.subdtype or not kinds <= _KINDS:
        _refuse(where, f"is an array of {dtype}: ocf reads numbers and text")
    count, left = math.prod(shape), len(data) - stream.tell()
    if not all(n >= 0 for n in shape) or count * dtype.itemsize != left or (count and not dtype.itemsize):
        _refuse(where, f"is an array of shape {shape} in {left} bytes")
    made = np.frombuffer(data, dtype, count, stream.tell()).reshape(shape, order="F" if by_columns else "C")
    if dtype.kind == "U" and count:
        _check_text(made, where)
    return made.astype(dtype.newbyteorder("="), order="K")


def _check_text(array: NDArray[Any], where: str) -> None:
    codes = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("=")).reshape(-1).view(np.uint32)
    if ((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any():
        _refuse(where, "holds text with characters that do not exist")


def _dtype(reader: _Reader, part: dict[str, Any], where: str) -> Any:
    empty = reader.build(part.get("content"), where)
    if not isinstance(empty, np.ndarray):
        _refuse(where, "must hold an array")
    return empty.dtype


# -- objects -----------------------------------------------------------------------------------------------


def _object(reader: _Reader, part: dict[str, Any], where: str) -> Any:
    cls = _import(part)
    content = part.get("content")
    attributes = {} if content is None else reader.build(content, where)
    if attributes is None:  # the state of an object that has none
        attributes = {}
    if not isinstance(attributes, dict) or not all(isinstance(name, str) for name in attributes):
        _refuse(where, "must have attributes with names")
    for name in attributes:
        hidden = getattr(cls, name, None)
        if callable(hidden) or isinstance(hidden, property) or name.startswith("__"):
            _refuse(f"{where}.{name}".lstrip("."), f"stands in the place of a method of {cls.__name__}")
    check_attributes(cls.__name__, attributes, where)
    made = cls.__new__(cls)
    if attributes and hasattr(made, "__setstate__"):
        made.__setstate__(attributes)
    elif attributes:
        made.__dict__.update(attributes)
    return made


def _tree(reader: _Reader, part: dict[str, Any], where: str) -> Any:
    arguments = _arguments(reader, part, where)
    state = reader.build_exactly(part.get("content"), dict, where)
    check_tree(arguments, state, where)
    made = _import(part)(*arguments)
    made.__setstate__(state)
    return made


def _loss(reader: _Reader, part: dict[str, Any], where: str) -> Any:
    arguments = _arguments(reader, part, where)
    check_loss(arguments, reader.build(part.get("content"), where), where)
    return _import(part)(*arguments)


def _arguments(reader: _Reader, part: dict[str, Any], where: str) -> tuple[Any, ...]:
    reduced = part.get("__reduce__")
    arguments: tuple[Any, ...] = reader.build_exactly(reduced.get("args") if reduced else None, tuple, where)
    return arguments


def _random_state(reader: _Reader, part: dict[str, Any], where: str) -> Any:
    state = reader.build_exactly(part.get("content"), dict, where)
    check_random_state(state, where)
    made = np.random.RandomState(0)
    made.set_state(state)
    return made


def _generator(reader: _Reader, part: dict[str, Any], where: str) -> Any:
    content = part.get("content")
    state = reader.build_exactly(content.get("bit_generator") if content else None, dict, where)
    check_random_state(state, where)
    # no tree model asks for the seeds that a generator was made from
    bits = {"MT19937": np.random.MT19937, "PCG64": np.random.PCG64}[state["bit_generator"]](0)
    bits.state = state
    return np.random.Generator(bits)


def _partial(reader: _Reader, part: dict[str, Any], where: str) -> Any:
    """``partial(check_array, dtype=…, ensure_all_finite=…)``."""
    from sklearn.utils.validation import check_array

    content = part.get("content") or {}
    function, arguments = (reader.build(content.get(name), f"{where}.{name}") for name in ("func", "args"))
    options = reader.build_exactly(content.get("kwds"), dict, f"{where}.kwds")
    if function is not check_array or arguments or set(options) - {"dtype", "ensure_all_finite", "force_all_finite"}:
        _refuse(where, "must be check_array with the options dtype and ensure_all_finite")
    return functools.partial(function, **options)


_LOADERS: dict[str, Callable[[_Reader, dict[str, Any], str], Any]] = {
    "JsonNode": _json,
    "DictNode": _dict,
    "ListNode": _list,
    "TupleNode": _tuple,
    "SetNode": _set,
    "SliceNode": _slice,
    "TypeNode": _type,
    "NdArrayNode": _ndarray,
    "DTypeNode": _dtype,
    "RandomStateNode": _random_state,
    "RandomGeneratorNode": _generator,
    "PartialNode": _partial,
    "FunctionNode": _type,
    "ObjectNode": _object,
    "LossNode": _loss,
    "TreeNode": _tree,
}
