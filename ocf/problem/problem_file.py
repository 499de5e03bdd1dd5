"""Problem files: what may change, what is wanted and how to solve it, in TOML.

::

    [solve]                            # settings of `Explainer.explain`, all optional
    target = 1                         # or several, any of which will do: target = ["good", "fair"]
    probability = 0.7                  # of the target, by the model's predict_proba; left out: its decision
    norm = "l1"                        # or a mix: norm = { l0 = 0.1, l1 = 1 }
    features_to_vary = ["age", "income", "job"]
    time_limit = 60
    options = { mip_heuristic_effort = 0.1 }

    [plausibility]                     # settings of `ocf.Plausibility`; the empty section asks for the defaults
    quantile = 0.1
    trees = 100

    [features.age]                     # settings of `ocf.features.inference.infer_space`, all optional
    kind = "integer"
    bounds = [18, 90]
    actionability = "increasing"

    [features.income]
    step = 100
    scale = 10000.0
    weight = [2.0, 1.0]                # going down is twice as dear as going up
    permitted_range = [20000, 60000]

    [features.education]               # a cost of its own in place of the norm
    kind = "ordinal"
    levels = ["none", "school", "college"]
    cost = { between = [1.0, 3.0] }    # or by level, per unit [down, up], or points of a curve

    [features.job]                     # one feature, held as one indicator column for each level
    kind = "categorical"
    columns = { clerk = "job_clerk", smith = "job_smith" }
    base = "none"

    [[constraints]]                    # what every answer must respect; see `ocf.problem.constraints`
    name = "solvent"
    kind = "linear"
    terms = { income = 1, debt = -2, job = { smith = -500 } }
    sense = ">="
    bound = 1000

    [[constraints]]
    kind = "implication"
    when = { job = ["none"] }
    then = { income = { max = 1000 } }

    [[constraints]]
    name = "months"
    kind = "budget"
    limit = 24
    costs = { education = { school = 12, college = 36 }, income = [0, 0.01] }

    [[constraints]]
    kind = "max_changes"
    most = 3

For a regressor ``at_least = 200_000`` and ``at_most = 250_000``, or one of them, take the place of the target.
Features that are not named are inferred from the data. A section or key that is not known is an error, with the
nearest known one in its message; nothing is ignored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, get_args

from ocf.errors import ProblemError
from ocf.features.curve import Curve
from ocf.features.feature import Action, Kind
from ocf.problem.constraints import Constraint, from_file
from ocf.support.documents import parse_toml, read_text
from ocf.support.messages import nearest
from ocf.support.toml_text import is_scalar, is_texts, toml_key


@dataclass(frozen=True)
class ProblemFile:
    """What a problem file says.

    Attributes
    ----------
    features : dict of str to dict
        Settings by feature name, for `ocf.features.inference.infer_space`.
    solve : dict
        Keyword arguments of `Explainer.explain`.
    constraints : tuple of Constraint
    """

    features: dict[str, dict[str, Any]] = field(default_factory=dict)
    solve: dict[str, Any] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()


# -- what is allowed ---------------------------------------------------------------------------------------


class _Rule(NamedTuple):
    """What a value must be: the test, and the same in words."""

    holds: Callable[[Any], bool]
    words: str


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))


def _is_weight(value: Any) -> bool:
    pair = value if _is_pair(value) else [value]
    return all(_is_number(v) and 0 <= v < math.inf for v in pair)


def _is_columns(value: Any) -> bool:
    return is_texts(list(value.values()) if isinstance(value, dict) else value) and len(value) > 0


def _is_norm(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, dict) and all(map(_is_number, value.values())))


def _is_curve(value: Any) -> bool:
    try:
        Curve.parse(value)
    except ProblemError:
        return False
    return True


def _one_of(words: Iterable[str]) -> _Rule:
    known = tuple(words)
    return _Rule(lambda v: v in known, "one of " + ", ".join(map(repr, known)))


FEATURE_RULES: dict[str, _Rule] = {
    "kind": _one_of(get_args(Kind)),
    "columns": _Rule(_is_columns, 'a table of levels and their columns, such as { clerk = "job_clerk" }'),
    "base": _Rule(is_scalar, "the level that has no indicator column"),
    "levels": _Rule(
        lambda v: isinstance(v, list) and len(v) > 0 and all(map(is_scalar, v)),
        "a list of all levels, in order",
    ),
    "bounds": _Rule(lambda v: _is_pair(v) and v[0] <= v[1], "[lowest, highest]"),
    "step": _Rule(lambda v: _is_number(v) and 0 < v < math.inf, "a positive number"),
    "scale": _Rule(lambda v: _is_number(v) and 0 < v < math.inf, "a positive number"),
    "actionability": _one_of(get_args(Action)),
    "weight": _Rule(_is_weight, "a number of at least 0, or two: [of going down, of going up]"),
    "cost": _Rule(
        _is_curve,
        "an amount per unit, [down, up], amounts by level, { between = [1, 2] } for neighbouring levels, or "
        '{ points = [[0, 0], [12, 5]], of = "change" }',
    ),
    "permitted_range": _Rule(
        lambda v: isinstance(v, list) and all(map(is_scalar, v)), "[lowest, highest], or a list of levels"
    ),
}

_PLAUSIBILITY: dict[str, _Rule] = {
    "forest": _Rule(lambda v: isinstance(v, str), "the path of an isolation forest's skops or joblib file"),
    "quantile": _Rule(lambda v: _is_number(v) and 0 <= v < 1, "a share of at least 0 and below 1"),
    "depth": _Rule(lambda v: _is_number(v) and abs(v) < math.inf, "a number"),
    "required": _Rule(lambda v: isinstance(v, bool), "true or false"),
    "weight": _Rule(lambda v: _is_number(v) and 0 <= v < math.inf, "a number of at least 0"),
    "trees": _Rule(lambda v: _is_whole(v) and v >= 1, "a whole number of at least 1"),
    "samples": _Rule(lambda v: _is_whole(v) and v >= 2, "a whole number of at least 2"),
    "seed": _Rule(lambda v: _is_whole(v) and v >= 0, "a whole number of at least 0"),
}

_SOLVE: dict[str, _Rule] = {
    "target": _Rule(
        lambda v: is_scalar(v) or (isinstance(v, list) and len(v) > 0 and all(map(is_scalar, v))),
        'a class of the model, a list of classes, or "opposite"',
    ),
    "probability": _Rule(lambda v: _is_number(v) and 0 < v <= 1, "a number above 0 and up to 1"),
    "at_least": _Rule(_is_number, "a number, the least value that a regressor should predict"),
    "at_most": _Rule(_is_number, "a number, the greatest value that a regressor should predict"),
    "norm": _Rule(_is_norm, '"l0", "l1", "l2", or a mix such as { l0 = 0.1, l1 = 1 }'),
    "features_to_vary": _Rule(lambda v: v == "all" or is_texts(v), '"all" or a list of feature names'),
    "formulation": _Rule(lambda v: isinstance(v, str), "the name of a formulation"),
    "solver": _Rule(lambda v: isinstance(v, str), "the name of a solver"),
    "time_limit": _Rule(lambda v: _is_number(v) and v > 0, "a positive number of seconds"),
    "mip_gap": _Rule(lambda v: _is_number(v) and 0 <= v < math.inf, "a number of at least 0"),
    "threads": _Rule(lambda v: _is_whole(v) and v >= 1, "a whole number of at least 1"),
    "seed": _Rule(lambda v: _is_whole(v) and v >= 0, "a whole number of at least 0"),
    "n_explanations": _Rule(lambda v: _is_whole(v) and v >= 1, "a whole number of at least 1"),
    "diversity": _one_of(("region", "features", "distance")),
    "min_distance": _Rule(lambda v: _is_number(v) and 0 < v < math.inf, "a positive number"),
    "diagnose": _Rule(lambda v: isinstance(v, bool), "true or false"),
    "reduce": _Rule(lambda v: isinstance(v, bool), "true or false"),
    "n_optimal": _Rule(lambda v: _is_whole(v) and v >= 1, "a whole number of at least 1"),
    "cross_check": _Rule(lambda v: isinstance(v, bool), "true or false"),
    "n_jobs": _Rule(lambda v: _is_whole(v) and (v >= 1 or v == -1), "a number of processes, or -1 for one per core"),
    "options": _Rule(
        lambda v: isinstance(v, dict) and all(map(is_scalar, v.values())), "a table of the solver's own options"
    ),
}

#: Top level of a file.
SECTIONS = ("solve", "features", "constraints", "plausibility")

#: Keys of each kind of constraint, besides its kind and name.
_CONSTRAINT = {
    "linear": ("terms", "sense", "bound", "relative"),
    "implication": ("when", "then"),
    "budget": ("limit", "costs"),
    "max_changes": ("most", "among"),
}

#: Words that are known elsewhere, and where.
_ELSEWHERE = {
    "weights": "give 'weight' in the feature's own section, [features.NAME]",
    "weight": "give it in the feature's own section, [features.NAME]",
    "permitted_range": "give it in the feature's own section, [features.NAME]",
    "gap": "it is called 'mip_gap'",
    "plausibility": "give it a section of its own, [plausibility]",
}

# -- reading -----------------------------------------------------------------------------------------------


def read_problem_file(path: str | Path) -> ProblemFile:
    """Read a problem file.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    ProblemFile

    Raises
    ------
    ProblemError
        The file cannot be read, is not TOML, or has a section, key or value that means nothing; the message names the
        file, the key and what to write instead.
    """
    path = Path(path)
    data = parse_toml(read_text(path, ProblemError, "the problem file"), str(path), ProblemError)
    for section, content in data.items():
        if section not in SECTIONS:
            hint = "settings belong in [solve]" if section in _SOLVE else nearest(section, SECTIONS)
            raise ProblemError(f"{path}: {section!r} is not known at the top level: {hint}")
        if section == "constraints":
            continue
        if not isinstance(content, dict):
            raise ProblemError(f"{path}: {section!r} must be a section, [{section}]")
    features = data.get("features", {})
    for name, settings in features.items():
        if not isinstance(settings, dict):
            raise ProblemError(f"{path}: feature {name!r} needs a section of its own, [features.{toml_key(name)}]")
        _check(settings, FEATURE_RULES, f"{path}: [features.{toml_key(name)}]")
    _check(data.get("solve", {}), _SOLVE, f"{path}: [solve]")
    solve = data.get("solve", {})
    if "plausibility" in data:
        _check(data["plausibility"], _PLAUSIBILITY, f"{path}: [plausibility]")
        solve = solve | {"plausibility": data["plausibility"] or True}
    try:
        settings = with_interval(solve)
    except ProblemError as error:
        raise ProblemError(f"{path}: [solve]: {error}") from None
    return ProblemFile(features, settings, _constraints(data.get("constraints", []), path))


def with_interval(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of `Explainer.explain`, in which ``at_least`` and ``at_most`` have become the target."""
    out = {key: value for key, value in settings.items() if key not in ("at_least", "at_most")}
    if len(out) < len(settings):
        if "target" in out:
            raise ProblemError("at_least and at_most bound the value of a regressor, target names a class: give one")
        out["target"] = (settings.get("at_least"), settings.get("at_most"))
    return out


