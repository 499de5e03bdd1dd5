"""Rows of a batch that are the same to the last bit: solved once, and each told its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ocf.models.row_keys import row_key

if TYPE_CHECKING:
    from ocf.explain.explanation import Explanation
    from ocf.solve.task import AskedRow


def same_rows(rows: Sequence[AskedRow], places: Iterable[int]) -> list[list[int]]:
    """Places of rows, those of the same row together, in the order of the first of each.

    Parameters
    ----------
    rows : sequence of AskedRow
        Of one table.
    places : iterable of int
        Those of the rows that matter.
    """
    codes = {k: rows[k].coded.tobytes() for k in places}
    often = Counter(codes.values())
    groups: dict[Hashable, list[int]] = {}
    for k, code in codes.items():
        # rows that are coded alike may still hold their values, or gaps, in other ways
        key = (code, row_key(rows[k].original)) if often[code] > 1 else code
        groups.setdefault(key, []).append(k)
    return list(groups.values())


def told_to(explanations: Sequence[Explanation], row: AskedRow) -> list[Explanation]:
    """Explanations of a row as those of another that is the same, which takes no time.

    Parameters
    ----------
    explanations : sequence of Explanation
    row : AskedRow
    """
    index = row.original.index
    return [
        replace(
            e,
            row=row.label,
            original=row.table,
            counterfactual=e.counterfactual.set_axis(index) if e.found else None,
            ties=tuple(tie.set_axis(index) for tie in e.ties),
            times=dict.fromkeys(e.times, 0.0),
        )
        for e in explanations
    ]
