from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from ocf import Explainer, LinearExplainer
from ocf.errors import MemoryLimitError, ProblemError, TimeLimitError
from ocf.explain.leaf_queries import nearest_instances
from ocf.solve.cell_engine import CellEngine

FRESH = """
import sys
import pandas as pd
from sklearn.tree import DecisionTreeClassifier
import ocf

table = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [0.0, 0.0, 1.0, 1.0]})
explainer = ocf.Explainer(DecisionTreeClassifier(random_state=0).fit(table, [0, 0, 1, 1]), data=table)
found = explainer.explain(table, solver="box")
assert [e.status for e in found] == ["optimal"] * 4, found
assert not any(name.split(".")[0] == "pyomo" for name in sys.modules)
again = explainer.explain(table, solver="highs", reduce=False)
assert [e.cost for e in again] == [e.cost for e in found], again
assert "pyomo" in sys.modules
"""


def test_pyomo_is_imported_when_a_model_is_built_and_not_before() -> None:
    """The second half shows that the first could fail; compiling kernels builds a model, too, and is done before."""
    subprocess.run([sys.executable, "-c", FRESH], check=False, capture_output=True)
    subprocess.run([sys.executable, "-c", FRESH], check=True)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.normal(size=(120, 3)), columns=["a", "b", "c"])


@pytest.fixture(scope="module")
def linear(table: pd.DataFrame) -> LinearExplainer:
    return LinearExplainer(LogisticRegression().fit(table, table.a + table.b > 0), table)


def test_linear_models_are_checked_by_the_other_solver(linear: LinearExplainer, table: pd.DataFrame) -> None:
    for first, second in (("auto", "scip"), ("highs", "scip"), ("scip", "highs")):
        found = linear.explain(table.iloc[:3], solver=first, cross_check=True)
        for e in found:
            assert e.status == "optimal", e.message
            check = e.method["cross_check"]
            assert (check["verdict"], check["solver"], check["formulation"]) == ("agrees", second, "linear")
            assert check["cost"] == pytest.approx(e.cost, rel=1e-8, abs=1e-12)


def test_linear_rows_in_processes_are_those_in_turn(linear: LinearExplainer, table: pd.DataFrame) -> None:
    rows = table.iloc[:4]
    together, alone = linear.explain(rows, n_jobs=2), linear.explain(rows)
    assert [e.cost for e in together] == [e.cost for e in alone]


@pytest.mark.parametrize(
    "settings",
    [
        {"n_explanations": 2},
        {"n_optimal": 2},
        {"diagnose": True},
        {"constraints": {"kind": "max_changes", "most": 1}},
        {"plausibility": True},
        {"probability": 0.7},
        {"solver": "box"},
        {"split_margin": 0.1},
        {"class_costs": {True: 1.0}},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_what_only_trees_have_is_refused_of_linear_models_before_any_row(
    linear: LinearExplainer, table: pd.DataFrame, settings: dict[str, Any]
) -> None:
    if "constraints" in settings:
        settings = {"constraints": [settings["constraints"]]}
    with pytest.raises(ProblemError, match="linear models"):
        linear.explain(table.iloc[:0], **settings)


def test_what_is_prepared_travels_and_answers_the_same(table: pd.DataFrame) -> None:
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(table, table.a + table.b > 0)
    explainer = Explainer(model, data=table)
    wish = {"trees": 10, "samples": 16}
    found = explainer.explain(table.iloc[:2], plausibility=wish)
    assert explainer.prepared.detectors
    again = pickle.loads(pickle.dumps(explainer))
    assert not again.prepared.detectors  # fitted anew there
    assert again.model.native is again.prepared.model.native
    for one, other in zip(found, again.explain(table.iloc[:2], plausibility=wish), strict=True):
        assert (one.cost, one.status, one.verified) == (other.cost, other.status, other.verified)


def test_instances_of_a_row_with_missing_values_may_have_to_be_plausible(table: pd.DataFrame) -> None:
    """What is proven of a problem is kept under its own isolation forest, whoever asks."""
    from sklearn.ensemble import IsolationForest

    model = HistGradientBoostingClassifier(max_iter=5).fit(table, table.a + table.b > 0)
    explainer = Explainer(model, data=table)
    forest = IsolationForest(n_estimators=10, max_samples=16, random_state=0)
    found = nearest_instances(explainer, table.iloc[[0]].assign(c=np.nan), table, plausibility=forest)[0]
    assert found.status == "unknown"
    assert "none of the 120 instances" in found.message


LIMITS = [TimeLimitError("the time limit was reached"), MemoryLimitError("the memory limit was reached")]


@pytest.fixture
def ends_after(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Exception], None]:
    """Makes a limit strike in every question after so many."""
    solve, asked = CellEngine.solve, list[int]()

    def install(n: int, error: Exception) -> None:
        def ends(self: CellEngine, request: Any) -> Any:
            asked.append(0)
            if len(asked) > n:
                raise error
            return solve(self, request)

        monkeypatch.setattr(CellEngine, "solve", ends)

    return install


def forest(table: pd.DataFrame) -> RandomForestClassifier:
    return RandomForestClassifier(5, max_depth=4, random_state=0).fit(table, table.a + table.b > 0)


def test_a_limit_before_anything_is_known_leaves_the_nearest_row(
    table: pd.DataFrame, ends_after: Callable[[int, Exception], None]
) -> None:
    ends_after(0, LIMITS[0])
    e = Explainer(forest(table), table).explain(table.iloc[[0]], time_limit=3)[0]
    assert (e.status, e.verified, e.bound) == ("feasible", True, 0.0)
    assert e.message.startswith("the time limit was reached; the point is the nearest row of the data: give it more")


@pytest.mark.parametrize("error", LIMITS, ids=["time", "memory"])
def test_a_limit_in_the_second_way_leaves_what_the_first_has_proven(
    error: Exception, table: pd.DataFrame, ends_after: Callable[[int, Exception], None]
) -> None:
    explainer = Explainer(forest(table), table)
    wanted = explainer.explain(table.iloc[[0]])[0]
    ends_after(1, error)
    e = explainer.explain(table.iloc[[0]], cross_check=True)[0]
    assert (e.status, e.cost) == ("optimal", wanted.cost)
    assert e.message.startswith("not cross-checked: ")


@pytest.mark.parametrize("error", LIMITS, ids=["time", "memory"])
def test_a_limit_while_wishes_are_told_apart_leaves_the_proof(
    error: Exception, table: pd.DataFrame, ends_after: Callable[[int, Exception], None]
) -> None:
    explainer, asked = Explainer(forest(table), table), {"features_to_vary": ["c"], "diagnose": True}
    row = table[(table.a < -1) & (table.b < 0)].iloc[[0]]
    wanted = explainer.explain(row, **asked)[0]
    assert wanted.status == "infeasible"
    assert len(wanted.conflict) == 2
    ends_after(2, error)
    e = explainer.explain(row, permitted_range={"c": (-9, 9)}, **asked)[0]
    assert e.status == "infeasible"
    assert set(e.conflict) > set(wanted.conflict)
    assert "fewer may do: a limit has left some questions open" in e.message
