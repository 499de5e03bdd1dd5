"""An explainer in a file, with all that was prepared for its model: read, checked and cut into cells only once.

A file is a line of words, a line of JSON that says which versions wrote it, and a pickle. What is prepared follows the
arithmetic and the data types of the libraries, so that other versions build anew.
"""

from __future__ import annotations

import json
import os
import pickle
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from ocf.errors import ModelError
from ocf.support.messages import listed
from ocf.support.version import VERSION

#: What a file holds.
E = TypeVar("E")

#: First line of a file.
MAGIC = b"ocf prepared model\n"

#: Name under which a file says what it was made of.
MADE_OF = "made of"

#: Distributions whose objects a file may hold; those that are not installed count as absent.
LIBRARIES = ("numpy", "pandas", "scikit-learn", "xgboost", "xgboost-cpu", "lightgbm", "catboost", "numba")


def save(explainer: Any, path: str | Path, made_of: Mapping[str, str] | None = None) -> None:
    """Write an explainer; a file that is there is replaced when the new one is whole.

    Parameters
    ----------
    explainer : Explainer
    path : str or Path
    made_of : mapping of str to str, optional
        What it was made of, in words, and a checksum of each.
    """
    import joblib

    path = Path(path)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(MAGIC + json.dumps({**_versions(), MADE_OF: dict(made_of or {})}).encode() + b"\n")
            joblib.dump(explainer, file)
        beside.replace(path)
    except OSError as error:
        error.filename = str(path)  # and not the one beside it
        raise
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ModelError(f"the model cannot be saved: {error}; functions of a Pipeline must be importable") from None
    finally:
        beside.unlink(missing_ok=True)


def load(kind: type[E], path: str | Path, *, trust_pickle: bool = False, made_of: Mapping[str, str] | None = None) -> E:
    """The explainer that `save` wrote.

    Parameters
    ----------
    kind : type
        That it should have.
    path : str or Path
    trust_pickle : bool
        The file holds a pickle, which runs whatever code it contains: only for files of known origin.
    made_of : mapping of str to str, optional
        What it should have been made of; see `save`.

    Raises
    ------
    ModelError
        Not such a file, damaged, of other versions, made of something else, or not trusted.
    """
    import joblib

    path = Path(path)
    try:
        with path.open("rb") as file:
            if file.readline(len(MAGIC)) != MAGIC:
                raise ModelError(f"{path} is no prepared model: write one with Explainer.save")
            written = json.loads(file.readline(4096))
            own = written.pop(MADE_OF, {})
            differing = _differing(written)
            if differing:
                raise ModelError(f"{path} was written with {listed(differing)}: build the Explainer anew and save it")
            other = [what for what, check in (made_of or {}).items() if own.get(what) != check]
            if other:
                raise ModelError(
                    f"{path} was made of {' and '.join(f'another {what}' for what in other)}: give the one that it was "
                    "made of, or delete the file to have it made anew"
                )
            if not trust_pickle:
                raise ModelError(
                    f"{path} holds a pickle, which can run any code when it is loaded: if you know where it comes "
                    "from, say so with trust_pickle=True"
                )
            found = joblib.load(file)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from None
    except ModelError:
        raise
    except Exception as error:  # a damaged pickle raises anything
        raise ModelError(
            f"{path} is damaged, or of another version of ocf ({type(error).__name__}: {error}): save it again"
        ) from None
    if not isinstance(found, kind):
        raise ModelError(f"{path} is no prepared model: it holds a {type(found).__name__}")
    return found


def _versions() -> dict[str, str]:
    """What a file depends on."""
    found = {"ocf": VERSION, "Python": ".".join(platform.python_version_tuple()[:2])}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _differing(written: Mapping[str, str]) -> list[str]:
    """What wrote a file and is not what would read it, in words."""
    here = _versions()
    names = [name for name in {**written, **here} if written.get(name) != here.get(name)]
    return [f"{name} {written.get(name, 'absent')} (here: {here.get(name, 'absent')})" for name in names]
