"""Across files: oceanpy's adapter on a stand-in that looks at every cell, held against the optimum of ocf."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from examples.test_peers_case import FAR, Desk, Modules, adapter, environment, install, lender, lending


class OceanFeature:
    """A feature as oceanpy takes it: codes are sorted, and thresholds join the levels when trees are parsed."""

    class Type(Enum):
        CONTINUOUS = "continuous"
        ONE_HOT_ENCODED = "one-hot-encoded"
        BINARY = "binary"

    def __init__(self, ftype: Type, *, levels: Any = (), codes: Any = ()) -> None:
        self.ftype = ftype
        self.levels = np.array(sorted(set(levels)), dtype=float)
        self.codes = tuple(sorted(set(codes)))


class OceanMapper:
    """Features by name, and the columns that hold them: features in the order of the columns."""

    def __init__(self, mapping: Mapping[str, OceanFeature], *, columns: pd.MultiIndex) -> None:
        self.mapping, self.columns = dict(mapping), list(columns)
        assert list(self.mapping) == list(dict.fromkeys(name for name, _ in self.columns))
        for name, feature in self.mapping.items():
            assert set(feature.codes or [""]) == {code for own, code in self.columns if own == name}


@dataclass(frozen=True)
class Choice:
    """What a feature may become: the value of each of its columns that decides its way, the answer, and the cost."""

    decides: tuple[float, ...]
    answer: tuple[float, ...]
    cost: float


class OceanExplainer:
    """Looks at every combination of intervals, codes and bits; values come back as those that float32 holds."""

    #: What a change of a category costs.
    category = 1.0
    made: list[Any] = []  # noqa: RUF012

    def __init__(self, ensemble: Any, *, mapper: OceanMapper) -> None:
        self.mapper, self.status, self.seen = mapper, "", dict[str, Any]()
        self.trees = [tree.tree_ for tree in ensemble.estimators_]
        kinds = [mapper.mapping[name].ftype for name, _ in mapper.columns]
        self.numeric = np.array([kind == OceanFeature.Type.CONTINUOUS for kind in kinds])
        for tree in self.trees:
            for column, threshold in zip(tree.feature, tree.threshold, strict=True):
                if column >= 0 and self.numeric[column]:
                    feature = mapper.mapping[mapper.columns[column][0]]
                    feature.levels = np.unique(np.append(feature.levels, threshold))
        self.made.append(self)

    def get_solving_status(self) -> str:
        return self.status

    def explain(
        self, x: Any, *, y: int, norm: int, max_time: int = 60, num_workers: int | None = None, random_seed: int = 42
    ) -> Any:
        assert (norm, len(x), type(max_time)) == (1, len(self.mapper.columns), int)
        self.seen = {"max_time": max_time, "num_workers": num_workers, "random_seed": random_seed}
        if max_time < 2:
            self.status = "UNKNOWN"
            return None
        choices = self.choices(x)
        points = np.array([sum((c.decides for c in point), ()) for point in itertools.product(*choices)])
        costs = np.array([sum(c.cost for c in point) for point in itertools.product(*choices)])
        scores = sum(self.leaves(tree, points) for tree in self.trees)
        leads = np.round((scores[:, [y]] - scores) * 1e9)
        allowed = np.flatnonzero(np.all([leads[:, c] >= (c < y) for c in range(scores.shape[1]) if c != y], axis=0))
        self.status = "OPTIMAL" if len(allowed) else "INFEASIBLE"
        if not len(allowed):
            return None
        best = next(itertools.islice(itertools.product(*choices), int(allowed[np.argmin(costs[allowed])]), None))
        return SimpleNamespace(x=np.array(sum((c.answer for c in best), ())))

    def choices(self, x: Any) -> list[list[Choice]]:
        """The choices of each feature; values are read one after the other."""
        found, k = [], 0
        for feature in self.mapper.mapping.values():
            if feature.ftype == OceanFeature.Type.CONTINUOUS:
                found.append(list(intervals(feature.levels, x[k])))
            elif feature.ftype == OceanFeature.Type.BINARY:
                assert x[k] in (0, 1)
                found.append([Choice((bit,), (bit,), float(bit != x[k])) for bit in (0.0, 1.0)])
            else:
                found.append(self.codes(k, x))
            k += max(len(feature.codes), 1)
        return found

    def codes(self, k: int, x: Any) -> list[Choice]:
        """One column is set; oceanpy finds it by its code."""
        own = [j for j, (name, _) in enumerate(self.mapper.columns) if name == self.mapper.columns[k][0]]
        assert sorted(x[own]) == [0.0] * (len(own) - 1) + [1.0]
        found = []
        for j in own:
            value = tuple(float(j == i) for i in own)
            found.append(Choice(value, value, 0.0 if x[j] == 1 else self.category))
        return found

    def leaves(self, tree: Any, points: Any) -> Any:
        """Shares of the classes; indicators and bits go left when they are zero, whatever the threshold."""
        at = np.zeros(len(points), dtype=int)
        for _ in range(tree.max_depth):
            column = np.maximum(tree.feature[at], 0)
            threshold = np.where(self.numeric[column], tree.threshold[at], 0.5)
            left = points[np.arange(len(points)), column] <= threshold
            below = np.where(left, tree.children_left[at], tree.children_right[at])
            at = np.where(below >= 0, below, at)
        return tree.value[at, 0]


class OceanMaxSAT(OceanExplainer):
    """Both columns of a changed category are paid for."""

    category = 2.0


def intervals(levels: Any, x: float) -> Any:
    """The cells of a number, each open below."""
    if not levels[0] < x <= levels[-1]:
        raise IndexError(f"{x} is outside the levels")
    for low, high in itertools.pairwise(levels):
        answer = x if low < x <= high else float32_beside(low, np.inf) if low >= x else float32_beside(high, -np.inf)
        yield Choice((high,), (answer,), max(low - x, x - high, 0.0))


def float32_beside(value: float, towards: float) -> float:
    return float(np.nextafter(np.float32(value), np.float32(towards)))


MODULES: Modules = {
    "ocean": {"ConstraintProgrammingExplainer": OceanExplainer, "MaxSATExplainer": OceanMaxSAT},
    "ocean.abc": {"Mapper": OceanMapper},
    "ocean.feature": {"Feature": OceanFeature},
}

BACKENDS = pytest.mark.parametrize("backend", ["cp", "maxsat"])


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(OceanExplainer, "made", [])
    install(monkeypatch, tmp_path / "site", "oceanpy", MODULES)


@BACKENDS
@pytest.mark.parametrize(
    ("offset", "target", "changes"),
    [(0.0, 0, {"amount", "housing", "share"}), (FAR, 1, {"amount", "late", "region", "share"})],
)
def test_its_optimum_is_ours(backend: str, offset: float, target: int, changes: set[str], tmp_path: Path) -> None:
    table, granted = lending(offset)
    desk = Desk(tmp_path, lender(table, granted), table)
    ask = desk.asking("oceanpy", backend=backend)
    changed = set()
    for row in desk.waiting(target, 8):
        told, best = desk.put(ask, row, target), desk.optimum(row, target)
        assert (told.status, told.problems) == ("optimal", [])
        assert told.cost == best["cost"]
        changed |= set(told.said["counterfactual"])
    assert changed == changes


@BACKENDS
def test_scales_are_those_of_the_question(backend: str, tmp_path: Path) -> None:
    table, granted = lending()
    settings = {"region": {"kind": "categorical"}, "amount": {"scale": 4.0}, "share": {"scale": 0.4}}
    desk = Desk(tmp_path, lender(table, granted), table, settings)
    ask = desk.asking("oceanpy", backend=backend)
    for row in desk.waiting(1, 5):
        told = desk.put(ask, row, 1)
        assert (told.status, told.problems) == ("optimal", [])
        assert told.cost == desk.optimum(row, 1)["cost"]


@BACKENDS
def test_a_value_goes_where_float32_takes_it(backend: str, tmp_path: Path) -> None:
    from peer import Case, edges

    table, granted = lending(FAR)
    desk = Desk(tmp_path, lender(table, granted), table)
    ask = desk.asking("oceanpy", backend=backend)
    between = [(t, edges(t)) for t in Case(desk.about()).thresholds[6] if edges(t)[0] > t]
    assert len(between) >= 2
    steps = []
    for threshold, (last, first) in between:
        for row in desk.waiting(1, 3):
            close = row.assign(amount=(threshold + last) / 2)
            assert desk.model.predict(close)[0] == 0
            told = desk.put(ask, close, 1)
            assert (told.status, told.problems) == ("optimal", [])
            assert told.cost == desk.optimum(close, 1)["cost"]
            steps.append(told.said["counterfactual"].get("amount") == first)
    assert any(steps)


@BACKENDS
def test_bits_and_codes_have_columns_of_their_own(backend: str, tmp_path: Path) -> None:
    table, granted = lending(FAR)
    desk = Desk(tmp_path, lender(table, granted), table)
    adapter("with_oceanpy").prepare(desk.about(backend=backend))
    (explainer,) = OceanExplainer.made
    assert isinstance(explainer, OceanMaxSAT) == (backend == "maxsat")
    bits = [("late", "1"), ("late", "0")] if backend == "maxsat" else [("late", "")]
    words = [("housing", "free"), ("housing", "own"), ("housing", "rent")]
    codes = [("region", "3"), ("region", "10"), ("region", "20")]
    assert explainer.mapper.columns == [*words, *codes, ("amount", ""), *bits, ("share", "")]
    splits = {column for tree in explainer.trees for column in tree.feature if column >= 0}
    assert max(splits) == len(explainer.mapper.columns) - 1


@BACKENDS
def test_what_it_does_not_find_is_said_as_it_says_it(backend: str, tmp_path: Path) -> None:
    table, granted = lending()
    desk = Desk(tmp_path, lender(table, granted), table)
    ask = desk.asking("oceanpy", backend=backend)
    (row,) = desk.waiting(1, 1)
    assert ask(desk.line(row, 1, limit=0.25)) == {"status": "unknown"}
    (explainer,) = OceanExplainer.made
    assert explainer.seen == {"max_time": 1, "num_workers": 2, "random_seed": 7}
    assert ask(desk.line(row, 1, limit=9.9))["status"] == "optimal"
    assert explainer.seen["max_time"] == 9


@BACKENDS
def test_what_no_cell_reaches_is_infeasible(backend: str, tmp_path: Path) -> None:
    table, granted = lending()
    granted[:] = np.arange(len(granted)) < 3
    desk = Desk(tmp_path, lender(table, granted, depth=1), table)
    ask = desk.asking("oceanpy", backend=backend)
    (row,) = desk.waiting(1, 1)
    assert desk.put(ask, row, 1).said == {"status": "infeasible"}
    assert desk.optimum(row, 1)["status"] == "infeasible"


@BACKENDS
def test_levels_hold_rows_outside_the_data(backend: str, tmp_path: Path) -> None:
    table, granted = lending(FAR)
    desk = Desk(tmp_path, lender(table, granted), table)
    ask = desk.asking("oceanpy", backend=backend)
    (row,) = desk.waiting(1, 1)
    for amount in (FAR - 4000, FAR + 4000):
        outside = row.assign(amount=amount, late=1)
        assert desk.model.predict(outside)[0] == 0
        told = desk.put(ask, outside, 1)
        assert (told.status, told.problems) == ("optimal", [])
        assert told.cost == desk.optimum(outside, 1)["cost"]


@pytest.mark.slow
def test_the_library_itself_proves_our_optimum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = environment(monkeypatch, MODULES, "oceanpy", "ocean")
    table, granted = lending(FAR)
    desk = Desk(tmp_path, lender(table, granted), table)
    rows = desk.waiting(1, 3)
    for told, row in zip(desk.run(python, "with_oceanpy", rows, 1, backend="cp"), rows, strict=True):
        assert (told.status, told.problems) == ("optimal", [])
        assert told.cost == pytest.approx(desk.optimum(row, 1)["cost"], rel=1e-6)
    for told in desk.run(python, "with_oceanpy", rows, 1, backend="maxsat"):
        assert told.said["status"] in ("optimal", "infeasible")
        assert told.said["status"] == "infeasible" or told.problems == []
