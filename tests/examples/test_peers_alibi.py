"""Across files: alibi's adapter on a stand-in that goes towards rows of the data, held against the costs of ocf."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from examples.test_peers_case import FAR, Desk, Modules, environment, install, lender, lending


class AlibiProto:
    """Goes to the nearest row of the wanted class, and with numbers 97 % of the way where that has the class.

    Columns are between 0 and 1, those of a category first, and what comes back is float32.
    """

    made: Any = None

    def __init__(
        self,
        predict: Any,
        shape: tuple[int, int],
        *,
        feature_range: Any,
        cat_vars: dict[int, int] | None,
        ohe: bool,
        use_kdtree: bool,
        **descent: Any,
    ) -> None:
        self.predict, self.groups, self.descent = predict, cat_vars or {}, descent
        assert (shape[0], use_kdtree, ohe) == (1, True, bool(cat_vars))
        assert set(descent) == {"theta", "c_init", "c_steps", "max_iterations", "eps"}
        self.indicators = [k + j for k, n in self.groups.items() for j in range(n)]
        self.numbers = [k for k in range(shape[1]) if k not in self.indicators]
        assert self.indicators == list(range(len(self.indicators)))
        assert [part.shape for part in feature_range] == 2 * [(1, len(self.groups) + len(self.numbers))]
        assert predict(np.zeros(shape)).shape == (1, 2)
        AlibiProto.made = self

    def fit(self, train_data: Any) -> None:
        assert train_data.min(axis=0).tolist() == [0.0] * train_data.shape[1]
        assert train_data.max(axis=0).tolist() == [1.0] * train_data.shape[1]
        assert all((train_data[:, k : k + n].sum(axis=1) == 1).all() for k, n in self.groups.items())
        self.rows = train_data

    def distances(self, x: Any, points: Any) -> Any:
        """A category counts once."""
        changed = [(points[:, k : k + n] != x[k : k + n]).any(axis=1) for k, n in self.groups.items()]
        return np.abs(points - x)[:, self.numbers].sum(axis=1) + np.sum(changed, axis=0)

    def explain(self, X: Any, *, target_class: list[int]) -> Any:
        (x,) = X
        rows = self.rows[np.argmax(self.predict(self.rows), axis=1) == target_class[0]]
        if not len(rows):
            return SimpleNamespace(cf=None)
        point = rows[np.argmin(self.distances(x, rows))].copy()
        short = point.copy()
        short[self.numbers] = x[self.numbers] + 0.97 * (point - x)[self.numbers]
        if np.argmax(self.predict(short[None])[0]) == target_class[0]:
            point = short
        self.distance = float(self.distances(x, point[None])[0])
        return SimpleNamespace(cf={"X": point[None].astype(np.float32), "class": target_class[0]})


MODULES: Modules = {
    "alibi": {},
    "alibi.explainers": {"CounterfactualProto": AlibiProto},
    "tensorflow": {"compat": SimpleNamespace(v1=SimpleNamespace(disable_v2_behavior=lambda: None))},
}


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(AlibiProto, "made", None)
    install(monkeypatch, tmp_path / "site", "alibi", MODULES)


@pytest.mark.parametrize(("offset", "target"), [(0.0, 0), (FAR, 1)])
def test_its_point_is_brought_back(offset: float, target: int, tmp_path: Path) -> None:
    table, granted = lending(offset)
    desk = Desk(tmp_path, lender(table, granted), table)
    ask = desk.asking("alibi")
    assert AlibiProto.made.groups == {0: 3, 3: 3}
    changed = set()
    for row in desk.waiting(target, 8):
        told = desk.put(ask, row, target)
        assert (told.status, told.problems) == ("feasible", [])
        # bits are a little short of 1 or 0 in its point
        flips = "late" in told.said["counterfactual"]
        assert told.cost - AlibiProto.made.distance == pytest.approx(0.03 if flips else 0.0, abs=1e-5)
        assert told.cost >= desk.optimum(row, target)["cost"]
        changed |= set(told.said["counterfactual"])
    assert changed >= {"amount", "housing", "share"}


@pytest.mark.parametrize("target", [0, 1])
def test_an_optimum_among_the_rows_is_the_answer(target: int, tmp_path: Path) -> None:
    table, granted = lending()
    desk = Desk(tmp_path, lender(table, granted), table)
    rows = desk.waiting(target, 4)
    best = [desk.optimum(row, target) for row in rows]
    points = [desk.beyond(found, row, 1e-5) for found, row in zip(best, rows, strict=True)]
    pd.concat([table, pd.DataFrame(points).astype(table.dtypes)]).to_csv(tmp_path / "data.csv", index=False)
    ask = desk.asking("alibi")
    for found, row in zip(best, rows, strict=True):
        told = desk.put(ask, row, target)
        assert (told.status, told.problems) == ("feasible", [])
        assert told.cost == pytest.approx(found["cost"], rel=1e-3)
        point, own = found["counterfactual"]["values"], found["original"]["values"]
        assert all(told.point[name] == point[name] for name in ("housing", "late", "region"))
        assert {k for k in own if told.point[k] == own[k]} == {k for k in own if point[k] == own[k]}


@pytest.mark.parametrize("late", [int, bool])
def test_levels_and_bits_are_those_of_the_table(late: type, tmp_path: Path) -> None:
    table, granted = lending()
    table = table.assign(
        late=table["late"].astype(late), housing=table["housing"].replace({"free": "None", "own": "1"})
    )
    desk = Desk(tmp_path, lender(table, granted), table)
    ask = desk.asking("alibi")
    for row in desk.waiting(1, 4):
        told = desk.put(ask, row, 1)
        assert (told.status, told.problems) == ("feasible", [])
        assert told.point["late"] in (0, 1)
        assert told.point["housing"] in ("None", "1", "rent")
        assert told.point["region"] in (3, 10, 20)


def test_a_short_way_far_from_zero_is_a_way(tmp_path: Path) -> None:
    from peer import Case

    table, granted = lending(FAR)
    desk = Desk(tmp_path, lender(table, granted), table)
    threshold = Case(desk.about()).thresholds[6]
    row, point = crossing(desk, threshold, 0.02)
    pd.concat([table, point]).to_csv(tmp_path / "data.csv", index=False)
    told = desk.put(desk.asking("alibi"), row, 1)
    assert (told.status, told.problems) == ("feasible", [])
    assert set(told.said["counterfactual"]) == {"amount"}
    assert told.cost < 0.04 / np.ptp(table["amount"])


def test_a_point_that_rounding_spoils_is_no_answer(tmp_path: Path) -> None:
    from peer import Case

    table, granted = lending()
    desk = Desk(tmp_path, lender(table, granted), table)
    row, point = crossing(desk, Case(desk.about()).thresholds[6], 1e-6)
    pd.concat([table, point]).to_csv(tmp_path / "data.csv", index=False)
    said = desk.asking("alibi")(desk.line(row, 1))
    assert said == {"status": "unknown", "message": "its point does not have the target"}


def crossing(desk: Desk, thresholds: Any, distance: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A row and a point of the second class on both sides of a threshold of the amounts."""
    for threshold in thresholds:
        for row in desk.waiting(1, 40):
            sides = [row.assign(amount=threshold + way * distance) for way in (-1, 1)]
            classes = [int(desk.model.predict(side)[0]) for side in sides]
            if sorted(classes) == [0, 1]:
                return sides[classes.index(0)], sides[classes.index(1)]
    raise AssertionError("no threshold decides")


def test_no_point_is_unknown(tmp_path: Path) -> None:
    table, granted = lending()
    granted[:] = np.arange(len(granted)) < 3
    desk = Desk(tmp_path, lender(table, granted, depth=1), table)
    ask = desk.asking("alibi", iterations=50, steps=3)
    assert (AlibiProto.made.descent["max_iterations"], AlibiProto.made.descent["c_steps"]) == (50, 3)
    (row,) = desk.waiting(1, 1)
    assert desk.put(ask, row, 1).said == {"status": "unknown", "message": "it found no point"}


@pytest.mark.slow
def test_the_library_itself_finds_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = environment(monkeypatch, MODULES, "alibi", "alibi")
    table, granted = lending(FAR)
    desk = Desk(tmp_path, lender(table, granted), table)
    rows = desk.waiting(1, 3)
    for told, row in zip(desk.run(python, "with_alibi", rows, 1, iterations=100), rows, strict=True):
        assert told.status in ("feasible", "unknown")
        assert told.status == "unknown" or (told.problems == [] and told.cost >= desk.optimum(row, 1)["cost"])
