"""Files of JSON and TOML from strangers: read with limits, checked against a schema, and refused by name and place.

A document is refused when it is no JSON or TOML, holds a key twice, a number beyond the range of float64 or of 64-bit
integers, a NaN or infinity where none belongs, a date, or is nested too deeply. What is left is a tree of plain
values that no later step can choke on; `fit` then says where it departs from what is expected, and `check_settings`
what to write instead.

Schemas are whatever `msgspec` converts to, with one exception: a union of a tuple of fixed length and a number or text
with limits of its own (``Annotated[float, Meta(ge=0)] | tuple[float, float]``) corrupts memory in msgspec 0.22; a list
with ``Meta(min_length=2, max_length=2)`` does not.
"""

from __future__ import annotations

import json
import math
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar, get_type_hints, overload

import msgspec
from msgspec import Meta

from ocf.errors import DataError, OcfError, ProblemError
from ocf.support.messages import nearest

T = TypeVar("T")

#: Kind of error that a reader raises for its files.
Refusal = type[OcfError]

#: Deepest nesting, and most bytes, that a document may have. No file of ocf comes near either.
MOST_DEPTH, MOST_BYTES = 64, 2**31

#: Integers lie below this in magnitude, so that they fit 64 bits, signed or not.
MOST_WHOLE = 2**64

#: How half a character is written in JSON.
_HALF = re.compile(r"\\u[dD][89a-fA-F]")

#: What reading a malformed value can raise.
MALFORMED = (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)

#: What a schema may say: a value of a table, a label of a class or level, a count.
Scalar = bool | int | float | str

Label = Scalar | None

Count = Annotated[int, Meta(ge=0)]

AtLeastOne = Annotated[int, Meta(ge=1)]

#: Numbers without NaN and infinities: any, those of at least 0, and those above 0.
Finite = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]

AtLeastZero = Annotated[float, Meta(ge=0, le=sys.float_info.max)]

Positive = Annotated[float, Meta(gt=0, le=sys.float_info.max)]

# -- reading ---------------------------------------------------------------------------------------------------


def read_text(path: str | Path, error: Refusal = DataError, what: str = "") -> str:
    """Text of a file in UTF-8, with or without a byte order mark.

    Parameters
    ----------
    path : str or Path
    error : type of OcfError
        What is raised.
    what : str
        What the file is, for messages, such as ``"the suite"``.

    Raises
    ------
    OcfError
        The file cannot be read, is too large, or is no UTF-8.
    """
    path = Path(path)
    try:
        if (size := path.stat().st_size) > MOST_BYTES:
            raise error(f"{path} has {size:,} bytes; {MOST_BYTES:,} is the most that is read: is it the right file?")
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        raise error(f"{path} is not UTF-8 text (byte {cause.start}): save it as UTF-8") from None
    except (OSError, ValueError) as cause:  # a name with a NUL is a ValueError
        name = f"{what} {path}" if what else str(path)
        raise error(f"cannot read {name}: {getattr(cause, 'strerror', None) or cause}") from None


def parse_json(text: str | bytes, where: str, error: Refusal = DataError, *, infinite: bool = False) -> Any:
    """Value of a JSON text.

    Parameters
    ----------
    text : str or bytes
    where : str
        Names the file, and perhaps the line, in messages.
    error : type of OcfError
    infinite : bool
        Whether NaN, infinities and numbers that overflow to them are allowed.

    Raises
    ------
    OcfError
    """

    def constant(word: str) -> float:
        if not infinite:
            raise ValueError(f"{word} is no number of JSON")
        return float(word)

    def real(digits: str) -> float:
        value = float(digits)
        if not infinite and math.isinf(value):
            raise ValueError(f"the number {_short(digits)} is too large")
        return value

    try:
        text = text.decode() if isinstance(text, bytes) else text
        data = json.loads(text, object_pairs_hook=_unique, parse_int=_whole, parse_float=real, parse_constant=constant)
        if not text.isascii() or _HALF.search(text):
            json.dumps(data, ensure_ascii=False).encode()  # half a character can be read, but never be written
    except RecursionError:
        raise _too_deep(where, error) from None
    except ValueError as cause:  # no JSON, or not even UTF-8
        raise error(f"{where} is not JSON, or damaged: {cause}") from None
    _check_depth(data, where, error)
    return data


