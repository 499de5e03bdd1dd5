"""The independent check of a result: the user's own model, the raw values, and plain arithmetic.

Nothing here is shared with the formulations, the solvers, the cells, or the costs and features that they use: a
feature is a plain dict, a value is what stands in the table, and a distance is written out again. A mistake
elsewhere can therefore not hide here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ocf.errors import DataError
from ocf.features.frames import kind_of
from ocf.features.row_dtypes import exact_in
from ocf.models.foreseen import with_answers
from ocf.models.giving import matching_columns
from ocf.support import json_records as records
from ocf.support.documents import fit, refused
from ocf.support.json_dtypes import plain
from ocf.support.messages import listed
from ocf.support.progress import ProgressBar
from ocf.support.schemas import ClaimsSchema
from ocf.verify.boxes import misboxed, outside, points_of
from ocf.verify.changes import TOLERANCE, close, cost_of_changes
from ocf.verify.described import misdescribed
from ocf.verify.partway import misquoted_partway, partway_shown, partway_tables
from ocf.verify.together import contradicted
from ocf.verify.told import changes_to, misjudged, mislisted

if TYPE_CHECKING:
    from ocf.models.user_model import UserModel


#: Points of a box, and of the ranges of an answer, that the model is asked about.
POINTS, FEW_POINTS = 64, 4

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
        Coefficients of ``l0``, ``l1`` and ``l2``, and perhaps ``pairs`` of features with that of their product.
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
    problems = list(_check_claims(claims, counterfactual is not None))
    before = _arranged(original, features["columns"], "original", problems)
    after = (
        None if counterfactual is None else _arranged(counterfactual, features["columns"], "counterfactual", problems)
    )
    predicted, decided, met = None, None, None
    if imputations is None:
        predicted = _ask(model, before, "original", problems)
        decided = _ask(model, after, "counterfactual", problems)
    else:
        predicted = _most(model, _ask_each(model, before, imputations, "original", problems))
        answers = _ask_each(model, after, imputations, "counterfactual", problems)
        decided = _most(model, answers)
    if claims.predicted is not None and predicted is not None and not _same(predicted, claims.predicted):
        problems.append(f"The model gives the original {predicted!r}, not {claims.predicted!r} as claimed.")
    if claims.decided is not None and decided is not None and not _same(decided, claims.decided):
        problems.append(f"The model gives the counterfactual {decided!r}, not {claims.decided!r} as claimed.")
    if decided is not None and imputations is None:
        problems += _missed(model, after, decided, target, probability)
    elif decided is not None and imputations is not None:
        asked = zip(_completed(after, imputations), answers, strict=True)
        good = [table for table, a in asked if not list(_missed(model, table, a, target, probability))]
        least = int(imputations["least"])
        met = len(_deep_enough(good, forest, claims.plausibility))
        forest = _of_completions(forest, good, least)
        if met < least:
            problems.append(f"{met} of {len(answers)} completions get the target, {least} are wanted.")
    cost = None
    if before is not None and after is not None:
        cost = cost_of_changes(before, after, features["features"], norm, constraints, problems)
        problems += _fragile(model, before, after, features["features"], margins or {}, decided)
        if claims.plausibility is not None:
            lacking = _check_depth(claims.plausibility, after, forest, problems)
            cost = None if cost is None else cost + lacking
        if cost is not None and claims.cost is not None and not close(cost, claims.cost):
            problems.append(f"The changes cost {cost!r}, not {claims.cost!r} as claimed.")
    shown = None if imputations is not None else _shown(model, [before] if counterfactual is None else [before, after])
    problems += _misquoted(claims.probabilities, shown)
    return Verification(not problems, tuple(problems), cost, decided, met, shown)


def verify_file(
    path: str | Path,
    model: UserModel,
    forest: Callable[[pd.DataFrame], float] | None = None,
    *,
    progress: bool | None = False,
) -> list[tuple[Any, Verification]]:
    """Check a file of explanations with nothing but the model.

    Parameters
    ----------
    path : str or Path
        What `Explanation.to_json` or `Explanations.to_json` wrote.
    model : UserModel
        See `ocf.models.user_model.as_user_model`.
    forest : callable, optional
        As in `verify`.
    progress : bool or None
        Whether a bar shows the rows that are done; None: on a terminal.

    Returns
    -------
    list of (row label, Verification)
        Of rows that ended before there was anything to check nothing is wrong, and `Verification.answered` is False.

    Raises
    ------
    DataError
        The file is missing, no JSON, not written by ocf, or damaged; or its rows lack columns that the model takes.
    """
    results, out = records.loads(Path(path)), []
    asked: UserModel | None = None
    with ProgressBar(len(results), progress) as bar:
        for number, record in enumerate(results):
            where = f"{path}: explanation {number}"
            fit(record, ClaimsSchema, where)
            _refuse_other_columns(record, model, path)
            with refused(where):
                if asked is None:
                    asked = _asked_tables(model, record)
                out.append((record["row"], _verify_record(record, asked, forest)))
            bar.advance("verified" if out[-1][1].ok else "refuted")
    for number, problem in contradicted(results):
        row, found = out[number]
        out[number] = row, replace(found, ok=False, problems=(*found.problems, problem))
    return out


def _asked_tables(model: UserModel, record: Mapping[str, Any]) -> UserModel:
    """The model, given tables in the dtypes of a row where it knows no names of columns and could take arrays too."""
    table = records.table_from_record(record["original"], record["row"])
    return model.in_frames(kind_of(table), table)


def _misnamed(record: Mapping[str, Any], model: UserModel) -> Iterator[str]:
    """Whether the classes, by whose order probabilities are told, are those of the model."""
    said, own = record.get("classes"), [*map(plain, model.classes)]
    if said and [*map(plain, said)] != own:
        yield f"The classes {said} are not those of the model in their order, {own}."


def _unknown_target(record: Mapping[str, Any], claims: Claims, model: UserModel) -> Iterator[str]:
    """Whether an answer, or the claim that there is none, is about a target that the model cannot give."""
    if claims.status not in (*WITH, "infeasible") or not model.classes:
        return
    target = record["target"]
    for label in target if isinstance(target, list | tuple) else [target]:
        if not any(_same(own, label) for own in model.classes):
            yield f"The target {label!r} is no class of the model."


def _refuse_other_columns(record: Mapping[str, Any], model: UserModel, path: str | Path) -> None:
    """Refuse results about a table that the model does not take, once for all rows."""
    if model.columns is None:
        return
    columns = list(record["original"]["values"])
    try:
        matching_columns(model.columns, tuple(columns))
    except DataError:
        raise DataError(
            f"{path} explains another model: this one takes {listed(model.columns)}, and the rows have "
            f"{listed(columns)}; give the model that was explained"
        ) from None


def _verify_record(
    record: Mapping[str, Any], model: UserModel, forest: Callable[[pd.DataFrame], float] | None
) -> Verification:
    row, changed = record["row"], record["counterfactual"]
    bound = records.number(record["bound"])
    claims = Claims(
        str(record["status"]),
        records.number(record["cost"]),
        -math.inf if bound is None else bound,
        record["predicted"],
        record["decided"],
        record.get("plausibility"),
        record.get("probabilities"),
    )
    if record["features"] is None or record["norm"] is None:
        problems = tuple(_check_claims(claims, changed is not None))
        if changed is not None or claims.status == "infeasible":
            problems += ("There is an answer, but no description of the features to check it by.",)
        return Verification(not problems, problems, status=claims.status)

    faults = (*misdescribed(record), *_misnamed(record, model), *_unknown_target(record, claims, model))
    if faults:  # by which nothing can be checked
        return Verification(False, faults, status=claims.status)

    original = records.table_from_record(record["original"], row)

    def check(table: Any, claims: Claims = claims) -> Verification:
        return verify(
            model,
            original,
            records.table_from_record(table, row) if isinstance(table, dict) else table,
            target=record["target"],
            probability=record.get("probability"),
            features=record["features"],
            norm=record["norm"],
            claims=claims,
            forest=forest,
            constraints=record.get("constraints", ()),
            imputations=record.get("imputations"),
            margins=record.get("margins"),
        )

    found, of_ties = check(changed), replace(claims, decided=None, probabilities=None)
    more = [*misjudged(record), *_miscounted(record, found, forest is not None)]
    more += [f"Tie {k}: {p}" for k, tie in enumerate(record.get("ties", ()), 1) for p in check(tie, of_ties).problems]
    if changed is not None and record.get("changes") is not None:  # programs of others list none
        more += mislisted(record)
    if found.ok and record.get("partway") is not None:
        more += _misquoted_partway(record, model, original)
    staying = Claims("feasible", 0.0, -math.inf)
    if found.ok and _may_need_no_change(record, claims, model) and check(record["original"], staying).ok:
        so = "it is not infeasible" if claims.status == "infeasible" else "no change is the cheapest"
        more.append(f"The row has the target as it is, so that {so}.")
    if found.ok and not more:
        more += _misboxed(record, model)
        more += _misranged(record, lambda point: check(point, Claims("feasible", claims.cost, -math.inf)))
    return replace(found, ok=found.ok and not more, problems=(*found.problems, *more), status=claims.status)


def _miscounted(record: Mapping[str, Any], found: Verification, counted: bool) -> Iterator[str]:
    """Where another number of completions is right; without a forest those that are deep enough are some of them."""
    said = (record.get("imputations") or {}).get("met")
    if said is None or found.met is None:
        return
    if said > found.met or (said < found.met and (counted or record.get("plausibility") is None)):
        yield f"{found.met} completions get the target, not {said} as claimed."


def _may_need_no_change(record: Mapping[str, Any], claims: Claims, model: UserModel) -> bool:
    """Whether a row is called infeasible, or changed at a cost, that may need no change; the model is not asked.

    Of further answers to a row, and where a plausibility or margins are wanted, more than the target has to hold.
    """
    dear = claims.status == "optimal" and claims.cost is not None and claims.cost > TOLERANCE
    if not dear and claims.status != "infeasible":
        return False
    if record.get("rank", 1) > 1 or claims.plausibility is not None or record.get("margins"):
        return False
    if claims.predicted is None or record.get("probability") is not None or record.get("imputations") is not None:
        return True
    return not list(_missed(model, None, claims.predicted, record["target"], None))


def _misboxed(record: Mapping[str, Any], model: UserModel) -> Iterator[str]:
    """What is wrong with the box around an answer, and whether the model gives points of it something else."""
    box, answer = record.get("box"), record["counterfactual"]
    if box is None:
        return
    if answer is None or record.get("imputations") is not None:
        yield "There is a box, but no answer around which one is known."
        return
    changes = changes_to(record, answer)
    if faults := list(misboxed(box, changes)):
        yield from faults
        return
    table = points_of(box["ranges"], changes, records.table_from_record(answer, record["row"]), POINTS)
    try:
        for k, given in enumerate(model.decide(table)):
            decided = model.classes[int(given)] if model.classes else float(given)
            if wrong := next(_missed(model, table.iloc[[k]], decided, record["target"], record.get("probability")), ""):
                yield f"At a point of the box: {wrong}"
                return
    except Exception as error:  # the model is the user's: whatever it raises is a finding
        yield f"The model cannot decide about points of the box: {type(error).__name__}: {error}"


def _misranged(record: Mapping[str, Any], check: Callable[[pd.DataFrame], Verification]) -> Iterator[str]:
    """Where other values of the ranges of answers are no answers of the same cost."""
    if record["counterfactual"] is None:
        return
    answers = [record["counterfactual"], *record.get("ties", ())]
    if len(record.get("ranges", ())) > len(answers):
        yield "There are ranges of more answers than there are."
    for ranges, answer in zip(record.get("ranges", ()), answers, strict=False):
        changes = changes_to(record, answer)
        yield from outside(ranges, changes)
        table = points_of(ranges, changes, records.table_from_record(answer, record["row"]), FEW_POINTS)
        for k in range(len(table)) if ranges else ():
            yield from (f"At a point of the ranges: {problem}" for problem in check(table.iloc[[k]]).problems)


def _misquoted_partway(record: Mapping[str, Any], model: UserModel, original: pd.DataFrame) -> Iterator[str]:
    """What is claimed of the way to a counterfactual and does not hold."""
    shown: tuple[tuple[float, ...], ...] | None = ()
    if record["counterfactual"] is not None:
        answer = records.table_from_record(record["counterfactual"], record["row"])
        columns = [feature["columns"] for feature in record["features"]["features"]]
        between = partway_tables(original, answer, columns)
        shown = partway_shown(with_answers(model, between), between)
    return misquoted_partway(record["partway"], shown)


# -- claims ----------------------------------------------------------------------------------------------------


def _check_claims(claims: Claims, found: bool) -> Iterator[str]:
    """Whether status, cost and bound agree with each other."""
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


# -- the model -------------------------------------------------------------------------------------------------


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


def _ask(model: UserModel, table: pd.DataFrame | None, which: str, problems: list[str]) -> Any:
    """Class label or value that the user's model gives a row; None when it cannot be asked."""
    if table is None:
        return None
    try:
        answer = model.decide(table)[0]
        return model.classes[int(answer)] if model.classes else float(answer)
    except Exception as error:  # the model is the user's: whatever it raises is a finding
        problems.append(f"The model cannot decide about the {which}: {type(error).__name__}: {error}")
        return None


