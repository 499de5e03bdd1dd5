"""Ways to spoil a file: its bytes, or the values that it holds.

Each mutator takes a random generator and the good bytes and gives the bad ones, with a few words on what it did.
"""

from __future__ import annotations

import io
import json
import re
import struct
import tomllib
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

#: Bad bytes, and what was done to the good ones.
Mutant = tuple[bytes, str]
Mutator = Callable[[np.random.Generator, bytes], Mutant]

#: What stands in a tree of values for text that is written as it is.
_RAW = re.compile(r'"\\u0000((?:[^"\\]|\\.)*)"')


def raw(text: str) -> str:
    """A value that is written as this text, without quotes."""
    return "\x00" + text


#: Values that take the place of good ones; the raw ones are what no tree of values can hold.
STRANGE: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, -7, 2, 3, 2**31, -(2**31) - 1, 2**40, 2**63, 0.5, -0.5, 1e308, -1e308, 5e-324, 1e30),
    *("", "x", "ä\x7f\n", "NaN", "inf", "-inf", "1", "1e5", "none", "x" * 3000, [], {}, [[]], [None], [1, 2, 3]),
    *({"x": 1}, {"": {}}, [0.5, "x"], raw("NaN"), raw("Infinity"), raw("-Infinity"), raw("1e999"), raw("9" * 400)),
    *(raw("9" * 6000), raw("-1e-999"), raw("[" * 3000 + "]" * 3000), raw("[" * 100_000)),
    *(raw('{"a":' * 500 + "1" + "}" * 500), raw('{"a": 1, "a": 2}'), raw("tru"), raw("\ufeff1"), raw("0x10")),
)


def _choice(rng: np.random.Generator, options: Any) -> Any:
    return options[int(rng.integers(len(options)))]


# -- bytes -------------------------------------------------------------------------------------------------


