"""Across files: treecf's adapter on a stand-in that looks at every cell, held against the optimum of ocf."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from examples.test_peers_case import FAR, Desk, Modules, adapter, environment, install, lender, lending
from sklearn.ensemble import RandomForestClassifier


@dataclass(frozen=True)
class TreecfRange:
    feature: str
    lo: float
    hi: float


@dataclass(frozen=True)
class TreecfOneHot:
    features: tuple[str, ...]


@dataclass(frozen=True)
class TreecfTarget:
    lo: float
    hi: float

    @classmethod
    def raw(cls, *, op: str, value: float) -> TreecfTarget:
        return cls(value, np.inf) if op == ">=" else cls(-np.inf, {"<=": value}[op])


@dataclass(frozen=True)
class TreecfPoint:
    x_cf: Any
    proof: str


@dataclass(frozen=True)
class TreecfInfeasible:
    reason: str
    proof: str = "search_exhausted"


def treecf_parse(model: Any) -> Any:
    """The names of the columns of a forest that was fitted on an array."""
    return SimpleNamespace(feature_names=tuple(f"f{k}" for k in range(model.n_features_in_)))


class TreecfExplainer:
    """Looks at one value of every cell of every column that the constraints allow."""

    def __init__(
        self, model: Any, *, constraints: Any = (), normalizers: dict[str, float], value_policy: dict[str, str]
    ) -> None:
        self.trees = [tree.tree_ for tree in model.estimators_]
        self.names = list(treecf_parse(model).feature_names)
        self.ranges = {c.feature: c for c in constraints if isinstance(c, TreecfRange)}
        self.groups = [c.features for c in constraints if isinstance(c, TreecfOneHot)]
        self.normalizers, self.value_policy = normalizers, value_policy
        assert len(self.ranges) + len(self.groups) == len(constraints)
        assert {*self.ranges, *value_policy, *itertools.chain(*self.groups)} <= set(self.names)
        self.sigma = np.array([normalizers[name] for name in self.names])
        assert (self.sigma > 0).all()
        self.seen: dict[str, Any] = {}

    def explain(
        self, x: Any, target: TreecfTarget, backend: str = "genetic", time_budget_s: float = 10.0, **more: Any
    ) -> TreecfPoint | TreecfInfeasible:
        assert set(more) == ({"seed", "node_budget"} if backend == "exact" else {"seed"})
        self.seen = {"backend": backend, "time_budget_s": time_budget_s, **more}
        if time_budget_s < 1:
            return TreecfInfeasible("the budget is used up")
        grouped = {name for group in self.groups for name in group}
        ways = [[[v] for v in self.values(k, x[k])] for k, name in enumerate(self.names) if name not in grouped]
        ways += [[list(map(float, row)) for row in np.eye(len(group), dtype=int)] for group in self.groups]
        order = [self.names.index(name) for name in self.names if name not in grouped]
        order += [self.names.index(name) for group in self.groups for name in group]
        points = np.array([list(itertools.chain(*way)) for way in itertools.product(*ways)])[:, np.argsort(order)]
        scores = sum(self.shares(tree, points) / len(self.trees) for tree in self.trees)
        costs = (np.abs(points - x) / self.sigma).sum(axis=1)
        good = np.flatnonzero((scores >= target.lo) & (scores <= target.hi))
        if not len(good):
            return TreecfInfeasible("every cell was seen", "certified" if backend == "exact" else "search_exhausted")
        proof = "optimal" if backend == "exact" else "heuristic"
        return TreecfPoint(points[good[np.argmin(costs[good])]], proof)

    def values(self, k: int, x: float) -> list[float]:
        """The nearest value of each cell; those in other cells are what float32 holds."""
        allowed = self.ranges[self.names[k]]
        splits = [lasts(tree.threshold[tree.feature == k]) for tree in self.trees]
        cuts = [-np.inf, *np.unique(np.concatenate(splits)), np.inf]
        found = []
        for low, high in itertools.pairwise(cuts):
            value = x if low < x <= high else step(low, np.inf) if x <= low else step(high, -np.inf)
            value = min(max(value, allowed.lo), allowed.hi)
            if self.value_policy.get(self.names[k]) == "integer":
                value = float(np.ceil(low) if x <= low else np.floor(high) if x > high else x)
            if low < value <= high and allowed.lo <= value <= allowed.hi:
                found.append(value)
        return found

    def shares(self, tree: Any, points: Any) -> Any:
        """Shares of the second class."""
        at = np.zeros(len(points), dtype=int)
        threshold = lasts(tree.threshold)
        for _ in range(tree.max_depth):
            left = points[np.arange(len(points)), np.maximum(tree.feature[at], 0)] <= threshold[at]
            below = np.where(left, tree.children_left[at], tree.children_right[at])
            at = np.where(below >= 0, below, at)
        return tree.value[at, 0, 1]


def lasts(thresholds: Any) -> Any:
    """The largest float64 that is at most a threshold when it is cast to float32, by bisection."""
    low, high = np.array(thresholds, float) - 1, np.array(thresholds, float) + 1
    for _ in range(80):
        middle = (low + high) / 2
        goes = middle.astype(np.float32) <= thresholds
        low, high = np.where(goes, middle, low), np.where(goes, high, middle)
    return low


def step(value: float, towards: float) -> float:
    return float(np.nextafter(np.float32(value), np.float32(towards)))


MODULES: Modules = {
    "treecf": {
        "Counterfactual": TreecfPoint,
        "Explainer": TreecfExplainer,
        "OneHot": TreecfOneHot,
        "Range": TreecfRange,
        "Target": TreecfTarget,
    },
    "treecf.ir": {},
    "treecf.ir.parsers": {"parse_model": treecf_parse},
}


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path / "site", "treecf", MODULES)


def tied(halves: int) -> tuple[RandomForestClassifier, Any]:
    """A forest of so many stumps on each of two columns, which is undecided where they disagree."""
    table = lending()[0][["amount", "share"]]
    stumps = [
        RandomForestClassifier(halves, max_depth=1, max_features=None, bootstrap=False, random_state=0).fit(
            table, (table[name] > table[name].median()).to_numpy(int)
        )
        for name in table
    ]
    forest = stumps[0].set_params(n_estimators=2 * halves)
    forest.estimators_ = [tree for half in stumps for tree in half.estimators_]
    return forest, table


@pytest.mark.parametrize(("backend", "status"), [("exact", "optimal"), ("genetic", "feasible")])
@pytest.mark.parametrize(
    ("offset", "target", "changes"),
    [(0.0, 0, {"amount", "housing", "share"}), (FAR, 1, {"amount", "late", "region", "share"})],
)
def test_its_optimum_is_ours(
    backend: str, status: str, offset: float, target: int, changes: set[str], tmp_path: Path
) -> None:
    table, granted = lending(offset)
    desk = Desk(tmp_path, lender(table, granted), table)
    ask = desk.asking("treecf", backend=backend)
    changed = set()
    for row in desk.waiting(target, 8):
        told, best = desk.put(ask, row, target), desk.optimum(row, target)
        assert (told.status, told.problems) == (status, [])
        assert told.cost == best["cost"]
        changed |= set(told.said["counterfactual"])
    assert changed == changes


def test_scales_bounds_and_groups_are_those_of_the_question(tmp_path: Path) -> None:
    from peer import Case

    table, granted = lending()
    settings = {"region": {"kind": "categorical"}, "amount": {"scale": 0.7}, "share": {"bounds": [-0.5, 1.5]}}
    desk = Desk(tmp_path, lender(table, granted), table, settings)
    made = adapter("with_treecf").explainer(Case(desk.about()))
    words, numbers = [f"f{k}" for k in range(6)], ["f6", "f7", "f8"]
    scales = dict.fromkeys(words, 2.0) | dict(zip(numbers, [0.7, 1.0, float(np.ptp(table["share"]))], strict=True))
    assert made.normalizers == pytest.approx(scales, rel=1e-12)
    assert made.groups == [tuple(words[:3]), tuple(words[3:])]
    bounds = [(float(table["amount"].min()), float(table["amount"].max())), (0.0, 1.0), (-0.5, 1.5)]
    assert [(made.ranges[name].lo, made.ranges[name].hi) for name in numbers] == bounds
    assert set(made.ranges) == set(numbers)
    assert made.value_policy == {"f7": "integer"}


def test_bounds_narrower_than_the_thresholds_hold(tmp_path: Path) -> None:
    table, granted = lending()
    settings = {"region": {"kind": "categorical"}, "share": {"bounds": [0.3, 0.7]}, "amount": {"bounds": [-1.5, 1.5]}}
    desk = Desk(tmp_path, lender(table, granted), table, settings)
    ask = desk.asking("treecf", backend="exact")
    inside = table["share"].between(0.3, 0.7) & table["amount"].between(-1.5, 1.5)
    rows = [table.loc[[row]] for row in table.index[inside & (desk.model.predict(table) == 0)][:8]]
    assert len(rows) == 8
    for row in rows:
        told = desk.put(ask, row, 1)
        assert (told.status, told.problems) == ("optimal", [])
        assert told.cost == desk.optimum(row, 1)["cost"]


@pytest.mark.parametrize("halves", [1, 50])
@pytest.mark.parametrize("target", [0, 1])
def test_a_tie_goes_to_the_first_class(halves: int, target: int, tmp_path: Path) -> None:
    forest, table = tied(halves)
    desk = Desk(tmp_path, forest, table)
    ask = desk.asking("treecf", backend="exact")
    for row in desk.waiting(target, 4):
        best = desk.optimum(row, target)
        told = desk.put(ask, row, target)
        assert (told.status, told.problems) == ("optimal", [])
        assert told.cost == best["cost"]
        assert len(told.said["counterfactual"]) == 1 or target == 1


def test_what_it_does_not_find_is_no_proof(tmp_path: Path) -> None:
    table, granted = lending()
    desk = Desk(tmp_path, lender(table, granted), table)
    (row,) = desk.waiting(1, 1)
    for backend in ("exact", "genetic"):
        ask = desk.asking("treecf", backend=backend)
        assert ask(desk.line(row, 1, limit=0.5)) == {"status": "unknown", "message": "the budget is used up"}


def test_only_a_certificate_is_a_proof_of_infeasibility(tmp_path: Path) -> None:
    table, granted = lending()
    granted[:] = np.arange(len(granted)) < 3
    desk = Desk(tmp_path, lender(table, granted, depth=1), table)
    (row,) = desk.waiting(1, 1)
    assert desk.optimum(row, 1)["status"] == "infeasible"
    for backend, status in (("exact", "infeasible"), ("genetic", "unknown")):
        ask = desk.asking("treecf", backend=backend)
        assert desk.put(ask, row, 1).said == {"status": status, "message": "every cell was seen"}


def test_a_gap_is_no_proof_of_the_optimum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, granted = lending()
    desk = Desk(tmp_path, lender(table, granted), table)
    ask = desk.asking("treecf", backend="exact")
    (row,) = desk.waiting(1, 1)
    asked: list[Any] = []

    def within_gap(self: TreecfExplainer, x: Any, target: TreecfTarget, **more: Any) -> TreecfPoint:
        asked.append(more)
        return TreecfPoint(x, "optimal_within_gap")

    monkeypatch.setattr(TreecfExplainer, "explain", within_gap)
    assert ask(desk.line(row, 1, limit=3.5)) == {"status": "feasible", "counterfactual": {}}
    assert asked == [{"backend": "exact", "time_budget_s": 3.5, "seed": 7, "node_budget": 10**12}]


@pytest.mark.slow
def test_the_library_itself_proves_our_optimum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = environment(monkeypatch, MODULES, "treecf", "treecf")
    table, granted = lending(FAR)
    desk = Desk(tmp_path, lender(table, granted), table)
    rows = desk.waiting(1, 6)
    for backend, status in (("exact", "optimal"), ("genetic", "feasible")):
        for told, row in zip(desk.run(python, "with_treecf", rows, 1, backend=backend), rows, strict=True):
            assert (told.status, told.problems) == (status, [])
            assert told.cost >= desk.optimum(row, 1)["cost"]
            assert backend == "genetic" or told.cost == desk.optimum(row, 1)["cost"]
    forest, plain = tied(50)
    even = Desk(tmp_path, forest, plain)
    (row,) = even.waiting(0, 1)
    (told,) = even.run(python, "with_treecf", [row], 0, backend="exact")
    assert (told.status, told.cost) == ("optimal", even.optimum(row, 0)["cost"])
