"""Constraints as a user writes them: what they refuse, what they say, and what they do to an explanation."""

from __future__ import annotations

import itertools
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.errors import ProblemError
from ocf.explain.explanation import Explanation, Explanations
from ocf.features.curve import Curve
from ocf.features.inference import infer_space
from ocf.problem.constraints import Budget, Constraint, Implication, Linear, MaxChanges, checked, from_dict
from ocf.problem.problem import Problem
from ocf.problem.problem_file import read_problem_file
from ocf.problem.quadratic import quadratic_cost
from ocf.solve.compile import compile_formulation
from ocf.solvers import get_solver
from ocf.solvers.model_files import write_model
from ocf.verify.check import verify_file

SETTINGS: dict[str, dict[str, Any]] = {
    "job": {"kind": "categorical", "columns": {"clerk": "job_clerk", "smith": "job_smith"}, "base": "none"},
    "school": {"kind": "ordinal", "levels": ["none", "primary", "college"]},
    "amount": {"step": 0.1},
}

EXAMPLES: list[Constraint] = [
    Linear({"income": 1, "debt": -2.5, "job": {"smith": -500}}, ">=", 1000, name="solvent"),
    Linear({"income": 1, "debt": 1}, "<=", 200, relative=True),
    Implication({"job": "none"}, {"income": {"max": 4000}}, name="no job"),
    Implication({"school": {"min": "primary"}, "flag": 1}, {"age": (18, None), "job": ["clerk", "smith"]}),
    Budget(24, {"school": {"primary": 12, "college": 36}, "income": (0, 0.01), "age": 1}, name="months"),
    Budget(3, {"income": {"points": [[0, 0], [1000, 2]], "steps": True}, "school": {"between": [1, 2]}}),
    MaxChanges(2),
    MaxChanges(1, ("income", "debt"), name="money"),
]


def make_table(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    job = rng.integers(0, 3, n)
    return pd.DataFrame(
        {
            "income": rng.uniform(0, 10000, n).round(2),
            "debt": rng.uniform(0, 5000, n).round(2),
            "age": rng.integers(18, 70, n),
            "amount": rng.integers(0, 50, n) / 10,
            "flag": rng.integers(0, 2, n),
            "school": rng.choice(["none", "primary", "college"], n),
            "job_clerk": (job == 1).astype(int),
            "job_smith": (job == 2).astype(int),
        }
    )


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return make_table()


@pytest.fixture(scope="module")
def explainer(table: pd.DataFrame) -> Explainer:
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder, StandardScaler

    good = table.income - table.debt + 3000 * (table.school == "college") + 2000 * table.job_smith > 4000
    encode = make_column_transformer(
        (OrdinalEncoder(categories=[["none", "primary", "college"]]), ["school"]),
        (StandardScaler(), ["income", "debt", "age"]),
        remainder="passthrough",
    )
    model = make_pipeline(encode, RandomForestClassifier(8, max_depth=4, random_state=0))
    return Explainer(model.fit(table, np.where(good, "yes", "no")), data=table, features=SETTINGS)


@pytest.fixture(scope="module")
def row(explainer: Explainer, table: pd.DataFrame) -> pd.DataFrame:
    return table[explainer.model.decide(table) == 0].iloc[[4]]


# -- what they are -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("constraint", EXAMPLES, ids=lambda c: c.title)
def test_constraints_go_through_json_and_fit_the_features(constraint: Constraint, explainer: Explainer) -> None:
    assert from_dict(json.loads(json.dumps(constraint.to_dict()))) == constraint
    assert checked(constraint, explainer.space) == (constraint,)
    assert constraint.words()
    assert hash(constraint) == hash(from_dict(constraint.to_dict()))


def test_words() -> None:
    assert [c.words() for c in EXAMPLES[:4]] == [
        "income - 2.5 debt - 500 [job = smith] >= 1000",
        "(change of income) + (change of debt) <= 200",
        "if job is none then income <= 4000",
        "if school >= primary and flag is 1 then age >= 18 and job is one of clerk, smith",
    ]
    assert EXAMPLES[6].words() == "at most 2 changes"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Linear({"incme": 1}, "<=", 1), "did you mean 'income'"),
        (lambda: Linear({"income": 1}, "<", 1), "one of <=, >=, ="),
        (lambda: Linear({"income": 0}, "<=", 1), "no terms"),
        (lambda: Linear({"income": "1"}, "<=", 1), "should be a number"),
        (lambda: Linear({"income": float("nan")}, "<=", 1), "should be a number"),
        (lambda: Linear({"income": 1}, "<=", float("inf")), "should be finite"),
        (lambda: Linear({"job": 1}, "<=", 1), "name a level"),
        (lambda: Linear({"job": {"smit": 1}}, "<=", 1), "did you mean 'smith'"),
        (lambda: Linear({"income": {"smith": 1}}, "<=", 1), "has no levels"),
        (lambda: Implication({"job": "smit"}, {"age": (0, 1)}), "did you mean 'smith'"),
        (lambda: Implication({"job": "smith"}, {}), "no consequence"),
        (lambda: Implication({"job": {"min": "clerk"}}, {"age": 20}), "have no order"),
        (lambda: Implication({"income": (2, 1)}, {"age": 20}), "is empty"),
        (lambda: Implication({"income": (1, 2, 3)}, {"age": 20}), "a number or a range"),
        (lambda: Implication({"income": {"least": 1}}, {"age": 20}), "'min' and 'max'"),
        (lambda: Implication("job", {"age": 20}), "maps features"),
        (lambda: Budget(1, {}), "names no feature"),
        (lambda: Budget(1, {"income": {"smith": 1}}), "give it an amount per unit"),
        (lambda: Budget(1, {"income": {"points": [[0, 0]]}}), "at least two points"),
        (lambda: Budget(1, {"income": {"points": [[0, 0], [0, 1]]}}), "share a number"),
        (lambda: Budget(1, {"income": {"points": 3}}), "pairs"),
        (lambda: Budget(1, {"income": {"points": [[0, 0], [1, 1]], "off": "value"}}), "did you mean 'of'"),
        (lambda: Budget(1, {"school": {"between": [1]}}), "one amount less"),
        (lambda: Budget(1, {"school": 1}), "no numbers"),
        (lambda: MaxChanges(-1), "at least 0"),
        (lambda: MaxChanges(1, "income"), "list of feature names"),
        (lambda: "income <= 3", "is no constraint"),
        (lambda: {"kind": "linar", "terms": {}}, "did you mean 'linear'"),
        (lambda: {"kind": "linear", "terms": {"income": 1}}, "needs 'sense'"),
    ],
)
def test_mistakes_are_named(make: Any, says: str, explainer: Explainer) -> None:
    with pytest.raises(ProblemError) as caught:
        checked([make()], explainer.space)
    assert says in str(caught.value)


