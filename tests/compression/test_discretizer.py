"""The discretizer: thresholds of hand-made models, Q, resuming, and odd data."""

from __future__ import annotations

import signal
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import ocf.compression.discretizer
from ocf import CounterfactualDiscretizer, Explainer, GuessingThresholds, LinearExplainer, SurrogateTree
from ocf.errors import DataError, MemoryLimitError, ModelError, OcfError, ProblemError
from ocf.explain.tree_asking import TreeAsking
from ocf.problem.constraints import MaxChanges

from .small import small


@pytest.fixture(scope="module")
def fitted(cancer):
    return CounterfactualDiscretizer(small()).fit(*cancer)


# -- a hand-made example ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def corner():
    """A tree that says 1 where a > 4 and b > 1, and rows around it."""
    X = pd.DataFrame([(a, b) for a in (0.0, 3.0, 5.0, 8.0) for b in (0.0, 2.0, 4.0)], columns=["a", "b"])
    y = ((X.a > 4) & (X.b > 1)).astype(int)
    return X, y, DecisionTreeClassifier(random_state=0).fit(X, y)


def test_thresholds_of_a_hand_made_example(corner):
    X, y, tree = corner
    found = CounterfactualDiscretizer(tree, prefit=True).fit(X, y)
    # in parts of the range: a goes 4/8, 1/8 or both ways, b 1/4 up from 0, 1/4 or 3/4 down; l0 costs 0.1 each
    # a = 0, 3 and b = 2, 4 raise a (4 rows); a = 0, 3 and b = 0 raise both (2); a = 5, 8 and b = 0 raise b (2);
    # (5, 2), (5, 4) lower a by 1/8; (8, 2) lowers b by 1/4, (8, 4) lowers a by 1/2 rather than b by 3/4
    table = found.thresholds_.set_index("name")["multiplicity"]
    assert table.to_dict() == {"a > 4": 4 + 2 + 3, "b > 1": 2 + 2 + 1}
    assert found.statuses_ == {"optimal": 12}
    assert found.get_feature_names_out().tolist() == ["a > 4", "b > 1"]
    assert np.array_equal(found.transform(X), np.column_stack([X.a > 4, X.b > 1]))
    assert found.metrics(X, y) == {"features": 2, "thresholds": 2, "compression": 8 / 12, "inconsistency": 0.0}
    assert found.set_params(Q=1.0).get_feature_names_out().tolist() == ["a > 4"]


def test_memory_has_a_limit(cancer):
    X, y = cancer
    forest = RandomForestClassifier(100, random_state=0).fit(X, np.random.default_rng(0).permutation(y))
    with pytest.raises(MemoryLimitError, match=r"memory limit of 0\.001 GB"):
        CounterfactualDiscretizer(forest, prefit=True, memory_limit="1MB").fit(X, y)
    with pytest.raises(ProblemError, match="memory_limit"):
        CounterfactualDiscretizer(small(), memory_limit="much").fit(X, y)


def test_rows_have_the_limit_of_memory(corner, monkeypatch):
    X, y, tree = corner
    asked = []
    explain = Explainer.explain

    def listening(self, rows, **question):
        asked.append(question["memory_limit"])
        return explain(self, rows, **question)

    monkeypatch.setattr(Explainer, "explain", listening)
    CounterfactualDiscretizer(tree, prefit=True, memory_limit="3GB").fit(X, y)
    assert set(asked) == {"3GB"}


def test_only_correctly_classified_rows_of_the_right_probability_count(corner):
    X, y, tree = corner
    wrong = y.copy()
    wrong.iloc[0] = 1
    found = CounterfactualDiscretizer(tree, prefit=True).fit(X, wrong)
    assert found.rows_.tolist() == list(range(1, 12))
    sure = CounterfactualDiscretizer(tree, prefit=True, p1=0.9).fit(X, y)
    assert len(sure.rows_) == 0
    assert sure.thresholds_.empty
    assert sure.transform(X).shape == (12, 0)
    assert sure.metrics(X, y)["compression"] == 11 / 12
    assert str(SurrogateTree(sure).fit(X, y)) == "always: 0 (8 of 12)"


