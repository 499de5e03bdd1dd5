"""The independent check of a result: the user's own model, the raw values, and plain arithmetic.

Nothing here is shared with the formulations, the solvers, the cells, or the costs and features that they use: a
feature is a plain dict, a value is what stands in the table, and a distance is written out again. A mistake
elsewhere can therefore not hide here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ocf.errors import DataError
from ocf.models.user_model import matching_columns
from ocf.support import json_records as records
from ocf.support.documents import fit, refused
from ocf.support.messages import listed
from ocf.support.schemas import ClaimsSchema
from ocf.verify.constraints import Change, broken, coupled_part, curve_amount
from ocf.verify.partway import misquoted_partway, partway_shown, partway_tables
from ocf.verify.times import days, is_time

if TYPE_CHECKING:
    from ocf.models.user_model import UserModel


#: Relative difference below which two costs are the same number.
TOLERANCE = 1e-9

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
        cost = _check_changes(before, after, features["features"], norm, constraints, problems)
        problems += _fragile(model, before, after, features["features"], margins or {}, decided)
        if claims.plausibility is not None:
            lacking = _check_depth(claims.plausibility, after, forest, problems)
            cost = None if cost is None else cost + lacking
        if cost is not None and claims.cost is not None and not _close(cost, claims.cost):
            problems.append(f"The changes cost {cost!r}, not {claims.cost!r} as claimed.")
    shown = None if imputations is not None else _shown(model, [before] if counterfactual is None else [before, after])
    problems += _misquoted(claims.probabilities, shown)
    return Verification(not problems, tuple(problems), cost, decided, met, shown)


def verify_file(
    path: str | Path, model: UserModel, forest: Callable[[pd.DataFrame], float] | None = None
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

    Returns
    -------
    list of (row label, Verification)
        Of rows that ended before there was anything to check nothing is wrong, and `Verification.answered` is False.

    Raises
    ------
    DataError
        The file is missing, no JSON, not written by ocf, or damaged; or its rows lack columns that the model takes.
    """
    out = []
    for number, record in enumerate(records.loads(Path(path))):
        where = f"{path}: explanation {number}"
        fit(record, ClaimsSchema, where)
        _refuse_other_columns(record, model, path)
        with refused(where):
            out.append((record["row"], _verify_record(record, model, forest)))
    return out


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
        if changed is not None:
            problems += ("There is a counterfactual, but no description of the features to check it by.",)
        return Verification(not problems, problems, status=claims.status)

    def check(table: Any, claims: Claims = claims) -> Verification:
        return verify(
            model,
            records.table_from_record(record["original"], row),
            None if table is None else records.table_from_record(table, row),
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

    found, of_ties = check(changed), replace(claims, probabilities=None)
    more = [f"Tie {k}: {p}" for k, tie in enumerate(record.get("ties", ()), 1) for p in check(tie, of_ties).problems]
    if changed is not None and record.get("changes") is not None:  # programs of others list none
        more += _mislisted(record)
    if found.ok and record.get("partway") is not None:
        more += _misquoted_partway(record, model)
    return replace(found, ok=found.ok and not more, problems=(*found.problems, *more), status=claims.status)


def _mislisted(record: Mapping[str, Any]) -> Iterator[str]:
    """What the list of changes, which a person reads, says otherwise than the row and the counterfactual."""
    before, after = (record[table]["values"] for table in ("original", "counterfactual"))
    listed = {str(change["feature"]): (change["from"], change["to"]) for change in record["changes"]}
    columns = {feature["name"]: feature["columns"] for feature in record["features"]["features"]}
    moved = {name for name, own in columns.items() if any(before[column] != after[column] for column in own)}
    yield from (f"Feature {name!r} changes and is not among the changes." for name in sorted(moved - {*listed}))
    yield from (f"Feature {name!r} is among the changes and does not change." for name in sorted({*listed} - moved))
    for name in sorted(moved & {*listed}):
        column, (old, new) = columns[name][0], listed[name]
        if len(columns[name]) == 1 and (old, new) != (before[column], after[column]):
            yield f"Feature {name!r} is listed as going from {old!r} to {new!r}, and does not."


def _misquoted_partway(record: Mapping[str, Any], model: UserModel) -> Iterator[str]:
    """What is claimed of the way to a counterfactual and does not hold."""
    shown: tuple[tuple[float, ...], ...] | None = ()
    if record["counterfactual"] is not None:
        before, after = (records.table_from_record(record[n], record["row"]) for n in ("original", "counterfactual"))
        columns = [feature["columns"] for feature in record["features"]["features"]]
        shown = partway_shown(model, partway_tables(before, after, columns))
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
    if found and cost is None:
        yield "There is a counterfactual, but no cost."
    if cost is not None and not math.isfinite(cost):
        yield f"The cost {cost!r} is no finite number."
    if math.isnan(bound):
        yield "The bound is not a number."
    if cost is not None and bound > cost and not _close(bound, cost):
        yield f"The bound {bound!r} is above the cost {cost!r}: one of them is wrong."
    if status == "optimal" and cost is not None and not _close(bound, cost):
        yield f"The status is 'optimal', but the bound {bound!r} does not prove the cost {cost!r}."
    if status == "infeasible" and bound != math.inf:
        yield f"The status is 'infeasible', but the bound is {bound!r}, not infinite."


def _close(a: float, b: float) -> bool:
    """Whether two costs are the same number; below `TOLERANCE` the difference counts by itself."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return a == b
    return abs(a - b) <= TOLERANCE * max(abs(a), abs(b), TOLERANCE)


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
    for which, said, own in zip(("original", "counterfactual"), claimed, shown, strict=False):
        if len(said) != len(own) or not all(map(_close, own, said)):
            yield f"The model gives the {which} the probabilities {list(own)}, not {list(said)} as claimed."


def _completed(table: pd.DataFrame | None, imputations: Mapping[str, Any]) -> list[pd.DataFrame]:
    """The row with the values of each completion in the place of those that it lacks."""
    if table is None:
        return []
    values = imputations["values"]
    out = []
    for k in range(len(next(iter(values.values())))):
        own = table.copy()
        for name, column in values.items():
            dtype = own[name].dtype
            filled = pd.Series([column[k]], index=own.index)
            own[name] = filled.astype(dtype) if filled.astype(dtype).iloc[0] == column[k] else filled
        out.append(own)
    return out


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
    """Whether two class labels are one; a label that went through JSON may have become its text."""
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
        if not _close(counted, depth):
            problems.append(f"The average depth in the isolation forest is {counted!r}, not {depth!r} as claimed.")
        depth = counted
    if least is not None and depth < least and not _close(depth, float(least)):
        problems.append(f"The average depth in the isolation forest is {depth!r}, less than the wanted {least!r}.")
    return float(claimed["weight"]) * (float(claimed["deepest"]) - depth)


def _deep_enough(
    tables: list[pd.DataFrame], forest: Callable[[pd.DataFrame], float] | None, claimed: Mapping[str, Any] | None
) -> list[pd.DataFrame]:
    """Completions that the isolation forest finds deep enough; all where nobody asks it."""
    if forest is None or claimed is None or claimed["least"] is None:
        return tables
    least = float(claimed["least"])
    return [table for table in tables if (depth := forest(table)) >= least or _close(depth, least)]


def _of_completions(
    forest: Callable[[pd.DataFrame], float] | None, tables: list[pd.DataFrame], least: int
) -> Callable[[pd.DataFrame], float] | None:
    """What so many of some completions are at least as deep as, in the place of the depth of the incomplete row."""
    if forest is None or not tables:
        return forest
    return lambda _: sorted(map(forest, tables), reverse=True)[min(least, len(tables)) - 1]


# -- the changes -----------------------------------------------------------------------------------------------


def _check_changes(
    before: pd.DataFrame,
    after: pd.DataFrame,
    features: Sequence[Mapping[str, Any]],
    norm: Mapping[str, Any],
    constraints: Sequence[Mapping[str, Any]],
    problems: list[str],
) -> float | None:
    """Recompute the cost and check what may change; None when a value cannot be read."""
    cost = 0.0
    readable = True
    changes: dict[str, Change] = {}
    # as objects, so that no value takes another's type
    first, second = (dict(zip(t.columns, t.to_numpy(object)[0], strict=True)) for t in (before, after))
    for feature in features:
        try:
            old, new = _value(first, feature), _value(second, feature)
        except DataError as error:
            problems.append(str(error))
            readable = False
            continue
        changes[feature["name"]] = (feature, old, new)
        if old == new and _stands_apart(feature, old):
            continue
        if _stands_apart(feature, old) or _stands_apart(feature, new):
            price, objections = _supplied(feature, norm, old, new)
            problems += objections
            readable = readable and price is not None
            cost += price or 0.0
            continue
        assert old is not None
        assert new is not None
        problems += _forbidden(feature, old, new)
        cost += _cost(feature, norm, old, new)
    if readable:
        cost += coupled_part(norm, changes)
        problems += broken(constraints, changes)
    return cost if readable else None


def _stands_apart(feature: Mapping[str, Any], value: float | None) -> bool:
    """Whether a value is missing, or a code that stands for something else than its number."""
    if value is None:
        return True
    codes = (feature.get("special") or {}).get("codes", ())
    return (feature["levels"][int(value)] if feature["levels"] else value) in codes


def _supplied(
    feature: Mapping[str, Any], norm: Mapping[str, Any], old: float | None, new: float | None
) -> tuple[float | None, list[str]]:
    """What it costs to supply a value, or that one goes missing, and what is wrong with that; None: it has no price."""
    name, special = feature["name"], feature.get("special") or {}
    was, is_ = (_stands_apart(feature, value) for value in (old, new))
    price = None if was and is_ else special.get("supplying" if was else "becoming")
    if price is None:
        said = "missing value must stay missing" if old is None or new is None else "special value must stay as it is"
        return None, [f"{name!r}: a {said}, but {old!r} became {new!r}."]
    problems = [f"{name!r} is fixed, but {old!r} became {new!r}."] if feature["action"] == "fixed" else []
    if new is not None and not is_:
        problems += _inadmissible(feature, new, None)
    beyond = bool(norm.get("squares") or norm.get("forms") or norm.get("absolutes"))
    return float(norm["l0"] + price * (norm["l1"] + norm["l2"] + beyond)), problems


def _value(row: Mapping[Any, Any], feature: Mapping[str, Any]) -> float | None:
    """Number, or index of the level, that a row holds; None when it is missing."""
    name, columns, levels = feature["name"], feature["columns"], feature["levels"]
    cells = [row[column] for column in columns]
    if len(columns) > 1 or feature["base"]:
        ones = [k for k, cell in enumerate(cells) if cell == 1]
        if any(pd.isna(cell) or cell not in (0, 1) for cell in cells) or len(ones) > 1 or not (ones or feature["base"]):
            raise DataError(f"{name!r}: its indicator columns must hold 0 and a single 1, not {cells}.")
        return float(ones[0] + bool(feature["base"])) if ones else 0.0
    cell = cells[0]
    if pd.isna(cell):
        return None
    if levels:
        if cell not in levels:
            raise DataError(f"{name!r}: {cell!r} is none of its levels.")
        return float(levels.index(cell))
    try:
        value = days(cell, feature["dtype"]) if is_time(feature) else float(cell)
    except (TypeError, ValueError, AttributeError):
        raise DataError(f"{name!r}: {cell!r} is not a number.") from None
    if math.isinf(value):
        raise DataError(f"{name!r}: {value} is not finite.")
    return value


def _forbidden(feature: Mapping[str, Any], old: float, new: float) -> Iterator[str]:
    """What the feature's description does not allow."""
    name, levels, action = feature["name"], feature["levels"], feature["action"]

    def word(value: float) -> str:
        return repr(levels[int(value)] if levels else value)

    change = f"{word(old)} became {word(new)}"
    if action == "fixed" and new != old:
        yield f"{name!r} is fixed, but {change}."
    if action == "increasing" and new < old:
        yield f"{name!r} may only increase, but {change}."
    if action == "decreasing" and new > old:
        yield f"{name!r} may only decrease, but {change}."
    yield from _inadmissible(feature, new, old)


def _inadmissible(feature: Mapping[str, Any], new: float, old: float | None) -> Iterator[str]:
    """Why a value may not be chosen in the place of another; None: there was none."""
    name, levels, permitted = feature["name"], feature["levels"], feature["permitted"]
    if levels:
        if permitted is not None and levels[int(new)] not in permitted:
            yield f"{name!r}: {levels[int(new)]!r} is none of the permitted levels {list(permitted)}."
        return
    # the grid and the bounds of the feature hold for values that were chosen, not for the row's own
    if new != old:
        lower, upper, step = float(feature["lower"]), float(feature["upper"]), feature["step"]
        own = [] if old is None else [old]
        if not min([lower, *own]) <= new <= max([upper, *own]):
            yield f"{name!r}: {new!r} is outside the bounds [{lower!r}, {upper!r}]."
        if feature["kind"] == "integer" and not new.is_integer():
            yield f"{name!r}: {new!r} is not a whole number."
        if step is not None and not _on_grid(new, step, feature.get("dtype", "float64")):
            yield f"{name!r}: {new!r} is no multiple of {step!r}."
    if permitted is not None and not float(permitted[0]) <= new <= float(permitted[1]):
        yield f"{name!r}: {new!r} is outside the permitted range {list(permitted)}."


def _on_grid(value: float, step: float, dtype: str) -> bool:
    """Whether a value is a multiple of the decimal that the step is written as, as nearly as the column can hold it."""
    exact = float(Decimal(repr(step)) * round(Decimal(repr(value)) / Decimal(repr(step))))
    if dtype.lower() in ("float16", "float32"):
        return value == float(np.dtype(dtype.lower()).type(exact))
    return abs(value - exact) <= 4 * math.ulp(value)


def _cost(feature: Mapping[str, Any], norm: Mapping[str, float], old: float, new: float) -> float:
    """What one change costs: weight (l0 [d != 0] + l1 |d| + l2 d**2), d in units of the scale."""
    if new == old:
        return 0.0
    if feature.get("cost") is not None:
        return float(curve_amount(feature["cost"], feature, old, new))
    kind, levels = feature["kind"], feature["levels"]
    if kind in ("binary", "categorical"):
        distance = 1.0 if kind == "categorical" or new > old else -1.0
    elif kind == "ordinal" and all(isinstance(v, int | float) and not isinstance(v, bool) for v in levels):
        distance = (levels[int(new)] - levels[int(old)]) / feature["scale"]
    else:
        distance = (new - old) / feature["scale"]
    weight = feature["weight_down"] if distance < 0 else feature["weight_up"]
    # a change so small that its distance rounds to 0 is still a change
    mixed = norm["l0"] + norm["l1"] * abs(distance) + norm["l2"] * distance * distance
    return float(weight * mixed)
