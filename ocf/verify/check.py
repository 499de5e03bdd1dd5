"""The independent check of a result: the user's own model, the raw values, and plain arithmetic.

Nothing here is shared with the formulations, the solvers, the cells, or the costs and features that they use: a
feature is a plain dict, a value is what stands in the table, and a distance is written out again. A mistake
elsewhere can therefore not hide here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ocf.verify.asked import ask, ask_each, completed, misquoted, missed, most_given, same, shown_by
from ocf.verify.changes import close, cost_of_changes
from ocf.verify.margins import fragile

if TYPE_CHECKING:
    from ocf.models.user_model import UserModel

#: Statuses that come with a counterfactual, and those that cannot have one; an error may have either.
WITH, WITHOUT = ("optimal", "feasible"), ("infeasible", "unknown", "interrupted")


@dataclass(frozen=True)
class Claims:
    """What is claimed of a result.

    Attributes
    ----------
    status : str
    cost : float or None
    bound : float
    predicted, decided : label, float or None
        Classes, or values, of the original and of the counterfactual; None where nothing is claimed.
    plausibility : mapping or None
        Average ``depth`` in an isolation forest, the ``least`` that was wanted, and, of the soft term, ``weight`` and
        ``deepest``. With completions the depth that as many as are wanted of those with the target have at least.
    probabilities : sequence of (n_classes,) sequences, or None
        Of the original and of the counterfactual, by the model's ``predict_proba``.
    """

    status: str
    cost: float | None
    bound: float
    predicted: Any = None
    decided: Any = None
    plausibility: Mapping[str, Any] | None = None
    probabilities: Sequence[Sequence[float]] | None = None


@dataclass(frozen=True)
class Verification:
    """What the check found.

    Attributes
    ----------
    ok : bool
    problems : tuple of str
        One sentence for each claim that does not hold.
    cost : float or None
        Recomputed from the raw values; None without a counterfactual, or when it has none.
    decided : label, float or None
        Class, or value, of the counterfactual by the user's model; with completions what most of them get.
    met : int or None
        How many completions get the target and, where that is asked for, are deep enough; None without completions.
    status : str
        That is claimed of a row of a file. Of one that was not finished nothing else is, and nothing is wrong with it.
    probabilities : tuple of (n_classes,) tuples, or None
        Of the original and, where there is one, of the counterfactual; None of a model that shows none, and with
        completions.
    """

    ok: bool
    problems: tuple[str, ...]
    cost: float | None = None
    decided: Any = None
    met: int | None = None
    probabilities: tuple[tuple[float, ...], ...] | None = None
    status: str = ""

    @property
    def answered(self) -> bool:
        """Whether the row has an answer: a counterfactual, or the claim that there is none."""
        return self.status in (*WITH, "infeasible")


def verify(
    model: UserModel,
    original: pd.DataFrame,
    counterfactual: pd.DataFrame | None,
    *,
    target: Any,
    probability: float | None = None,
    features: Mapping[str, Any],
    norm: Mapping[str, Any],
    claims: Claims,
    forest: Callable[[pd.DataFrame], float] | None = None,
    constraints: Sequence[Mapping[str, Any]] = (),
    imputations: Mapping[str, Any] | None = None,
    margins: Mapping[str, float] | None = None,
) -> Verification:
    """Check a result against the user's model and its own claims.

    Parameters
    ----------
    model : UserModel
    original, counterfactual : DataFrame (1, n_columns)
        The user's row, and the changed one in the dtypes in which it will be used.
    target : label, sequence of labels, or (lowest, highest)
        The class or classes that were wanted, or the bounds of a regressor's value, None for an open end.
    probability : float, optional
        The probability of the class, or of one of the classes, that was wanted in the place of the decision.
    features : mapping
        As `FeatureSpace.to_dict` writes it: ``columns`` and ``features``.
    norm : mapping
        Coefficients of ``l0``, ``l1`` and ``l2``, and perhaps ``squares``, ``forms`` and ``absolutes`` of several
        features.
    claims : Claims
    forest : callable, optional
        Average depth of a row, by the isolation forest's own trees. Without it a claimed depth is believed.
    constraints : sequence of mappings
        As ``Constraint.to_dict`` writes them.
    imputations : mapping, optional
        ``values`` of the columns that the row lacks, lists of one value for each completion, and the ``least`` number
        of completions that must get the target.
    margins : mapping of feature name to float, optional
        By how much, in the user's units, changed values may fall short without another answer of the model.

    Returns
    -------
    Verification
    """
    problems = list(check_claims(claims, counterfactual is not None))
    before = _arranged(original, features["columns"], "original", problems)
    after = (
        None if counterfactual is None else _arranged(counterfactual, features["columns"], "counterfactual", problems)
    )
    predicted, decided, met = None, None, None
    if imputations is None:
        predicted = ask(model, before, "original", problems)
        decided = ask(model, after, "counterfactual", problems)
    else:
        predicted = most_given(model, ask_each(model, before, imputations, "original", problems))
        answers = ask_each(model, after, imputations, "counterfactual", problems)
        decided = most_given(model, answers)
    if claims.predicted is not None and predicted is not None and not same(predicted, claims.predicted):
        problems.append(f"The model gives the original {predicted!r}, not {claims.predicted!r} as claimed.")
    if claims.decided is not None and decided is not None and not same(decided, claims.decided):
        problems.append(f"The model gives the counterfactual {decided!r}, not {claims.decided!r} as claimed.")
    if decided is not None and imputations is None:
        problems += missed(model, after, decided, target, probability)
    elif decided is not None and imputations is not None:
        asked = zip(completed(after, imputations), answers, strict=True)
        good = [table for table, a in asked if not list(missed(model, table, a, target, probability))]
        least = int(imputations["least"])
        met = len(_deep_enough(good, forest, claims.plausibility))
        forest = _of_completions(forest, good, least)
        if met < least:
            problems.append(f"{met} of {len(answers)} completions get the target, {least} are wanted.")
    cost = None
    if before is not None and after is not None:
        cost = cost_of_changes(before, after, features["features"], norm, constraints, problems)
        problems += fragile(model, before, after, features["features"], margins or {}, decided)
        if claims.plausibility is not None:
            lacking = _check_depth(claims.plausibility, after, forest, problems)
            cost = None if cost is None else cost + lacking
        if cost is not None and claims.cost is not None and not close(cost, claims.cost):
            problems.append(f"The changes cost {cost!r}, not {claims.cost!r} as claimed.")
    shown = (
        None if imputations is not None else shown_by(model, [before] if counterfactual is None else [before, after])
    )
    problems += misquoted(claims.probabilities, shown)
    return Verification(not problems, tuple(problems), cost, decided, met, shown)


def check_claims(claims: Claims, found: bool) -> Iterator[str]:
    """Whether status, cost and bound agree with each other.

    Parameters
    ----------
    claims : Claims
    found : bool
        Whether there is a counterfactual.
    """
    status, cost, bound = claims.status, claims.cost, claims.bound
    if status not in (*WITH, *WITHOUT, "error"):
        yield f"The status {status!r} is none that ocf gives."
    if status in WITH and not found:
        yield f"The status is {status!r}, but there is no counterfactual."
    if status in WITHOUT and found:
        yield f"The status is {status!r}, but there is a counterfactual."
    if not found and claims.decided is not None:
        yield f"There is no counterfactual, but the model is said to give it {claims.decided!r}."
    if found and cost is None:
        yield "There is a counterfactual, but no cost."
    if cost is not None and not math.isfinite(cost):
        yield f"The cost {cost!r} is no finite number."
    if math.isnan(bound):
        yield "The bound is not a number."
    if cost is not None and bound > cost and not close(bound, cost):
        yield f"The bound {bound!r} is above the cost {cost!r}: one of them is wrong."
    if status == "optimal" and cost is not None and not close(bound, cost):
        yield f"The status is 'optimal', but the bound {bound!r} does not prove the cost {cost!r}."
    if status == "infeasible" and bound != math.inf:
        yield f"The status is 'infeasible', but the bound is {bound!r}, not infinite."


def _arranged(table: pd.DataFrame, columns: Sequence[str], which: str, problems: list[str]) -> pd.DataFrame | None:
    """One-row table with the model's columns in the order of the features; None when it is something else."""
    if len(table) != 1:
        problems.append(f"The {which} has {len(table)} rows, not one.")
        return None
    if table.columns.tolist() == list(columns):
        return table.copy()  # the model may write to what it is given
    named = table.rename(columns=str)
    if sorted(named.columns) != sorted(columns):
        missing = sorted(set(columns) - set(named.columns)) or "none"
        extra = sorted(set(named.columns) - set(columns)) or "none"
        problems.append(f"The {which} has other columns than the features (missing: {missing}, extra: {extra}).")
        return None
    return named[list(columns)]


