"""Words for messages."""

from __future__ import annotations

import numpy as np

from ocf.support.messages import nearest


def test_a_word_is_named_with_the_one_that_it_resembles() -> None:
    assert nearest("False", [False, True]) == "'False' (did you mean False?)"
    assert nearest("educatoin", ["car", "education"]) == "'educatoin' (did you mean 'education'?)"


def test_a_number_resembles_none() -> None:
    assert nearest(np.int64(22), [1, 2, 3]) == "22; known: 1, 2, 3"
