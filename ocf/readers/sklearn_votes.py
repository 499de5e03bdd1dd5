"""Exact reader of scikit-learn's models that hold several models: votes, stacks, one against the rest.

How they decide (source: ``sklearn/ensemble/_voting.py``, ``_stacking.py``, ``sklearn/multiclass.py``)

* A soft vote averages probabilities with the weights, a hard vote adds up the weights of the members that decide for
  each class; the largest wins, the first on a tie. A voting regressor averages values.
* A stack gives what its members show to a final model: of two classes the probability of the second, or the decision
  function; of several classes those of each; the values of regressors. A linear final model adds them up, and with
  ``passthrough=True`` numbers of the table (`ocf.readers.final_line`); trees compare each with thresholds
  (`ocf.readers.final_trees`).
* One against the rest: the largest decision function (else probability) wins; with two classes a single model decides.
* One against one: the class with most votes wins, and among several the one in which the models have most confidence:
  decision functions, else probabilities, added up.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from ocf.errors import ModelError, UnsupportedModelError
from ocf.problem.requirements import reach
from ocf.readers.base import TreeModel, whole
from ocf.readers.final_line import beside_line
from ocf.readers.final_sum import summed_model
from ocf.readers.final_trees import read_final_trees
from ocf.readers.members import Members, added, check_classes, two_classes, whole_model
from ocf.readers.nesting import held
from ocf.readers.sklearn_common import check_fitted, class_labels
from ocf.trees.ensemble import Decision
from ocf.trees.totals import Map, Term, Total

#: Final models of a stack that add up what they are given.
_LINEAR_CLASSIFIERS = (
    "LogisticRegression", "LogisticRegressionCV", "RidgeClassifier", "RidgeClassifierCV", "LinearSVC", "SGDClassifier",
    "Perceptron",
)  # fmt: skip
#: Those of them that show the sigmoid of it.
_LOGISTIC = ("LogisticRegression", "LogisticRegressionCV")
_LINEAR_REGRESSORS = (
    "LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV", "BayesianRidge",
    "HuberRegressor", "LinearSVR", "SGDRegressor",
)  # fmt: skip

#: Why a model that holds several cannot be read, and what to do instead.
_REFUSED = {
    "OutputCodeClassifier": "it compares distances to code words: fit OneVsRestClassifier",
    "MultiOutputClassifier": "it predicts several targets at once: say which one, Explainer(model, data, output=0)",
    "MultiOutputRegressor": "it predicts several targets at once: say which one, Explainer(model, data, output=0)",
    "ClassifierChain": "its models see each other's answers: pass the model of the first target, model.estimators_[0]",
    "RegressorChain": "its models see each other's answers: pass the model of the first target, model.estimators_[0]",
}


def _names(model: object) -> set[str]:
    return {cls.__name__ for cls in type(model).__mro__ if cls.__module__.split(".")[0] == "sklearn"}


def matches(model: object) -> bool:
    """Whether the object is a vote, a stack, or holds one model per class or target, of scikit-learn."""
    return bool(_names(model) & {*_READERS, *_REFUSED})


def read(model: Any) -> TreeModel:
    """Ensemble of all trees that a fitted vote, stack or one-against-the-rest model holds.

    Parameters
    ----------
    model : estimator
        VotingClassifier, VotingRegressor, StackingClassifier, StackingRegressor, OneVsRestClassifier or
        OneVsOneClassifier.

    Returns
    -------
    TreeModel

    Raises
    ------
    ModelError
        It is not fitted.
    UnsupportedModelError
        A member is no model of trees, or the answer is no sum of functions of one score each.
    """
    for name, why in _REFUSED.items():
        if name in _names(model):
            raise UnsupportedModelError(f"{name} cannot be read: {why}")
    with whole(model):
        check_fitted(model)
        return next(reader for name, reader in _READERS.items() if name in _names(model))(model)


# -- votes ---------------------------------------------------------------------------------------------------------


def _weights(model: Any) -> list[float] | None:
    """Weights of the members that were not dropped; None where all count the same."""
    if model.weights is None:
        return None
    pairs = zip(model.estimators, model.weights, strict=True)
    weights = [float(w) for (_, estimator), w in pairs if not (isinstance(estimator, str) and estimator == "drop")]
    if len(weights) != len(model.estimators_) or min(weights) < 0 or not sum(weights) > 0:
        raise ModelError(f"the weights of this {type(model).__name__} do not fit its members: fit it again")
    return weights


def _read_voting_classifier(model: Any) -> TreeModel:
    if model.voting == "hard":
        return _read_hard_vote(model)
    members = Members.read(model, held(model))
    classes = class_labels(model)
    check_classes(model, members, len(classes))
    weights = _weights(model)
    ones, count = weights or [1.0] * len(members.models), sum(weights or [1.0] * len(members.models))
    shares = [members.shares(k) for k in range(len(members.models))]
    totals = tuple(
        added([own[c] for own in shares], ones, count, replayed=weights is None) for c in range(len(classes))
    )
    if len(classes) == 2:
        # the library compares two sums, of which one is the rest of the other but for rounding
        margin = Total(totals[1].terms, totals[1].base, totals[1].divisor, replayed=False)
        rule = Decision("threshold", classes, 0.5, link="mean", totals=totals, margin=margin)
        return whole_model(model, members, rule)
    return whole_model(model, members, Decision("argmax", classes, link="mean", totals=totals))


def _read_hard_vote(model: Any) -> TreeModel:
    classes = two_classes(
        model, "the vote of each member is the largest of several scores, no function of one: use voting='soft'"
    )
    members = Members.read(model, held(model), as_margins=True)
    check_classes(model, members, 2)
    weights = _weights(model) or [1.0] * len(members.models)
    whole_numbers = all(w == np.floor(w) for w in weights)
    terms = tuple(members.vote(k).times(w) for k, w in enumerate(weights))
    return whole_model(model, members, Decision("threshold", classes, margin=Total(terms, replayed=whole_numbers)))


def _read_voting_regressor(model: Any) -> TreeModel:
    members = Members.read(model, held(model))
    weights = _weights(model) or [1.0] * len(members.models)
    values = [members.values(k) for k in range(len(members.models))]
    return whole_model(
        model, members, Decision("value", totals=(added(values, weights, sum(weights), replayed=False),))
    )


# -- stacks --------------------------------------------------------------------------------------------------------


def _is_linear(model: Any, known: tuple[str, ...]) -> bool:
    """Whether the final model of a stack adds up what it is given."""
    final = model.final_estimator_
    return type(final).__name__ in known and type(final).__module__.startswith("sklearn.")


def _stacked(model: Any, members: Members, parts: list[Total]) -> tuple[Members, tuple[Total, ...]]:
    """What a linear final model makes of its members, and of the table: one total, or one per class."""
    final = model.final_estimator_
    coefficients = np.atleast_2d(final.coef_)
    width, lines = members.models[0].ensemble.n_features if model.passthrough else 0, dict[int, int]()
    if coefficients.shape[1] != len(parts) + width:
        raise ModelError(f"the final model of this {type(model).__name__} does not fit its members: fit it again")
    if width and not coefficients[:, len(parts) :].any():  # it looks at the table all the same, and refuses gaps
        members = members.without_gaps()
    elif width:
        members, lines = beside_line(model, members, coefficients[:, len(parts) :])
    intercepts = np.broadcast_to(np.ravel(final.intercept_), len(coefficients)).tolist()
    totals = [added(parts, row, 1.0, replayed=False) for row in coefficients[:, : len(parts)].tolist()]
    return members, tuple(
        Total((*t.terms, *(Term(lines[k]) for _ in range(k in lines))), t.base + b, 1.0, replayed=False)
        for k, (t, b) in enumerate(zip(totals, intercepts, strict=True))
    )


def _member_outputs(model: Any, members: Members, several: bool) -> list[Total]:
    """What the members of a stacking classifier hand on, in the order in which the final model is given it."""
    parts: list[Total] = []
    for k, method in enumerate(model.stack_method_):
        own = None
        if method == "predict_proba":
            own = members.shares(k) if several else members.shares(k)[1:]
        elif method == "decision_function":
            margin = None if several else members.margins(k)
            own = members.responses(k) if several else () if margin is None else (margin,)
        if not own:
            raise UnsupportedModelError(
                f"a member of this {type(model).__name__} hands on its decisions: fit it with "
                "stack_method='predict_proba'"
            )
        parts += own
    return parts


def _read_stacking_classifier(model: Any) -> TreeModel:
    classes = class_labels(model)
    linear = _is_linear(model, _LINEAR_CLASSIFIERS)
    members = Members.read(model, held(model))
    check_classes(model, members, len(classes))
    parts = _member_outputs(model, members, several=len(classes) > 2)
    if not linear:
        return read_final_trees(model, members, parts, _LINEAR_CLASSIFIERS[0])
    final, (members, totals) = model.final_estimator_, _stacked(model, members, parts)
    kind: Any = "argmax" if len(totals) > 1 else "threshold"
    return summed_model(model, members, totals, Decision(kind, classes, link=_link(final)), model.decision_function)


def _link(final: Any) -> Any:
    """What a linear final model shows of its scores."""
    if type(final).__name__ not in _LOGISTIC:
        return "identity"
    several, said = len(final.coef_) > 1, getattr(final, "multi_class", "auto")
    if not several:
        return "identity" if said == "multinomial" else "logistic"
    # before it was one or the other by the settings
    return "identity" if said in ("ovr", "warn") or final.solver == "liblinear" else "softmax"


def _read_stacking_regressor(model: Any) -> TreeModel:
    linear = _is_linear(model, _LINEAR_REGRESSORS)
    members = Members.read(model, held(model))
    values = [members.values(k) for k in range(len(members.models))]
    if not linear:
        return read_final_trees(model, members, values, _LINEAR_REGRESSORS[0])
    members, totals = _stacked(model, members, values)
    return summed_model(model, members, totals, Decision("value"), model.predict)


# -- one against the rest ------------------------------------------------------------------------------------------


def _read_one_vs_rest(model: Any) -> TreeModel:
    if model.multilabel_:
        raise UnsupportedModelError(
            "this OneVsRestClassifier gives several labels at once: pass the model of one of them, model.estimators_[k]"
        )
    estimators = held(model)
    if any(type(estimator).__name__ == "_ConstantPredictor" for estimator in estimators):
        raise ModelError(
            "a class of this OneVsRestClassifier has no rows, or all of them: fit it on rows of each class"
        )
    classes = class_labels(model)
    members = Members.read(model, estimators)
    check_classes(model, members, 2)
    margins = [members.margins(k) for k in range(len(estimators))]
    scores = [members.shares(k)[1] if own is None else own for k, own in enumerate(margins)]
    if len(classes) == 2:
        threshold = 0.5 if margins[0] is None else 0.0
        try:
            shares = members.shares(0)
        except UnsupportedModelError:
            shares = ()
        rule = Decision("threshold", classes, threshold, totals=shares, margin=scores[0])
        return whole_model(model, members, replace(rule, link="mean") if shares else rule)
    return whole_model(model, members, Decision("argmax", classes, totals=tuple(scores)))


# -- one against one -----------------------------------------------------------------------------------------------


def _read_one_vs_one(model: Any) -> TreeModel:
    """Votes, and a slope so small that confidences only order the classes of as many votes."""
    if getattr(model, "pairwise_indices_", None) is not None:
        raise UnsupportedModelError("the models of this OneVsOneClassifier take kernels, and no table")
    classes = class_labels(model)
    members = Members.read(model, held(model), as_margins=True)
    check_classes(model, members, 2)
    pairs = list(combinations(range(len(classes)), 2))
    if len(pairs) != len(members.models):
        raise ModelError("the models of this OneVsOneClassifier do not fit its classes: fit it again")
    if len(classes) == 2:
        rule = members.models[0].ensemble.decision
        margin = Total((Term(0),))
        return whole_model(
            model,
            members,
            Decision("threshold", classes, rule.threshold, tie_is_positive=rule.tie_is_positive, margin=margin),
        )
    lines = [members.confidence(k) for k in range(len(pairs))]
    sizes = [
        abs(slope) * (reach(one.ensemble) + float(np.abs(one.ensemble.base_score).max())) + abs(constant)
        for (slope, constant), one in zip(lines, members.models, strict=True)
    ]
    most = (len(classes) - 1) * max(sizes)
    scale = 1 / (4 * most + 1)
    terms: list[list[Term]] = [[] for _ in classes]
    base = np.zeros(len(classes))
    for k, ((first, second), (slope, constant)) in enumerate(zip(pairs, lines, strict=True)):
        rule = members.models[k].ensemble.decision
        step = Map("step", (rule.threshold,), (float(rule.tie_is_positive), scale * slope))
        terms[first].append(Term(members.starts[k], (step,), -1.0))
        terms[second].append(Term(members.starts[k], (step,)))
        base[[first, second]] += (1 - scale * constant, scale * constant)
    totals = tuple(Total(tuple(own), float(b), replayed=False) for own, b in zip(terms, base, strict=True))
    # the library bends sums of confidences to s / (3 (|s| + 1)), whose rounding counts (1 + |s|)^2 times as much
    slack = 24 * len(classes) * (1 + most) ** 2 * 2.0**-53
    return whole_model(model, members, Decision("argmax", classes, totals=totals), slack=slack)


_READERS = {
    "VotingClassifier": _read_voting_classifier,
    "VotingRegressor": _read_voting_regressor,
    "StackingClassifier": _read_stacking_classifier,
    "StackingRegressor": _read_stacking_regressor,
    "OneVsRestClassifier": _read_one_vs_rest,
    "OneVsOneClassifier": _read_one_vs_one,
}
