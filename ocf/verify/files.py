"""The independent check of a file of explanations, with nothing but the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ocf.errors import DataError
from ocf.features.frames import kind_of
from ocf.models.foreseen import with_answers
from ocf.models.giving import matching_columns
from ocf.support import json_records as records
from ocf.support.documents import fit, refused
from ocf.support.json_dtypes import plain
from ocf.support.messages import listed
from ocf.support.progress import ProgressBar
from ocf.support.schemas import ClaimsSchema
from ocf.verify.asked import missed, same
from ocf.verify.boxes import misboxed, outside, points_of
from ocf.verify.changes import TOLERANCE
from ocf.verify.check import WITH, Claims, Verification, check_claims, verify
from ocf.verify.described import misdescribed
from ocf.verify.partway import misquoted_partway, partway_shown, partway_tables
from ocf.verify.together import asked_of, contradicted
from ocf.verify.told import changes_to, misjudged, mislisted

if TYPE_CHECKING:
    from ocf.models.user_model import UserModel

#: Points of a box, and of the ranges of an answer, that the model is asked about.
POINTS, FEW_POINTS = 64, 4


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
        if not any(same(own, label) for own in model.classes):
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
        problems = tuple(check_claims(claims, changed is not None))
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
    more = [*_untold(record), *misjudged(record), *_miscounted(record, found, forest is not None)]
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
    if _asks_more(asked_of(record), claims):
        return False
    if claims.predicted is None or record.get("probability") is not None or record.get("imputations") is not None:
        return True
    return not list(missed(model, None, claims.predicted, record["target"], None))


def _asks_more(asked: Mapping[str, Any], claims: Claims) -> bool:
    """Whether a row that has the target may have to change all the same, by what was asked.

    A margin of the splits is believed, and that nothing is plausible.
    """
    wish = asked.get("plausibility")
    implausible = isinstance(wish, Mapping) and wish.get("required") is not False and claims.status == "infeasible"
    return implausible or bool(asked.get("split_margin"))


def _untold(record: Mapping[str, Any]) -> Iterator[str]:
    """A plausibility that was asked for, and of which an answer says nothing."""
    if asked_of(record).get("plausibility") and record["counterfactual"] is not None and not record.get("plausibility"):
        yield "A plausibility was asked for, and the answer tells none."


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
            if wrong := next(missed(model, table.iloc[[k]], decided, record["target"], record.get("probability")), ""):
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
