"""Models from files, read as data wherever the format allows it.

XGBoost's JSON and UBJSON, LightGBM's text, CatBoost's files and ONNX hold numbers only. A skops file names Python
types; it is built when all of them are on the short list of `ocf.readers.skops_format` and their attributes are what
fitting leaves behind. A pickle runs the code that it contains, so it is loaded only when the caller says that its
origin is trusted.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from ocf.errors import ModelError
from ocf.readers import READERS
from ocf.readers.base import brief

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
    "CatBoost's own (model.save_model('model.cbm')) or JSON, ONNX, treelite's checkpoints, "
    "skops (skops.io.dump(model, 'model.skops')), or, if you trust its origin, pickle and joblib"
)


def load_model(path: str | Path, trust_pickle: bool = False) -> Any:
    """Native model object from a file; the content, not the file's name, decides the format.

    Parameters
    ----------
    path : str or Path
        XGBoost JSON or UBJSON, LightGBM text, CatBoost's binary files or JSON, ONNX, treelite's checkpoints, skops,
        pickle or joblib.
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
        skops file with types that are not on the list or attributes that scikit-learn cannot have fitted.
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
        from ocf.readers.skops_format import read_skops

        return read_skops(path)
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
            f"{path} cannot be unpickled ({brief(cause)}): it is damaged, or was saved by other versions of its "
            "libraries; save the model again"
        ) from cause