def _check_depth(
    claimed: Mapping[str, Any],
    after: pd.DataFrame,
    forest: Callable[[pd.DataFrame], float] | None,
    problems: list[str],
) -> float:
    """Recompute the depth in the isolation forest; returns what it adds to the cost."""
    depth, least = float(claimed["depth"]), claimed["least"]
    if forest is not None:
        try:
            counted = forest(after)
        except Exception as error:  # the forest is the user's: whatever it raises is a finding
            problems.append(f"The isolation forest refuses the counterfactual: {type(error).__name__}: {error}")
            counted = depth
        if not close(counted, depth):
            problems.append(f"The average depth in the isolation forest is {counted!r}, not {depth!r} as claimed.")
        depth = counted
    if least is not None and depth < least and not close(depth, float(least)):
        problems.append(f"The average depth in the isolation forest is {depth!r}, less than the wanted {least!r}.")
    return float(claimed["weight"]) * (float(claimed["deepest"]) - depth)


def _deep_enough(
    tables: list[pd.DataFrame], forest: Callable[[pd.DataFrame], float] | None, claimed: Mapping[str, Any] | None
) -> list[pd.DataFrame]:
    """Completions that the isolation forest finds deep enough; all where nobody asks it."""
    if forest is None or claimed is None or claimed["least"] is None:
        return tables
    least = float(claimed["least"])
    return [table for table in tables if (depth := forest(table)) >= least or close(depth, least)]


def _of_completions(
    forest: Callable[[pd.DataFrame], float] | None, tables: list[pd.DataFrame], least: int
) -> Callable[[pd.DataFrame], float] | None:
    """What so many of some completions are at least as deep as, in the place of the depth of the incomplete row."""
    if forest is None or not tables:
        return forest
    return lambda _: sorted(map(forest, tables), reverse=True)[min(least, len(tables)) - 1]
