"""LP bounds that are wrong, or missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_problems import exhaustive, large_problem, random_problem

from ocf.solvers.box import relaxation, solve_cells
from ocf.solvers.box.branching import restrict
from ocf.solvers.box.instance import copied, make_instance, whole
from ocf.solvers.box.propagation import MOST_ROUNDS, new_workspace, propagate, relaxed_bound
from ocf.solvers.box.relaxation import no_relaxation

from .cases import check, compiled


def test_wrong_multipliers_never_cut_off_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that returns nonsense makes the search slower, not wrong."""
    rng = np.random.default_rng(0)
    right = relaxation.Relaxation.multipliers

    def wrong(self: Any, dual: Any, costs: bool = True) -> Any:
        return right(self, dual + rng.normal(size=len(dual)) * (rng.random(len(dual)) < 0.3), costs)

    monkeypatch.setattr(relaxation.Relaxation, "multipliers", wrong)
    for seed in range(40):
        cells = random_problem(seed)
        check(cells, solve_cells(cells, relaxation=compiled(cells)), exhaustive(cells).optimum)


def test_without_highspy(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(self: Any, reference: float) -> None:
        raise ImportError("highspy")

    monkeypatch.setattr(relaxation.Relaxation, "start", missing)
    cells = random_problem(8)
    result = solve_cells(cells, relaxation=compiled(cells))
    assert result.lp_solves == 0
    check(cells, result, exhaustive(cells).optimum)


def test_rows_that_left_come_back_where_they_are_violated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over any part of the box, after some rounds the bound is that of an LP with all rows, and never above it."""
    monkeypatch.setattr(relaxation, "SLACK", 0.0)
    rng = np.random.default_rng(0)
    lost = back = 0
    for seed in range(6):
        cells = large_problem(seed)
        instance = make_instance(cells)
        lp = relaxation.Relaxation(compiled(cells), cells, instance, whole(instance))
        lp.start(1.0)
        work, domains = new_workspace(instance), [whole(instance)]
        for _ in range(4):
            domains.append(copied(domains[-1]))
            f = int(rng.integers(len(instance.ordered)))
            first, last = instance.offsets[f], instance.offsets[f + 1] - 1
            if first < last:
                restrict(instance, domains[-1], f, int(rng.integers(first + 1, last + 1)), bool(rng.random() < 0.5))
        for domain in domains:  # as the search does before an LP
            propagate(instance, domain, no_relaxation(instance), np.inf, work, MOST_ROUNDS)
        lp.solve(domains[0], np.inf)
        lost += lp.form.n_rows - lp.n_rows
        monkeypatch.setattr(relaxation, "SLACK", np.inf)
        entire = relaxation.Relaxation(compiled(cells), cells, instance, whole(instance))
        entire.start(1.0)
        entire.solve(domains[0], np.inf)
        monkeypatch.setattr(relaxation, "SLACK", 0.0)
        assert entire.n_rows == lp.form.n_rows
        for domain in domains:
            exact, bounds = entire.solve(domain, np.inf), []
            for _ in range(20):
                before, found = lp.n_rows, lp.solve(domain, np.inf)
                back += lp.n_rows > before
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


def test_a_basis_serves_another_lp_over_the_same_hull() -> None:
    """One that begins with it and one with other rows are at its optimum at once; of another hull it is not used."""
    for seed in range(4):
        cells = large_problem(seed)
        instance = make_instance(cells)
        domain, part, work = whole(instance), whole(instance), new_workspace(instance)
        propagate(instance, domain, no_relaxation(instance), np.inf, work, MOST_ROUNDS)
        f = int(np.argmax(np.diff(instance.offsets)))
        restrict(instance, part, f, int(instance.offsets[f]) + 2, True)
        propagate(instance, part, no_relaxation(instance), np.inf, work, MOST_ROUNDS)
        lps = [relaxation.Relaxation(compiled(cells), cells, instance, whole(instance), k) for k in (0, 0, 0, 1)]
        first, fresh, other, foreign = lps
        first.start(1.0)
        found = first.solve(domain, np.inf)
        assert found is not None
        assert found.basis is not None
        assert found.multipliers is not None
        bound = relaxed_bound(instance, domain, found.multipliers, work)
        fresh.start(1.0, found.basis)
        assert fresh.n_rows == first.n_rows < first.form.n_rows
        other.start(1.0)
        other.solve(part, np.inf)
        foreign.start(1.0, found.basis)
        assert foreign.n_rows == foreign.form.n_rows
        for lp in (fresh, other):
            before = lp.iterations
            again = lp.solve(domain, np.inf, basis=found.basis)
            assert again is not None
            assert again.multipliers is not None
            assert relaxed_bound(instance, domain, again.multipliers, work) == pytest.approx(bound, abs=1e-9)
            assert lp.iterations - before <= first.iterations / 10