def test_probabilities_bound_the_rows(cancer, fitted):
    X, y = cancer
    probability = fitted.estimator_.predict_proba(X).max(axis=1)
    middle = float(np.median(probability))
    found = CounterfactualDiscretizer(small(), p0=middle, p1=0.95).fit(X, y)
    right = fitted.estimator_.predict(X) == y
    assert found.rows_.tolist() == np.flatnonzero(right & (probability >= middle) & (probability <= 0.95)).tolist()


@pytest.mark.parametrize(
    "model",
    [
        FixedThresholdClassifier(RandomForestClassifier(3, max_depth=3, random_state=0), threshold=0.3),
        LogisticRegression(max_iter=5000),
    ],
)
def test_the_probability_is_that_of_the_class_that_is_decided(model):
    X, y = make_classification(60, 4, n_informative=3, n_redundant=0, random_state=0)
    found = CounterfactualDiscretizer(model, p0=0.5, p1=0.99).fit(X, y)
    decided = found.estimator_.predict(X)
    probability = found.estimator_.predict_proba(X)[np.arange(len(X)), decided]
    assert found.rows_.tolist() == np.flatnonzero(
        (decided == y) & (probability >= 0.5) & (probability <= 0.99)
    ).tolist()  # fmt: skip


def test_a_model_without_probabilities_takes_all_rows_or_says_so(cancer):
    X, y = cancer
    votes = VotingClassifier([(str(k), DecisionTreeClassifier(max_depth=1, random_state=k)) for k in range(3)])
    with pytest.raises(ProblemError, match=r"VotingClassifier tells no probabilities, .*: p0=0 with p1=1 takes them"):
        CounterfactualDiscretizer(votes).fit(X, y)
    found = CounterfactualDiscretizer(votes, p0=0).fit(X, y)
    assert found.rows_.tolist() == np.flatnonzero(found.estimator_.predict(X) == y).tolist()


def test_thresholds_are_the_models_own_splits_and_part_each_couple(cancer, fitted):
    X, _ = cancer
    explainer = Explainer(fitted.estimator_, data=X)
    splits = {
        (explainer.space.names[f], t)
        for f, t in zip(explainer.prepared.ensemble.feature, explainer.prepared.ensemble.threshold, strict=True)
    }
    assert set(fitted.thresholds_[["feature", "threshold"]].itertuples(index=False, name=None)) <= splits
    rows = X.iloc[fitted.rows_[:20]]
    changed = pd.concat([e.counterfactual for e in explainer.explain(rows, norm={"l0": 0.1, "l1": 1})])
    bits, others = fitted.transform(rows), fitted.transform(changed)
    assert (bits != others).any(axis=1).all()


# -- Q ---------------------------------------------------------------------------------------------------------


def test_q_selects_nested_thresholds_without_solving(cancer, fitted, monkeypatch):
    def never(*_, **__):
        raise AssertionError("explained again")

    monkeypatch.setattr(Explainer, "explain", never)
    kept = [set(clone_with(fitted, q).kept_) for q in np.linspace(0, 1, 21)]
    assert all(later <= earlier for earlier, later in pairwise(kept))
    assert kept[0] == set(clone_with(fitted, 0).kept_)
    assert 0 < len(kept[-1]) < len(kept[0]) == len(fitted.thresholds_)
    top = fitted.thresholds_["multiplicity"].max()
    assert clone_with(fitted, 1.0).thresholds_.query("kept")["multiplicity"].eq(top).all()
    fitted.set_params(Q=0.0)