def parse_toml(text: str, where: str, error: Refusal = DataError) -> dict[str, Any]:
    """Tables of a TOML text; dates, which nothing of ocf takes, are refused.

    Parameters
    ----------
    text : str
    where : str
        What the text is, for messages.
    error : type of OcfError
        Which to raise.

    Raises
    ------
    OcfError
    """
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise _too_deep(where, error) from None
    except ValueError as cause:
        raise error(f"{where} is not valid TOML: {cause}") from None
    _check_depth(data, where, error)
    for place, value in _leaves(data):
        if isinstance(value, int) and abs(value) >= MOST_WHOLE:
            raise error(f"{where}: at {place}: a whole number that does not fit 64 bits")
        if not isinstance(value, bool | int | float | str):
            raise error(f"{where}: at {place}: {value} is a date or time; write it in quotes, as text")
    return data


def read_json(path: str | Path, error: Refusal = DataError, *, infinite: bool = False) -> Any:
    """Value of a JSON file; see `parse_json`.

    Parameters
    ----------
    path : str or Path
    error : type of OcfError
        Which to raise.
    infinite : bool
        Whether infinite numbers are taken.
    """
    return parse_json(read_text(path, error), str(path), error, infinite=infinite)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for k, key in enumerate(keys) if key in keys[:k])
        raise ValueError(f"the key {twice!r} occurs twice")
    return found


def _whole(digits: str) -> int:
    value = int(digits) if len(digits) <= 21 else MOST_WHOLE
    if abs(value) >= MOST_WHOLE:
        raise ValueError(f"the whole number {_short(digits)} does not fit 64 bits")
    return value


def _short(text: str) -> str:
    return text if len(text) <= 24 else f"{text[:20]}… ({len(text)} digits)"


def _too_deep(where: str, error: Refusal) -> OcfError:
    return error(f"{where} is nested more than {MOST_DEPTH} levels deep: it is damaged, or no file of ocf")


def _check_depth(data: Any, where: str, error: Refusal) -> None:
    level = [data]
    for _ in range(MOST_DEPTH):
        parts = (v.values() if isinstance(v, dict) else v for v in level if isinstance(v, dict | list))
        level = [child for part in parts for child in part if isinstance(child, dict | list)]
        if not level:
            return
    raise _too_deep(where, error)