def _shown(model: UserModel, tables: Sequence[pd.DataFrame | None]) -> tuple[tuple[float, ...], ...] | None:
    """Probabilities that the user's model gives rows; None where it cannot be asked."""
    show = model.probabilities
    if show is None or any(table is None for table in tables):
        return None
    try:
        return tuple(tuple(map(float, show(table)[0])) for table in tables if table is not None)
    except Exception:  # the model is the user's, and has decided about these rows already
        return None


def _misquoted(claimed: Sequence[Sequence[float]] | None, shown: Sequence[Sequence[float]] | None) -> Iterator[str]:
    """Which probabilities are not those that the model gives."""
    if claimed is None:
        return
    if shown is None:
        yield "Probabilities are claimed, but the model shows none."
        return
    if len(claimed) != len(shown):
        yield f"There are probabilities of {len(claimed)} rows, not of {len(shown)}."
    for which, said, own in zip(("original", "counterfactual"), claimed, shown, strict=False):
        if len(said) != len(own) or not all(map(close, own, said)):
            yield f"The model gives the {which} the probabilities {list(own)}, not {list(said)} as claimed."


def _completed(table: pd.DataFrame | None, imputations: Mapping[str, Any]) -> list[pd.DataFrame]:
    """The row with the values of each completion in the place of those that it lacks."""
    if table is None:
        return []
    filled = {name: _filled(own, table[name].dtype) for name, own in imputations["values"].items()}
    out = []
    for k in range(len(next(iter(filled.values())))):
        own = table.copy()
        for name, column in filled.items():
            own[name] = column.iloc[[k]].set_axis(own.index)
        out.append(own)
    return out