def test_two_constraints_of_one_name_are_refused(explainer: Explainer) -> None:
    with pytest.raises(ProblemError, match="'money'"):
        checked([MaxChanges(1, name="money"), MaxChanges(2, name="money")], explainer.space)


# -- what they do ------------------------------------------------------------------------------------------


def value(explanation: Explanation, column: str) -> Any:
    assert explanation.counterfactual is not None
    return explanation.counterfactual[column].iloc[0]


def test_relations_in_user_units_through_scalers_and_one_hot_groups(explainer: Explainer, row: pd.DataFrame) -> None:
    free = explainer.explain(row)[0]
    bound = value(free, "income") - 2 * value(free, "debt") + 0.5
    wanted = Linear({"income": 1, "debt": -2, "job": {"smith": -500}}, ">=", round(float(bound), 1), name="solvent")
    for solver, formulation in itertools.product(("highs", "scip"), ("interval", "ocean")):
        found = explainer.explain(row, constraints=wanted, solver=solver, formulation=formulation)[0]
        assert found.status == "optimal"
        assert found.verified, found.checks
        assert found.cost > free.cost
        total = value(found, "income") - 2 * value(found, "debt") - 500 * value(found, "job_smith")
        assert total >= wanted.bound - 1e-9


def test_an_implication_and_a_budget_change_the_answer(explainer: Explainer, row: pd.DataFrame) -> None:
    free = explainer.explain(row)[0]
    changed = free.changes.feature.tolist()
    for solver in ("highs", "box"):
        others = explainer.explain(row, constraints=[MaxChanges(0, tuple(changed))], solver=solver)[0]
        assert others.verified
        assert not set(others.changes.feature) & set(changed)
        assert others.cost > free.cost
    job = explainer.explain(row, constraints=Implication({}, {"job": "smith"}))[0]
    assert value(job, "job_smith") == 1
    budget = Budget(
        0,
        {
            name: {"points": [[-1e-9, 1], [0, 0], [1e-9, 1]]}
            if name not in ("job", "school")
            else dict.fromkeys(explainer.space.features[explainer.space.index(name)].levels, 1)
            for name in changed
        },
        name="nothing of that",
    )
    assert explainer.explain(row, constraints=budget)[0].cost == pytest.approx(others.cost)