def flip(rng: np.random.Generator, data: bytes) -> Mutant:
    spoilt = bytearray(data)
    places = rng.integers(8 * len(data), size=int(rng.integers(1, 5))).tolist()
    for place in places:
        spoilt[place // 8] ^= 1 << place % 8
    return bytes(spoilt), f"bits {places} flipped"


def cut(rng: np.random.Generator, data: bytes) -> Mutant:
    end = int(rng.integers(len(data)))
    return data[:end], f"cut off after {end} bytes"


def drop(rng: np.random.Generator, data: bytes) -> Mutant:
    start, length = int(rng.integers(len(data))), int(rng.integers(1, 65))
    return data[:start] + data[start + length :], f"{length} bytes dropped at {start}"


def repeat(rng: np.random.Generator, data: bytes) -> Mutant:
    start, length = int(rng.integers(len(data))), int(rng.integers(1, 257))
    return data[: start + length] + data[start:], f"{length} bytes repeated at {start}"


def insert(rng: np.random.Generator, data: bytes) -> Mutant:
    start = int(rng.integers(len(data) + 1))
    more = _choice(rng, (rng.bytes(8), b"[" * 5000, b"{" * 5000, b"\x00", b"\xff\xfe", b"9" * 30, b"\n", b'"', b"-"))
    return data[:start] + more + data[start:], f"{more[:12]!r} ({len(more)} bytes) inserted at {start}"


def trail(rng: np.random.Generator, data: bytes) -> Mutant:
    more = _choice(rng, (b"\x00", b" \n", b"x", b"}", b"]", b"{}", rng.bytes(16), data[:200], data))
    return data + more, f"{more[:12]!r} ({len(more)} bytes) at the end"


def number(rng: np.random.Generator, data: bytes) -> Mutant:
    """Another number in the place of one that stands in a text."""
    found = list(re.finditer(rb"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", data))
    if not found:
        return flip(rng, data)
    where = _choice(rng, found)
    new = _choice(
        rng,
        (
            b"-1",
            b"0",
            b"1",
            b"2",
            b"1e9",
            b"99999999999",
            b"2147483648",
            b"nan",
            b"inf",
            b"-inf",
            b"1e400",
            b"0.5",
            b"",
        ),
    )
    return data[: where.start()] + new + data[where.end() :], f"{where[0]!r} at {where.start()} became {new!r}"


RAW: tuple[Mutator, ...] = (flip, cut, drop, repeat, insert, trail)


# -- trees of values ---------------------------------------------------------------------------------------


def _slots(tree: Any) -> list[tuple[Any, Any]]:
    """All places of a tree as (container, key), found without recursion."""
    slots, todo = [], [tree]
    while todo:
        at = todo.pop()
        keys = at.keys() if isinstance(at, dict) else range(len(at)) if isinstance(at, list) else ()
        slots += [(at, key) for key in keys]
        todo += [at[key] for key in keys]
    return slots


def _pick(rng: np.random.Generator, tree: Any) -> tuple[Any, Any]:
    """A random place; one in two times a place near the top, which long arrays would drown."""
    slots = _slots(tree)
    if rng.random() < 0.5:
        slots = [s for s in slots if isinstance(s[0], dict)] or slots
    return _choice(rng, slots)


def spoil(rng: np.random.Generator, tree: Any) -> str:
    """Change one value of a tree in place; says what was done."""
    where, key = _pick(rng, tree)
    old = where[key]
    kind = int(rng.integers(8))
    if kind == 0 and isinstance(where, dict):
        del where[key]
        return f"{key!r} deleted"
    if kind == 1 and isinstance(where, dict):
        where[str(key) + "_"] = where.pop(key)
        return f"{key!r} renamed"
    if kind == 2:
        there, other = _pick(rng, tree)
        where[key], there[other] = there[other], old
        return f"{key!r} and {other!r} swapped"
    if kind == 3 and isinstance(old, list):
        where[key] = _choice(rng, (old[:-1], old + old[-1:], old[::-1], old * 2, old[:1]))
        return f"{key!r} of another length or order"
    if kind == 4 and isinstance(old, int | float) and not isinstance(old, bool):
        where[key] = _choice(rng, (-old, old + 1, old - 1, old * 1000, float(old), str(old)))
        return f"{key!r} from {old!r} to {where[key]!r}"
    if kind == 5 and isinstance(where, dict) and where:
        where[key] = raw(f"{json.dumps(old)}, {json.dumps(key)}: {_choice(rng, ('1', 'null', json.dumps(old)))}")
        return f"{key!r} twice"
    if kind == 6:
        where[key] = _choice(rng, ([old], {"x": old}, [old, old]))
        return f"{key!r} wrapped"
    where[key] = _choice(rng, STRANGE)
    return f"{key!r} from {str(old)[:40]!r} to {str(where[key])[:40]!r}"


def as_json(tree: Any) -> bytes:
    """JSON of a tree that may hold raw text."""
    return _RAW.sub(lambda m: json.loads(f'"{m[1]}"'), json.dumps(tree)).encode("utf-8", "surrogatepass")


def json_value(rng: np.random.Generator, data: bytes) -> Mutant:
    tree = [json.loads(data)]
    words = [spoil(rng, tree) for _ in range(int(rng.integers(1, 3)))]
    return as_json(tree[0] if len(tree) == 1 else tree), "; ".join(words)


def json_line(rng: np.random.Generator, data: bytes) -> Mutant:
    """One value, or the order, of a file of JSON lines."""
    lines = data.splitlines()
    k = int(rng.integers(len(lines)))
    kind = int(rng.integers(8))
    if kind == 0:
        del lines[k]
        words = "deleted"
    elif kind == 1:
        lines.insert(int(rng.integers(len(lines))), lines[k])
        words = "written twice"
    elif kind == 2:
        lines[k] = _choice(rng, (b"", b"[]", b"{}", b"1", b"null", b"[" * 100_000, b"\xff", lines[k][:-5], b"\x00" * 9))
        words = f"became {lines[k][:20]!r}"
    else:
        lines[k], words = json_value(rng, lines[k])
    return b"\n".join(lines) + b"\n", f"line {k + 1}: {words}"


def _toml(value: Any) -> str:
    if value is None:
        return "1979-05-27T07:32:00Z"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(k))} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        if value.startswith("\x00"):
            text = value[1:].replace("NaN", "nan").replace("Infinity", "inf")
            return text.replace(":", "=").replace("null", "07:32:00")
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value).replace("Infinity", "inf").replace("NaN", "nan")


