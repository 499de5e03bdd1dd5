"""Models from files, read as data wherever the format allows it.

XGBoost's JSON and UBJSON and LightGBM's text hold numbers only. A skops file names Python types; it is loaded when all
of them are on the short list below. A pickle runs the code that it contains, so it is loaded only when the caller says
that its origin is trusted.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from ocf.errors import MissingDependencyError, ModelError, OcfError
from ocf.readers import READERS

_HEAD = 4096
_ZIP_MAGIC = b"PK\x03\x04"
_PICKLE_SUFFIXES = (".pkl", ".pickle", ".joblib")
#: First bytes of a pickle (protocol 2 and later) and of joblib's compressed files: gzip, bz2, xz, lz4, zlib.
_PICKLE_MAGICS = (
    b"\x80",
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ",
    b"\x04\x22\x4d\x18",
    b"\x78\x01",
    b"\x78\x5e",
    b"\x78\x9c",
    b"\x78\xda",
)

_FORMATS = (
    "XGBoost JSON or UBJSON (model.save_model('model.json')), LightGBM text (booster.save_model('model.txt')), "
    "skops (skops.io.dump(model, 'model.skops')), or, if you trust its origin, pickle and joblib"
)


def load_model(path: str | Path, trust_pickle: bool = False) -> Any:
    """Native model object from a file; the content, not the file's name, decides the format.

    Parameters
    ----------
    path : str or Path
        XGBoost JSON or UBJSON, LightGBM text, skops, pickle or joblib.
    trust_pickle : bool
        Allow pickle and joblib. They run whatever code the file contains: only for files of known origin.

    Returns
    -------
    object
        A model or a Pipeline.

    Raises
    ------
    ModelError
        If the file is missing, a directory, empty, damaged, of an unknown format, a pickle without `trust_pickle`, or a
        skops file with types that are not on the list.
    MissingDependencyError
        If the library of the model is not installed.
    """
    path = Path(path)
    head = _head(path)
    for name in READERS:
        reader = import_module(name)
        if hasattr(reader, "sniff") and reader.sniff(head):
            return reader.load(path)
    if head.startswith(_ZIP_MAGIC):
        return _load_skops(path)
    if path.suffix.lower() == ".skops":
        raise ModelError(f"{path} is no skops file (not a zip archive): it is damaged, save the model again")
    if head.startswith(_PICKLE_MAGICS) or path.suffix.lower() in _PICKLE_SUFFIXES:
        return _load_pickle(path, trust_pickle)
    raise ModelError(f"{path} is no model file that ocf knows, or it is damaged; save the model as {_FORMATS}")


def _head(path: Path) -> bytes:
    """First bytes of the file."""
    if path.is_dir():
        raise ModelError(f"{path} is a directory: give the model file inside it")
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except FileNotFoundError:
        raise ModelError(f"there is no file {path} (current directory: {Path.cwd()}): check the path") from None
    except (OSError, ValueError) as cause:
        raise ModelError(f"{path} cannot be read ({cause}): check the path and its permissions") from cause
    if not head.strip():
        raise ModelError(f"{path} is empty: save the model again")
    return head


def _load_pickle(path: Path, trusted: bool) -> Any:
    if not trusted:
        raise ModelError(
            f"{path} is a pickle or joblib file, and loading one runs any code that it contains. If you trust where it "
            "comes from, say so with --trust-pickle (trust_pickle=True in Python); safer is to save the model as "
            "XGBoost JSON, LightGBM text or skops"
        )
    import joblib

    try:
        return joblib.load(path)
    except ModuleNotFoundError as cause:
        raise ModelError(f"{path} needs the module {cause.name!r}: install the package that provides it") from cause
    except Exception as cause:  # a damaged pickle can raise anything
        raise ModelError(
            f"{path} cannot be unpickled ({_brief(cause)}): it is damaged, or was saved by other versions of its "
            "libraries; save the model again"
        ) from cause


# ---------------------------------------------------------------------------------------------------- skops


def _names(module: str, *types: str) -> frozenset[str]:
    return frozenset(f"{module}.{name}" for name in types)


#: Every type that a skops file may name. Code that a file could steer (partial, check_array) is here only because
#: HistGradientBoosting with category columns keeps it; neither can reach anything that is not on this list.
_ALLOWED = frozenset().union(
    # plain data
    _names("builtins", "dict", "list", "tuple", "set", "slice", "str", "int", "float", "bool"),
    _names("numpy", "ndarray", "dtype", "bool", "object_", "str_", "float32", "float64"),
    _names("numpy", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    # the state of a model's random generator
    _names("numpy.random.mtrand", "RandomState"),
    _names("numpy.random._generator", "Generator"),
    # trees and their ensembles
    _names("sklearn.tree._tree", "Tree"),
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
    _names("functools", "partial"),
    _names("sklearn.utils.validation", "check_array"),
    # losses and links of both kinds of boosting
    _names("sklearn._loss.loss", "HalfSquaredError", "AbsoluteError", "PinballLoss", "HuberLoss"),
    _names("sklearn._loss.loss", "HalfPoissonLoss", "HalfGammaLoss", "ExponentialLoss"),
    _names("sklearn._loss.loss", "HalfBinomialLoss", "HalfMultinomialLoss"),
    _names("sklearn._loss._loss", "CyHalfSquaredError", "CyAbsoluteError", "CyPinballLoss", "CyHuberLoss"),
    _names("sklearn._loss._loss", "CyHalfPoissonLoss", "CyHalfGammaLoss", "CyExponentialLoss"),
    _names("sklearn._loss._loss", "CyHalfBinomialLoss", "CyHalfMultinomialLoss"),
    _names("sklearn._loss.link", "Interval", "IdentityLink", "LogLink", "LogitLink", "HalfLogitLink"),
    _names("sklearn._loss.link", "MultinomialLogit"),
    # pipelines with the usual encoders and scalers
    _names("sklearn.pipeline", "Pipeline"),
    _names("sklearn.compose._column_transformer", "ColumnTransformer", "make_column_selector"),
    _names("sklearn.impute._base", "SimpleImputer"),
    _names("sklearn.preprocessing._data", "StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler"),
    _names("sklearn.preprocessing._encoders", "OneHotEncoder", "OrdinalEncoder"),
    _names("sklearn.preprocessing._function_transformer", "FunctionTransformer"),
    _names("sklearn.preprocessing._label", "LabelEncoder"),
)


def _load_skops(path: Path) -> Any:
    try:
        import skops.io
    except ImportError:
        raise MissingDependencyError("skops", "skops", f"reading {path}") from None
    try:
        with zipfile.ZipFile(path) as archive:
            named = set(_types(json.loads(archive.read("schema.json"))))
        if named <= _ALLOWED:
            # skops trusts many types by itself; what it adds here are those it does not, bound methods among them
            named.update(skops.io.get_untrusted_types(file=path))
        if foreign := sorted(named - _ALLOWED):
            raise ModelError(
                f"{path} contains types that ocf does not load from a file: {', '.join(foreign)}. Keep to "
                "scikit-learn's tree models and usual encoders, or load the file yourself and pass the object "
                "from Python"
            )
        return skops.io.load(path, trusted=sorted(named))
    except OcfError:
        raise
    except Exception as cause:  # a damaged archive can raise anything
        raise ModelError(
            f"{path} cannot be read as a skops file ({_brief(cause)}): it is damaged, or was saved by other versions "
            "of its libraries; save the model again"
        ) from cause


def _types(schema: Any) -> Iterator[str]:
    """Full names of all types and functions that a skops schema mentions."""
    if isinstance(schema, dict):
        if "__class__" in schema or "__loader__" in schema:
            yield f"{schema.get('__module__')}.{schema.get('__class__')}"
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from _types(part)


def _brief(cause: Exception) -> str:
    """Kind and first line of an error."""
    lines = str(cause).splitlines()
    return f"{type(cause).__name__}: {lines[0][:200]}" if lines else type(cause).__name__
