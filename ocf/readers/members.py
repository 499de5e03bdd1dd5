"""Models that hold other models: their members, read one by one and joined to one ensemble.

Each member keeps scores of its own: the scores of the joint ensemble are those of the first member, then those of the
second, and so on. What the whole makes of them is a `Decision` with totals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ocf.arrays import FloatArray
from ocf.errors import ModelError, UnsupportedModelError
from ocf.readers import read_model
from ocf.readers.base import Rows, TreeModel
from ocf.readers.nesting import ColumnSpan, bare
from ocf.readers.sklearn_common import RowLayout, class_labels, decide_rows, known_names, probability_rows
from ocf.trees.ensemble import Decision, Ensemble
from ocf.trees.joining import append_trees
from ocf.trees.totals import FLOAT32, FLOAT64, Map, Term, Total

#: One less: the probability of the other class.
COMPLEMENT = Map("affine", (-1.0, 1.0))

#: Models whose decision functions are the scores of their trees, one per class.
_MARGINS = (
    "GradientBoostingClassifier",
    "HistGradientBoostingClassifier",
    "AdaBoostClassifier",
    "StackingClassifier",
    "LGBMClassifier",
)


@dataclass(frozen=True)
class Members:
    """Models inside another one, and their trees as one ensemble.

    Attributes
    ----------
    models : tuple of TreeModel
        Over the same columns.
    """

    models: tuple[TreeModel, ...]

    @classmethod
    def read(cls, whole: Any, natives: Sequence[Any], as_margins: bool = False) -> Members:
        """Read members.

        Parameters
        ----------
        whole : estimator
            The model that holds them, for messages.
        natives : sequence of estimators
        as_margins : bool
            Whether each shall have one score whose sign decides, which only models of two classes have.

        Raises
        ------
        UnsupportedModelError
            A member is no model of trees.
        """
        if not natives:
            raise ModelError(f"this {type(whole).__name__} has no members: fit it again")
        models = []
        for native in natives:
            try:
                model = read_span(native)
            except UnsupportedModelError as cause:
                raise UnsupportedModelError(f"{type(whole).__name__} holds a model that is not read: {cause}") from None
            if model.categories:
                raise UnsupportedModelError(
                    f"{type(whole).__name__} holds a {type(native).__name__} with category columns of its own: put an "
                    "encoder before it in a Pipeline"
                )
            models.append(_as_margin(model) if as_margins else model)
        widths = {model.ensemble.n_features for model in models}
        if len(widths) > 1:
            raise ModelError(f"the members of {type(whole).__name__} take {sorted(widths)} columns: fit it again")
        return cls(tuple(models))

    def without_gaps(self) -> Members:
        """The same without a rule for missing values."""
        return Members(
            tuple(replace(model, ensemble=replace(model.ensemble, missing_left=None)) for model in self.models)
        )

    @property
    def starts(self) -> tuple[int, ...]:
        """Column of the scores at which each member's begin."""
        return tuple(np.cumsum([0, *(m.ensemble.n_outputs for m in self.models)]).tolist())

    def ensemble(self, decision: Decision, slack: float = 0.0) -> Ensemble:
        """All trees, with the scores of the members side by side.

        Parameters
        ----------
        decision : Decision
            Of the whole.
        slack : float
            As in `Decision`, beyond those of the members.
        """
        starts, parts = self.starts, []
        slack += max(model.ensemble.decision.slack for model in self.models)
        narrow = any(model.ensemble.precision == "float32" for model in self.models)
        for model, first in zip(self.models, starts, strict=False):
            own = model.ensemble
            around = (first, starts[-1] - first - own.n_outputs)
            parts.append(
                replace(
                    own,
                    leaf_values=np.pad(own.leaf_values, ((0, 0), around)),
                    lines=np.add(own.lines, (0, first)),
                    base_score=np.pad(own.base_score, around),
                )
            )
        joint = parts[0]
        for part in parts[1:]:
            base = joint.base_score + part.base_score
            joint = replace(append_trees(joint, part), base_score=base)
        joint = replace(joint, decision=replace(decision, slack=slack))
        return replace(joint, precision="float32") if narrow else replace(joint, precision="float64")

    def scores(self, rows: Rows) -> FloatArray:
        """Scores of all members, side by side, by their own libraries."""
        return np.hstack([model.scores(rows) for model in self.models])

    def shares(self, k: int) -> tuple[Total, ...]:
        """What member k shows as the probability of each class, as totals of the joint scores.

        Raises
        ------
        UnsupportedModelError
            Its probabilities are no sums of functions of one score each.
        """
        return tuple(_moved(total, self.starts[k]) for total in class_shares(self.models[k]))

    def values(self, k: int) -> Total:
        """What member k, a regressor, predicts."""
        rule = self.models[k].ensemble.decision
        if rule.totals:
            return _moved(rule.totals[0], self.starts[k])
        if rule.final is not None:
            raise UnsupportedModelError(
                f"the value of a {_kind(self.models[k])} is that of trees over scores of others"
            )
        if rule.link not in ("identity", "mean", "exp"):
            raise UnsupportedModelError(f"{_kind(self.models[k])} shows its score through a link that cannot be added")
        maps = (Map("exp", unit=_unit(self.models[k])),) if rule.link == "exp" else ()
        return Total((Term(self.starts[k], maps),))

    def margins(self, k: int) -> Total | None:
        """What member k gives as its decision function; None where it has none."""
        model = self.models[k]
        native = _final_estimator(model.native)
        if not hasattr(native, "decision_function"):
            return None
        if model.ensemble.decision.stands_on_others or model.ensemble.n_outputs > 1:
            raise UnsupportedModelError(f"the decision function of a {_kind(model)} is no single score of trees")
        return Total((Term(self.starts[k], (), model.margin_scale),))

    def responses(self, k: int) -> tuple[Total, ...]:
        """What member k, of several classes, gives as its decision function, else as probabilities: one per class.

        Raises
        ------
        UnsupportedModelError
            They are no sums of functions of one score each.
        """
        model = self.models[k]
        native, own = _final_estimator(model.native), model.ensemble
        if not hasattr(native, "decision_function"):
            return self.shares(k)
        scale = {"AdaBoostClassifier": len(model.classes) - 1.0}.get(type(native).__name__, model.margin_scale)
        if own.decision.stands_on_others or type(native).__name__ not in _MARGINS:
            raise UnsupportedModelError(
                f"the decision function of a {_kind(model)} is no single score of trees per class"
            )
        return tuple(Total((Term(self.starts[k] + c, (), scale),)) for c in range(own.n_outputs))

    def confidence(self, k: int) -> tuple[float, float]:
        """Slope and constant of what member k, read as a margin, gives as its confidence in the second of two classes.

        Raises
        ------
        UnsupportedModelError
            It is no multiple of a score of trees.
        """
        margin = self.margins(k)
        if margin is not None:
            return margin.terms[0].weight, 0.0
        own = self.models[k].ensemble
        if own.decision.link != "identity":
            raise UnsupportedModelError(f"the confidence of a {_kind(self.models[k])} is a curve of its margin")
        # the margin of a forest adds up, over its trees, the share of one class less that of the other
        return 0.5 / own.n_trees, 0.5

    def vote(self, k: int) -> Term:
        """1 where member k, read as a margin, decides for the second of two classes, else -1."""
        rule = self.models[k].ensemble.decision
        step = Map("step", (rule.threshold,), (float(rule.tie_is_positive),))
        return Term(self.starts[k], (step, Map("affine", (2.0, -1.0))))


