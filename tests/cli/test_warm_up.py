"""``ocf warm-up``."""

from __future__ import annotations

from command_line import Answer


def test_the_command_says_what_it_has_done() -> None:
    done = Answer("warm-up")
    assert done.code == 0, done.err
    assert "kernels are ready, 0 of them compiled now" in Answer("warm-up").out
    assert "kernels are ready" in done.out
    assert Answer("warm-up", "extra").code == 2
