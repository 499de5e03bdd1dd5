import contextlib
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.errors import ModelError
from ocf.readers import ubjson
from ocf.readers.ubjson import decode


def length(n: int) -> bytes:
    return b"L" + struct.pack(">q", n)


def encode(value: Any) -> bytes:
    """A plain writer, the other way round, of what hypothesis draws."""
    match value:
        case None | True | False:
            return {None: b"Z", True: b"T", False: b"F"}[value]
        case int():
            return b"L" + struct.pack(">q", value)
        case float():
            return b"D" + struct.pack(">d", value)
        case str():
            return b"S" + length(len(value.encode())) + value.encode()
        case list():
            return b"[" + b"".join(map(encode, value)) + b"]"
        case dict():
            items = (length(len(k.encode())) + k.encode() + encode(v) for k, v in value.items())
            return b"{" + b"".join(items) + b"}"
    raise TypeError(type(value))


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_decodes_what_was_written(value: Any) -> None:
    assert decode(encode(value)) == value


written = st.recursive(
    st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(written)
def test_what_is_encoded_is_decoded(value: Any) -> None:
    assert decode(ubjson.encode(value)) == value


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "i4", "i8", "f4", "f8"])
def test_encoded_arrays_keep_type_and_bits(dtype: str) -> None:
    values = np.frombuffer(np.random.default_rng(0).bytes(64 * np.dtype(dtype).itemsize), dtype)
    found = decode(ubjson.encode({"values": values}))["values"]
    assert found.dtype == values.dtype
    assert found.tobytes() == values.tobytes()


@pytest.mark.parametrize("value", [None, True, 1.5, {1}])
def test_nothing_else_is_encoded(value: Any) -> None:
    with pytest.raises(TypeError, match="no UBJSON"):
        ubjson.encode([value])


@pytest.mark.parametrize(
    ("marker", "dtype"),
    [("i", "i1"), ("U", "u1"), ("I", "i2"), ("l", "i4"), ("L", "i8"), ("d", "f4"), ("D", "f8")],
)
def test_typed_arrays_become_numpy_arrays(marker: str, dtype: str) -> None:
    numbers = np.array([0, 1, 100], dtype)
    data = b"[$" + marker.encode() + b"#" + length(3) + numbers.astype(">" + dtype).tobytes()
    decoded = decode(data)
    assert decoded.dtype == dtype
    np.testing.assert_array_equal(decoded, numbers)
    assert decode(marker.encode() + numbers[2:].astype(">" + dtype).tobytes()) == 100


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"[#i\x02TF", [True, False]),
        (b"[$S#i\x02i\x01ai\x01b", ["a", "b"]),
        (b"{#i\x01i\x01kZ", {"k": None}),
        (b"{$U#i\x01i\x01k\x07", {"k": 7}),
        (b"[NTN]", [True]),
        (b"Cx", "x"),
        (b"Hi\x031.5", 1.5),
    ],
)
def test_the_rest_of_the_format(data: bytes, value: Any) -> None:
    assert decode(data) == value


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "truncated"),
        (b"[TT", "truncated"),
        (b"D\x00", "truncated"),
        (b"[$D#" + length(2**40), "truncated"),
        (b"[$Z#" + length(2**62), "truncated"),
        (b"Si\xff", "length -1"),
        (b"SD" + b"\x00" * 8, "a length must be an integer"),
        (b"[$D]", "needs a count"),
        (b"?", "unknown type marker"),
        (b"TT", "goes on"),
        (b"Si\x01\xff", "not UTF-8"),
        (b"Hi\x01x", "no number"),
        (b"{i\x01kTi\x01kT}", "twice"),
        (b"[" * 500, "nested deeper"),
    ],
)
def test_errors_name_the_place_and_the_problem(data: bytes, problem: str) -> None:
    with pytest.raises(ModelError, match=rf"at byte \d+: .*{problem}"):
        decode(data)


@pytest.mark.parametrize("marker", [b"n", b"N", b"M", b",", b"]"])
def test_empty_containers_of_no_type(marker: bytes) -> None:
    with pytest.raises(ModelError, match="unknown type marker"):
        decode(b"[$" + marker + b"#" + length(0))


@given(st.binary(max_size=60))
def test_random_bytes_never_do_anything_else(data: bytes) -> None:
    with contextlib.suppress(ModelError):
        decode(data)


@given(values.filter(lambda v: v not in (None, True, False)), st.data())
def test_every_truncation_is_an_error(value: Any, data: st.DataObject) -> None:
    whole = encode(value)
    with pytest.raises(ModelError):
        decode(whole[: data.draw(st.integers(0, len(whole) - 1))])