def test_the_quantile_is_exact():
    """Of 26 multiplicities the 0.28-quantile is the 8th, which floats put just above it."""
    levels = np.arange(27.0).cumsum()  # each but the first is nearer to the one below
    X = pd.DataFrame({"a": levels})
    tree = DecisionTreeClassifier(random_state=0).fit(X, np.arange(27) % 2)
    rows = X.iloc[np.repeat(np.arange(27), [1, 9, *[1] * 8, *[10] * 17])]
    found = CounterfactualDiscretizer(tree, prefit=True, Q=0.28).fit(rows, tree.predict(rows))
    assert sorted(found.thresholds_["multiplicity"]) == [1] * 8 + [10] * 18
    assert len(found.kept_) == 26
    assert len(found.set_params(Q=0.29).kept_) == 18


def clone_with(discretizer, q):
    return discretizer.set_params(Q=q)


def test_bad_settings_say_what_is_wrong(cancer):
    X, y = cancer
    for settings, message in (
        ({"Q": 1.5}, "Q must lie"),
        ({"Q": "x"}, "Q must lie in .*, not 'x'"),
        ({"p0": "x"}, "p0 must lie in .*, not 'x'"),
        ({"merge": None}, "merge must lie in .*, not None"),
        ({"n_jobs": 1.5}, "n_jobs is a number of processes, or -1 for one per core, not 1.5"),
        ({"n_jobs": 0}, "n_jobs is a number of processes"),
        ({"p0": -0.1}, "p0 must lie"),
        ({"p0": 0.9, "p1": 0.6}, "is above p1"),
        ({"prefit": True, "estimator": None}, "needs the fitted model"),
        ({"lambda0": 0.0, "lambda1": 0.0}, "not all 0"),
        ({"solver": "gurobi"}, "no solver 'gurobi'"),
    ):
        with pytest.raises(OcfError, match=message):
            CounterfactualDiscretizer(**{"estimator": small(), **settings}).fit(X, y)
    with pytest.raises(ModelError, match="regressor"):
        CounterfactualDiscretizer(DecisionTreeRegressor(max_depth=1).fit(X, y), prefit=True).fit(X, y)
    with pytest.raises(DataError, match="NaN or infinity, in column 'mean radius'"):
        CounterfactualDiscretizer(small()).fit(X.assign(**{"mean radius": np.nan}), y)
    fitted = CounterfactualDiscretizer(small(), p1=0.6).fit(X, y)
    with pytest.raises(ProblemError, match="Q must lie"):
        fitted.set_params(Q=2).transform(X)


# -- what counterfactuals must respect --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "multiplicity", "statuses"),
    [
        ({}, {"a > 4": 9, "b > 1": 5}, {"optimal": 12}),
        # the two rows that have to raise both a and b have no counterfactual
        ({"constraints": [MaxChanges(1)]}, {"a > 4": 7, "b > 1": 3}, {"optimal": 10, "infeasible": 2}),
        # (8, 2) may not lower b, and lowers a in its place
        ({"permitted_range": {"b": (1.5, 4)}}, {"a > 4": 10, "b > 1": 4}, {"optimal": 12}),
    ],
)
def test_counterfactuals_respect_what_is_asked(corner, asked, multiplicity, statuses):
    X, y, tree = corner
    found = CounterfactualDiscretizer(tree, prefit=True, **asked).fit(X, y)
    assert found.thresholds_.set_index("name")["multiplicity"].to_dict() == multiplicity
    assert found.statuses_ == statuses


def test_a_column_that_the_model_never_splits_has_no_thresholds(corner):
    X, y, _ = corner
    X = X.assign(c=np.arange(len(X)) % 7)
    tree = DecisionTreeClassifier(random_state=0).fit(X[["a", "b"]].assign(c=0), y)
    found = CounterfactualDiscretizer(tree, prefit=True, permitted_range={"c": (2, 4)}).fit(X, y)
    assert set(found.thresholds_["feature"]) == {"a", "b"}


