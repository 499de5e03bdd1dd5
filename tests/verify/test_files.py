"""Files that are no results of ours, or cannot be read, are refused with the cause."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ocf.errors import DataError
from ocf.verify.files import verify_file

MODEL: Any = SimpleNamespace(classes=("no", "yes"), columns=None)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 100_000, "file.json is nested more than 64 levels"),
        ('{"schema": "ocf.explanation/1", "schema": 1}', "'schema' occurs twice"),
        ('{"schema": "ocf.explanations/1", "shared": [], "rows": []}', "shared: an object"),
        ("[]", "not an explanation"),
        ('{"schema": "other/1"}', "'other/1'"),
        ('{"schema": "ocf.explanation/1"}', "incomplete or damaged"),
        ('{"schema": "ocf.explanations/1", "rows": [{"row": 1}]}', "explanation 0 is incomplete"),
        (json.dumps({"schema": "ocf.explanation/1", "row": 1, "counterfactual": 5}), "incomplete or damaged"),
    ],
)
def test_foreign_files(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)
    with pytest.raises(DataError, match=sentence):
        verify_file(path, MODEL)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read"):
        verify_file(tmp_path / "none.json", MODEL)
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not UTF-8"):
        verify_file(tmp_path / "binary.json", MODEL)
