"""Across files: each transformer in front of a model, against brute force through the Pipeline, and its page."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module

import pytest
from oracle.transformer_cases import CASES, MODELS
from oracle.transformer_table import PAGE, STATED, page, plain, told, tried

from ocf.readers.transformers import READERS

#: A model for each transformer, in turn; all pairs are played with ``-m slow``.
TURNS = [(case, list(MODELS)[k % len(MODELS)]) for k, case in enumerate(CASES)]


@cache
def cell(case: str, model: str) -> str:
    """What becomes of a transformer in front of a model, tried once."""
    return tried(CASES[case], model)


@pytest.mark.parametrize(("case", "model"), TURNS)
def test_answers_are_those_of_brute_force(case: str, model: str) -> None:
    found = plain(cell(case, model))
    if CASES[case].refused:
        assert re.search(CASES[case].refused, found), found
    else:
        assert found in STATED
    assert told()[case, model] == found, "write the page anew: python -m oracle.transformer_table"


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_the_page_tells_what_was_tried(model: str) -> None:
    others = [case for case in CASES if (case, model) not in TURNS]
    assert {case: plain(cell(case, model)) for case in others} == {case: told()[case, model] for case in others}


def test_the_page_is_written_as_a_whole() -> None:
    assert page(told()) == PAGE.read_text(encoding="utf-8")


def test_every_class_that_is_read_has_a_case() -> None:
    listed = {name for reader in READERS for name in import_module(reader).CLASSES}
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in sorted(listed) if f"`{name}`" not in text] == []


@pytest.mark.slow
def test_refusals_name_the_step() -> None:
    for name, case in CASES.items():
        words = cell(name, "RandomForest")
        assert (words not in STATED) == bool(case.refused), name
        assert words in STATED or "the step '" in words
