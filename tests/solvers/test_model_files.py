"""Written files hold the very same problem."""

from __future__ import annotations

from pathlib import Path

import highspy
import numpy as np
import pytest

from ocf.errors import ProblemError
from ocf.solvers.model_files import write_model

from .forms import form_of

INF = np.inf


@pytest.mark.parametrize("suffix", [".mps", ".lp"])
def test_write_and_read_back(tmp_path: Path, suffix: str):
    form = form_of(
        [[1, 2], [3, -1]],
        [-INF, 1],
        [4, 1],
        [0, -1],
        [1, 5],
        [True, False],
        c=[2, 1],
        c0=0.5,
        column_names=("leaf y", "mu(1,2)"),
        row_names=("first", "second"),
    )
    path = tmp_path / f"model{suffix}"
    write_model(form, path)
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    lp = highs.getLp()
    assert lp.col_names_ == ["leaf_y", "mu(1,2)"]
    assert lp.row_names_ == ["first", "second"]
    assert (list(lp.col_cost_), lp.offset_) == ([2, 1], 0.5)
    assert (list(lp.col_lower_), list(lp.col_upper_)) == ([0, -1], [1, 5])
    assert (list(lp.row_lower_), list(lp.row_upper_)) == ([-INF, 1], [4, 1])
    with pytest.raises(ProblemError, match=r"must end in \.mps or \.lp"):
        write_model(form, tmp_path / "model.txt")
