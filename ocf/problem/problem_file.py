"""Problem files: what may change, what is wanted and how to solve it, in TOML.

::

    [solve]                            # settings of `Explainer.explain`, all optional
    target = 1                         # or several, any of which will do: target = ["good", "fair"]
    probability = 0.7                  # of the target, by the model's predict_proba; left out: its decision
    norm = "l1"                        # or a mix: norm = { l0 = 0.1, l1 = 1 }
    features_to_vary = ["age", "income", "job"]
    time_limit = 60
    imputations = "draws.csv"          # completions of missing values; see `ocf.cli.tables.read_imputations`
    share = 0.9                        # of the completions, by which the target is wanted
    options = { mip_heuristic_effort = 0.1 }

    [plausibility]                     # settings of `ocf.Plausibility`; the empty section asks for the defaults
    quantile = 0.1
    trees = 100
    label = "repaid"                   # a column of the table that holds the true classes: rows count by them

    [monotone]                         # your word on functions in the Pipeline that ocf does not know, by step
    to_days = "increasing"

    [missing]                          # what may happen to missing values, and to codes; see `ocf.problem.missing`
    cost_of_supplying = 2.0            # or by feature: { age = 1.0, income = 3.0 }
    special_values = [-9, -8]          # codes that are no numbers, of all number columns or { income = [-9] }

    [table]                            # how the table is read
    groups = false                     # indicator columns of one category are not recognised

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
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, get_args

from msgspec import Meta

from ocf.errors import ProblemError
from ocf.features.curve import Curve
from ocf.features.feature import Action, Kind
from ocf.problem.constraints import Constraint, from_file, keys_of
from ocf.problem.missing import Missing
from ocf.problem.targets import ValueBounds
from ocf.support.documents import (
    AtLeastOne,
    AtLeastZero,
    Count,
    Finite,
    Positive,
    Scalar,
    check_settings,
    parse_toml,
    read_text,
    settings_of,
)
from ocf.support.memory import is_memory
from ocf.support.messages import nearest
from ocf.support.toml_text import toml_key


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
    monotone : dict of str to str
        As `Explainer` takes it.
    label : str or None
        Column of the table that holds the true classes.
    special_values : list of number, or dict of str to such, or None
    groups : bool or None
        As `ocf.Explainer` takes them.
    """

    features: dict[str, dict[str, Any]] = field(default_factory=dict)
    solve: dict[str, Any] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()
    monotone: dict[str, str] = field(default_factory=dict)
    label: str | None = None
    special_values: Any = None
    groups: bool | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """Keyword arguments of `Explainer.explain`, constraints among them."""
        return self.solve | ({"constraints": self.constraints} if self.constraints else {})

    def beyond(self, heeded: Collection[str]) -> list[str]:
        """What it says beside settings that a command heeds, as a user writes it.

        Parameters
        ----------
        heeded : collection of str
            Keys of `solve` and names of attributes; what it says of features is heeded always.
        """
        given = [*self.solve, *(name for name in _PLACES if getattr(self, name, None) not in (None, {}, ()))]
        return [_PLACES.get(name, f"[solve] {name}") for name in given if name not in heeded]


# -- what is allowed ---------------------------------------------------------------------------------------


def _is_number(value: Any) -> bool:
    return not math.isnan(value)


def _is_range(value: Any) -> bool:
    words = [isinstance(end, str) for end in value]
    return all(words) or (not any(words) and bool(value[0] <= value[1]))


def _is_curve(value: Any) -> bool:
    try:
        Curve.parse(value)
    except ProblemError:
        return False
    return True


def _one_of(words: Any) -> str:
    return "one of " + ", ".join(map(repr, get_args(words)))


_Flag = Annotated[bool, Meta(description="true or false")]
_Seed = Annotated[Count, Meta(description="a whole number of at least 0")]
_CountOf = Annotated[AtLeastOne, Meta(description="a whole number of at least 1")]
_Length = Annotated[Positive, Meta(description="a positive number")]
_Names = Annotated[list[str], Meta(min_length=1)]
_Diversity = Literal["region", "features", "distance"]

_Cuts = Literal["none", "root"]


_Codes = Annotated[list[Finite], Meta(description="a list of numbers that are codes, such as [-9, -8, -7]")]
_Prices = Annotated[
    AtLeastZero | dict[str, AtLeastZero],
    Meta(description="a number of at least 0, or a table of such by feature, such as { age = 2 }"),
]


