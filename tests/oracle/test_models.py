"""Across files: a model of each kind, against brute force through the model itself, and the page that tells of them."""

from __future__ import annotations

import re

import pytest
from oracle.model_cases import LIBRARIES
from oracle.model_table import PAGE, cases, page, told, tried

PLACES = [(library, name) for library in LIBRARIES for name in cases(library)]


@pytest.mark.parametrize(("library", "name"), PLACES)
def test_answers_are_those_of_brute_force(library: str, name: str) -> None:
    found = tried(cases(library)[name])
    if refused := cases(library)[name].refused:
        assert re.search(refused, found), found
    else:
        assert found == "exact"
    assert told()[library, name] == found, "write the page anew: python -m oracle.model_table"


def test_the_page_tells_of_these_cases_and_no_others() -> None:
    found = told()
    assert list(found) == PLACES
    assert page(found) == PAGE.read_text(encoding="utf-8")
