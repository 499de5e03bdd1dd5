"""LP bounds that are wrong, or missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_problems import exhaustive, large_problem, random_problem

from ocf.cells.cell_problem import CellProblem
from ocf.solvers.box import partial_lp, relaxation, solve_cells, worker
from ocf.solvers.box.branching import restrict
from ocf.solvers.box.instance import Domain, Instance, copied, make_instance, whole
from ocf.solvers.box.propagation import MOST_ROUNDS, new_workspace, propagate, relaxed_bound
from ocf.solvers.box.relaxation import no_relaxation

from .cases import check, compiled, hard_problem


def boxes_within_each_other(instance: Instance, seed: int, count: int) -> list[Domain]:
    """Boxes, each within the one before it, propagated as the search does before an LP."""
    rng, work, domains = np.random.default_rng(seed), new_workspace(instance), [whole(instance)]
    for _ in range(count):
        domains.append(copied(domains[-1]))
        f = int(rng.integers(len(instance.ordered)))
        first, last = instance.offsets[f], instance.offsets[f + 1] - 1
        if first < last:
            restrict(instance, domains[-1], f, int(rng.integers(first + 1, last + 1)), bool(rng.random() < 0.5))
    for domain in domains:
        propagate(instance, domain, no_relaxation(instance), np.inf, work, MOST_ROUNDS)
    return domains


def test_wrong_multipliers_never_cut_off_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that returns nonsense every other time makes the search slower, not wrong."""
    rng = np.random.default_rng(0)
    right = relaxation.Relaxation.multipliers

    def wrong(self: Any, dual: Any, costs: bool = True) -> Any:
        most = 0.3 * (rng.random() < 0.5)
        return right(self, dual + rng.normal(size=len(dual)) * (rng.random(len(dual)) < most), costs)

    monkeypatch.setattr(relaxation.Relaxation, "multipliers", wrong)
    for seed in range(25):
        cells = random_problem(seed)
        check(cells, solve_cells(cells, relaxation=compiled(cells)), exhaustive(cells).optimum)
    monkeypatch.setattr(worker, "TRIAL", 2)  # hardly a node is spared its LP
    for rounded in (False, True):
        cells = hard_problem(rounded)
        result = solve_cells(cells, relaxation=compiled(cells))
        assert result.lp_solves > 5
        check(cells, result, optimum_without_lps(cells))


def optimum_without_lps(cells: CellProblem) -> float:
    cost = solve_cells(cells).cost
    assert cost is not None
    return cost