class FeatureSettings(TypedDict, total=False):
    """A section ``[features.NAME]``."""

    kind: Annotated[Kind, Meta(description=_one_of(Kind))]
    columns: Annotated[
        _Names | Annotated[dict[str, str], Meta(min_length=1)],
        Meta(description='a table of levels and their columns, such as { clerk = "job_clerk" }'),
    ]
    base: Annotated[Scalar, Meta(description="the level that has no indicator column")]
    levels: Annotated[list[Scalar], Meta(min_length=1, description="a list of all levels, in order")]
    bounds: Annotated[
        Annotated[list[float | str], Meta(min_length=2, max_length=2)],
        Meta(description='[lowest, highest], numbers or dates such as "2024-01-31"', extra={"holds": _is_range}),
    ]
    step: _Length
    scale: _Length
    actionability: Annotated[Action, Meta(description=_one_of(Action))]
    weight: Annotated[
        AtLeastZero | Annotated[list[AtLeastZero], Meta(min_length=2, max_length=2)],
        Meta(description="a number of at least 0, or two: [of going down, of going up]"),
    ]
    cost: Annotated[
        Any,
        Meta(
            description="an amount per unit, [down, up], amounts by level, { between = [1, 2] } for neighbouring "
            'levels, or { points = [[0, 0], [12, 5]], of = "change" }',
            extra={"holds": _is_curve},
        ),
    ]
    permitted_range: Annotated[list[Scalar], Meta(description="[lowest, highest], or a list of levels")]
    special_values: _Codes


class PlausibilitySettings(TypedDict, total=False):
    """The section ``[plausibility]``."""

    forest: Annotated[str, Meta(description="the path of an isolation forest's skops or joblib file")]
    quantile: Annotated[float, Meta(ge=0, lt=1, description="a share of at least 0 and below 1")]
    depth: Annotated[Finite, Meta(description="a number")]
    required: _Flag
    weight: Annotated[AtLeastZero, Meta(description="a number of at least 0")]
    trees: _CountOf
    samples: Annotated[int, Meta(ge=2, description="a whole number of at least 2")]
    seed: _Seed
    by: Annotated[Literal["prediction", "label"], Meta(description='"prediction" or "label"')]
    label: Annotated[str, Meta(description="the name of a column of true classes")]


class MissingSettings(TypedDict, total=False):
    """The section ``[missing]``."""

    cost_of_supplying: _Prices
    may_become_missing: Annotated[bool | list[str], Meta(description="true, false, or a list of feature names")]
    cost_of_becoming_missing: _Prices
    special_values: Annotated[
        list[Finite] | dict[str, list[Finite]],
        Meta(description="a list of numbers that are codes, or a table of such lists by feature"),
    ]


class TableSettings(TypedDict, total=False):
    """The section ``[table]``."""

    groups: _Flag


class SolveSettings(TypedDict, total=False):
    """The section ``[solve]``."""

    target: Annotated[
        Scalar | Annotated[list[Scalar], Meta(min_length=1)],
        Meta(description='a class of the model, a list of classes, or "opposite"'),
    ]
    probability: Annotated[float, Meta(gt=0, le=1, description="a number above 0 and up to 1")]
    at_least: Annotated[
        float,
        Meta(description="a number, the least value that a regressor should predict", extra={"holds": _is_number}),
    ]
    at_most: Annotated[
        float,
        Meta(description="a number, the greatest value that a regressor should predict", extra={"holds": _is_number}),
    ]
    norm: Annotated[
        str | dict[str, Finite],
        Meta(description='"l0", "l1", "l2", "mahalanobis", "mahalanobis_l1", or a mix such as { l0 = 0.1, l1 = 1 }'),
    ]
    features_to_vary: Annotated[Literal["all"] | list[str], Meta(description='"all" or a list of feature names')]
    round_to: Annotated[
        str | int | dict[str, str | int],
        Meta(description='"data", a number of significant digits, or a table of these by feature'),
    ]
    margin: Annotated[
        AtLeastZero | dict[str, AtLeastZero],
        Meta(description="a number of at least 0, in units of scales, or a table of such by feature in their own"),
    ]
    formulation: Annotated[str, Meta(description="the name of a formulation")]
    solver: Annotated[str, Meta(description="the name of a solver")]
    time_limit: Annotated[float, Meta(gt=0, description="a positive number of seconds")]
    memory_limit: Annotated[str | float, Meta(description='an amount such as "4 GB"', extra={"holds": is_memory})]
    mip_gap: Annotated[AtLeastZero, Meta(description="a number of at least 0")]
    threads: _CountOf
    seed: _Seed
    imputations: Annotated[str, Meta(description="the name of a table's file")]
    share: Annotated[float, Meta(gt=0, le=1, description="a share above 0, at most 1")]
    n_explanations: _CountOf
    diversity: Annotated[_Diversity, Meta(description=_one_of(_Diversity))]
    min_distance: _Length
    diagnose: _Flag
    reduce: _Flag
    n_optimal: _CountOf
    box: _Flag
    break_ties: _Flag
    cross_check: _Flag
    n_jobs: Annotated[
        int,
        Meta(ge=-1, description="a number of processes, or -1 for one per core", extra={"holds": lambda v: v != 0}),
    ]
    cuts: Annotated[_Cuts, Meta(description=_one_of(_Cuts))]
    options: Annotated[dict[str, Scalar], Meta(description="a table of the solver's own options")]


