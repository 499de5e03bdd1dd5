"""Numbers as people write them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ocf.support.wording import word


@pytest.mark.parametrize(
    ("value", "other", "new", "expected"),
    [
        (3, 4, True, "3"),
        (1001.0, 2.0, True, "1001"),
        (math.nextafter(3.5, 4), 3.0, True, "just over 3.5"),
        (math.nextafter(3.5, 3), 4.0, True, "just under 3.5"),
        (math.nextafter(3.5, 4), 3.5, False, "3.5000000000000004"),
        (0.123456789, 1.0, False, "0.123457"),
        (0.123456789, 1.0, True, "about 0.123457"),
        (2.0**-150, None, False, "0"),  # where float32 stops being 0
        (2.0**-149, 0.0, True, "just over 0"),
        (2.0**-149, 0.0, False, "1.401298464324817e-45"),
        (None, 1.0, False, "missing"),
        ("a", "b", True, "a"),
        (True, False, True, "True"),
    ],
)
def test_words_never_put_a_value_on_the_wrong_side(value: Any, other: Any, new: bool, expected: str) -> None:
    assert word(value, other, new=new) == expected