def test_counterfactuals_are_as_plausible_as_asked(cancer):
    X, y = cancer
    X, y = X.iloc[19:60], y.iloc[19:60]
    model = small().fit(X, y)
    wish = {"quantile": 0.7, "trees": 5, "samples": 16}
    found = CounterfactualDiscretizer(model, prefit=True, plausibility=wish).fit(X, y)
    free = CounterfactualDiscretizer(model, prefit=True).fit(X, y)
    asked = Explainer(model, data=X).explain(X.iloc[found.rows_], norm={"l0": 0.1, "l1": 1.0}, plausibility=wish)
    assert found.statuses_ == Counter(e.status for e in asked)
    crossed = {name for e in asked if e.counterfactual is not None for name in e.changes["feature"]}
    split = {X.columns[i] for tree in model.estimators_.ravel() for i in tree.tree_.feature if i >= 0}
    assert crossed - split  # moved to be plausible, over no threshold of the model
    assert set(found.thresholds_["feature"]) == crossed & split
    counts, free_counts = (d.thresholds_.set_index("name")["multiplicity"].to_dict() for d in (found, free))
    assert counts != free_counts


def test_a_checkpoint_of_other_requirements_is_refused(corner, tmp_path):
    X, y, tree = corner
    asked = {"constraints": [MaxChanges(1)], "permitted_range": {"a": (0, 8)}, "plausibility": {"trees": 3}}
    path = tmp_path / "rows"
    first = CounterfactualDiscretizer(tree, prefit=True, checkpoint=path, **asked).fit(X, y)
    again = CounterfactualDiscretizer(tree, prefit=True, checkpoint=path, **asked).fit(X, y)
    assert again.statuses_ == first.statuses_
    for other in ({"constraints": [MaxChanges(2)]}, {"permitted_range": {}}, {"plausibility": {"trees": 4}}):
        with pytest.raises(DataError, match=f"different in {next(iter(other))}:"):
            CounterfactualDiscretizer(tree, prefit=True, checkpoint=path, **{**asked, **other}).fit(X, y)


# -- resuming --------------------------------------------------------------------------------------------------


def test_an_interrupted_fit_goes_on_where_it_stopped(cancer, fitted, tmp_path, monkeypatch):
    X, y = cancer
    monkeypatch.setattr(ocf.compression.discretizer, "CHUNK", 10)
    path = tmp_path / "rows"
    real, calls = TreeAsking.explain_each, []

    def interrupted(self, rows, task):
        for explanations in real(self, rows, task):
            calls.append(explanations[0].row)
            if len(calls) == 34:
                raise KeyboardInterrupt
            yield explanations

    monkeypatch.setattr(TreeAsking, "explain_each", interrupted)
    with pytest.raises(KeyboardInterrupt):
        CounterfactualDiscretizer(small(), checkpoint=path).fit(X, y)
    assert len(path.read_text().splitlines()) == 1 + 33  # rows of a chunk that was not full are kept as well
    calls.append(None)  # no further interruption
    again = CounterfactualDiscretizer(small(), checkpoint=path).fit(X, y)
    assert len(calls) == 34 + 1 + len(again.rows_) - 33
    pd.testing.assert_frame_equal(again.thresholds_, fitted.thresholds_)
    assert CounterfactualDiscretizer(small(), checkpoint=path).fit(X, y).statuses_ == fitted.statuses_
    with pytest.raises(DataError, match="belongs to another question, different in lambda0:"):
        CounterfactualDiscretizer(small(), checkpoint=path, lambda0=0.2).fit(X, y)
    with pytest.raises(DataError, match="different in the model, the rows:"):
        CounterfactualDiscretizer(small(learning_rate=0.2), checkpoint=path).fit(X, y)


def kept_in(path):
    """The rows of a checkpoint."""
    return len(path.read_text().splitlines()) - 1


