"""Across files: DiCE's adapter on a stand-in that answers with rows of the data, held against the costs of ocf."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from examples.test_peers_case import FAR, Desk, Modules, environment, install, lender, lending


class DiceRefusal(Exception):
    """What DiCE raises when it finds nothing, and when it does not like the question."""


class DiceData:
    """A table with its outcome: numbers as float32, all else as text."""

    def __init__(self, **params: Any) -> None:
        assert set(params) == {"dataframe", "continuous_features", "outcome_name"}
        self.outcome, self.continuous = params["outcome_name"], params["continuous_features"]
        self.features = [name for name in params["dataframe"] if name != self.outcome]
        texts = {name: str for name in self.features if name not in self.continuous}
        assert all(pd.api.types.is_string_dtype(params["dataframe"][name]) for name in texts)
        self.table = params["dataframe"].astype(dict.fromkeys(self.continuous, np.float32))


class DiceModel:
    """A model that takes tables as DiCE holds them."""

    def __init__(self, *, model: Any, backend: str) -> None:
        assert backend == "sklearn"
        self.model = model


class DiceSearch:
    """Answers with rows of the wanted class: those of most agreement with the row, or random ones.

    Random ones are made sparser without a look at the class, by numbers that go back to the row's own.
    """

    made: Any = None
    last: Any = None

    def __init__(self, data: DiceData, model: DiceModel, method: str = "random") -> None:
        self.data, self.model, self.method = data, model.model, method
        DiceSearch.made = self

    def generate_counterfactuals(
        self, query_instances: Any, total_CFs: int, desired_class: int, verbose: bool = True, **kwargs: Any
    ) -> Any:
        assert set(kwargs) == ({"random_seed"} if self.method == "random" else set())
        assert (verbose, len(query_instances), list(query_instances)) == (False, 1, self.data.features)
        if desired_class not in (0, 1):
            raise DiceRefusal(f"Desired class {desired_class} not present")
        own = query_instances.iloc[0]
        rows = self.data.table[self.data.table[self.data.outcome] == desired_class]
        if rows.empty:
            raise DiceRefusal("No counterfactuals found for any of the query points! Kindly check your configuration.")
        assert (np.argmax(self.model.predict_proba(rows), axis=1) == desired_class).all()
        order = np.random.default_rng(kwargs.get("random_seed")).permutation(len(rows))
        if self.method != "random":
            order = np.argsort([-(row[self.data.features] == own).sum() for _, row in rows.iterrows()], kind="stable")
        points = rows.iloc[order[:total_CFs]]
        sparse = (
            points.assign(**{name: own[name] for name in self.data.continuous}) if self.method == "random" else None
        )
        DiceSearch.last = SimpleNamespace(final_cfs_df=points, final_cfs_df_sparse=sparse)
        return SimpleNamespace(cf_examples_list=[DiceSearch.last])


MODULES: Modules = {
    "dice_ml": {"Data": DiceData, "Dice": DiceSearch, "Model": DiceModel},
    "raiutils": {},
    "raiutils.exceptions": {"UserConfigValidationException": DiceRefusal},
}


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(DiceSearch, "made", None)
    monkeypatch.setattr(DiceSearch, "last", None)
    install(monkeypatch, tmp_path / "site", "dice-ml", MODULES)


def in_dtypes(points: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Points of texts and float32 as rows of a table."""
    as_numbers = {name: float for name in table if table[name].dtype.kind in "if"}
    return points[list(table)].astype(as_numbers).astype(table.dtypes.to_dict())


@pytest.mark.parametrize(("method", "total"), [("kdtree", 5), ("genetic", 1000), ("random", 6)])
@pytest.mark.parametrize(("offset", "target"), [(0.0, 0), (FAR, 1)])
def test_the_cheapest_point_with_the_target_is_the_answer(
    method: str, total: int, offset: float, target: int, tmp_path: Path
) -> None:
    table, granted = lending(offset)
    desk = Desk(tmp_path, lender(table, granted), table)
    ask = desk.asking("dice", method=method, total=total)
    dropped = 0
    for row in desk.waiting(target, 5):
        said = ask(desk.line(row, target))
        found = DiceSearch.last
        points = in_dtypes(found.final_cfs_df if method != "random" else found.final_cfs_df_sparse, table)
        good = points[desk.model.predict(points) == target]
        dropped += len(points) - len(good)
        if good.empty:
            assert said == {"status": "unknown", "message": "no point of its sparse ones has the target"}
            continue
        told = desk.told(said, row, target)
        assert (told.status, told.problems) == ("feasible", [])
        assert told.cost == desk.costs(good, row, target).min()
        assert told.cost >= desk.optimum(row, target)["cost"]
    assert (dropped > 0) == (method == "random")


