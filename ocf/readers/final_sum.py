"""A stack under a linear final model: what that adds up of its members, as scores of the stack's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import FloatArray
from ocf.problem.requirements import reach
from ocf.readers.base import Rows, TreeModel
from ocf.readers.members import Members, layout_of, whole_model
from ocf.readers.sklearn_common import score_rows
from ocf.trees.ensemble import Decision, Ensemble
from ocf.trees.totals import Total


def summed_model(
    native: Any, members: Members, totals: Sequence[Total], rule: Decision, ask: Callable[[Rows], NDArray[Any]]
) -> TreeModel:
    """A stack under a linear final model.

    Where that adds up scores alone, the trees are given their shares of its own scores, and what stands on the stack
    sees it as any model of trees. A curve between a member and the final model leaves totals of the members' scores.

    Parameters
    ----------
    native : estimator
    members : Members
    totals : sequence of Total
        What the final model adds up, one per score.
    rule : Decision
        Of the final model's own scores.
    ask : callable
        The stack's own function for them.
    """
    if rule.kind == "threshold":
        on_others = replace(rule, margin=totals[0])
    else:
        on_others = replace(rule, totals=tuple(totals), link="identity")
    whole = whole_model(native, members, on_others)
    ensemble = _summed(whole.ensemble, totals, rule)
    if ensemble is None:
        return whole
    scores = partial(score_rows, ask, layout_of(native, members))
    return replace(whole, ensemble=ensemble, scores=scores, row_by_row=False)


def _summed(own: Ensemble, totals: Sequence[Total], rule: Decision) -> Ensemble | None:
    """The trees with totals for scores; None where they are no sums, or a line adds to several of them."""
    if not all(total.linear for total in totals):
        return None
    mix = np.zeros((len(totals), own.n_outputs))
    for k, total in enumerate(totals):
        np.add.at(mix[k], [t.output for t in total.terms], [t.weight / total.divisor for t in total.terms])
    if (np.count_nonzero(mix[:, own.lines[:, 1]], axis=0) != 1).any():
        return None
    base = np.array([total.base / total.divisor for total in totals])
    return replace(
        own,
        leaf_values=own.leaf_values @ mix.T,
        base_score=mix @ own.base_score + base,
        decision=replace(rule, slack=rule.slack + _rounding(own, totals, mix, base)),
        **_lines(own, mix),
    )


def _rounding(own: Ensemble, totals: Sequence[Total], mix: FloatArray, base: FloatArray) -> float:
    """Of the members' scores and of the final model's sums of them, as they are on the way to its own."""
    weight = np.abs(mix).sum(axis=1)
    size = weight * (reach(own) + float(np.abs(own.base_score).max())) + np.abs(base)
    units = np.array([total.rounding * len(total.terms) for total in totals])
    return float((1.5 * weight * own.rounding + units * size).max())


def _lines(own: Ensemble, mix: FloatArray) -> dict[str, Any]:
    """The arrays of lines that add to the totals in the place of the members' scores."""
    lines, data, threshold = own.lines.copy(), own.oblique_data.copy(), own.threshold.copy()
    for n, (tree, output) in enumerate(own.lines.tolist()):
        k, root = int(np.flatnonzero(mix[:, output])[0]), int(own.tree_offsets[tree])
        data[slice(*own.oblique_indptr[own.oblique_index[root] :][:2])] *= mix[k, output]
        threshold[root] *= mix[k, output]
        lines[n] = tree, k
    return {"lines": lines, "oblique_data": data, "threshold": threshold}
