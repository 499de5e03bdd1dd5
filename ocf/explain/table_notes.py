"""What an answer says of the table: how it was read, what stays missing, and within which bounds nothing was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ocf.arrays import FloatArray
from ocf.features.frames import as_pandas
from ocf.features.reading import in_words, rows_of_data
from ocf.support.messages import listed
from ocf.support.wording import word

if TYPE_CHECKING:
    from ocf.explain.answer import Answer
    from ocf.features.feature import Feature

#: Names in a list.
MOST = 6


def table_notes(e: Answer) -> list[str]:
    """What an answer says of the table, a sentence each."""
    if e.space is None:
        return []
    origin = e.space.from_frame(as_pandas(e.original))[0]
    notes = [*_groups(e), *_suspects(e), *_staying(e, origin), *_gaps(e, origin)]
    return [*notes, *_bounds(e, origin)] if e.status == "infeasible" else notes


def _groups(e: Answer) -> Iterator[str]:
    """Categories that were recognised by their indicator columns."""
    names = e.method.get("table", {}).get("groups", ())
    if names:
        yield (
            f"{listed(names, MOST)}: one category each, recognised by their indicator columns "
            "(groups=False reads them one by one)"
        )


def _suspects(e: Answer) -> Iterator[str]:
    """Changes from or to numbers that look like codes and were not said to be some."""
    suspects = e.method.get("table", {}).get("suspects", {})
    for name, old, new in e.own_changes[["feature", "from", "to"]].itertuples(index=False):
        for code in (value for value in (old, new) if value in suspects.get(name, ())):
            said = word(code)
            yield (
                f"{name} is read as a number, though {said} looks like a code: special_values=[{said}] tells them apart"
            )


def _staying(e: Answer, origin: FloatArray) -> Iterator[str]:
    """Missing values and codes of the row that the answer does not supply."""
    assert e.space is not None
    if e.imputations is not None:
        return
    changed = set(e.own_changes["feature"])
    left = [(f, v) for f, v in zip(e.space.features, origin.tolist(), strict=True) if f.name not in changed]
    missing = [f for f, value in left if np.isnan(value)]
    if missing:
        many = len(missing) > 1
        yield (
            f"{listed([f.name for f in missing], MOST)} {'are' if many else 'is'} missing and "
            f"{'stay' if many else 'stays'} missing{_supplying(missing)}"
        )
    coded = [(f, value) for f, value in left if bool(f.is_special(value))]
    if coded:
        said = listed([f"{f.name} is {word(f.label(value))}" for f, value in coded], MOST)
        many = len(coded) > 1
        yield f"{said}, {'codes, and stay' if many else 'a code, and stays'} so{_supplying([f for f, _ in coded])}"


def _gaps(e: Answer, origin: FloatArray) -> Iterator[str]:
    """Words that the row lacks under another mark than the data."""
    assert e.space is not None
    for name, marks in e.method.get("other_gaps", {}).items():
        if np.isnan(origin[e.space.index(name)]):
            yield f"{name} lacks its word as {marks['row']}: the model was asked with {marks['data']}, as in the data"


def _supplying(features: Sequence[Feature]) -> str:
    """What lets the answer supply values; empty where that was said of one of them."""
    if any(f.may_be_supplied for f in features):
        return ""
    names = ", ".join(f"{f.name!r}: 1.0" for f in features[:1])
    more = ", …" * (len(features) > 1)
    return f"; missing={{'cost_of_supplying': {{{names}{more}}}}} lets the answer supply {'them' if more else 'it'}"


def _bounds(e: Answer, origin: FloatArray) -> Iterator[str]:
    """Within which bounds there is no answer."""
    assert e.space is not None
    rows = e.method.get("table", {}).get("rows")
    free = [(f, v) for f, v in zip(e.space.features, origin.tolist(), strict=True) if f.action != "fixed"]
    numbers = [(f, v) for f, v in free if not f.discrete and not np.isnan(v)]
    own = [(f, v) for f, v in numbers if f.permitted is None]
    if own:
        source = "" if rows is None else f", from {rows_of_data(rows)}"
        said = listed([f"{f.name} {in_words(f, *f.limits(v))}" for f, v in own], MOST)
        wider = f"features={{{own[0][0].name!r}: {{'bounds': (lowest, highest)}}}}"
        yield f"within these bounds: {said}{source}; wider ones: {wider}"
    permitted = [f"{f.name} {_permitted(f, v)}" for f, v in numbers if f.permitted is not None]
    permitted += [f"{f.name} {' or '.join(map(str, f.permitted))}" for f, _ in free if f.discrete and f.permitted]
    if permitted:
        yield f"within these permitted ranges: {listed(permitted, MOST)}"
    fixed = [f.name for f in e.space.features if f.action == "fixed"]
    if fixed:
        yield f"fixed: {listed(fixed, MOST)}"


def _permitted(feature: Feature, value: float) -> str:
    """What a permitted range leaves of a feature for a row with a value, or that it leaves nothing."""
    low, high = feature.limits(value)
    if low <= high:
        return in_words(feature, low, high)
    said, otherwise = map(float, feature.permitted or ()), replace(feature, permitted=None).limits(value)
    return f"{in_words(feature, *said)} (nothing of {in_words(feature, *otherwise)})"
