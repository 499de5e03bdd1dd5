"""More random instances than in `test_agreement`, in files of their own for two processes to share."""

from __future__ import annotations

import pytest
from oracle.instances import LIBRARIES, REGRESSORS
from oracle.playing import play


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2, 5))
@pytest.mark.parametrize("library", [*LIBRARIES, *REGRESSORS])
def test_methods_equal_brute_force_on_many(library: str, part: int) -> None:
    play(library, 10, part)