def test_contradictions_are_reported_by_name(
    explainer: Explainer, row: pd.DataFrame, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ProblemError, match="'rich'"):
        explainer.explain(row, constraints=Linear({"income": 1}, ">=", 20000, name="rich"))
    poor = Linear({"income": 1}, "<=", float(row.income.iloc[0]) / 2, name="poor")
    with caplog.at_level(logging.WARNING):
        found = explainer.explain(row, constraints=poor, features_to_vary=["debt", "job"])[0]
    assert "'poor' is broken by" in caplog.text
    assert found.status == "infeasible"
    assert "'poor'" in found.message
    own = explainer.explain(row, constraints=[Linear({"age": 1}, "=", float(row.age.iloc[0]) + 1, name="older")])[0]
    assert "does not satisfy 'older'" in own.message


def test_a_row_that_misses_a_value_of_a_relation_is_named() -> None:
    x = pd.DataFrame({"a": [1.0, 2.0, 3.0, np.nan] * 5, "b": [0.0, 1.0, 2.0, 3.0] * 5})
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(x, [0, 0, 1, 1] * 5)
    explainer = Explainer(model, data=x)
    rows = x.iloc[[3, 0]]
    failed, fine = explainer.explain(rows, target=1, constraints=Linear({"a": 1, "b": -1}, "<=", 3, name="both"))
    assert failed.status == "error"
    assert "'both'" in failed.message
    assert "misses" in failed.message
    assert fine.status == "optimal"


def test_the_box_search_says_what_it_cannot_do(explainer: Explainer, row: pd.DataFrame) -> None:
    free = explainer.explain(row)[0]
    relation = Linear({"income": 1, "debt": -1}, ">=", float(value(free, "income") - value(free, "debt")) + 1)
    found = explainer.explain(row, constraints=relation, solver="box")[0]
    assert found.status == "error"
    assert "does not know constraints that relate values inside cells: ask for 'auto' or one of highs" in found.message
    assert explainer.cells(explainer.problem(row, constraints=relation)).couples
    assert not explainer.cells(explainer.problem(row, constraints=MaxChanges(2))).couples


def test_problems_and_results_keep_their_constraints(explainer: Explainer, row: pd.DataFrame, tmp_path: Path) -> None:
    problem = explainer.problem(row, constraints=EXAMPLES)
    assert Problem.from_json(problem.to_json()).constraints == tuple(EXAMPLES)
    found = explainer.explain(row, constraints=[EXAMPLES[4], MaxChanges(3)])
    path = tmp_path / "found.json"
    found.to_json(path)
    assert Explanations.from_json(path) == found
    assert all(v.ok for _, v in verify_file(path, explainer.model))
    # a result that breaks its own constraint is found out
    path.write_text(path.read_text().replace('"most": 3', '"most": 0'))
    problems = verify_file(path, explainer.model)[0][1].problems
    assert any("max_changes" in p for p in problems)


def test_decimals_are_taken_as_they_read(explainer: Explainer, row: pd.DataFrame) -> None:
    space = infer_space(pd.DataFrame({"x": [0.1, 0.2], "y": [0.1, 0.2], "z": [0.3, 0.4]}))
    constraint = Linear({"x": 1, "y": 1, "z": -1}, "=", 0)
    rows = tuple(constraint.rows(space, np.array([0.1, 0.2, 0.3])))
    assert all(r.holds(space, np.array([0.1, 0.2, 0.3])) for r in rows)  # as float64 they sum to more
    assert not all(r.holds(space, np.array([0.1, 0.2, 0.3000001])) for r in rows)


# -- problem files -----------------------------------------------------------------------------------------

FILE = """
[[constraints]]
name = "solvent"
kind = "linear"
terms = { income = 1, debt = -2.5, job = { smith = -500 } }
sense = ">="
bound = 1000

[[constraints]]
name = "no job"
kind = "implication"
when = { job = "none" }
then = { income = { max = 4000 } }

[[constraints]]
name = "months"
kind = "budget"
limit = 24
costs = { school = { primary = 12, college = 36 }, income = [0, 0.01], age = 1 }

[[constraints]]
kind = "max_changes"
most = 2
"""


