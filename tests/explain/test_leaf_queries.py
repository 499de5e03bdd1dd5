"""All leaves, class costs, an ideal, and rows that exist, for a small oblique tree."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, IsolationForest, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer, quadratic_cost
from ocf.errors import DataError, OcfError, ProblemError
from ocf.explain.leaf_queries import explain_leaves, explain_margins, improve, nearest_instances
from ocf.oblique.tao import TAOClassifier

X, Y = load_iris(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return Explainer(TAOClassifier(2, init="random", random_state=0).fit(X, Y), data=X)


def test_leaves_come_cheapest_first(explainer: Explainer) -> None:
    best = explainer.explain(X.iloc[[0]], target=[1, 2])[0]
    found = explain_leaves(explainer, X.iloc[[0]], target=[1, 2])
    costs = [e.cost for e in found]
    assert costs == sorted(costs)
    assert found[0].status == "optimal"
    assert found[0].cost == pytest.approx(best.cost)
    assert all(e.verified for e in found)
    leaves = explainer.model.native.apply(pd.concat([e.counterfactual for e in found]))
    assert len(set(leaves)) == len(found) > 1


def test_leaves_heed_what_is_asked_and_what_a_problem_file_says(tmp_path: Path) -> None:
    model = TAOClassifier(2, init="random", random_state=0).fit(X, Y)
    file = tmp_path / "problem.toml"
    file.write_text('[solve]\ntarget = 1\nnorm = "l2"\nsolver = "scip"\nn_optimal = 3\n')
    said = Explainer(model, data=X, features=file)
    for ask in (explain_leaves, partial(explain_margins, margins=[0.0, 0.1])):
        for e in ask(said, X.iloc[[0]]):
            assert (e.decided, e.method["formulation"]) == (1, "oblique")
            assert "scip" in e.method["solver"]
            assert e.verified
        wanted = said.explain(X.iloc[[0]], 1, "l2", n_optimal=1, formulation="oblique")[0]
        assert ask(said, X.iloc[[0]])[0].cost == pytest.approx(wanted.cost)
        assert ask(said, X.iloc[[0]], norm="l1")[0].cost != pytest.approx(wanted.cost)
    asked = [e.method["asked"].get("split_margin", 0.0) for e in explain_margins(said, X.iloc[[0]], [0.2, 0.1, 0.0])]
    assert asked == [0.0, 0.1, 0.2]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"n_explanations": 2}, "take no n_explanations: leave that out"),
        ({"class_costs": {1: 0.0}}, "take no class_costs"),
        ({"cross_check": True, "box": True}, "take no cross_check, box"),
        ({"formulation": "interval"}, "one by one, as 'oblique' has it, not by 'interval'"),
        ({"plausibility": True}, "take no plausibility: leave that out"),
        ({"solver": "box"}, "searches cells"),
        ({"targt": 1}, r"no setting 'targt' \(did you mean 'target'\?\)"),
        ({"time_limit": -1}, "time"),
    ],
)
def test_what_leaves_have_no_use_for_is_refused(explainer: Explainer, asked: dict[str, Any], words: str) -> None:
    for ask in (explain_leaves, partial(explain_margins, margins=[0.1])):
        with pytest.raises(OcfError, match=words):
            ask(explainer, X.iloc[[0]], target=1, **asked)


def test_a_limit_of_time_is_that_of_the_leaves(explainer: Explainer) -> None:
    (found,) = explain_leaves(explainer, X.iloc[[0]], 1, time_limit=1e-9)
    assert found.status in ("unknown", "feasible")  # with a row of the data
    assert "the time limit" in found.message


@pytest.mark.parametrize("asked", [{"class_costs": {1: 1.0}}, {"split_margin": 0.1}])
@pytest.mark.parametrize("formulation", ["auto", "hyperplanes", "oblique"])
def test_what_is_weighed_leaf_by_leaf_needs_a_single_tree(asked: dict[str, Any], formulation: str) -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    explainer = Explainer(RandomForestClassifier(5, max_depth=2, random_state=0).fit(X, y), data=X)
    with pytest.raises(ProblemError, match=r"in a single tree, and the model has 5; leave them out"):
        explainer.explain(X.iloc[[0]], target=None if "class_costs" in asked else 1, formulation=formulation, **asked)


def test_class_costs_weigh_against_the_change(explainer: Explainer) -> None:
    row = X.iloc[[0]]
    alone = {k: explainer.explain(row, target=k)[0].cost for k in (1, 2)}
    for prices in ({1: 0.0, 2: 0.0}, {1: 5.0, 2: 0.0}, {0: 0.0, 1: 0.0}, {0: 9.0, 1: 0.2, 2: 0.1}):
        found = explainer.explain(row, class_costs=prices)[0]
        totals = {k: price + (0.0 if k == 0 else alone[k]) for k, price in prices.items()}
        assert found.verified
        assert prices[found.decided] + found.cost == pytest.approx(min(totals.values()))
    with pytest.raises(ProblemError, match="class_costs: there is no class 7"):
        explainer.explain(row, class_costs={7: 1.0})
    assert explainer.explain(row, class_costs={"1.0": 1.0})[0].counterfactual is not None
    with pytest.raises(ProblemError, match="class_costs names the class 1 twice"):
        explainer.explain(row, class_costs={"1": 1.0, 1: 2.0})
    for price in (-1.0, "dear", True):
        with pytest.raises(ProblemError, match=f"the cost of class 1 must be a number of at least 0, not {price!r}"):
            explainer.explain(row, class_costs={np.int64(1): price})


def test_improve_and_nearest_instances_heed_a_problem_file(tmp_path: Path, of_forest: Explainer) -> None:
    file = tmp_path / "problem.toml"
    file.write_text('[solve]\ntarget = 2\nnorm = "l2"\n[plausibility]\nquantile = 0.5\n')
    model = of_forest.model.native
    said, ideal = Explainer(model, data=X[50:], features=file), {"petal length (cm)": 6.0}
    asked: dict[str, Any] = {"target": 2, "norm": "l2", "plausibility": {"quantile": 0.5}}
    (own,), (wanted,) = (nearest_instances(e, X.iloc[[60]], X, **a) for e, a in ((said, {}), (of_forest, asked)))
    assert (own.target, own.cost) == (2, wanted.cost)
    assert own.plausibility is not None
    (own,), (wanted,) = (
        improve(e, X.iloc[[60]], ideal, **a)
        for e, a in ((said, {}), (of_forest, {k: asked[k] for k in ("norm", "plausibility")}))
    )
    assert (own.target, own.norm, own.status, own.cost) == (1, wanted.norm, wanted.status, wanted.cost)
    within = improve(of_forest, X.iloc[[60]], ideal, permitted_range={"petal length (cm)": (4.0, 4.1)})[0]
    assert 4.0 <= within.counterfactual["petal length (cm)"].iloc[0] <= 4.1


def test_margins_without_a_point_say_nothing_of_its_path(explainer: Explainer) -> None:
    (found,) = explain_margins(explainer, X.iloc[[0]], [500.0], [1, 2])
    assert found.status == "infeasible"
    assert "holds" not in found.message


def test_improving_stays_in_the_class(explainer: Explainer) -> None:
    row = X.iloc[[0]]
    name = "petal length (cm)"
    found = improve(explainer, row, {name: 6.0})[0]
    assert found.verified
    assert found.decided == 0
    value = found.counterfactual[name].iloc[0]
    assert 1.4 <= value <= 6.0
    closer = row.assign(**{name: min(value + 0.05, 6.0)})
    assert value == 6.0 or explainer.model.native.predict(closer)[0] != 0


def test_the_nearest_row_is_the_nearest(explainer: Explainer) -> None:
    row = X.iloc[[0]]
    found = nearest_instances(explainer, row, X, 1, "l2", labels=Y, features_to_vary=list(X.columns[2:]))[0]
    assert (found.status, found.found) == ("unknown", False) or found.verified
    found = nearest_instances(explainer, row, X, 1, "l2", labels=Y)[0]
    assert "(the cheapest of the instances; a point that is none of them may be cheaper)" in str(found)
    assert found.verified
    wanted = (explainer.model.native.predict(X) == 1) & (Y == 1)
    spread = X.max() - X.min()
    distances = (((X - X.iloc[0]) / spread) ** 2).sum(axis=1)[wanted]
    assert found.cost == pytest.approx(distances.min())
    assert found.cost >= explainer.explain(row, 1, "l2")[0].cost


def test_the_nearest_row_by_quadratic_costs(explainer: Explainer) -> None:
    row = X.iloc[[0]]
    root = np.random.default_rng(0).normal(size=(4, 4))
    q = root @ root.T
    moved = (X - X.iloc[0]).to_numpy()
    wanted = explainer.model.native.predict(X) == 1
    found = nearest_instances(explainer, row, X, 1, quadratic_cost(list(X.columns), q))[0]
    assert found.verified
    assert found.cost == pytest.approx(np.einsum("ni,ij,nj->n", moved, q, moved)[wanted].min())


@pytest.fixture(scope="module")
def of_forest() -> Explainer:
    """Of the two kinds of iris that overlap."""
    return Explainer(RandomForestClassifier(10, max_depth=3, random_state=0).fit(X[50:], Y[50:]), data=X[50:])


#: Rows whose isolation trees few points are deep in.
DEEP = {"trees": 20, "samples": 16, "quantile": 0.5}


def test_the_nearest_row_is_plausible_where_that_is_asked_for(of_forest: Explainer) -> None:
    rows = X[50:60]
    plain = nearest_instances(of_forest, rows, X[50:], 2)
    found = nearest_instances(of_forest, rows, X[50:], 2, plausibility=DEEP)
    detector = of_forest.prepared.detectors[-1]
    wanted = (of_forest.model.native.predict(X[50:]) == 2) & (detector.measure(X[50:])[0] >= detector.least)
    spread = X[50:].max() - X[50:].min()
    for (_, row), before, after in zip(rows.iterrows(), plain, found, strict=True):
        assert after.verified, after.checks
        assert after.plausibility["depth"] >= after.plausibility["least"] == detector.least
        assert after.cost == pytest.approx(((X[50:] - row).abs() / spread).sum(axis=1)[wanted].min())
        assert after.sizes["admissible"] == wanted.sum() < before.sizes["admissible"]
    assert any(after.cost > before.cost for before, after in zip(plain, found, strict=True))


def test_the_depth_of_the_nearest_row_may_be_part_of_its_cost(of_forest: Explainer) -> None:
    rows = X[50:60]
    plain = nearest_instances(of_forest, rows, X[50:], 2)
    found = nearest_instances(of_forest, rows, X[50:], 2, plausibility={**DEEP, "required": False, "weight": 1.0})
    detector = of_forest.prepared.detectors[-1]
    wanted = of_forest.model.native.predict(X[50:]) == 2
    lacking = detector.deepest - detector.measure(X[50:])[0]
    spread = X[50:].max() - X[50:].min()
    for (_, row), after in zip(rows.iterrows(), found, strict=True):
        assert after.verified, after.checks
        distances = ((X[50:] - row).abs() / spread).sum(axis=1)
        assert after.cost == pytest.approx((distances + lacking)[wanted].min())
    pairs = zip(plain, found, strict=True)
    assert any(not before.counterfactual.equals(after.counterfactual) for before, after in pairs)


def test_instances_that_the_forest_refuses_are_passed_over(of_forest: Explainer) -> None:
    """Rows with missing values, which the model takes and the forest does not, are none for a row without."""
    holes = X[50:].copy()
    holes.iloc[0, 0] = np.nan
    model = HistGradientBoostingClassifier(max_iter=5).fit(holes, Y[50:])
    forest = make_pipeline(FunctionTransformer(validate=True), IsolationForest(n_estimators=10, random_state=0)).fit(
        X[50:]
    )
    found = nearest_instances(Explainer(model, data=X[50:]), X[51:52], holes, 2, plausibility=forest)[0]
    assert found.verified, found.checks


def test_a_margin_counts_from_the_last_value_that_the_tree_sends_left() -> None:
    """Scikit-learn shows 5.125, and sends what float32 rounds to it left."""
    x = pd.DataFrame({"f": np.r_[np.arange(0, 5.25, 0.25), np.arange(5.25, 10, 0.25)]})
    tree = DecisionTreeClassifier().fit(x, x.f > 5)
    assert tree.tree_.threshold[0] == 5.125
    explainer = Explainer(tree, x, {"f": {"step": 0.125}})
    up, down = (explainer.explain({"f": row}, split_margin=0.5)[0].counterfactual.f.iloc[0] for row in (0.0, 9.0))
    assert down == 5.125 - 0.5
    assert up == 5.125 + 0.5 + 0.125


def test_what_a_search_among_instances_has_no_use_for_is_refused(explainer: Explainer) -> None:
    for settings in ({"margin": 0.1}, {"n_explanations": 2}, {"featuers_to_vary": []}):
        with pytest.raises(ProblemError, match="there is no setting"):
            nearest_instances(explainer, X.iloc[[0]], X, 1, **settings)
    with pytest.raises(DataError, match="2 of 150 instances"):
        nearest_instances(explainer, X.iloc[[0]], X, 1, labels=[0, 1])
    with pytest.raises(ProblemError, match="is a number"):
        improve(explainer, X.iloc[[0]], {"petal length (cm)": "abc"})


def test_with_class_costs_no_change_is_called_the_smallest(explainer: Explainer) -> None:
    plain = explainer.explain(X.iloc[[0]], target=[1, 2])[0]
    dear = explainer.explain(X.iloc[[0]], target=[1, 2], class_costs={plain.decided: 10, 3 - plain.decided: 0.25})[0]
    assert (dear.status, dear.decided) == ("optimal", 3 - plain.decided)
    assert dear.cost > plain.cost
    assert "no smaller change" not in str(dear)
    assert "change and class, which costs 0.25, cost least together" in str(dear)