def toml_value(rng: np.random.Generator, data: bytes) -> Mutant:
    tree = tomllib.loads(data.decode())
    words = [spoil(rng, tree) for _ in range(int(rng.integers(1, 3)))]
    text = "".join(f"{json.dumps(str(k))} = {_toml(v)}\n" for k, v in tree.items())
    return text.encode("utf-8", "surrogatepass"), "; ".join(words)


# -- binary files ------------------------------------------------------------------------------------------


def ubj_field(rng: np.random.Generator, data: bytes) -> Mutant:
    """A count, a type or a number of a UBJSON file."""
    kind = int(rng.integers(3))
    if kind < 2:
        mark = (b"#L", b"SL")[kind]
        places = [m.start() + 2 for m in re.finditer(re.escape(mark), data)]
        if places:
            at = _choice(rng, places)
            (old,) = struct.unpack(">q", data[at : at + 8])
            count = _choice(rng, (-1, 0, 1, 2**31, 2**40, 2**62, len(data), old + 1, old - 1))
            return data[:at] + struct.pack(">q", count) + data[at + 8 :], f"count at {at} became {count}"
    at = int(rng.integers(len(data) - 8))
    new = _choice(
        rng,
        (
            *(struct.pack(">f", v) for v in (float("nan"), float("inf"), -1.0, 1e38)),
            *(struct.pack(">i", v) for v in (-1, 2**31 - 1, 1000, -(2**31))),
            *(bytes([c]) for c in b"LldDUiSTFZ[{]}$#N"),
        ),
    )
    return data[:at] + new + data[at + len(new) :], f"{new!r} at {at}"


def onnx_value(rng: np.random.Generator, data: bytes) -> Mutant:
    """A number, word, name or operator of an ONNX graph."""
    import onnx

    model = onnx.load_model_from_string(data)
    node = _choice(rng, model.graph.node)
    if rng.random() < 0.2:
        field = _choice(rng, ("op_type", "domain"))
        setattr(node, field, _choice(rng, ("Identity", "Cast", "Scaler", "ArgMax", "", "ai.onnx.ml")))
        return model.SerializeToString(), f"{field} of a node became {getattr(node, field)!r}"
    if not node.attribute or rng.random() < 0.2:
        names = _choice(rng, [names for names in (node.input, node.output) if names])
        names[0] = _choice(rng, ("", "x", *node.output, *node.input))
        return model.SerializeToString(), f"an edge of {node.op_type} became {names[0]!r}"
    attribute = _choice(rng, node.attribute)
    if rng.random() < 0.1:
        attribute.name = _choice(rng, ("", "post_transform", "base_values", "nodes_values"))
        return model.SerializeToString(), f"an attribute became {attribute.name!r}"
    for values, strange in (
        (attribute.ints, (-1, 0, 1, 2, 7, 2**31, 2**62)),
        (attribute.floats, (0.0, -1.0, 1e38, 0.5, float("nan"), float("inf"))),
        (attribute.strings, (b"LEAF", b"BRANCH_LT", b"BRANCH_EQ", b"x", b"")),
    ):
        if values and rng.random() < 0.3:
            del values[int(rng.integers(len(values)))]
            return model.SerializeToString(), f"{attribute.name} is one shorter"
        if values:
            place = int(rng.integers(len(values)))
            values[place] = _choice(rng, strange)
            return model.SerializeToString(), f"{attribute.name}[{place}] became {values[place]!r}"
    attribute.i, attribute.s = int(_choice(rng, (-1, 0, 1, 7, 11))), _choice(rng, (b"NONE", b"SOFTMAX", b"MAX", b"x"))
    return model.SerializeToString(), f"{attribute.name} became {attribute.i}, {attribute.s!r}"


