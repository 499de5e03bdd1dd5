"""What ocf claims of a row of a table, against brute force through the user's own model."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from oracle.table_brute_force import Asked, cheapest
from oracle.tables import LIBRARIES, TableInstance, make

from ocf import Explainer
from ocf.errors import OcfError

#: Relative difference below which two costs are the same.
TOLERANCE = 1e-9


#: Of the box search, where a question has no cells.
NO_CELLS = "the solver 'box' searches cells"


class FalseClaim(AssertionError):
    """Something that ocf says of a table is not true."""


def check_table(instance: TableInstance) -> str:
    """Ask ocf and hold its answer against brute force.

    Returns
    -------
    str
        The status of the answer, or "refused: …" with the reason.

    Raises
    ------
    FalseClaim
        A point that does not flip the model, is not admissible or costs something else; an optimum, bound or
        infeasibility that some point contradicts; an error that is not of ocf's own; another answer in a batch.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            explainer = Explainer(instance.model, instance.told, instance.features, monotone=instance.monotone)
            answer = explainer.explain(instance.row, **instance.question, progress=False)[0]
        except OcfError as error:
            if NO_CELLS in str(error):  # hyperplanes, over which the box search is none
                return check_table(replace(instance, question=instance.question | {"solver": "auto"}))
            return f"refused: {kind_of(str(error))}"
        except Exception as error:
            raise FalseClaim(f"crash: {type(error).__name__}: {error}") from error
        if answer.status == "error":
            if answer.message.startswith("internal error"):
                raise FalseClaim(f"crash: {answer.message}")
            return f"refused: {kind_of(answer.message)}"
        _check_scales(instance, explainer.space.features)
        _check_batch(instance, explainer)
        _check_claims(Asked(instance, explainer.space.features), answer)
    return str(answer.status)


def _check_scales(instance: TableInstance, features: Any) -> None:
    """By the documentation the scale of a number is its range in the data, whatever its bounds are."""
    for feature in features:
        said = instance.features.get(feature.name, {})
        if feature.kind in ("numeric", "integer") and feature.special is None and "scale" not in said:
            values = instance.data[feature.name].dropna()
            if getattr(values.dtype, "kind", "O") in "iuf" and values.nunique() > 1:
                width = float(values.max()) - float(values.min())
                if not math.isclose(feature.scale, width, rel_tol=1e-6):
                    raise FalseClaim(f"scale: of {feature.name} {feature.scale!r}, and its range is {width!r}")


def _check_batch(instance: TableInstance, explainer: Any) -> None:
    """The row among others gets what it gets alone, and so do they."""
    rows = instance.batch()
    answers = _asked(instance, explainer, rows)
    for k, answer in enumerate(answers):
        alone = _asked(instance, explainer, rows.iloc[[k]])
        claims = [None if a is None else (a.status, a.cost, a.verified) for a in (answer, *alone)]
        if not _same(*claims):
            raise FalseClaim(f"batch: row {k} of {len(rows)} has {claims[0]}, and {claims[1]} alone")


def _asked(instance: TableInstance, explainer: Any, rows: pd.DataFrame) -> list[Any]:
    """Answers to rows as they are given to ocf; None of those that it refuses."""
    given = rows if instance.library == "pandas" else LIBRARIES[instance.library](rows)
    try:
        answers = explainer.explain(given, **instance.question, progress=False)
    except OcfError:
        return [None] * len(rows)
    except Exception as error:
        raise FalseClaim(f"crash: of {len(rows)} rows: {type(error).__name__}: {error}") from error
    return [None if a.status == "error" else a for a in answers]


def _same(batch: Any, alone: Any) -> bool:
    """Whether two claims are the same but for rounding."""
    if batch is None or alone is None or batch[1] is None or alone[1] is None:
        return bool(batch == alone)
    return batch[::2] == alone[::2] and math.isclose(batch[1], alone[1], rel_tol=TOLERANCE, abs_tol=1e-12)