def _constraints(tables: Any, path: Path) -> tuple[Constraint, ...]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ProblemError(f"{path}: constraints are sections in double brackets, [[constraints]], one for each")
    out = []
    for number, table in enumerate(tables, start=1):
        where = f"{path}: [[constraints]] {table.get('name') or number}"
        if "kind" not in table:
            raise ProblemError(f"{where}: give its kind, one of {', '.join(_CONSTRAINT)}")
        if str(table["kind"]) not in _CONSTRAINT:
            raise ProblemError(f"{where}: unknown kind {nearest(table['kind'], _CONSTRAINT)}")
        known = ("kind", "name", *_CONSTRAINT[str(table["kind"])])
        for key in table:
            if key not in known:
                raise ProblemError(f"{where}: unknown key {nearest(key, known)}")
        out.append(from_file(table, where))
    return tuple(out)


def _check(settings: Mapping[str, Any], rules: Mapping[str, _Rule], where: str) -> None:
    for key, value in settings.items():
        if key not in rules:
            hint = _ELSEWHERE.get(key) if rules is _SOLVE else None
            raise ProblemError(f"{where}: unknown key {repr(key) + '; ' + hint if hint else nearest(key, rules)}")
        if not rules[key].holds(value):
            raise ProblemError(f"{where}: {key} = {value!r} should be {rules[key].words}")
