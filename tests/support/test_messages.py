"""Words for messages."""

from __future__ import annotations

import numpy as np

from ocf.support.messages import nearest, quoted


def test_a_word_is_named_with_the_one_that_it_resembles() -> None:
    assert nearest("False", [False, True]) == "'False' (did you mean False?)"
    assert nearest("educatoin", ["car", "education"]) == "'educatoin' (did you mean 'education'?)"


def test_a_number_resembles_none() -> None:
    assert nearest(np.int64(22), [1, 2, 3]) == "22; known: 1, 2, 3"


def test_a_number_is_told_from_its_text() -> None:
    assert nearest(np.int64(1), ["1", "u"]) == "1 (did you mean '1'?)"
    assert nearest("1", [1, 2]) == "'1' (did you mean 1?)"
    assert nearest("goud", np.array(["good"])) == "'goud' (did you mean 'good'?)"


def test_what_numpy_holds_is_what_it_stands_for() -> None:
    assert [quoted(v) for v in (np.int64(-1), np.str_("n"), np.False_, "n")] == ["-1", "'n'", "False", "'n'"]