def chained(total: Total, maps: tuple[Map, ...], whole: Any) -> Total:
    """A total of one score, and what more maps make of it.

    Parameters
    ----------
    total : Total
    maps : tuple of Map
    whole : estimator
        For the message.

    Raises
    ------
    UnsupportedModelError
        The total adds up several scores.
    """
    if len(total.terms) != 1 or total.base or total.divisor != 1.0:
        raise UnsupportedModelError(
            f"{type(whole).__name__} takes a sum of several models' curves through one more curve, which is no sum of "
            "functions of one score each: wrap each of those models by itself"
        )
    (term,) = total.terms
    scale = () if term.weight == 1.0 else (Map("affine", (term.weight, 0.0)),)
    narrow = any(m.unit == FLOAT32 for m in term.maps)
    more = tuple(replace(m, unit=FLOAT32) for m in maps) if narrow else maps
    return Total((Term(term.output, (*term.maps, *scale, *more)),))


def added(totals: Sequence[Total], weights: Sequence[float], divisor: float, *, replayed: bool) -> Total:
    """The weighted sum of totals over a divisor.

    Parameters
    ----------
    totals : sequence of Total
    weights : sequence of float
    divisor : float
    replayed : bool
        As in `Total`, where the totals are plain terms.
    """
    terms, base, plain = [], 0.0, replayed
    for total, weight in zip(totals, weights, strict=True):
        terms += [term.times(weight / total.divisor) for term in total.terms]
        base += weight * total.base / total.divisor
        plain &= len(total.terms) == 1 and total.divisor == 1 and not total.base
    return Total(tuple(terms), base, divisor, plain)