def test_problem_files_say_the_same(tmp_path: Path, explainer: Explainer) -> None:
    path = tmp_path / "p.toml"
    path.write_text(FILE)
    assert read_problem_file(path).constraints == (EXAMPLES[0], EXAMPLES[2], EXAMPLES[4], EXAMPLES[6])
    checked(read_problem_file(path).constraints, explainer.space)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[constraints]\nkind = "linear"', "double brackets"),
        ("[[constraints]]\nmost = 2", "give its kind"),
        ('[[constraints]]\nkind = "linar"', "did you mean 'linear'"),
        ('[[constraints]]\nkind = "max_changes"\nmots = 2', "did you mean 'most'"),
        ('[[constraints]]\nkind = ["linear"]', "unknown kind ['linear']"),
        (
            '[[constraints]]\nkind = "budget"\nlimit = 2\ncosts = 5',
            "[[constraints]] 1 is incomplete or damaged: at costs",
        ),
        ('[[constraints]]\nkind = "budget"\nlimit = 2\ncosts = { x = { between = 1 } }', "'between' is a list"),
        ('[[constraints]]\nkind = "linear"\nterms = [1]\nsense = "="\nbound = 1', "at terms[0]: expected `array`"),
        ('[[constraints]]\nkind = "max_changes"\nmost = 2\namong = 3', "at among: expected `array`"),
        ('[[constraints]]\nkind = "max_changes"\nmost = -2', "at least 0"),
        (
            '[[constraints]]\nkind = "linear"\nname = "a"\nterms = { x = 1 }',
            "[[constraints]] a is incomplete or damaged: `sense` is missing",
        ),
    ],
)
def test_mistakes_in_problem_files(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "p.toml"
    path.write_text(text)
    with pytest.raises(ProblemError) as caught:
        read_problem_file(path)
    assert says in str(caught.value)
    assert str(path) in str(caught.value)


# -- costs -------------------------------------------------------------------------------------------------


def test_costs_by_level_and_between_levels_and_preferred_states(table: pd.DataFrame, explainer: Explainer) -> None:
    model = explainer.model.native
    priced = SETTINGS | {
        "job": SETTINGS["job"] | {"cost": {"smith": -0.25, "clerk": 5}},
        "school": SETTINGS["school"] | {"cost": {"between": [0.5, 2]}},
    }
    asked = Explainer(model, data=table, features=priced)
    rows = table[(explainer.model.decide(table) == 0) & (table.job_smith == 0)].iloc[:3]
    for solver in ("highs", "box"):
        for e in asked.explain(rows, solver=solver):
            assert e.verified, e.checks
            assert e.status == "optimal"
            costs = dict(zip(e.changes.feature, e.changes.cost, strict=True))
            assert costs["job"] == -0.25
            assert e.cost == pytest.approx(sum(costs.values()))


def test_curves_read_what_a_user_writes() -> None:
    assert Curve.parse(2).rate == (2.0, 2.0)
    assert Curve.parse([1, 2]).rate == (1.0, 2.0)
    assert Curve.parse({"a": 1}).levels == (("a", 1.0),)
    assert Curve.parse({"between": [1, 2]}).between == (1.0, 2.0)
    assert Curve.parse({"points": [[1, 1], [0, 0]]}).points == ((0.0, 0.0), (1.0, 1.0))
    for said in (2, [1, 2], {"a": 1}, {"between": [1, 2]}, {"points": [[0, 0], [1, 1]], "of": "value", "steps": True}):
        assert Curve.parse(json.loads(json.dumps(Curve.parse(said).to_plain()))) == Curve.parse(said)


# -- several explanations ----------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["highs", "box"])
def test_regions_in_the_order_of_their_costs(explainer: Explainer, row: pd.DataFrame, solver: str) -> None:
    found = explainer.explain(row, n_explanations=4, solver=solver)
    assert [e.rank for e in found] == [1, 2, 3, 4]
    costs = [e.cost for e in found]
    assert costs == sorted(costs)
    leaves = {explainer.ensemble.apply(explainer.model.encode(e.counterfactual)).tobytes() for e in found}
    assert len(leaves) == 4
    assert all(e.verified and e.status == "optimal" for e in found)
    assert found.to_frame()["rank"].tolist() == [1, 2, 3, 4]
    assert Explanations.from_json(found.to_json()) == found
    assert costs == pytest.approx([e.cost for e in explainer.explain(row, n_explanations=4, solver="scip")])


@pytest.mark.parametrize("solver", ["highs", "box"])
def test_other_features(explainer: Explainer, row: pd.DataFrame, solver: str) -> None:
    found = explainer.explain(row, n_explanations=3, diversity="features", solver=solver)
    changed = [set(e.changes.feature) for e in found]
    assert len(found) == 3
    for k, later in enumerate(changed):
        assert not any(earlier <= later for earlier in changed[:k])
    # brute force over which feature of the best explanation has to stay
    best = min(
        explainer.explain(row, features_to_vary=[n for n in explainer.space.names if n != kept])[0].cost or np.inf
        for kept in changed[0]
    )
    assert found[1].cost == pytest.approx(best)


def test_apart(explainer: Explainer, row: pd.DataFrame) -> None:
    found = explainer.explain(row, n_explanations=3, diversity="distance", min_distance=0.3)
    space = explainer.space
    points = [space.from_frame(e.counterfactual)[0] for e in found]
    for p, q in itertools.combinations(points, 2):
        apart = sum(abs(f.distance(q[i], p[i]).item()) for i, f in enumerate(space.features))
        assert apart >= 0.3 - 1e-12
    assert [e.cost for e in found] == pytest.approx(
        [
            e.cost
            for e in explainer.explain(row, n_explanations=3, diversity="distance", min_distance=0.3, solver="scip")
        ]
    )


def test_when_there_are_no_more(explainer: Explainer, row: pd.DataFrame) -> None:
    found = explainer.explain(row, n_explanations=50, diversity="features")
    assert len(found) < 50
    assert "there is no further one" in found[-1].message
    with pytest.raises(ProblemError, match="did you mean 'region'"):
        explainer.explain(row, n_explanations=2, diversity="regions")
    with pytest.raises(ProblemError, match="at least 1"):
        explainer.explain(row, n_explanations=0)
    kept = explainer.explain(row, n_explanations=2, diversity="distance", solver="box")
    assert kept[0].status == "optimal"
    assert "does not know constraints that relate values inside cells" in kept[-1].message


# -- why infeasible ----------------------------------------------------------------------------------------


def test_a_smallest_set_of_wishes_that_conflict(explainer: Explainer, row: pd.DataFrame) -> None:
    free = explainer.explain(row)[0]
    wishes: dict[str, Any] = {
        "constraints": [
            MaxChanges(0, tuple(free.changes.feature), name="as it is"),
            Linear({"age": 1}, "<=", 100, name="harmless"),
            Implication({"flag": [0, 1]}, {"school": str(row.school.iloc[0])}, name="school"),
        ],
        "permitted_range": {"amount": (0, 50)},
        "features_to_vary": ["income", "debt", "school", "amount"],
    }
    found = explainer.explain(row, diagnose=True, **wishes)[0]
    assert found.status == "infeasible"
    assert found.conflict
    assert not any("harmless" in c or "'amount' must" in c for c in found.conflict)
    assert all(c in found.message for c in found.conflict)
    assert Explanation.from_json(found.to_json()).conflict == found.conflict
    # without any one of them the row can be explained
    kept = [c for c in wishes["constraints"] if any(repr(c.title) in said for said in found.conflict)]
    fixed = [n for n in explainer.space.names if any(said == f"{n!r} is fixed" for said in found.conflict)]

    def status(constraints: list[Constraint], still: list[str]) -> str:
        vary = [n for n in explainer.space.names if n not in still]
        return explainer.explain(row, constraints=constraints, features_to_vary=vary)[0].status

    assert len(kept) + len(fixed) == len(found.conflict)
    assert status(kept, fixed) == "infeasible"
    for constraint in kept:
        assert status([c for c in kept if c is not constraint], fixed) == "optimal"
    for name in fixed:
        assert status(kept, [n for n in fixed if n != name]) == "optimal"


def test_no_wish_in_the_way() -> None:
    x = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [0.0, 1.0, 0.0]})
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(pd.concat([x, x + 10]), [0, 0, 0, 1, 1, 1])
    explainer = Explainer(model, data=x)  # whose bounds keep away from the other class
    found = explainer.explain(x.iloc[[0]], target=1, constraints=MaxChanges(2), diagnose=True)[0]
    assert found.status == "infeasible"
    assert found.conflict == ()
    assert "out of reach" in found.message


