"""Surrogate trees: two ways to the optimum agree with each other and with enumeration; rules in words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, KBinsDiscretizer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ocf import CounterfactualDiscretizer, SurrogateTree
from ocf.compression.guessing import stumps
from ocf.errors import DataError, ProblemError, SolverError
from ocf.formulations import flowoct
from ocf.solvers import compile_model


def best_objective(bits: np.ndarray, y: np.ndarray, depth: int, penalty: float) -> float:
    """Errors + penalty * leaves of the best tree, by trying all."""
    counts = np.bincount(y)
    best = len(y) - counts.max() + penalty if len(y) else np.inf
    if depth and len(y):
        for f in range(bits.shape[1]):
            one = bits[:, f] == 1
            if one.any() and not one.all():
                best = min(best, sum(best_objective(bits[s], y[s], depth - 1, penalty) for s in (one, ~one)))
    return float(best)


def random_rows(seed: int, n: int = 40, features: int = 4, classes: int = 2):
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (n, features))
    y = (bits[:, 0] + bits[:, 1] * bits[:, 2] + (rng.random(n) < 0.2)) % classes
    return bits, y


@given(st.integers(0, 1000), st.integers(2, 3), st.integers(1, 3), st.sampled_from([0.0, 1.0, 2.5, 6.0]))
@settings(max_examples=25)
def test_optimal_trees_by_enumeration(seed, classes, depth, penalty):
    bits, y = random_rows(seed, classes=classes)
    best = best_objective(bits, y, depth, penalty)
    found = SurrogateTree(method="optimal", max_depth=depth, leaf_penalty=penalty).fit(bits, y)
    assert found.errors_ == np.sum(found.predict(bits) != y)
    assert found.objective_ == pytest.approx(best)


@given(st.integers(0, 1000), st.integers(2, 3), st.sampled_from([0.0, 1.0, 2.5]), st.sampled_from(["highs", "scip"]))
@settings(max_examples=8)
def test_the_milp_finds_the_same_optimum(seed, classes, penalty, solver):
    bits, y = random_rows(seed, classes=classes)
    two = [
        SurrogateTree(method=m, max_depth=2, leaf_penalty=penalty, solver=solver).fit(bits, y)
        for m in ("optimal", "flowoct")
    ]
    assert two[0].objective_ == pytest.approx(two[1].objective_)
    assert two[1].objective_ == pytest.approx(best_objective(bits, y, 2, penalty))


@given(st.integers(0, 1000), st.integers(2, 3), st.sampled_from([0.0, 1.0, 2.5]))
@settings(max_examples=8)
def test_counted_losses_by_root_are_those_of_the_best_trees(seed, classes, penalty):
    bits, y = random_rows(seed, classes=classes)
    problem = flowoct.TreeProblem.of(bits, y, classes, 3, penalty)
    tests, leaves = flowoct.root_losses(problem)
    assert min(tests.min(), leaves.min()) == pytest.approx(best_objective(bits, y, 3, penalty))
    for f, loss in enumerate(tests.tolist()):
        sides = [best_objective(bits[bits[:, f] == bit], y[bits[:, f] == bit], 2, penalty) for bit in (0, 1)]
        assert loss == pytest.approx(sum(sides))
    assert leaves.tolist() == [penalty + np.sum(y != k) for k in range(classes)]


def test_the_milp_proves_trees_of_depth_3():
    bits, y = random_rows(3, n=300, features=12)
    two = [SurrogateTree(method=m, leaf_penalty=3.0).fit(bits, y) for m in ("optimal", "flowoct")]
    assert two[0].objective_ == pytest.approx(two[1].objective_)


def test_a_known_tree_is_a_solution_of_the_milp():
    bits, y = random_rows(2, n=60)
    problem = flowoct.TreeProblem.of(bits, y, 2, 2, 1.0)
    built = flowoct.build(problem)
    form = compile_model(built.model, built.all_columns)
    # the root tests feature 0, its right child feature 1
    x = built.start(problem, "root", {"root": (0, "left", "right"), "right": (1, "a", "b")}.get)
    total = form.A @ x
    assert (total >= form.row_lower).all()
    assert (total <= form.row_upper).all()
    tests = {n: which for n, (kind, which) in built.decode(x).items() if kind == "test"}
    assert tests == {1: 0, 3: 1}
    leaf = np.where(bits[:, 0] == 0, 0, 1 + bits[:, 1])
    errors = sum(np.bincount(y[leaf == k], minlength=2).min() for k in range(3))
    assert form.objective(x) == pytest.approx(errors + 3)


def test_equal_rows_are_one_group():
    bits, y = random_rows(0, n=200)
    problem = flowoct.TreeProblem.of(bits, y, 2, 2, 1.0)
    assert problem.weight.sum() == 200
    assert len(problem.weight) == len({(*b, c) for b, c in zip(bits.tolist(), y.tolist(), strict=True)})
    built = flowoct.build(problem)
    x = np.array([*(1.0 * (k == (1, 3)) for k in built.tests), *(1.0 * (k in ((2, 0), (3, 1))) for k in built.leaves)])
    assert len(built.columns) == len(x)
    assert built.decode(x) == {1: ("test", 3), 2: ("leaf", 0), 3: ("leaf", 1)}


def test_cart_is_scikit_learns_without_idle_tests():
    from sklearn.tree import DecisionTreeClassifier

    bits, y = random_rows(5, n=120, features=6)
    ours = SurrogateTree().fit(bits, y)
    theirs = DecisionTreeClassifier(max_depth=3, random_state=0).fit(bits, y)
    assert np.array_equal(ours.predict(bits), theirs.predict(bits))
    assert ours.n_leaves_ <= theirs.get_n_leaves()


def test_rules_and_shares():
    X = pd.DataFrame({"age > 30": [0, 0, 1, 1, 1, 1], "job = clerk": [0, 1, 0, 1, 1, 0]})
    y = np.array(["no", "no", "no", "yes", "yes", "no"])
    tree = SurrogateTree().fit(X, y)
    rules = tree.rules()
    assert len(rules) == tree.n_leaves_ == 3
    assert any(r.endswith("yes (2 of 2)") and "age > 30" in r and "job = clerk" in r for r in rules)
    assert any("is not clerk" in r for r in rules)
    assert tree.predict_proba(X).sum(axis=1).tolist() == [1.0] * 6
    assert "age <= 30" in str(tree)
    assert str(SurrogateTree().fit(X, ["yes"] * 6)) == "always: yes (6 of 6)"
    assert str(SurrogateTree()).startswith("SurrogateTree(")


def test_on_a_discretizer_in_the_users_units():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"income": rng.uniform(1000, 9000, 120), "age": rng.uniform(18, 80, 120)})
    y = ((X.income > 5000) & (X.age > 40)).astype(int)
    discretizer = CounterfactualDiscretizer(stumps().set_params(n_estimators=20)).fit(X, y)
    trees = [SurrogateTree(discretizer, method=m, leaf_penalty=2.0).fit(X, y) for m in ("cart", "optimal", "flowoct")]
    for tree in trees:
        assert set(tree.features_) == {"income", "age"}
        assert np.mean(tree.predict(X) == y) > 0.95
        assert "income > " in str(tree)
        assert tree.discretizer_ is discretizer
    assert trees[1].objective_ == trees[2].objective_ <= trees[0].objective_
    fresh = SurrogateTree(CounterfactualDiscretizer(stumps().set_params(n_estimators=20))).fit(X, y)
    assert str(fresh) == str(trees[0])


def test_signs_in_the_users_words_are_no_tests():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "band": rng.choice(["inc > 50K", "inc <= 50K", "none"], 80),
            "debt > income": rng.choice(["yes", "no", "some"], 80),
        }
    )
    y = ((X["band"] == "inc > 50K") | (X["debt > income"] == "yes")).astype(int)
    model = make_pipeline(OneHotEncoder(), DecisionTreeClassifier(random_state=0)).fit(X, y)
    tree = SurrogateTree(CounterfactualDiscretizer(model, prefit=True).fit(X, y)).fit(X, y)
    told = str(tree)
    assert "debt > income is not yes:" in told
    assert "debt > income = yes:" in told
    assert "debt <= income" not in told
    for rule in SurrogateTree(tree.discretizer_, max_depth=1).fit(X, y).rules():
        assert rule.startswith(("if debt > income is not yes:", "if debt > income = yes:"))


def test_bad_settings_say_what_is_wrong():
    bits, y = random_rows(1)
    for bad, message in (
        ({"method": "best"}, "unknown method 'best'"),
        ({"max_depth": 0}, "max_depth"),
        ({"leaf_penalty": -1.0}, "leaf_penalty"),
    ):
        with pytest.raises(ProblemError, match=message):
            SurrogateTree(**bad).fit(bits, y)
    with pytest.raises(DataError, match="more than two values"):
        SurrogateTree().fit(np.arange(10.0)[:, None], np.arange(10) % 2)
    with pytest.raises(SolverError, match="one of matrices: highs or scip"):
        SurrogateTree(method="flowoct", solver="box").fit(bits, y)
    with pytest.raises(SolverError, match="raise time_limit or Q"):
        SurrogateTree(method="flowoct", time_limit=1e-6).fit(*random_rows(2, n=200, features=8))
    assert SurrogateTree(method="optimal", leaf_penalty=1e6).fit(bits, y).n_leaves_ == 1


def test_without_thresholds_there_is_one_leaf():
    tree = SurrogateTree(method="flowoct").fit(np.zeros((6, 1)), [0, 0, 1, 0, 0, 0])
    assert tree.n_leaves_ == 1
    assert tree.predict(np.ones((2, 1))).tolist() == [0, 0]


def test_two_values_that_are_not_0_and_1_have_their_names():
    table = pd.DataFrame({"sex": [1, 2, 1, 2] * 5, "sign": [-1, -1, 1, 1] * 5})
    y = ((table.sex == 2) & (table.sign == 1)).map({True: "yes", False: "no"})
    tree = SurrogateTree(leaf_penalty=1).fit(table, y)
    said = {rule.partition(":")[0] for rule in tree.rules()}
    assert said == {"if sign is -1", "if sign is 1 and sex is 1", "if sign is 1 and sex is 2"}
    assert "x1 is -1" in str(SurrogateTree(leaf_penalty=1).fit(table.to_numpy(), y))


def test_discretizers_of_scikit_learn():
    """Sparse indicators serve as dense ones do; what gives other numbers is refused."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.random(60), "b": rng.random(60)})
    y = ((X.a > 0.5) & (X.b < 0.3)).astype(int)
    for sparse in (KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf"), OneHotEncoder()):
        tree = SurrogateTree(sparse, leaf_penalty=1).fit(X.round(1), y)
        assert tree.errors_ == (tree.predict(X.round(1)) != y).sum()
    tree = SurrogateTree(Binarizer(threshold=0.5), leaf_penalty=1).fit(X, y)
    assert tree.errors_ == (tree.predict(X) != y).sum()
    ordinal = KBinsDiscretizer(4, encode="ordinal", quantile_method="averaged_inverted_cdf")
    for dense, words in ((StandardScaler(), "a, b"), (ordinal, "a, b")):
        with pytest.raises(DataError, match=f"{words} other values than 0 and 1"):
            SurrogateTree(dense).fit(X, y)


def test_an_optimal_tree_where_a_lower_bound_once_was_too_high() -> None:
    pytest.importorskip("pystreed")
    bits = np.array(
        [
            [1, 0, 0, 1, 0],
            [0, 0, 1, 1, 1],
            [1, 1, 1, 1, 0],
            [0, 0, 0, 1, 1],
            [1, 0, 0, 1, 1],
            [0, 1, 0, 1, 0],
            [0, 1, 0, 0, 1],
        ]
    )
    y = np.array([1, 0, 1, 1, 0, 0, 1])
    found = [SurrogateTree(method=m, max_depth=3, leaf_penalty=0.5).fit(bits, y) for m in ("optimal", "flowoct")]
    assert [tree.objective_ for tree in found] == [2.5, 2.5]
