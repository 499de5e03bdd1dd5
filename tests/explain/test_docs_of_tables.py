"""Across files: the page about tables, run as it stands."""

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent.parent / "docs" / "tables.md"


def test_the_page_prints_what_it_shows(capsys: Any) -> None:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert [language for language, _ in blocks] == ["python", "text"] * 3
    namespace: dict[str, object] = {}
    for (_, code), (_, shown) in zip(blocks[::2], blocks[1::2], strict=True):
        exec(code, namespace)  # running the page is the point
        assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == shown.splitlines()