def test_without_highspy(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[float] = []

    def missing(self: Any, reference: float, basis: Any = None) -> None:
        tried.append(reference)
        raise ImportError("highspy")

    monkeypatch.setattr(partial_lp.PartialLP, "start", missing)
    monkeypatch.setattr(worker, "TRIAL", 2)
    cells = hard_problem()
    result = solve_cells(cells, relaxation=compiled(cells))
    assert len(tried) == 1
    assert result.lp_solves == 0
    check(cells, result, optimum_without_lps(cells))


def test_rows_that_left_come_back_where_they_are_violated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over any part of the box, after some rounds the bound is that of an LP with all rows, and never above it."""
    monkeypatch.setattr(partial_lp, "SLACK", 0.0)
    lost = back = 0
    for seed in range(6):
        cells = large_problem(seed)
        instance = make_instance(cells)
        lp = relaxation.Relaxation(compiled(cells), cells, instance, whole(instance))
        lp.lp.start(1.0)
        work, domains = new_workspace(instance), boxes_within_each_other(instance, seed, 4)
        lp.solve(domains[0], np.inf)
        lost += lp.lp.form.n_rows - len(lp.lp.rows)
        monkeypatch.setattr(partial_lp, "SLACK", np.inf)
        entire = relaxation.Relaxation(compiled(cells), cells, instance, whole(instance))
        entire.lp.start(1.0)
        entire.solve(domains[0], np.inf)
        monkeypatch.setattr(partial_lp, "SLACK", 0.0)
        assert len(entire.lp.rows) == lp.lp.form.n_rows
        for domain in domains:
            exact, bounds = entire.solve(domain, np.inf), []
            for _ in range(20):
                before, found = lp.lp.used.sum(), lp.solve(domain, np.inf)
                back += lp.lp.used.sum() > before
                if found is None or found.multipliers is None or found.ray is not None:
                    break
                bounds.append(relaxed_bound(instance, domain, found.multipliers, work))
            if exact is None or exact.multipliers is None or exact.ray is not None:
                assert found is None or found.multipliers is None or found.ray is not None
                continue
            optimum = relaxed_bound(instance, domain, exact.multipliers, work)
            assert max(bounds) <= optimum + 1e-6
            assert bounds[-1] >= optimum - 1e-6
    assert lost > 0
    assert back > 0


def test_rows_that_come_in_by_rounds_are_those_that_bear_on_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first LP ends at the optimum of all rows, whichever of the violated ones come in at a time."""
    monkeypatch.setattr(partial_lp, "SLACK", np.inf)
    for seed in range(6):
        cells = large_problem(seed)
        instance, bounds, rows = make_instance(cells), [], []
        (domain,), work = boxes_within_each_other(instance, seed, 0), new_workspace(instance)
        for many, violated in ((10**6, 0.0), (0, 0.0), (0, 0.5)):
            monkeypatch.setattr(partial_lp, "MANY_ROWS", many)
            monkeypatch.setattr(partial_lp, "VIOLATED", violated)
            lp = relaxation.Relaxation(compiled(cells), cells, instance, whole(instance))
            lp.lp.start(1.0)
            found = lp.solve(domain, np.inf)
            assert found is not None
            assert found.multipliers is not None
            bounds.append(relaxed_bound(instance, domain, found.multipliers, work))
            rows.append(len(lp.lp.rows))
        assert bounds == pytest.approx([bounds[0]] * 3, abs=1e-6)
        assert rows[0] == lp.lp.form.n_rows > max(rows[1:])


def test_a_basis_serves_another_lp_of_the_same_form() -> None:
    """One that has solved nothing, and one that has solved something else, are at its optimum at once; of another hull
    it is not used.
    """
    for seed in range(4):
        cells = large_problem(seed)
        instance = make_instance(cells)
        domain, part = boxes_within_each_other(instance, seed, 1)
        work = new_workspace(instance)
        first, fresh, other = (relaxation.Relaxation(compiled(cells), cells, instance, whole(instance)) for _ in "123")
        first.lp.start(1.0)
        found = first.solve(domain, np.inf)
        assert found is not None
        assert found.multipliers is not None
        assert first.lp.first_basis is found.basis
        bound = relaxed_bound(instance, domain, found.multipliers, work)
        fresh.lp.start(1.0, found.basis)
        other.lp.start(1.0)
        other.solve(part, np.inf)
        for lp in (fresh, other):
            before = lp.lp.iterations
            again = lp.solve(domain, np.inf, basis=found.basis)
            assert again is not None
            assert again.multipliers is not None
            assert relaxed_bound(instance, domain, again.multipliers, work) == pytest.approx(bound, abs=1e-9)
            assert lp.lp.iterations - before <= first.lp.iterations / 10
        assert fresh.lp.used.sum() == first.lp.used.sum() < first.lp.form.n_rows
        foreign = relaxation.Relaxation(compiled(cells), cells, instance, whole(instance), generation=1)
        foreign.lp.start(1.0, found.basis)
        begun = foreign.solve(domain, np.inf, basis=found.basis)
        assert begun is not None
        assert begun.basis is foreign.lp.first_basis
        assert foreign.lp.iterations >= first.lp.iterations / 2


def test_an_lp_around_a_basis_has_the_optimum_of_the_whole_and_is_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """From box to box within each other, and back to one that lies elsewhere."""
    monkeypatch.setattr(partial_lp, "SLACK", np.inf)
    smaller = steps = warm = cold = 0
    for seed in range(12):
        cells = large_problem(seed)
        instance = make_instance(cells)
        nested, others = (boxes_within_each_other(instance, 2 * seed + k, 5) for k in (0, 1))
        work, bases = new_workspace(instance), {}
        lp = relaxation.Relaxation(compiled(cells), cells, instance, whole(instance))
        lp.lp.start(1.0)
        for number, domain in enumerate([*nested, *others[1:], nested[2]]):
            around = {0: None, len(nested): 0, 2 * len(nested) - 1: 1}.get(number, number - 1)
            begun, found = lp.lp.iterations, lp.solve(domain, np.inf, basis=bases.get(around))
            entire = relaxation.Relaxation(compiled(cells), cells, instance, whole(instance))
            entire.lp.start(1.0)
            exact = entire.solve(domain, np.inf)
            assert (found is None) == (exact is None)
            if found is None or exact is None:
                break
            bases[number] = found.basis
            smaller += len(lp.lp.rows) < lp.lp.form.n_rows and len(lp.lp.columns) < lp.lp.form.n_cols
            assert (found.ray is None) == (exact.ray is None)
            if found.ray is not None or found.multipliers is None or exact.multipliers is None:
                continue
            steps += 1
            warm, cold = warm + lp.lp.iterations - begun, cold + entire.lp.iterations
            optimum = relaxed_bound(instance, domain, exact.multipliers, work)
            assert relaxed_bound(instance, domain, found.multipliers, work) == pytest.approx(optimum, abs=1e-6)
    assert steps > 100
    assert smaller > 10
    assert warm < cold / 2