def class_shares(model: TreeModel) -> tuple[Total, ...]:
    """What a model shows as the probability of each class.

    Raises
    ------
    UnsupportedModelError
        They are no sums of functions of one score each.
    """
    rule, unit = model.ensemble.decision, _unit(model)
    if rule.totals and rule.link == "mean":
        return rule.totals
    if not rule.stands_on_others and rule.kind == "argmax" and rule.link == "mean":
        return tuple(Total((Term(k),)) for k in range(len(rule.classes)))
    if not rule.stands_on_others and rule.kind == "argmax" and rule.link == "logistic":
        return tuple(Total((Term(k, (Map("logistic", unit=unit),)),)) for k in range(len(rule.classes)))
    if not rule.stands_on_others and rule.kind == "threshold" and rule.link == "logistic":
        rising = Map("logistic", unit=unit)
        one = Total((Term(0, (rising,)),))
        return Total((Term(0, (rising, replace(COMPLEMENT, unit=unit))),)), one
    why = {"softmax": "are a softmax of several scores", "normalized": "are divided by their sum"}.get(
        rule.link, "are none that it shows"
    )
    raise UnsupportedModelError(f"the probabilities of a {_kind(model)} {why}, no sum of functions of one score each")


def whole_model(
    native: Any,
    members: Members,
    decision: Decision,
    *,
    scores: Callable[[Rows], FloatArray] | None = None,
    slack: float = 0.0,
) -> TreeModel:
    """A model that holds others, with its own decisions and the trees of its members.

    Parameters
    ----------
    native : estimator
    members : Members
    decision : Decision
    scores : callable, optional
        Default: those of the members.
    slack : float
        As in `Members.ensemble`.

    Raises
    ------
    UnsupportedModelError
        Numbers of the table that are added up are seen through a curve or trees.
    """
    import sklearn

    ensemble = members.ensemble(decision, slack)
    _check_lines(native, ensemble)
    layout = layout_of(native, members)
    absent = {m.absent_is_missing for m in members.models}
    absent |= {False} if getattr(native, "passthrough", False) else set()  # the last model of a stack takes the table
    others = dict.fromkeys(m.library for m in members.models if not m.library.startswith("scikit-learn"))
    return TreeModel(
        ensemble=ensemble,
        native=native,
        scores=scores or members.scores,
        decide=partial(decide_rows, native, layout),
        library=" with ".join([f"scikit-learn {sklearn.__version__}", *others]),
        probabilities=partial(probability_rows, native, layout) if hasattr(native, "predict_proba") else None,
        absent_is_missing=absent.pop() if len(absent) == 1 else None,
        row_by_row=False,
    )


def layout_of(native: Any, members: Members) -> RowLayout:
    """How rows are handed to a model that holds others.

    Parameters
    ----------
    native : estimator
    members : Members
    """
    names = known_names([native, *(m.native for m in members.models)])
    if any(getattr(m.native, "steps", None) for m in members.models):  # each takes its own columns
        names = None
    return RowLayout(members.models[0].ensemble.n_features, names)


def _check_lines(native: Any, ensemble: Ensemble) -> None:
    """Refuse lines that trees see, or of which several are seen through curves."""
    rule, outputs = ensemble.decision, set(ensemble.lines[:, 1].tolist())
    totals = [*rule.totals, *filter(None, [rule.margin])]
    own = [[term.maps for term in total.terms if term.output in outputs] for total in totals]
    curved = any(any(maps) and len(maps) > 1 for maps in own)
    if outputs and (curved or rule.final is not None or rule.link == "normalized"):
        raise UnsupportedModelError(
            f"this {type(native).__name__} holds {len(outputs)} stacks with passthrough=True, each of which adds up "
            "numbers of the table: that is read where their scores, or values, are the answer or parts of its sum, or "
            "where one alone is seen through a curve; fit them with passthrough=False"
            + (", or calibrate one alone, with ensemble=False" if hasattr(native, "calibrated_classifiers_") else "")
        )