def kind_of(message: str) -> str:
    """A message without its names and numbers."""
    plain = re.sub(r"'[^']*'|\"[^\"]*\"|\{.*\}|-?\d[\d.e+-]*", "…", message)
    return " ".join(plain.split())[:90]


def _check_claims(asked: Asked, answer: Any) -> None:
    if answer.counterfactual is not None:
        objections = list(point_objections(asked, answer))
        if objections:
            point = in_pandas(answer.counterfactual).iloc[0].to_dict()
            raise FalseClaim(f"point: {'; '.join(objections)} ({answer.status} {point})")
    elif answer.status in ("optimal", "feasible"):
        raise FalseClaim(f"point: {answer.status} without one")
    if answer.status == "infeasible":
        limit, claim = math.inf, "infeasible"
    else:
        limit, claim = answer.bound - TOLERANCE * max(1e-6, abs(answer.bound)), f"bound {answer.bound!r}"
    if answer.status == "optimal":
        claim = f"optimal {answer.cost!r}"
        if not math.isclose(answer.bound, answer.cost, rel_tol=TOLERANCE, abs_tol=1e-12):
            raise FalseClaim(f"optimal: of cost {answer.cost!r} with bound {answer.bound!r}")
    if not limit > 0:
        return
    best = cheapest(asked, limit)
    if best.table is not None:
        raise FalseClaim(
            f"{claim.partition(' ')[0]}: {claim}, but {best.table.iloc[0].to_dict()} costs {best.cost!r}"
            f" (solved by {answer.method.get('solver')})"
        )


def point_objections(asked: Asked, answer: Any) -> list[str]:
    """What is wrong with the point itself."""
    instance, table = asked.instance, in_pandas(answer.counterfactual)
    found = []
    if instance.library in ("polars", "pyarrow") and type(answer.counterfactual) is not type(instance.told):
        found.append(f"it comes as {type(answer.counterfactual).__name__}")
    try:
        said = instance.predict(table[list(instance.data.columns)])[0]
    except Exception as error:
        return [f"the model refuses it: {type(error).__name__}: {error}"]
    if said != instance.question["target"]:
        found.append(f"the model says {said!r}, not {instance.question['target']!r}")
    point = asked.coded(table)[0]
    for i, feature in enumerate(asked.features):
        value, origin = point[i], asked.origin[i]
        if math.isnan(value) != math.isnan(origin):
            if asked.goes_missing(i) if math.isnan(value) else asked.supplied(i) and _admissible(asked, i, value):
                continue
            found.append(f"{feature.name!r} goes from {origin} to {value}")
        elif not math.isnan(value) and not _admissible(asked, i, value):
            found.append(f"{feature.name!r} = {value!r} is not admissible")
    cost = sum(asked.costs(i, point[[i]])[0] for i in range(len(point)))
    if not found and not math.isclose(cost, answer.cost, rel_tol=TOLERANCE, abs_tol=1e-12):
        found.append(f"it costs {cost!r}, not {answer.cost!r}")
    return found


def in_pandas(table: Any) -> Any:
    """A table of an answer as one of pandas, with columns named by text."""
    return table.rename(columns=str) if isinstance(table, pd.DataFrame) else table.to_pandas()


def _admissible(asked: Asked, i: int, value: float) -> bool:
    if asked.features[i].levels:
        return value in asked.levels(i)
    low, high = asked.limits(i)
    grid = asked.grid(i, wide=True)
    return low <= value <= high and (value == asked.origin[i] or grid.values(grid.keys(np.array([value])))[0] == value)


def play_table(theme: str, seed: int, seen: Counter[tuple[str, str]]) -> str | None:
    """Check an instance; what is false, if anything, and how to see it again."""
    instance = make(theme, seed)
    try:
        seen[theme, check_table(instance)] += 1
    except FalseClaim as claim:
        seen[theme, f"FALSE {str(claim).partition(':')[0]}"] += 1
        return f"{claim}\n  {instance.describe()}"
    except Exception as error:  # of the oracle itself: nothing was checked
        seen[theme, "UNCHECKED"] += 1
        return f"unchecked, {type(error).__name__}: {error}\n  {instance.describe()}"
    return None