def _leaves(data: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """All values that are no containers, with their places."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _leaves(value, f"{place}.{key}" if place else str(key))
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from _leaves(value, f"{place}[{number}]")
    else:
        yield place, data


# -- checking --------------------------------------------------------------------------------------------------


@overload
def fit(data: Any, schema: type[T], where: str, error: Refusal = DataError) -> T: ...


@overload
def fit(data: Any, schema: Any, where: str, error: Refusal = DataError) -> Any: ...


def fit(data: Any, schema: Any, where: str, error: Refusal = DataError) -> Any:
    """Plain values as what a schema describes.

    Parameters
    ----------
    data : object
        Tree of plain values.
    schema : type
        Whatever `msgspec` takes: a `msgspec.Struct`, a dataclass, ``list[int]``, …
    where : str
        Names the file in messages.
    error : type of OcfError

    Raises
    ------
    OcfError
        With the place of the first value that does not fit, and what it should be.
    """
    try:
        return msgspec.convert(data, schema)
    except msgspec.ValidationError as cause:
        raise error(f"{where} is incomplete or damaged: {_in_words(str(cause))}") from None
    except RecursionError:
        raise _too_deep(where, error) from None


def _in_words(message: str) -> str:
    """A message of msgspec with the place first: ``at terms[0]: expected `float`, got `str```."""
    found = re.fullmatch(r"(.*?)(?: - at `(?:key in )?\$\.?(.*)`)?", message, re.DOTALL)
    said, place = (found[1], found[2]) if found else (message, "")
    said = re.sub("^Object missing required field (.*)$", r"\1 is missing", said)
    said = said[:1].lower() + said[1:]
    return f"at {place}: {said}" if place else said


@cache
def settings_of(schema: type) -> dict[str, Any]:
    """What the value of each key of a `TypedDict` must be."""
    return get_type_hints(schema, include_extras=True)


def check_names(names: Iterable[str], known: Sequence[str]) -> None:
    """Refuse settings that there are not.

    Parameters
    ----------
    names : iterable of str
        That were given.
    known : sequence of str

    Raises
    ------
    ProblemError
        It names the setting that is meant.
    """
    for name in names:
        if name not in known:
            raise ProblemError(f"there is no setting {nearest(name, known)}")


def check_settings(
    table: Mapping[str, Any],
    schema: type,
    where: str,
    error: Refusal = DataError,
    hints: Mapping[str, str] | None = None,
) -> None:
    """Refuse a table of settings with a key that is not known, or a value that means nothing.

    Parameters
    ----------
    table : mapping
    schema : type
        A `TypedDict`. What a value must be is said in words by the ``description`` of the key's `msgspec.Meta`; what
        types cannot say, by a test in its ``extra["holds"]``.
    where : str
        Names the file and the table in messages.
    error : type of OcfError
    hints : mapping, optional
        What to write in the place of keys that are known elsewhere.

    Raises
    ------
    OcfError
        The message names the key that is meant, or says what its value should be.
    """
    known = settings_of(schema)
    for key, value in table.items():
        if key not in known:
            said = f"{key!r}; {hints[key]}" if hints and key in hints else nearest(key, known)
            raise error(f"{where}: unknown key {said}")
        meta = _meta(known[key])
        place = ""
        try:
            msgspec.convert(value, known[key])
            holds = (meta.extra or {}).get("holds")
            if holds is None or holds(value):
                continue
        except msgspec.ValidationError as cause:
            place = f" ({_in_words(str(cause))})" if " - at `" in str(cause) else ""
        raise error(f"{where}: {key} = {value!r} should be {meta.description}{place}")


def words_of(schema: type, key: str) -> str:
    """What the value of a key of a `TypedDict` should be, in words.

    Parameters
    ----------
    schema : type
        A `TypedDict`, as `check_settings` takes it.
    key : str
        One of its keys.
    """
    return str(_meta(settings_of(schema)[key]).description)


def _meta(hint: Any) -> Meta:
    """The description of a key; of several, the last, which holds for the whole value."""
    meta: Meta = hint.__metadata__[-1]
    return meta


@contextmanager
def refused(where: str, error: Refusal = DataError) -> Iterator[None]:
    """Turn what a malformed value raises into an error that names the file; `OcfError` gets the name in front.

    Parameters
    ----------
    where : str
    error : type of OcfError
    """
    try:
        yield
    except OcfError as cause:
        _raise(cause if str(cause).startswith(where) else type(cause)(f"{where}: {cause}"))
    except MALFORMED as cause:
        _raise(error(f"{where} is incomplete or damaged: {type(cause).__name__}: {str(cause)[:300]}"))


def _raise(error: OcfError) -> NoReturn:
    raise error from None


# -- files of lines --------------------------------------------------------------------------------------------


def keep_aside(path: Path, lines: Iterable[bytes]) -> Path:
    """Append lines that cannot be read to the file ``NAME.unreadable`` beside a file; those it has are not repeated.

    Parameters
    ----------
    path : Path
        The file that held the lines.
    lines : iterable of bytes

    Returns
    -------
    Path
        Of that file.
    """
    aside = path.with_name(path.name + ".unreadable")
    known = set(aside.read_bytes().split(b"\n")) if aside.exists() else set()
    with aside.open("ab") as file:
        file.writelines(line + b"\n" for line in dict.fromkeys(lines) if line not in known)
        file.flush()
    return aside


def as_table(data: Any, where: str, error: Refusal = DataError) -> Mapping[str, Any]:
    """The value, when it is an object of JSON.

    Parameters
    ----------
    data : object
        From JSON or TOML.
    where : str
        What the value is, for messages.
    error : type of OcfError
        Which to raise.
    """
    if not isinstance(data, dict):
        raise error(f"{where}: an object {{…}} is expected here, not {str(data)[:40]!r}")
    return data