def two_classes(native: Any, why: str) -> tuple[Any, ...]:
    """Labels of a model of two classes.

    Parameters
    ----------
    native : estimator
    why : str
        Why several cannot be read, for the message.

    Raises
    ------
    UnsupportedModelError
        It has more.
    """
    labels = class_labels(native)
    if len(labels) > 2:
        raise UnsupportedModelError(f"this {type(native).__name__} has {len(labels)} classes: {why}")
    return labels


def check_classes(whole: Any, members: Members, n_classes: int) -> None:
    """Refuse members that know other classes than the model that holds them, as a fold without one does.

    Parameters
    ----------
    whole : estimator
    members : Members
    n_classes : int

    Raises
    ------
    UnsupportedModelError
    """
    for model in members.models:
        if len(model.classes) != n_classes:
            raise UnsupportedModelError(
                f"a member of this {type(whole).__name__} knows {len(model.classes)} of its {n_classes} classes: "
                "fit it with folds that hold all of them"
            )


# -- parts -------------------------------------------------------------------------------------------------------


def read_span(native: Any) -> TreeModel:
    """A member; the columns of one behind a `ColumnSpan` are some of the whole's."""
    native = bare(native)
    steps = getattr(native, "steps", None)
    if not steps or not isinstance(steps[0][1], ColumnSpan):
        return read_model(native)
    span, model = steps[0][1], read_model(steps[-1][1])
    own = model.ensemble
    if own.n_features != span.last - span.first:
        raise ModelError(f"a Pipeline hands {span.last - span.first} columns to a model of {own.n_features}")
    names = tuple(f"x{j}" for j in range(span.width))
    ensemble = replace(
        own,
        feature_names=names,
        feature=np.where(own.feature >= 0, own.feature + span.first, -1).astype(np.int32),
        oblique_indices=(own.oblique_indices + span.first).astype(np.int32),
    )

    def behind(ask: Callable[[Rows], Any]) -> Callable[[Rows], Any]:
        return lambda rows: ask(np.asarray(rows)[:, span.first : span.last])

    shown = model.probabilities
    return replace(
        model,
        ensemble=ensemble,
        native=native,
        scores=behind(model.scores),
        decide=behind(model.decide),
        probabilities=None if shown is None else behind(shown),
    )


def _as_margin(model: TreeModel) -> TreeModel:
    """A model of two classes by one score whose sign decides."""
    own = model.ensemble
    rule = own.decision
    if rule.kind == "threshold" and not rule.stands_on_others:
        return model
    if rule.kind != "argmax" or own.n_outputs != 2 or rule.stands_on_others:
        raise UnsupportedModelError(f"the decision of a {_kind(model)} is no sign of one score of trees")
    count = float(own.n_trees) if rule.link == "mean" and np.all(own.tree_weights == 1 / own.n_trees) else 1.0
    ensemble = replace(
        own,
        leaf_values=own.leaf_values[:, [1]] - own.leaf_values[:, [0]],
        tree_weights=np.ones(own.n_trees) if count > 1 else own.tree_weights,
        base_score=own.base_score[[1]] - own.base_score[[0]],
        decision=Decision("threshold", rule.classes, slack=3 * count * own.rounding),
    )

    def scores(rows: Rows) -> FloatArray:
        shown = model.scores(rows)
        return count * (shown[:, [1]] - shown[:, [0]])

    return replace(model, ensemble=ensemble, scores=scores)


def _moved(total: Total, by: int) -> Total:
    return replace(total, terms=tuple(replace(term, output=term.output + by) for term in total.terms))


def _unit(model: TreeModel) -> float:
    return FLOAT32 if model.ensemble.precision == "float32" else FLOAT64


def _final_estimator(native: Any) -> Any:
    """What answers at the end of Pipelines and inside searches."""
    native = bare(native)
    if getattr(native, "steps", None):
        return _final_estimator(native.steps[-1][1])
    return _final_estimator(native.best_estimator_) if hasattr(native, "best_estimator_") else native


def _kind(model: TreeModel) -> str:
    return type(_final_estimator(model.native)).__name__