#: Top level of a file.
SECTIONS = ("solve", "features", "constraints", "plausibility", "missing", "monotone", "table")

#: Words on functions.
_WORDS = ("increasing", "decreasing")

#: The kinds of constraint that a file may hold.
CONSTRAINTS = ("linear", "implication", "budget", "max_changes")

#: Words that are known elsewhere, and where.
_ELSEWHERE = {
    "weights": "give 'weight' in the feature's own section, [features.NAME]",
    "weight": "give it in the feature's own section, [features.NAME]",
    "permitted_range": "give it in the feature's own section, [features.NAME]",
    "monotone": "give it a section of its own, [monotone]",
    "groups": "give it a section of its own, [table]",
    "gap": "it is called 'mip_gap'",
    "plausibility": "give it a section of its own, [plausibility]",
    "missing": "give it a section of its own, [missing]",
    "special_values": "give it in the section [missing], or in the feature's own, [features.NAME]",
}

#: Where a file says what is no key of [solve].
_PLACES = {
    "target": "the target in [solve]",
    "plausibility": "[plausibility]",
    "label": "[plausibility] label",
    "missing": "[missing]",
    "special_values": "[missing] special_values",
    "groups": "[table] groups",
    "monotone": "[monotone]",
    "constraints": "[[constraints]]",
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
            hint = "settings belong in [solve]" if section in settings_of(SolveSettings) else nearest(section, SECTIONS)
            raise ProblemError(f"{path}: {section!r} is not known at the top level: {hint}")
        if section == "constraints":
            continue
        if not isinstance(content, dict):
            raise ProblemError(f"{path}: {section!r} must be a section, [{section}]")
    features = data.get("features", {})
    for name, settings in features.items():
        if not isinstance(settings, dict):
            raise ProblemError(f"{path}: feature {name!r} needs a section of its own, [features.{toml_key(name)}]")
        check_settings(settings, FeatureSettings, f"{path}: [features.{toml_key(name)}]", ProblemError)
    for step, word in data.get("monotone", {}).items():
        if word not in _WORDS:
            raise ProblemError(f"{path}: [monotone] {toml_key(step)} = {word!r} should be one of {', '.join(_WORDS)}")
    solve, label = data.get("solve", {}), None
    check_settings(solve, SolveSettings, f"{path}: [solve]", ProblemError, _ELSEWHERE)
    solve = _beside(path, solve, "imputations")
    if "plausibility" in data:
        check_settings(data["plausibility"], PlausibilitySettings, f"{path}: [plausibility]", ProblemError)
        wish = _beside(path, dict(data["plausibility"]), "forest")
        label = wish.pop("label", None)
        solve = solve | {"plausibility": wish or True}
    missing = data.get("missing", {})
    check_settings(missing, MissingSettings, f"{path}: [missing]", ProblemError)
    check_settings(data.get("table", {}), TableSettings, f"{path}: [table]", ProblemError)
    wishes = {key: value for key, value in missing.items() if key != "special_values"}
    if wishes:
        solve = solve | {"missing": wishes}
    try:
        settings = with_interval(solve)
        Missing.parse(wishes)
    except ProblemError as error:
        raise ProblemError(f"{path}: {error}") from None
    constraints = _constraints(data.get("constraints", []), path)
    special = missing.get("special_values")
    groups = data.get("table", {}).get("groups")
    return ProblemFile(features, settings, constraints, data.get("monotone", {}), label, special, groups)


def _beside(path: Path, settings: dict[str, Any], name: str) -> dict[str, Any]:
    """Settings in which the path of another file, if there is one, counts from where the problem file is."""
    return settings | ({name: str(path.parent / settings[name])} if name in settings else {})


def with_interval(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of `Explainer.explain`, in which ``at_least`` and ``at_most`` have become the target."""
    out = {key: value for key, value in settings.items() if key not in ("at_least", "at_most")}
    if len(out) < len(settings):
        if "target" in out:
            raise ProblemError("at_least and at_most bound the value of a regressor, target names a class: give one")
        out["target"] = ValueBounds(settings.get("at_least"), settings.get("at_most"))
    return out


def _constraints(tables: Any, path: Path) -> tuple[Constraint, ...]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ProblemError(f"{path}: constraints are sections in double brackets, [[constraints]], one for each")
    out = []
    for number, table in enumerate(tables, start=1):
        where = f"{path}: [[constraints]] {table.get('name') or number}"
        if "kind" not in table:
            raise ProblemError(f"{where}: give its kind, one of {', '.join(CONSTRAINTS)}")
        if table["kind"] not in CONSTRAINTS:
            raise ProblemError(f"{where}: unknown kind {nearest(table['kind'], CONSTRAINTS)}")
        known = ("kind", *keys_of(table["kind"]))
        for key in table:
            if key not in known:
                raise ProblemError(f"{where}: unknown key {nearest(key, known)}")
        out.append(from_file(table, where))
    return tuple(out)
