"""Documents of strangers: what is refused, and how the file and the place are named."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypedDict

import msgspec
import pytest

from ocf.errors import DataError, ProblemError
from ocf.support.documents import (
    MOST_DEPTH,
    Positive,
    check_settings,
    fit,
    keep_aside,
    parse_json,
    parse_toml,
    read_json,
    read_text,
    refused,
)


class Point(msgspec.Struct):
    x: float
    more: list[int] = []


class Line(msgspec.Struct):
    points: list[Point]


def test_good_json() -> None:
    assert parse_json('{"a": [1, 2.5, null, true, "\\ud83d\\ude00"]}', "f") == {"a": [1, 2.5, None, True, "\U0001f600"]}
    assert parse_json(b"[18446744073709551615, 1e308]", "f") == [2**64 - 1, 1e308]
    assert parse_json("[NaN, -Infinity, 1e999]", "f", infinite=True)[1:] == [-float("inf"), float("inf")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "f is not JSON, or damaged: Expecting value"),
        (b"\xff", "f is not JSON, or damaged"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' occurs twice"),
        ("[NaN]", "NaN is no number of JSON"),
        ("[-Infinity]", "-Infinity is no number"),
        ("[1e999]", "the number 1e999 is too large"),
        ("[" + "9" * 6000 + "]", r"99… \(6000 digits\) does not fit 64 bits"),
        ("[-18446744073709551616]", "does not fit 64 bits"),
        ("[" * 100_000, f"nested more than {MOST_DEPTH} levels"),
        ("[" * 70 + "]" * 70, f"nested more than {MOST_DEPTH} levels"),
        ('{"a":' * 70 + "1" + "}" * 70, f"nested more than {MOST_DEPTH} levels"),
        ('["\\ud800"]', "surrogates not allowed"),
        ('["\ud800"]', "surrogates not allowed"),
        (b'["\xed\xa0\x80"]', "not JSON"),
    ],
)
def test_bad_json(text: str | bytes, words: str) -> None:
    with pytest.raises(DataError, match=words):
        parse_json(text, "f")


def test_depth_that_is_allowed() -> None:
    assert parse_json("[" * MOST_DEPTH + "]" * MOST_DEPTH, "f")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = ", "f is not valid TOML"),
        ("a = 1\na = 2", "f is not valid TOML"),
        ("[a]\nb = [1, {c = 1979-05-27}]", r"f: at a\.b\[1\]\.c: 1979-05-27 is a date or time"),
        ("a = 07:32:00", "at a: 07:32:00 is a date or time"),
        ("a = 0x" + "f" * 5000, "at a: a whole number that does not fit 64 bits"),
        ("a = " + "9" * 5000, "f is not valid TOML"),
        ("a = " + "[" * 100_000, "nested more than"),
        (".".join("a" * 100) + " = 1", "nested more than"),
    ],
)
def test_bad_toml(text: str, words: str) -> None:
    with pytest.raises(ProblemError, match=words):
        parse_toml(text, "f", ProblemError)


def test_infinities_belong_to_toml() -> None:
    assert parse_toml("a = [inf, -inf]", "f") == {"a": [float("inf"), -float("inf")]}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            {"points": [{"x": 1}, {"x": "1"}]},
            r"f is incomplete or damaged: at points\[1\]\.x: expected `float`, got `str`",
        ),
        ({"points": [{"x": 1, "more": [1, 2, None]}]}, r"at points\[0\]\.more\[2\]: expected `int`, got `null`"),
        ({}, "f is incomplete or damaged: `points` is missing"),
        ([], "f is incomplete or damaged: expected `object`, got `array`"),
    ],
)
def test_the_place_is_named(data: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        fit(data, Line, "f")


def test_what_fits_comes_back_typed() -> None:
    assert fit({"points": [{"x": 1}], "other": 3}, Line, "f").points[0].x == 1.0


@pytest.mark.parametrize("error", [KeyError("k"), OverflowError("big"), RecursionError("deep"), IndexError("no")])
def test_what_a_malformed_value_raises(error: Exception) -> None:
    with pytest.raises(DataError, match="f is incomplete or damaged"), refused("f"):
        raise error


def test_errors_get_the_files_name_once() -> None:
    with pytest.raises(ProblemError, match=r"^f: what$"), refused("f"), refused("f"):
        raise ProblemError("what")


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with pytest.raises(DataError, match="cannot read"):
        read_json(path)
    path.write_bytes(b"\xef\xbb\xbf[1]")
    assert read_json(path) == [1]
    path.write_bytes(b"[1\xff]")
    with pytest.raises(DataError, match=r"not UTF-8 text \(byte 2\)"):
        read_json(path)
    with pytest.raises(ProblemError, match="cannot read the thing"):
        read_text(tmp_path, ProblemError, "the thing")
    with pytest.raises(ProblemError, match="cannot read"):
        read_text("a\0b", ProblemError)


def test_lines_are_kept_aside_once(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    for _ in range(2):
        aside = keep_aside(path, [b"x", b"y", b"x"])
    assert aside.name == "rows.unreadable"
    assert aside.read_bytes() == b"x\ny\n"


class Settings(TypedDict, total=False):
    size: Annotated[Positive, msgspec.Meta(description="a positive number")]
    mix: Annotated[str | dict[str, list[float]], msgspec.Meta(description="a word, or a table of numbers")]
    even: Annotated[int, msgspec.Meta(description="an even number", extra={"holds": lambda v: v % 2 == 0})]


@pytest.mark.parametrize("table", [{}, {"size": 1}, {"size": 0.5, "mix": {"a": [1, 2.5]}}, {"mix": "a", "even": 4}])
def test_settings_that_mean_something(table: dict[str, Any]) -> None:
    check_settings(table, Settings, "a.toml")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"sise": 1}, "a.toml: unknown key 'sise' (did you mean 'size'?)"),
        ({"length": 1}, "a.toml: unknown key 'length'; it is called 'size'"),
        ({"size": 0}, "a.toml: size = 0 should be a positive number"),
        ({"size": True}, "a.toml: size = True should be a positive number"),
        ({"size": float("nan")}, "a.toml: size = nan should be a positive number"),
        ({"size": float("inf")}, "a.toml: size = inf should be a positive number"),
        ({"even": 3}, "a.toml: even = 3 should be an even number"),
        (
            {"mix": {"a": [1, "b"]}},
            "a.toml: mix = {'a': [1, 'b']} should be a word, or a table of numbers "
            "(at [...][1]: expected `float`, got `str`)",
        ),
    ],
)
def test_settings_that_mean_nothing(table: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError) as error:
        check_settings(table, Settings, "a.toml", hints={"length": "it is called 'size'"})
    assert str(error.value) == words