def _spoilt_array(rng: np.random.Generator, data: bytes) -> Mutant:
    array = np.load(io.BytesIO(data), allow_pickle=False)
    kind = int(rng.integers(6))
    if kind == 0:
        array = array.ravel()[: int(rng.integers(array.size + 1))]
    elif kind == 1:
        other = _choice(rng, ("<f4", "<i8", "<f8", "?", "<i2"))
        array = array.astype(other) if array.dtype.names is None else array[:-1]
    elif kind == 2 and array.dtype.names is None:
        array = array[None] if rng.random() < 0.5 else array.T
    elif array.size:
        flat = np.frombuffer(bytearray(array.tobytes()), array.dtype)  # a copy would not keep what is between fields
        k = int(rng.integers(len(flat)))
        field = _choice(rng, array.dtype.names) if array.dtype.names else ()
        values = flat[field] if field else flat
        new = _choice(rng, (-1, -2, -7, 0, 1, 5, 1000, 2**30, np.nan, np.inf, -np.inf, 1e300, values.ravel()[0]))
        with np.errstate(all="ignore"):
            try:
                values[k] = new if values.dtype.kind == "f" or np.isfinite(new) else -3
            except (TypeError, ValueError, OverflowError):
                values[k] = values[0]
        array = flat.reshape(array.shape, order="C")
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue(), f"array of {array.dtype} changed ({kind})"


def skops_member(rng: np.random.Generator, data: bytes) -> Mutant:
    """A value of the schema or of an array in a skops file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    arrays = [name for name in members if name.endswith(".npy")]
    name = _choice(rng, arrays) if arrays and rng.random() < 0.6 else "schema.json"
    try:
        spoilt, words = (_spoilt_array if name != "schema.json" else json_value)(rng, members[name])
    except ValueError:  # an array of objects
        spoilt, words = flip(rng, members[name])
    if rng.random() < 0.1:
        name, spoilt, words = _choice(rng, list(members)), b"", "emptied"
    return zipped(members | {name: spoilt}), f"{name}: {words}"


def zipped(members: dict[str, bytes]) -> bytes:
    """A zip archive, the same whenever it is made."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def text_line(rng: np.random.Generator, data: bytes) -> Mutant:
    """A line of LightGBM's text, ``key=value value …``."""
    lines = data.split(b"\n")
    k = int(_choice(rng, [i for i, line in enumerate(lines) if b"=" in line]))
    key, _, value = lines[k].partition(b"=")
    kind = int(rng.integers(6))
    words = value.split(b" ")
    if kind == 0:
        del lines[k]
        return b"\n".join(lines), f"{key!r} deleted"
    if kind == 1:
        lines.insert(k, lines[k])
        return b"\n".join(lines), f"{key!r} twice"
    if kind == 2:
        words = [b""]
    elif kind == 3:
        words = _choice(rng, (words[:-1], [*words, words[-1]], words[::-1], words * 2))
    else:
        j = int(rng.integers(len(words)))
        new = (
            b"-1",
            b"0",
            b"1",
            b"2",
            b"7",
            b"-9",
            b"1e9",
            b"2147483648",
            b"nan",
            b"inf",
            b"-inf",
            b"1e400",
            b"x",
            b"1.5",
        )
        words[j] = _choice(rng, new)
    lines[k] = key + b"=" + b" ".join(words)
    return b"\n".join(lines), f"{key!r} became {lines[k][:60]!r}"


#: By the kind of file: raw mutators come in one of three mutants.
STRUCTURED: dict[str, tuple[Mutator, ...]] = {
    "json": (json_value, json_value, json_value, number),
    "protobuf": (onnx_value,),
    "lines": (json_line, json_line, json_line, number),
    "toml": (toml_value, toml_value, toml_value, number),
    "ubj": (ubj_field,),
    "skops": (skops_member,),
    "text": (text_line, text_line, number),
    "bytes": RAW,
}


def mutate(rng: np.random.Generator, kind: str, data: bytes) -> Mutant:
    """A mutant of a good file of some kind."""
    mutator = _choice(rng, RAW if rng.random() < 1 / 3 else STRUCTURED[kind])
    spoilt, words = mutator(rng, data)
    return spoilt, f"{mutator.__name__}: {words}"
