"""Results as a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from ocf.errors import DataError

from .synthetic import comparison, write


def test_no_run_yet(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no run yet: run the suite first"):
        comparison(write(tmp_path, [], ["box"]))
