"""What the words of the command line mean, and where results may be written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Answer

from ocf.cli.tables import check_output, parse_norm, parse_options, parse_round_to, parse_rows, parse_wish
from ocf.errors import DataError, ProblemError
from ocf.explain.explainer import Explainer


def test_output_is_checked_before_anything_else(
    ask: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Explainer, "__init__", lambda *_, **__: pytest.fail("the model was read first"))
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.json").mkdir()
    for path, word in (
        (tmp_path / "none" / "out.json", "no directory"),
        (tmp_path / "file" / "out.json", "no directory"),
        (tmp_path / "folder.json", "is a directory"),
    ):
        answer = ask("-o", path)
        assert answer.code == 2
        assert word in answer.err
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)
    assert "no permission" in ask("-o", tmp_path / "out.json").err


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("3", [3]),
        ("-1", [9]),
        ("0:3", [0, 1, 2]),
        (":", list(range(10))),
        ("8:", [8, 9]),
        ("::4", [0, 4, 8]),
        ("-2:", [8, 9]),
        ("2:99", list(range(2, 10))),
        ("1, 4,7", [1, 4, 7]),
        ("7,1,0:2,7", [7, 1, 0]),
    ],
)
def test_parse_rows(text: str, rows: list[int]) -> None:
    assert parse_rows(text, 10) == rows


@pytest.mark.parametrize("text", ["", ",", "a", "1.5", "1:2:3:4", "::0", "10", "-11", "5:5", "1,,2"])
def test_parse_rows_refuses(text: str) -> None:
    with pytest.raises(DataError, match="--rows"):
        parse_rows(text, 10)


def test_parse_norm() -> None:
    assert parse_norm("l1") == "l1"
    assert parse_norm("l0=0.1, l1=1") == {"l0": 0.1, "l1": 1.0}


def test_parse_wish() -> None:
    assert parse_wish("on") is True
    assert parse_wish("off") is False
    assert parse_wish("quantile=0.05, trees=50,required=false,forest=a.skops") == {
        "quantile": 0.05, "trees": 50, "required": False, "forest": "a.skops"
    }  # fmt: skip
    for text in ("quantile", "", "=3"):
        with pytest.raises(ProblemError, match="not understood"):
            parse_wish(text)


def test_parse_options() -> None:
    expected = {"a": 1, "b": 0.5, "c": True, "d": "x=y", "limits/e": -1}
    assert parse_options(["a=1", "b=0.5", "c=True", "d=x=y", "limits/e = -1"]) == expected
    with pytest.raises(ProblemError, match="KEY=VALUE"):
        parse_options(["=1"])


@pytest.mark.parametrize("how", ["itself", "a link", "another name"])
def test_check_output_refuses_what_is_read(tmp_path: Path, how: str) -> None:
    own, path = tmp_path / "rows.json", tmp_path / "link.json"
    own.write_text("{}")
    (tmp_path / "folder").mkdir()
    if how == "a link":
        path.symlink_to(own)
    path = {"itself": own, "a link": path, "another name": tmp_path / "folder" / ".." / "rows.json"}[how]
    check_output(own, (".json",), (None, tmp_path / "not there.json", tmp_path / "folder"))
    with pytest.raises(DataError, match="this command reads or keeps"):
        check_output(tmp_path / "new.json", (".json",), (tmp_path / "folder" / ".." / "new.json",))
    with pytest.raises(DataError, match="this command reads or keeps"):
        check_output(path, (".json",), (None, own))


def test_check_output_accepts_new_and_old_files(tmp_path: Path) -> None:
    check_output(tmp_path / "new.JSON", (".json",))
    (tmp_path / "old.json").write_text("")
    check_output(tmp_path / "old.json", (".json",))


def test_grids_of_new_values() -> None:
    assert [parse_round_to(text) for text in ("data", "2", "income=data, age=1")] == [
        "data",
        2,
        {"income": "data", "age": 1},
    ]