@pytest.mark.parametrize("model", [RandomForestClassifier(10, random_state=0), LogisticRegression(max_iter=5000)])
def test_a_model_from_a_file_goes_on_from_a_checkpoint(model, tmp_path, monkeypatch):
    X, y = (part.iloc[::3] for part in load_iris(return_X_y=True, as_frame=True))
    joblib.dump(model.fit(X, y), tmp_path / "model")  # what it reads differs in bytes of the nodes that nobody set

    def fit():
        model = joblib.load(tmp_path / "model")
        found = CounterfactualDiscretizer(model, prefit=True, checkpoint=tmp_path / "rows", progress=False)
        return found.fit(X, y)

    first = fit()

    def never(*_, **__):
        raise AssertionError("explained again")

    monkeypatch.setattr(Explainer, "explain", never)
    monkeypatch.setattr(LinearExplainer, "explain", never)
    pd.testing.assert_frame_equal(fit().thresholds_, first.thresholds_)
    other = clone(model).fit(X, y.sample(frac=1, random_state=0).to_numpy())
    with pytest.raises(DataError, match="different in the model"):
        CounterfactualDiscretizer(other, prefit=True, checkpoint=tmp_path / "rows").fit(X, y)


def several_classes(monkeypatch, at, error):
    """Rows of three classes of a forest; in the search of the row so many, counted from 1, an error comes."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    real, calls = TreeAsking.explain_each, []

    def failing(self, rows, task):
        for explanations in real(self, rows, task):
            calls.append(explanations[0].row)
            if len(calls) == at:
                raise error
            yield explanations

    monkeypatch.setattr(TreeAsking, "explain_each", failing)
    return X[::5], y[::5], RandomForestClassifier(5, random_state=0), calls


def test_ctrl_c_stops_the_search_for_all_classes(tmp_path, monkeypatch):
    X, y, forest, calls = several_classes(monkeypatch, 2, KeyboardInterrupt)
    monkeypatch.setattr(ocf.compression.discretizer, "SECONDS", np.inf)
    with pytest.raises(KeyboardInterrupt):
        CounterfactualDiscretizer(forest, checkpoint=tmp_path / "rows", progress=False).fit(X, y)
    assert len(calls) == 2
    assert kept_in(tmp_path / "rows") == 0  # of no row all classes were tried


def test_ctrl_c_is_not_lost_where_the_exception_is(tmp_path, monkeypatch):
    X, y, forest, _ = several_classes(monkeypatch, 0, None)
    explain, calls = Explainer.explain, []

    def swallowing(self, rows, **question):
        with suppress(KeyboardInterrupt):  # as compiled kernels do
            calls.append(rows)
            signal.raise_signal(signal.SIGINT)
        return explain(self, rows, **question)

    monkeypatch.setattr(Explainer, "explain", swallowing)
    with pytest.raises(KeyboardInterrupt):
        CounterfactualDiscretizer(forest, checkpoint=tmp_path / "rows", progress=False).fit(X, y)
    assert len(calls) == 1


def test_a_crash_loses_no_row_that_was_slow(tmp_path, monkeypatch):
    X, y, forest, _ = several_classes(monkeypatch, 20, RuntimeError("crash"))
    monkeypatch.setattr(ocf.compression.discretizer, "SECONDS", 0.0)
    with pytest.raises(RuntimeError, match="crash"):
        CounterfactualDiscretizer(forest, checkpoint=tmp_path / "rows", progress=False).fit(X, y)
    assert kept_in(tmp_path / "rows") == 9  # each has two other classes


@pytest.mark.parametrize("status", ["feasible", "unknown", "error"])
def test_rows_that_were_not_finished_are_done_again(corner, tmp_path, monkeypatch, status):
    X, y, tree = corner
    real = TreeAsking.explain_each
    given = {"counterfactual": None} if status != "feasible" else {}

    def stopped(self, rows, task):
        for explanations in real(self, rows, task):
            yield [replace(e, status=status, **given) if e.row % 2 else e for e in explanations]

    monkeypatch.setattr(TreeAsking, "explain_each", stopped)
    path = tmp_path / "rows"
    first = CounterfactualDiscretizer(tree, prefit=True, checkpoint=path).fit(X, y)
    assert first.statuses_ == {"optimal": 6, status: 6}
    assert kept_in(path) == 6
    monkeypatch.setattr(TreeAsking, "explain_each", real)
    again = CounterfactualDiscretizer(tree, prefit=True, checkpoint=path, time_limit=None).fit(X, y)
    assert again.statuses_ == {"optimal": 12}


def test_the_cheapest_of_several_classes_is_proven_where_each_search_is(monkeypatch):
    X, y, forest, _ = several_classes(monkeypatch, 0, None)
    real = TreeAsking.explain_each

    def stopped(self, rows, task):  # for the last class nothing is found
        for explanations in real(self, rows, task):
            lost = {"status": "unknown", "counterfactual": None, "cost": None} if task.target == 2 else {}
            yield [replace(e, **lost) for e in explanations]

    monkeypatch.setattr(TreeAsking, "explain_each", stopped)
    found = CounterfactualDiscretizer(forest, progress=False).fit(X, y)
    assert set(found.statuses_) == {"optimal", "feasible"}
    assert found.statuses_["optimal"] == 10  # of rows that have the last class


def test_processes_and_solvers_agree(cancer, fitted):
    X, y = cancer
    for settings in ({"n_jobs": 2}, {"solver": "box"}):
        other = CounterfactualDiscretizer(small(), **settings).fit(X, y)
        pd.testing.assert_frame_equal(other.thresholds_, fitted.thresholds_)


def test_the_same_seed_gives_the_same_data_and_tree(cancer):
    X, y = cancer
    first, second = (
        SurrogateTree(CounterfactualDiscretizer(RandomForestClassifier(3, max_depth=2, random_state=3))).fit(X, y)
        for _ in range(2)
    )
    assert np.array_equal(first.discretizer_.transform(X), second.discretizer_.transform(X))
    assert str(first) == str(second)


# -- data of all kinds -----------------------------------------------------------------------------------------


def test_several_classes():
    X, y = (part.iloc[::3] for part in load_iris(return_X_y=True, as_frame=True))
    forest = RandomForestClassifier(5, max_depth=2, random_state=0).fit(X, y)
    found = CounterfactualDiscretizer(forest, prefit=True).fit(X, y)
    assert set(found.statuses_) == {"optimal"}
    assert found.metrics(X, y)["inconsistency"] < 0.1
    row = int(found.rows_[0])
    explainer = Explainer(forest, data=X)
    costs = [explainer.explain(X.iloc[[row]], target=k, norm={"l0": 0.1, "l1": 1})[0].cost for k in (1, 2)]
    assert min(costs) == explainer.explain(X.iloc[[row]], target=[1, 2], norm={"l0": 0.1, "l1": 1})[0].cost


def test_constant_features_and_a_model_without_splits():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"same": np.ones(30), "x": rng.normal(size=30)})
    y = (X.x > 0).astype(int)
    found = CounterfactualDiscretizer(small()).fit(X, y)
    assert set(found.thresholds_.feature) == {"x"}
    alone = CounterfactualDiscretizer(small()).fit(X[["same"]], y)
    assert alone.transform(X[["same"]]).shape == (30, 0)
    assert alone.get_feature_names_out().tolist() == []
    guessed = GuessingThresholds(small()).fit(X[["same"]], y)
    assert guessed.transform(X[["same"]]).shape == (30, 0)


def test_categories_and_binary_features():
    rng = np.random.default_rng(1)
    n = 50
    X = pd.DataFrame(
        {
            "job": rng.choice(["clerk", "smith", "cook"], n),
            "member": rng.integers(0, 2, n),
            "age": rng.normal(40, 10, n).round(),
        }
    )
    y = np.where((X.job == "clerk") & (X.member == 1) | (X.age > 45), "yes", "no")
    model = make_pipeline(
        ColumnTransformer([("job", OneHotEncoder(sparse_output=False), ["job"])], remainder="passthrough"),
        RandomForestClassifier(5, max_depth=3, random_state=0),
    )
    found = CounterfactualDiscretizer(model, features={"age": {"actionability": "fixed"}}).fit(X, y)
    assert "infeasible" in found.statuses_  # the old have no way back, and give no threshold
    names = found.get_feature_names_out().tolist()
    assert "job = clerk" in names
    assert "member > 0" in names
    bits = pd.DataFrame(found.transform(X), columns=names)
    assert (bits["job = clerk"] == (X.job == "clerk")).all()
    assert (bits["member > 0"] == X.member).all()
    with pytest.raises(DataError, match="unknown level"):
        found.transform(X.assign(job="baker"))


def with_missing_levels(encoder):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.choice(["s", "l", None], 80), "x": rng.random(80)})
    y = ((X["size"] == "l") | (X.x > 0.8)).astype(int)
    columns = make_column_transformer((encoder, ["size"]), remainder="passthrough")
    return X, y, make_pipeline(columns, DecisionTreeClassifier(max_depth=3, random_state=0)).fit(X, y)


def test_a_missing_category_is_none_of_the_levels():
    X, y, model = with_missing_levels(OneHotEncoder())
    fitted = CounterfactualDiscretizer(model, prefit=True).fit(X, y)
    bits = pd.DataFrame(fitted.transform(X), columns=fitted.get_feature_names_out())
    assert bits["size = l"].tolist() == (X["size"] == "l").tolist()


def test_missing_ordered_levels_are_refused_before_rows_are_solved(monkeypatch):
    X, y, model = with_missing_levels(OrdinalEncoder(encoded_missing_value=-1))
    monkeypatch.setattr(Explainer, "explain", None)
    said = {"size": {"kind": "ordinal", "levels": ["l", "s"]}}
    with pytest.raises(DataError, match=r"'size', row .*: a missing value is on no side of a threshold"):
        CounterfactualDiscretizer(model, prefit=True, features=said).fit(X, y)


def test_classes_may_be_given_by_their_texts(corner):
    X, y = corner[:2]
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    fitted = [CounterfactualDiscretizer(model, prefit=True).fit(X, labels) for labels in (y, y.astype(str))]
    assert len(fitted[0].rows_)
    assert fitted[0].to_dict() == fitted[1].to_dict()
    with pytest.raises(DataError, match="y: there is no class 'no'"):
        CounterfactualDiscretizer(model, prefit=True).fit(X, np.where(y, "yes", "no"))


@pytest.mark.parametrize("method", [CounterfactualDiscretizer(), GuessingThresholds()])
def test_labels_of_one_class_are_refused_before_a_model_is_fitted(corner, method):
    X, y = corner[:2]
    with pytest.raises(DataError, match="y holds 1 class, 'no': give rows of at least two classes"):
        method.fit(X, np.full(len(y), "no"))


def test_a_fitted_model_explains_rows_of_one_class(corner):
    X, y = corner[:2]
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    assert len(CounterfactualDiscretizer(model, prefit=True).fit(X[y == 0], y[y == 0]).rows_)


@pytest.mark.parametrize("model", [LinearSVC(), LogisticRegression()])
def test_linear_targets(cancer, model):
    X, y = cancer
    X, y = X.iloc[19:45], y.iloc[19:45]
    rows = X.iloc[:, :6]
    target = make_pipeline(MinMaxScaler(), model)
    found = CounterfactualDiscretizer(target, merge=0.02).fit(rows, y)
    assert set(found.statuses_) == {"optimal"}
    assert len(found.thresholds_) < len(CounterfactualDiscretizer(target).fit(rows, y).thresholds_)
    assert found.thresholds_["multiplicity"].sum() >= len(found.rows_)
    beyond = CounterfactualDiscretizer(target, margin=0.5).fit(rows, y)
    assert set(beyond.statuses_) <= {"optimal", "infeasible"}