# -- quadratic costs ---------------------------------------------------------------------------------------


def test_quadratic_costs_against_the_matrix(explainer: Explainer, row: pd.DataFrame) -> None:
    names = ["income", "debt", "age"]
    rng = np.random.default_rng(1)
    root = rng.normal(size=(3, 3)) / np.array([3000.0, 2000.0, 20.0])
    cost = quadratic_cost(names, root.T @ root, l0=0.01)
    found = {s: explainer.explain(row, norm=cost, solver=s)[0] for s in ("highs", "scip")}
    for e in found.values():
        assert e.status == "optimal"
        assert e.verified, e.checks
        delta = np.array([float(value(e, n)) - float(row[n].iloc[0]) for n in names])
        assert e.cost == pytest.approx(delta @ root.T @ root @ delta + 0.01 * len(e.changes), rel=1e-8)
        assert e.changes.cost.sum() == pytest.approx(e.cost)
    assert found["highs"].cost == pytest.approx(found["scip"].cost, rel=1e-8)
    assert explainer.explain(row, norm=cost, solver="box")[0].status == "error"


def test_mahalanobis_of_the_data(table: pd.DataFrame) -> None:
    x = table[["income", "debt"]]
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(x, (x.income > 2 * x.debt).astype(int))
    explainer = Explainer(model, data=x)
    row = x[model.predict(x) == 0].iloc[[3]]
    e = explainer.explain(row, target=1, norm="mahalanobis")[0]
    inverse = np.linalg.inv(np.cov(x.to_numpy(), rowvar=False))
    origin = row.to_numpy()[0]
    delta = e.counterfactual.to_numpy()[0] - origin
    assert e.status == "optimal"
    assert e.verified
    assert e.cost == pytest.approx(delta @ inverse @ delta, rel=1e-8)
    # nothing on a fine grid is cheaper
    grid = np.stack(np.meshgrid(*(np.linspace(x[c].min(), x[c].max(), 300) for c in x)), axis=-1).reshape(-1, 2)
    wins = grid[model.predict(pd.DataFrame(grid, columns=x.columns)) == 1] - origin
    assert np.einsum("ni,ij,nj->n", wins, inverse, wins).min() >= e.cost * (1 - 1e-9)


