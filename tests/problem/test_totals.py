"""Totals of several scores: rows hold from outside, cuts lose nothing, and branching tells every choice apart."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_problems import stumps

from ocf.arrays import FloatArray, IntArray
from ocf.errors import ModelError
from ocf.problem.requirements import Requirements, scores_at
from ocf.problem.targets import ClassTarget, IntervalTarget, ProbabilityTarget
from ocf.problem.totals import TotalThreshold, total_rows
from ocf.trees.ensemble import Decision, Ensemble
from ocf.trees.totals import FLOAT32, Map, Term, Total

MINUS = Map("affine", (-1.0, 1.0))


def chain(rng: np.random.Generator, kind: str) -> tuple[Map, ...]:
    """Maps as calibrators, votes and links make them, at random."""
    if kind == "sigmoid":
        return (Map("affine", (float(rng.normal() * 3), float(rng.normal()))), Map("logistic"))
    if kind == "probability":
        return (Map("logistic", unit=FLOAT32), MINUS)
    if kind == "isotonic":
        x = np.unique(rng.normal(size=6).round(1))
        return (Map("table", tuple(x.tolist()), tuple(np.sort(rng.integers(0, 5, len(x)) / 4).tolist())),)
    if kind == "vote":
        step = Map("step", (round(float(rng.normal()), 1),), (float(rng.integers(2)),))
        return (step, Map("affine", (2.0, -1.0)))
    return ()


KINDS = ("sigmoid", "probability", "isotonic", "vote", "linear")


def example(kinds: list[str], n_trees: int, seed: int) -> tuple[Ensemble, Total]:
    """Stumps whose trees score in turn for each term, on coarse numbers so that ties occur."""
    rng = np.random.default_rng(seed)
    values = np.zeros((n_trees, 2, len(kinds)))
    for t in range(n_trees):
        values[t, :, t % len(kinds)] = rng.normal(size=2).round(1)
    total = Total(tuple(Term(k, chain(rng, kind)) for k, kind in enumerate(kinds)), divisor=float(len(kinds)))
    ensemble = stumps(values, Decision("threshold", (0, 1), 0.5, margin=total), rng.normal(size=len(kinds)).round(1))
    return ensemble, total


def combinations(ensemble: Ensemble) -> IntArray:
    choices = np.array(list(itertools.product([0, 1], repeat=ensemble.n_trees)))
    return choices + 2 * np.arange(ensemble.n_trees)


def shown_of(ensemble: Ensemble, total: Total, leaves: IntArray) -> FloatArray:
    return np.array([float(total(scores_at(ensemble, choice)[None])[0]) for choice in leaves])


def at_edge(ensemble: Ensemble, total: Total, leaves: IntArray) -> np.ndarray:
    """Choices with a score within rounding of a point where a function jumps or bends."""
    scores = np.array([scores_at(ensemble, choice) for choice in leaves])
    out = np.zeros(len(leaves), bool)
    for term in total.terms:
        for edge in term.maps[0].edges if term.maps else ():
            out |= np.abs(scores[:, term.output] - edge) <= 1e-9
    return out


def inside(rows: Requirements, leaves: IntArray, certainly: bool = False) -> bool:
    least = rows.need + rows.error_bound if certainly else rows.need
    return bool((rows.gain[leaves].sum(axis=0) >= least).all())


def branched(rows: Requirements, met: np.ndarray, leaves: IntArray) -> list[Requirements]:
    """Alternatives after every refused choice has been cut off as far as rows can."""
    alternatives = [rows]
    for choice in leaves[~met]:
        for _ in range(60):
            parts: list[Requirements] = []
            for own in alternatives:
                tighter = own.tightened(choice) if inside(own, choice) else ()
                parts += tighter or (own,)
            if len(parts) == len(alternatives) and all(a is b for a, b in zip(parts, alternatives, strict=True)):
                break
            alternatives = parts
    return alternatives


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=4), st.integers(0, 4), st.booleans(), st.integers(0, 10**6)
)
def test_rows_lose_nothing_and_cuts_tell_all_choices_apart(kinds: list, more: int, strict: bool, seed: int) -> None:
    ensemble, total = example(kinds, len(kinds) + more, seed)
    leaves = combinations(ensemble)
    shown = shown_of(ensemble, total, leaves)
    value = float(np.random.default_rng(seed).choice([*shown, 0.5, 0.3]))
    for sign in (1.0, -1.0):
        met = sign * shown > sign * value if strict else sign * shown >= sign * value
        rows = total_rows(ensemble, total.times(sign), sign * value, strict=strict)
        near = (np.abs(shown - value) <= 1e-4) | at_edge(ensemble, total, leaves)  # within the rounding of float32
        for choice, wanted in zip(leaves, met, strict=True):
            assert inside(rows, choice) or not wanted
            assert wanted or not inside(rows, choice, certainly=True) or rows.curve is not None
        alternatives = branched(rows, met | near, leaves)
        for choice, wanted, close in zip(leaves, met, near, strict=True):
            held = any(inside(part, choice) for part in alternatives)
            assert held == wanted or (close and held)


@pytest.mark.parametrize("kind", ["isotonic", "vote"])
@pytest.mark.parametrize("seed", range(40))
def test_a_flat_part_is_decided_to_the_last_bit(kind: str, seed: int) -> None:
    """A policy threshold one bit above or below what a flat part shows."""
    ensemble, total = example([kind], 5, seed)
    leaves = combinations(ensemble)
    shown = shown_of(ensemble, total, leaves)
    steps = total.terms[0].maps[0]
    scores = np.array([scores_at(ensemble, choice)[0] for choice in leaves])
    clear = np.abs(scores[:, None] - np.array(steps.x)).min(axis=1) > 1e-9
    for level in np.unique(shown[clear]):
        for value in (level, np.nextafter(level, -np.inf), np.nextafter(level, np.inf)):
            rows = total_rows(ensemble, total, float(value), strict=False)
            flat = clear & (shown == level) & np.isin(shown, steps.y if kind == "isotonic" else shown)
            for choice, one in zip(leaves[flat], shown[flat], strict=True):
                assert inside(rows, choice) == (one >= value)
                assert inside(rows, choice, certainly=True) == (one >= value)


def test_targets_ask_for_totals() -> None:
    rising = Total((Term(0, (Map("logistic"),)),))
    falling = Total((Term(0, (Map("logistic"), MINUS)),))
    rule = Decision("threshold", ("no", "yes"), 0.8, True, "mean", totals=(falling, rising), margin=rising)
    ensemble = stumps(np.array([[[-1.0], [2.0]], [[-1.0], [1.0]]]), rule)
    leaves = combinations(ensemble)
    scores = np.array([scores_at(ensemble, choice) for choice in leaves])
    for target, wanted in (
        (ClassTarget(1), scores[:, 0] >= np.log(0.8 / 0.2)),
        (ClassTarget(0), scores[:, 0] < np.log(0.8 / 0.2)),
        (ProbabilityTarget((1,), 0.9), scores[:, 0] >= np.log(9)),
        (ProbabilityTarget((0,), 0.7), -scores[:, 0] >= np.log(0.7 / 0.3)),
    ):
        (rows,) = target.alternatives(ensemble)
        np.testing.assert_array_equal([inside(rows, choice) for choice in leaves], wanted)
    np.testing.assert_array_equal(ensemble.decide(scores), scores[:, 0] >= np.log(4))
    again = Ensemble.from_dict(json.loads(json.dumps(ensemble.to_dict())))
    assert again.decision == ensemble.decision


def test_the_value_of_several_curves_lies_between_two_bounds() -> None:
    total = Total(tuple(Term(k, (Map("exp"),)) for k in range(2)))
    values = np.eye(2)[[0, 1, 0, 1], None] * np.array(
        [[[-1.0], [2.0]], [[-1.5], [1.0]], [[0.3], [0.8]], [[0.1], [0.5]]]
    )
    ensemble = stumps(values, Decision("value", totals=(total,)))
    leaves = combinations(ensemble)
    shown = shown_of(ensemble, total, leaves)
    target = IntervalTarget(float(np.quantile(shown, 0.4)), float(np.quantile(shown, 0.6)))
    (rows,) = target.alternatives(ensemble)
    met = target.met_by(shown)
    alternatives = branched(rows, met, leaves)
    np.testing.assert_array_equal([any(inside(part, choice) for part in alternatives) for choice in leaves], met)
    assert met.any()
    assert not met.all()


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["sigmoid", "isotonic", "vote", "tilted"]), st.integers(3, 8), st.integers(0, 10**6))
def test_the_largest_of_three_totals_is_told_apart(kind: str, n_trees: int, seed: int) -> None:
    """Totals of classes that see each other's scores, as in votes of one class against one."""
    rng = np.random.default_rng(seed)
    tilted = (Map("step", (0.0,), (0.0, 0.05)),)
    curves = [tilted if kind == "tilted" else chain(rng, kind) for _ in range(3)]
    totals = tuple(
        Total((Term(k, curves[k]), Term((k + 1) % 3, curves[(k + 1) % 3], -1.0)), float(rng.normal() / 20))
        for k in range(3)
    )
    values = rng.normal(size=(n_trees, 2, 3)).round(1) * (rng.random((n_trees, 1, 3)) < 0.6)
    ensemble = stumps(values, Decision("argmax", ("a", "b", "c"), totals=totals))
    leaves = combinations(ensemble)
    shown = np.column_stack([shown_of(ensemble, total, leaves) for total in totals])
    ranked = np.sort(shown, axis=1)
    near = (ranked[:, -1] - ranked[:, -2] <= 1e-4) | np.any([at_edge(ensemble, t, leaves) for t in totals], axis=0)
    for index in range(3):
        met = shown.argmax(axis=1) == index
        (rows,) = ClassTarget(index).alternatives(ensemble)
        alternatives = branched(rows, met | near, leaves)
        for choice, wanted, close in zip(leaves, met, near, strict=True):
            held = any(inside(part, choice) for part in alternatives)
            assert held >= wanted
            assert held == wanted or close
    again = Ensemble.from_dict(json.loads(json.dumps(ensemble.to_dict())))
    assert again.decision == ensemble.decision


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"kind": "table", "x": [1.0, 0.0], "y": [0.0, 1.0]}, "kind 'table'"),
        ({"kind": "affine", "x": [1.0], "y": []}, "kind 'affine'"),
    ],
)
def test_damaged_maps_are_refused(broken: dict, message: str) -> None:
    rule = Decision("threshold", (0, 1), margin=Total((Term(0, (Map("logistic"),)),)))
    saved = stumps(np.zeros((1, 2, 1)), rule).to_dict()
    saved["decision"]["margin"]["terms"][0]["maps"] = [broken]
    with pytest.raises(ModelError, match=message):
        Ensemble.from_dict(saved)
    saved["decision"]["margin"]["terms"][0] |= {"maps": [], "output": 3}
    with pytest.raises(ModelError, match="a score that does not exist"):
        Ensemble.from_dict(saved)


def test_intervals_of_scores_are_cut_by_a_box() -> None:
    total = Total((Term(0), Term(2)))
    ensemble = stumps(np.zeros((1, 2, 3)), Decision("argmax", (0, 1, 2)))
    curve = TotalThreshold(ensemble, (0.0, 1.0), (4.0, 5.0), total, 0.0, False)
    assert curve.box == {0: (0.0, 4.0), 2: (1.0, 5.0)}
    assert curve.within({0: (1.0, 9.0), 2: (-np.inf, 2.0)}).box == {0: (1.0, 4.0), 2: (1.0, 2.0)}
    assert curve.within({}).box == curve.box
    assert curve.within({2: (6.0, 7.0)}).box == curve.box  # empty
