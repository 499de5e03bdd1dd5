"""``ocf warm-up``."""

from __future__ import annotations

import pytest
from command_line import Answer


@pytest.mark.slow
def test_the_command_says_what_it_has_done() -> None:
    done = Answer("warm-up")
    assert done.code == 0, done.err
    assert "the search kernels are ready" in done.out
    assert "ready: 0 compiled" in Answer("warm-up").out
    assert Answer("warm-up", "extra").code == 2