@given(seed=st.integers(0, 2**32 - 1))
def test_sparse_forms_whose_diagonal_dominates_are_sums_of_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 8
    beside = rng.choice([-0.5, 0.0, 0.25, 0.5], n - 1)
    unit = 10.0 ** rng.integers(-3, 4, n)
    q = (np.eye(n) + np.diag(beside, 1) + np.diag(beside, -1)) * np.outer(unit, unit)
    names = [f"x{i}" for i in range(n)]
    cost = quadratic_cost(names, q, l1=1.0)
    assert [len(form) for form in cost.forms] == [2] * np.count_nonzero(beside)
    found = np.diag([dict(cost.squares).get(name, 0.0) for name in names])
    for form in cost.forms:
        row = np.array([dict(form).get(name, 0.0) for name in names])
        found += np.outer(row, row)
    assert (np.abs(found - q) / np.outer(unit, unit)).max() <= 1e-10


def test_quadratic_costs_are_refused_by_name(explainer: Explainer, row: pd.DataFrame) -> None:
    with pytest.raises(ProblemError, match="not convex"):
        quadratic_cost(["a", "b"], [[1, 2], [2, 1]])
    with pytest.raises(ProblemError, match="matrix of that size"):
        quadratic_cost(["a"], [[1, 2], [2, 1]])
    with pytest.raises(ProblemError, match="needs numbers"):
        explainer.explain(row, norm=quadratic_cost(["job"], [[1]]))
    with pytest.raises(ProblemError, match="no price for a change of"):
        explainer.explain(row, norm="mahalanobis")


def test_models_with_relations_are_written(explainer: Explainer, row: pd.DataFrame, tmp_path: Path) -> None:
    problem = explainer.problem(row, constraints=EXAMPLES[0])
    cells = explainer.cells(problem)
    assert cells.couples
    form = compile_formulation("interval", cells, names=True).instance(cells).form
    assert form.column_names is not None
    assert any("sliding" in name for name in form.column_names)
    write_model(form, tmp_path / "model.mps")
    assert get_solver("highs").solve(form).objective == pytest.approx(
        explainer.explain(row, constraints=EXAMPLES[0])[0].cost
    )