def _filled(values: Sequence[Any], dtype: Any) -> pd.Series[Any]:
    """Values of completions in the row's dtype; of dates and durations JSON keeps the text."""
    given = pd.Series(values)
    told = dtype.kind in "mM" and all(isinstance(value, str) for value in values)
    return given.astype(dtype) if told else exact_in(given, dtype)


def _ask_each(
    model: UserModel, table: pd.DataFrame | None, imputations: Mapping[str, Any], which: str, problems: list[str]
) -> list[Any]:
    """What the user's model gives each completion of a row; nothing where it cannot be asked."""
    answers = [_ask(model, own, which, problems) for own in _completed(table, imputations)]
    return [] if any(answer is None for answer in answers) else answers


def _most(model: UserModel, answers: Sequence[Any]) -> Any:
    """The class that is answered most often, of several the first of the model's; of values the median."""
    if not answers:
        return None
    return max(model.classes, key=answers.count) if model.classes else float(np.median(answers))


def _missed(model: UserModel, table: Any, decided: Any, target: Any, probability: float | None) -> Iterator[str]:
    """What a counterfactual lacks of the target."""
    classes = model.classes
    several = isinstance(target, list | tuple)
    if not classes:
        if not several or len(target) != 2:
            yield f"The model predicts a value, but the target {target!r} is no pair of bounds."
            return
        lowest, highest = target
        if lowest is not None and not decided >= float(lowest):
            yield f"The model gives the counterfactual {decided!r}, less than the wanted {lowest!r}."
        if highest is not None and not decided <= float(highest):
            yield f"The model gives the counterfactual {decided!r}, more than the wanted {highest!r}."
        return
    wanted = list(target) if several else [target]
    if probability is None:
        if not any(_same(decided, label) for label in wanted):
            words = " or ".join(map(repr, wanted))
            yield f"The model gives the counterfactual {decided!r}, not the wanted {words}."
        return
    if model.probabilities is None:
        yield "A probability was wanted, but the model shows none."
        return
    shown = model.probabilities(table)[0]
    most = max((float(p) for p, c in zip(shown, classes, strict=True) if any(_same(c, w) for w in wanted)), default=0.0)
    if not most >= probability:
        yield f"The model gives the wanted class a probability of {most!r}, less than the wanted {probability!r}."