@pytest.mark.parametrize("target", [0, 1])
def test_an_optimum_among_its_points_is_the_answer(target: int, tmp_path: Path) -> None:
    table, granted = lending()
    desk = Desk(tmp_path, lender(table, granted), table)
    rows = desk.waiting(target, 4)
    best = [desk.optimum(row, target) for row in rows]
    points = [desk.beyond(found, row, 1e-6) for found, row in zip(best, rows, strict=True)]
    pd.concat([table, pd.DataFrame(points).astype(table.dtypes)]).to_csv(tmp_path / "data.csv", index=False)
    ask = desk.asking("dice", method="kdtree", total=1000)
    for found, row in zip(best, rows, strict=True):
        told = desk.put(ask, row, target)
        assert (told.status, told.problems) == ("feasible", [])
        assert told.cost == pytest.approx(found["cost"], rel=1e-4)
        words = ("housing", "late", "region")
        assert [told.point[k] for k in words] == [found["counterfactual"]["values"][k] for k in words]


@pytest.mark.parametrize("late", [int, bool, float])
def test_texts_become_what_the_table_holds(late: type, tmp_path: Path) -> None:
    table, granted = lending()
    table = table.assign(
        late=table["late"].astype(late),
        housing=table["housing"].replace({"free": "None", "own": "1"}),
        region=table["region"].astype("int16"),
    )
    desk = Desk(tmp_path, lender(table, granted), table)
    ask = desk.asking("dice", method="genetic", total=1000)
    assert DiceSearch.made.data.continuous == ["amount", "share"]
    for row in desk.waiting(1, 3):
        told = desk.put(ask, row, 1)
        assert (told.status, told.problems) == ("feasible", [])
        points = in_dtypes(DiceSearch.last.final_cfs_df.assign(late=lambda t: t["late"] == "True"), table)
        if late is not bool:
            points = in_dtypes(DiceSearch.last.final_cfs_df, table)
        assert told.cost == desk.costs(points, row, 1).min()
        kinds = {name: type(value) for name, value in told.said["counterfactual"].items()}
        assert kinds == {"amount": float, "housing": str, "late": late, "region": int, "share": float}


@pytest.mark.parametrize("method", ["random", "kdtree"])
def test_no_point_is_no_error(method: str, tmp_path: Path) -> None:
    table, granted = lending()
    granted[:] = np.arange(len(granted)) < 3
    desk = Desk(tmp_path, lender(table, granted, depth=1), table)
    ask = desk.asking("dice", method=method)
    (row,) = desk.waiting(1, 1)
    assert desk.put(ask, row, 1).said == {"status": "unknown", "message": "it found no point"}


def test_a_question_that_it_refuses_is_an_error(tmp_path: Path) -> None:
    table, granted = lending()
    desk = Desk(tmp_path, lender(table, granted), table)
    ask = desk.asking("dice", method="random")
    (row,) = desk.waiting(1, 1)
    with pytest.raises(DiceRefusal, match="Desired class 2"):
        ask(desk.line(row, 1) | {"target": 2})


def test_an_empty_table_is_no_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, granted = lending()
    desk = Desk(tmp_path, lender(table, granted), table)
    ask = desk.asking("dice", method="random")
    (row,) = desk.waiting(1, 1)
    for points, sparse in ((None, None), (table, table.iloc[:0])):
        found = SimpleNamespace(final_cfs_df=points, final_cfs_df_sparse=sparse)
        everything = SimpleNamespace(cf_examples_list=[found])
        monkeypatch.setattr(DiceSearch, "generate_counterfactuals", lambda *args, found=everything, **more: found)
        assert ask(desk.line(row, 1)) == {"status": "unknown", "message": "it found no point"}


@pytest.mark.slow
def test_the_library_itself_finds_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = environment(monkeypatch, MODULES, "dice", "dice_ml")
    table, granted = lending()
    # it computes in float32 and rounds to the decimals of the data, or of another column: shares to 0 and 1
    table = table.assign(late=table["late"] == 1).round({"amount": 2, "share": 2})
    assert (table["share"].min(), table["share"].max()) == (0, 1)
    desk = Desk(tmp_path, lender(table, granted), table)
    rows = desk.waiting(1, 3)
    for told, row in zip(desk.run(python, "with_dice", rows, 1, method="genetic", total=4), rows, strict=True):
        assert told.status in ("feasible", "unknown")
        assert told.status == "unknown" or (told.problems == [] and told.cost >= desk.optimum(row, 1)["cost"])
