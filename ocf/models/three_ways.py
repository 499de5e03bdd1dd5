"""Three ways to a leaf: the user's own encoding, the lifted trees and the cells must name the same one.

A model is read once, and asked about many rows. For rows of the data and for each row that is asked about, in their own
dtypes and with their own missing values, this finds out whether what was read is the user's model.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.partition import Partition
from ocf.errors import ConformanceError, DataError, OcfError
from ocf.features.space import FeatureSpace
from ocf.models.encoding import Encoder, Encoding
from ocf.models.lift import Lifted
from ocf.trees.ensemble import Decision, Ensemble, SplitKind
from ocf.trees.links import apply, compared_between
from ocf.trees.rounding import uncertain

#: Relative rounding of sums of float32 leaf values that no answer is held against.
SURE = 1e-4

_REMEDY = "give ocf the table after the preprocessing instead of the Pipeline"


def encoded(encode: Encoder, table: pd.DataFrame) -> FloatArray:
    """Model columns of a table, by the user's own preprocessing, (n, n_model_columns).

    Parameters
    ----------
    encode : callable
        Table -> model columns.
    table : DataFrame (n, n_columns)

    Raises
    ------
    DataError
        The preprocessing refuses a row.
    """
    try:
        return encode(table)
    except OcfError:
        raise
    except (ValueError, TypeError) as error:
        raise DataError(f"the preprocessing refuses a row: {error}") from None


def check_three_ways(
    ensemble: Ensemble, lifted: Lifted, columns: FloatArray, part: Partition, space: FeatureSpace, coded: FloatArray
) -> None:
    """Send rows to their leaves in three ways.

    Parameters
    ----------
    ensemble : Ensemble
        Over model columns.
    lifted : Lifted
        The same trees over features, perhaps with more trees behind them.
    columns : (n, n_model_columns) float64
        Of the rows; see `encoded`.
    part : Partition
        Of the lifted trees.
    space : FeatureSpace
        With the dtypes of the rows.
    coded : (n, n_features) float64
        Rows that miss the values that `part` takes for missing.

    Raises
    ------
    ConformanceError
        Two ways part; with the feature and its value.
    """
    trees = lifted.ensemble
    wanted, reached = ensemble.apply(columns), trees.apply(coded)
    found = lifted.leaf[reached]
    wrong = np.argwhere((wanted != found[:, : wanted.shape[1]]) & ~uncertain(trees, coded)[:, None])
    if len(wrong):
        row, tree = (int(k) for k in wrong[0])
        i = _parting(ensemble, lifted, columns[row], coded[row], tree)
        raise ConformanceError(
            f"the Pipeline and what ocf has read of it part at {_said(space, i, coded[row])}: one sends the row to "
            f"leaf {wanted[row, tree]}, the other to leaf {found[row, tree]} of tree {tree}; {_REMEDY}"
        )
    _check_cells(part, reached, space, coded)


def check_cells(lifted: Lifted, part: Partition, space: FeatureSpace, coded: FloatArray) -> None:
    """Send rows to their leaves in two ways, whose model columns are known to lead to the leaves of the trees.

    Parameters
    ----------
    lifted, part, space, coded
        As in `check_three_ways`.

    Raises
    ------
    ConformanceError
        The cells and the trees part; with the feature and its value.
    """
    _check_cells(part, lifted.ensemble.apply(coded), space, coded)


def _check_cells(part: Partition, reached: IntArray, space: FeatureSpace, coded: FloatArray) -> None:
    outside = np.argwhere(_outside(part, part.locate(coded), reached))
    if len(outside):
        row, i = (int(k) for k in outside[0])
        raise ConformanceError(f"the cells and the trees part at {_said(space, i, coded[row])}; {_REMEDY}")


def check_decisions(ensemble: Ensemble, columns: FloatArray, answers: FloatArray) -> None:
    """Hold the answers of the user's own model against what the trees say of the encoded rows.

    Rows whose scores are within rounding of a tie prove nothing and pass.

    Parameters
    ----------
    ensemble : Ensemble
        Over model columns.
    columns : (n, n_model_columns) float64
        Of the rows; see `encoded`.
    answers : (n,) array
        Class indices or values, by the user's own model.

    Raises
    ------
    ConformanceError
        They differ: the model does not see what ocf sees.
    """
    scores = ensemble.scores(columns)
    sure = _sure(ensemble, scores, answers)
    wrong = np.flatnonzero((ensemble.decide(scores) != answers) & sure)
    if len(wrong):
        raise ConformanceError(
            f"the model answers {len(wrong)} of {len(columns)} rows of the data otherwise than its trees do on what "
            f"the preprocessing makes of them (the first is row {wrong[0]}): it does not see what ocf sees; {_REMEDY}"
        )


def check_refused(
    ensemble: Ensemble,
    lifted: Lifted,
    columns: FloatArray,
    part: Partition,
    space: FeatureSpace,
    coded: FloatArray,
    answers: FloatArray,
) -> None:
    """Hold a point against the trees in all ways: one that the model refuses was misread, or rounding is the reason.

    Parameters
    ----------
    ensemble, lifted, columns, part, space, coded
        As in `check_three_ways`.
    answers : (n,) array
        As in `check_decisions`.
    """
    check_three_ways(ensemble, lifted, columns, part, space, coded)
    if not ensemble.is_oblique:
        check_decisions(ensemble, columns, answers)


def check_known(trees: Ensemble, encoding: Encoding, rows: FloatArray, answers: FloatArray) -> None:
    """Hold the answers of the user's own model to complete rows against the trees over features.

    Parameters
    ----------
    trees : Ensemble
        Over features, of rows that miss nothing.
    encoding : Encoding
        By which they were made.
    rows : (n, n_features) float64
        Coded.
    answers : (n,) array
        As in `check_decisions`.
    """
    known = encoding.knows(rows) & ~np.isnan(rows).any(axis=1)
    if known.any() and not trees.is_oblique:
        check_decisions(trees, rows[known], answers[known])


def _sure(ensemble: Ensemble, scores: FloatArray, answers: FloatArray) -> BoolArray:
    """Rows whose answer no rounding can change; a value that agrees is none of them."""
    decision = ensemble.decision
    room = max(SURE * (np.abs(scores).max() + np.abs(ensemble.contributions).max() + 1e-9), 2 * ensemble.rounding)
    if decision.final is not None:
        own = _sure(decision.final.trees, decision.final.scores(scores), answers)
        return own & decision.final.sure(scores - room, scores + room)
    if decision.stands_on_others:
        return _sure_of_totals(decision, scores, room, answers)
    if decision.kind == "argmax":
        ordered = np.sort(scores, axis=1)
        return np.asarray(ordered[:, -1] - ordered[:, -2] > room)
    if decision.kind == "threshold":
        return np.asarray(np.abs(scores[:, 0] - decision.threshold) > room + decision.slack)
    return ~np.isclose(apply(decision.link, scores[:, 0]), answers, rtol=SURE, atol=room)


def _sure_of_totals(decision: Decision, scores: FloatArray, room: float, answers: FloatArray) -> BoolArray:
    """Rows whose answer no rounding can change; a value that agrees is none of them."""
    low, high = compared_between(decision, scores - room, scores + room)
    if decision.kind == "value":
        return np.asarray((answers < low[:, 0]) | (answers > high[:, 0]))
    if decision.kind == "threshold":
        return np.asarray((low[:, 0] > decision.threshold) | (high[:, 0] < decision.threshold))
    return np.asarray(np.sort(low, axis=1)[:, -1] > np.sort(high, axis=1)[:, -2])


def _said(space: FeatureSpace, i: int, row: FloatArray) -> str:
    return f"feature {space.names[i]!r} = {space.features[i].label(float(row[i]))!r}"


def _parting(ensemble: Ensemble, lifted: Lifted, columns: FloatArray, coded: FloatArray, tree: int) -> int:
    """Feature of the first node after which the two ways differ."""
    path = _path(ensemble, columns, int(ensemble.tree_offsets[tree]))
    last = 0
    for at in _path(lifted.ensemble, coded, int(lifted.ensemble.tree_offsets[tree])):
        if int(lifted.node[at]) not in path:
            break
        last = at
    return max(int(lifted.ensemble.feature[last]), 0)


def _path(trees: Ensemble, row: FloatArray, at: int) -> list[int]:
    """Nodes that a row passes, from a root to its leaf."""
    passed = [at]
    while trees.kind[at] != SplitKind.LEAF:
        left = trees.goes_left(row[None, :], np.zeros(1, np.int64), np.array([at]))[0]
        at = int((trees.left if left else trees.right)[at])
        passed.append(at)
    return passed


def _outside(part: Partition, cells: IntArray, leaves: IntArray) -> BoolArray:
    """Whether a row's cell of a feature lies outside the box of one of its leaves, (n, n_features)."""
    visited, place = np.unique(leaves, return_inverse=True)
    boxes, place = part.boxes(visited), place.reshape(leaves.shape)
    out = np.zeros(cells.shape, bool)
    for i in range(part.n_features):
        own = cells[:, [i]]
        if part.ordered[i]:
            inside = (boxes.low[:, i][place] <= own) & (own <= boxes.high[:, i][place])
        else:
            inside = boxes.member[place, part.member_offsets[i] + own]
        out[:, i] = ~inside.all(axis=1)
    out[~part.reachable_of(boxes)[place].all(axis=1), 0] = True
    return out


def spread(table: pd.DataFrame, most: int) -> pd.DataFrame:
    """At most so many rows of a table, evenly chosen.

    Parameters
    ----------
    table : DataFrame
    most : int
        Number of rows, at least 1.
    """
    if len(table) <= most:
        return table
    return table.iloc[np.linspace(0, len(table) - 1, most).round().astype(int)]