def _same(label: Any, other: Any) -> bool:
    """Whether two labels are one, or two values, which libraries may sum otherwise in a batch than by themselves.

    A label that went through JSON may have become its text.
    """
    if isinstance(label, float) and isinstance(other, float):
        return close(label, other)
    return bool(label == other) or str(label) == str(other)


# -- margins ---------------------------------------------------------------------------------------------------


def _fragile(
    model: UserModel,
    before: pd.DataFrame,
    after: pd.DataFrame,
    features: Sequence[Mapping[str, Any]],
    margins: Mapping[str, float],
    decided: Any,
) -> Iterator[str]:
    """Where the model answers otherwise once changed values, each and all, fall short by some of their margins."""
    columns = {f["name"]: f["columns"][0] for f in features}
    moved = [f["name"] for f in features if f["name"] in margins and _moved(f, before, after)]
    for names in [[name] for name in moved] + [moved] * (len(moved) > 1):
        for part in (0.5, 0.999):
            short = after.copy()
            for name in names:
                column = columns[name]
                value = _short(before[column].iloc[0], after[column].iloc[0], part * margins[name])
                short[column] = pd.Series([value], short.index).astype(after[column].dtype)
            answer = model.decide(short)[0]
            answer = model.classes[int(answer)] if model.classes else float(answer)
            if decided is not None and not _same(answer, decided):
                yield f"With {', '.join(map(repr, names))} short by {part:g} of the margin the model gives {answer!r}."


def _moved(feature: Mapping[str, Any], before: pd.DataFrame, after: pd.DataFrame) -> bool:
    """Whether one number became another; dates are not taken back, and codes have no way to go."""
    old, new = (table[feature["columns"][0]].iloc[0] for table in (before, after))
    numbers = all(isinstance(v, int | float | np.number) and bool(v == v) for v in (old, new))
    codes = (feature.get("special") or {}).get("codes", ())
    return bool(numbers and old != new and old not in codes and new not in codes)


def _short(old: Any, new: Any, by: float) -> Any:
    """A value that falls short of another on the way from the old one, in the dtype of its column."""
    if isinstance(new, int | np.integer):
        by = math.floor(by)
    short = max(old, new - by) if new > old else min(old, new + by)
    if isinstance(new, np.floating):
        short = type(new)(short)
        return np.nextafter(short, new) if abs(float(new) - float(short)) > by else short
    return short


# -- plausibility ----------------------------------------------------------------------------------------------


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
