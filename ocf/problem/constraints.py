r"""What a user knows about the world: relations between features that every counterfactual must respect.

Each constraint is a frozen object in the user's units and words. For one row it becomes a few `Row`s,

.. math:: \textstyle \sum_i f_i(x_i) \le limit,

sums of functions of one feature each. Everything else (cells, formulations, box search, the exact check) knows only
rows. Numbers mean what they read as: 0.1 is one tenth, and sums are exact fractions, so nothing is decided by a
tolerance. Only an equation between numbers that float64 cannot hold exactly is met when each of them is as near as it
can be.

Source: ocean, table 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import partial
from importlib import import_module
from typing import Any, ClassVar, cast

import msgspec
import numpy as np
from msgspec.structs import asdict

from ocf.arrays import FloatArray
from ocf.errors import DataError, ProblemError
from ocf.features import times
from ocf.features.curve import Curve, exact
from ocf.features.feature import Feature
from ocf.features.number_dtypes import held
from ocf.features.own_cost import amount_of, around, cuts_of
from ocf.features.space import FeatureSpace
from ocf.problem.rows import ONE, ZERO, Part, Row, satisfied
from ocf.support.amounts import real_number
from ocf.support.documents import fit, refused
from ocf.support.json_dtypes import plain
from ocf.support.messages import counted, nearest
from ocf.support.schemas import ConstraintSchema
from ocf.support.wording import word

SENSES = ("<=", ">=", "=")


@dataclass(frozen=True)
class Origin:
    """A row of the user's table, as a constraint asks about it.

    Attributes
    ----------
    space : FeatureSpace
    coded : (n_features,) float64
    title : str
        Of the constraint.
    """

    space: FeatureSpace
    coded: FloatArray
    title: str

    def at(self, name: str) -> tuple[int, Feature, float]:
        """Number of a feature, itself, and the row's coded value."""
        i = _index(self.space, name, self.title)
        return i, self.space.features[i], float(self.coded[i])

    def value_at(self, name: str) -> tuple[int, Feature, float]:
        """The same, of a feature whose value the constraint needs."""
        i, feature, value = self.at(name)
        if math.isnan(value):
            raise ProblemError(f"constraint {self.title!r} needs a value of {name!r}, which this row misses")
        return i, feature, value


#: Does nothing to a feature of which something can be said, and raises ProblemError for others.
Check = Callable[[Feature], object]


class Constraint:
    """A named constraint; see the subclasses."""

    kind: ClassVar[str]
    name: str

    def rows(self, space: FeatureSpace, origin: FloatArray) -> Iterator[Row]:
        """The constraint as rows, for one row of the user's table.

        Parameters
        ----------
        space : FeatureSpace
        origin : (n_features,) float64
            The row of the user's table, coded.
        """
        return self.rows_from(Origin(space, origin, self.title))

    def rows_from(self, origin: Origin) -> Iterator[Row]:
        """The constraint as rows, for one row of the user's table."""
        raise NotImplementedError

    def named(self) -> Iterator[tuple[str, Check]]:
        """Names of the features that it speaks of, and what refuses levels and units that one does not have."""
        raise NotImplementedError

    def check(self, space: FeatureSpace) -> None:
        """Refuse names, levels and units that the features do not have."""
        for name, check in self.named():
            feature = space.features[_index(space, name, self.title)]
            try:
                check(feature)
            except ProblemError as error:
                raise ProblemError(f"constraint {self.title!r}: {error}") from None

    def words(self) -> str:
        """What it says."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict; the function `from_dict` is its inverse."""
        # times become the text that names them as levels, not that of RFC 3339
        said = msgspec.to_builtins(self, builtin_types=(date, datetime, timedelta, bytes), enc_hook=plain)
        return {"kind": self.kind, **plain(said)}

    @property
    def absolute(self) -> bool:
        """Whether it speaks of values alone, so that any row of the data can be held against it."""
        return False

    @property
    def title(self) -> str:
        """Its name, or what it says."""
        return self.name or self.words()


def _index(space: FeatureSpace, name: str, title: str) -> int:
    if name not in space.names:
        raise ProblemError(f"constraint {title!r}: no such feature: {nearest(name, space.names)}")
    return space.names.index(name)


# -- linear relations --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Linear(Constraint):
    """``sum of coefficient * value  <=, >= or =  bound``, in the user's units.

    A feature with numeric levels counts by its level, a named level by 1 where the feature has it and 0 elsewhere.

    Parameters
    ----------
    terms : mapping of feature name to coefficient, or to a mapping of level to coefficient
        ``{"income": 1, "debt": -2, "job": {"smith": -500}}``
    sense : {"<=", ">=", "="}
    bound : float
        Or a duration, which is its days: dates and durations count by their days.
    relative : bool
        Whether the terms are changes from the row's own values, ``A (x - x̂) <= b``.
    name : str, optional

    Examples
    --------
    >>> Linear({"income": 1, "debt": -2}, ">=", 1000, name="solvent").words()
    'income - 2 debt >= 1000'
    """

    terms: Any
    sense: str
    bound: float
    relative: bool = False
    name: str = ""
    kind: ClassVar[str] = "linear"

    def __post_init__(self) -> None:
        flat: list[tuple[str, Any, float]] = []
        said = self.terms
        if isinstance(said, Mapping):
            for feature, coefficient in said.items():
                if isinstance(coefficient, Mapping):
                    flat += [(feature, level, _number(c, "a coefficient")) for level, c in coefficient.items()]
                else:
                    flat.append((feature, None, _number(coefficient, "a coefficient")))
        else:
            flat = [(f, level, _number(c, "a coefficient")) for f, level, c in said]
        object.__setattr__(self, "terms", tuple((str(f), level, c) for f, level, c in flat if c != 0))
        object.__setattr__(self, "sense", {"==": "=", "≤": "<=", "≥": ">="}.get(self.sense, self.sense))
        bound = times.days(self.bound, times.DURATIONS) if isinstance(self.bound, timedelta) else self.bound
        object.__setattr__(self, "bound", _number(bound, "the bound"))
        object.__setattr__(self, "relative", bool(self.relative))
        if self.sense not in SENSES:
            raise ProblemError(f"a linear constraint compares by one of {', '.join(SENSES)}, not by {self.sense!r}")
        if not self.terms:
            raise ProblemError(f"the linear constraint {self.name!r} has no terms with a coefficient other than 0")

    @property
    def absolute(self) -> bool:
        """Whether it speaks of values alone."""
        return not self.relative

    def named(self) -> Iterator[tuple[str, Check]]:
        """Names of the features that it speaks of, and what refuses levels and units that one does not have."""
        return ((name, partial(_check_level, level)) for name, level, _ in self.terms)

    def rows_from(self, origin: Origin) -> Iterator[Row]:
        """The constraint as rows, for one row of the user's table."""
        parts: dict[int, list[tuple[Any, Fraction]]] = {}
        features, coded = origin.space.features, origin.coded
        for name, level, c in self.terms:
            i = origin.value_at(name)[0]
            parts.setdefault(i, []).append((level, exact(c)))
        limit = exact(self.bound)
        if self.relative:
            limit += sum((_line(features[i], own)(float(coded[i])) for i, own in parts.items()), ZERO)
        for sign in {"<=": (1,), ">=": (-1,), "=": (1, -1)}[self.sense]:
            signed = {
                i: _linear_part(features[i], [(level, sign * c) for level, c in own], float(coded[i]))
                for i, own in parts.items()
            }
            slope = {}
            if self.sense == "=":
                slope = {
                    i: sum((c for _, c in own), ZERO)
                    for i, own in parts.items()
                    if features[i].kind == "numeric" and features[i].step is None
                }
            yield Row(self.title, signed, sign * limit, slope)

    def words(self) -> str:
        """What it says."""
        out = ""
        for name, level, c in self.terms:
            size = "" if abs(c) == 1 else f"{abs(c):g} "
            label = name if level is None else f"[{name} = {level}]"
            label = f"(change of {label})" if self.relative else label
            sign = " - " if c < 0 else " + " if out else ""
            out += f"{sign.lstrip() if not out else sign}{size}{label}"
        return f"{out} {self.sense} {self.bound:g}"


def _place(feature: Feature, level: Any, code: float) -> Fraction:
    return feature.position(code) if level is None else Fraction(int(feature.level_code(level) == int(code)))


def _check_level(level: Any, feature: Feature) -> None:
    """Refuse a level that the feature does not have, and no level where it counts by none."""
    if feature.discrete:
        _place(feature, level, 0.0)
    elif level is not None:
        raise ProblemError(f"{feature.name!r} is {feature.kind} and has no levels")


def _line(feature: Feature, own: list[tuple[Any, Fraction]]) -> Callable[[float], Fraction]:
    return lambda v: sum((c * _place(feature, level, v) for level, c in own), ZERO)


def _linear_part(feature: Feature, own: list[tuple[Any, Fraction]], origin: float) -> Part:
    if feature.discrete:
        return Part(_line(feature, own), feature.level_cuts)
    return Part(_line(feature, own), around(origin), moving=True)


# -- implications ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Implication(Constraint):
    """If all of `when` hold then all of `then` do.

    Parameters
    ----------
    when, then : mapping of feature name to what it should be
        A level, a list of levels, a number, a date or a duration, a range of such (lowest, highest) with None for
        no end, or ``{"min": lowest, "max": highest}``, which ordinal features take in levels. An empty `when` always
        holds.
    name : str, optional

    Examples
    --------
    >>> Implication({"employment": "none"}, {"income": {"max": 1000}}).words()
    'if employment is none then income <= 1000'
    """

    when: Any = ()
    then: Any = ()
    name: str = ""
    kind: ClassVar[str] = "implication"

    def __post_init__(self) -> None:
        for side in ("when", "then"):
            said = getattr(self, side)
            if not isinstance(said, Mapping | tuple | list):
                raise ProblemError(f"'{side}' maps features to what they should be, not {said!r}")
            pairs = said.items() if isinstance(said, Mapping) else said
            object.__setattr__(self, side, tuple((str(f), _frozen(value)) for f, value in pairs))
        if not self.then:
            raise ProblemError(f"the implication {self.name!r} has no consequence: give 'then'")

    @property
    def absolute(self) -> bool:
        """Whether it speaks of values alone."""
        return True

    def named(self) -> Iterator[tuple[str, Check]]:
        """Names of the features that it speaks of, and what refuses levels and units that one does not have."""
        return ((name, partial(_literal, said=said)) for name, said in (*self.when, *self.then))

    def rows_from(self, origin: Origin) -> Iterator[Row]:
        """The constraint as rows, for one row of the user's table."""
        for name, said in self.then:
            tests = [(name, said, -1), *((n, s, 1) for n, s in self.when)]
            places = ((origin.value_at(feature), what, sign) for feature, what, sign in tests)
            parts = _summed((i, _indicator(feature, what, sign)) for (i, feature, _), what, sign in places)
            yield Row(self.title, parts, Fraction(len(self.when) - 1))

    def words(self) -> str:
        """What it says."""
        sides = [" and ".join(f"{n} {_said(s)}" for n, s in side) for side in (self.when, self.then)]
        return f"if {sides[0]} then {sides[1]}" if sides[0] else f"always {sides[1]}"


class _Range(msgspec.Struct, frozen=True, omit_defaults=True):
    """A range that is said by its ends; None for no end."""

    low: Any = msgspec.field(default=None, name="min")
    high: Any = msgspec.field(default=None, name="max")


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        for key in value:
            if key not in ("min", "max"):
                raise ProblemError(f"a range is said by 'min' and 'max', not by {nearest(key, ('min', 'max'))}")
        return _Range(value.get("min"), value.get("max"))
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        # no end and an infinite end are the same
        return tuple(None if isinstance(v, float) and math.isinf(v) else v for v in value)
    return value


def _said(value: Any) -> str:
    if isinstance(value, tuple) and len(value) == 2 and any(v is None for v in value):
        value = _Range(*value)
    if isinstance(value, _Range):
        if value.low is None and value.high is None:
            return "is anything"
        low, high = map(_shown, (value.low, value.high))
        return f"<= {high}" if value.low is None else f">= {low}" if value.high is None else f"in {low} to {high}"
    if isinstance(value, tuple) and len(value) == 2 and all(real_number(v) == v for v in value):
        return f"in ({value[0]}, {value[1]})"  # a range of numbers, or two levels that are numbers
    if isinstance(value, tuple):
        return "is one of " + ", ".join(map(_shown, value))
    return f"is {_shown(value)}"


def _shown(value: Any) -> str:
    return word(value) if isinstance(value, datetime) else str(value)


def _literal(feature: Feature, said: Any) -> tuple[Callable[[float], bool], FloatArray]:
    """Test of a coded value, and the cuts that make it constant within cells."""
    if feature.discrete:
        if isinstance(said, _Range):
            if feature.kind == "categorical":
                raise ProblemError(f"the categories of {feature.name!r} have no order: list them")
            first = 0 if said.low is None else feature.level_code(said.low)
            last = len(feature.levels) - 1 if said.high is None else feature.level_code(said.high)
            return (lambda v: first <= v <= last), feature.level_cuts
        codes = {feature.level_code(s) for s in (said if isinstance(said, tuple) else (said,))}
        return (lambda v: v in codes), feature.level_cuts
    if isinstance(said, tuple):
        if len(said) != 2:
            raise ProblemError(f"{feature.name!r} is {feature.kind}: give a number or a range (lowest, highest)")
        said = _Range(*said)
    if not isinstance(said, _Range):
        said = _Range(said, said)
    low = -math.inf if said.low is None else _end(feature, said.low)
    high = math.inf if said.high is None else _end(feature, said.high)
    if low > high:
        raise ProblemError(f"the range of {feature.name!r} from {said.low} to {said.high} is empty")
    ends = [math.nextafter(low, -math.inf)] if math.isfinite(low) else []
    ends += [high] if math.isfinite(high) else []
    return (lambda v: low <= v <= high), np.array(ends, np.float64)


def _end(feature: Feature, said: Any) -> float:
    """End of a range of numbers, or of dates and durations in days."""
    what = f"the range of {feature.name!r}"
    if not feature.is_time or isinstance(said, int | float | np.number):
        return held(_number(said, what, finite=False), feature.dtype)
    try:
        return _number(times.days(said, feature.dtype), what)
    except DataError as error:
        raise ProblemError(f"{what}: {error}") from None


def _indicator(feature: Feature, said: Any, sign: int) -> Part:
    test, cuts = _literal(feature, said)
    return Part(lambda v: Fraction(sign * bool(test(v))), cuts)


def _added(one: Part, other: Part) -> Part:
    return Part(lambda v: one.of(v) + other.of(v), np.concatenate([one.cuts, other.cuts]), one.moving or other.moving)


def _summed(parts: Iterable[tuple[int, Part]]) -> dict[int, Part]:
    """Parts by feature; those of the same one added."""
    out: dict[int, Part] = {}
    for i, part in parts:
        out[i] = _added(out[i], part) if i in out else part
    return out


# -- budgets -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Budget(Constraint):
    """A resource, such as time or money, of which all changes together may take no more than there is.

    Parameters
    ----------
    limit : float
    costs : mapping of feature name to the amount that its change takes
        A number (per unit of a change), (down, up), a mapping of level to amount, or points of a curve:
        ``{"points": [[0, 0], [12, 5]], "of": "change", "steps": False}`` (see `ocf.features.curve.Curve`).
    name : str, optional

    Examples
    --------
    >>> Budget(24, {"education": {"school": 12, "college": 36}, "income": (0, 0.01)}, name="months").words()
    'at most 24 of: education (school: 12, college: 36), income (0 per unit down, 0.01 up)'
    """

    limit: float
    costs: Any
    name: str = ""
    kind: ClassVar[str] = "budget"

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", _number(self.limit, "the limit"))
        said = self.costs.items() if isinstance(self.costs, Mapping) else self.costs
        curves = []
        for name, curve in said:
            try:
                curves.append((str(name), Curve.parse(curve)))
            except ProblemError as error:
                raise ProblemError(f"budget {self.name!r}, {name!r}: {error}") from None
        object.__setattr__(self, "costs", tuple(curves))
        if not self.costs:
            raise ProblemError(f"the budget {self.name!r} names no feature")

    def named(self) -> Iterator[tuple[str, Check]]:
        """Names of the features that it speaks of, and what refuses levels and units that one does not have."""
        return ((name, partial(Feature.check_curve, curve=curve)) for name, curve in self.costs)

    def rows_from(self, origin: Origin) -> Iterator[Row]:
        """The constraint as rows, for one row of the user's table."""
        places = ((*origin.at(name), curve) for name, curve in self.costs)
        parts = _summed((i, _cost_part(curve, feature, old)) for i, feature, old, curve in places)
        yield Row(self.title, parts, exact(self.limit))

    def words(self) -> str:
        """What it says."""
        return f"at most {self.limit:g} of: " + ", ".join(f"{name} ({curve.words()})" for name, curve in self.costs)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        costs = [[name, curve.to_plain()] for name, curve in self.costs]
        return {"kind": self.kind, "limit": self.limit, "costs": plain(costs), "name": self.name}


def _cost_part(curve: Curve, feature: Feature, origin: float) -> Part:
    moving = not feature.discrete and not (curve.points is not None and curve.steps)
    return Part(lambda v: amount_of(curve, feature, origin, v), cuts_of(curve, feature, origin), moving)


# -- number of changes -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MaxChanges(Constraint):
    """At most so many features change.

    Parameters
    ----------
    most : int
    among : sequence of str, optional
        The features that count; all by default.
    name : str, optional
    """

    most: int
    among: tuple[str, ...] = ()
    name: str = ""
    kind: ClassVar[str] = "max_changes"

    def __post_init__(self) -> None:
        if isinstance(self.most, bool) or not isinstance(self.most, int | np.integer) or self.most < 0:
            raise ProblemError(f"at most how many changes: a whole number of at least 0, not {self.most!r}")
        if isinstance(self.among, str):
            raise ProblemError("'among' is a list of feature names")
        object.__setattr__(self, "most", int(self.most))
        object.__setattr__(self, "among", tuple(map(str, self.among)))

    def named(self) -> Iterator[tuple[str, Check]]:
        """Names of the features that it speaks of, and what refuses levels and units that one does not have."""
        return ((name, any_feature) for name in self.among)

    def rows_from(self, origin: Origin) -> Iterator[Row]:
        """The constraint as rows, for one row of the user's table."""
        places = map(origin.at, self.among or origin.space.names)
        parts = {i: changed(value) for i, _, value in places if not math.isnan(value)}
        yield Row(self.title, parts, Fraction(self.most))

    def words(self) -> str:
        """What it says."""
        among = f" among {', '.join(self.among)}" if self.among else ""
        return f"at most {counted(self.most, 'change')}{among}"


def changed(origin: float) -> Part:
    """1 where a feature has another value than the row's own coded one."""
    return Part(lambda v: ZERO if v == origin or math.isnan(v) else ONE, np.empty(0))


def any_feature(_: Feature) -> None:
    """Of any feature everything can be said that a constraint says."""


# -- all of them -------------------------------------------------------------------------------------------

#: Module and class of each kind, by its name in JSON and in problem files; imported when it is asked for.
KINDS: dict[str, tuple[str, str]] = {
    "linear": ("ocf.problem.constraints", "Linear"),
    "implication": ("ocf.problem.constraints", "Implication"),
    "budget": ("ocf.problem.constraints", "Budget"),
    "max_changes": ("ocf.problem.constraints", "MaxChanges"),
    "keeps": ("ocf.problem.diversity", "Keeps"),
    "apart": ("ocf.problem.diversity", "Apart"),
}


def class_of(kind: Any) -> type[Constraint]:
    """Class of a kind of constraint.

    Raises
    ------
    ProblemError
        There is no such kind.
    """
    if not isinstance(kind, str) or kind not in KINDS:
        raise ProblemError(f"unknown kind of constraint {nearest(kind, KINDS)}")
    module, name = KINDS[kind]
    cls: type[Constraint] = getattr(import_module(module), name)
    return cls


def keys_of(kind: str) -> tuple[str, ...]:
    """What may be said of a kind of constraint, besides the kind."""
    return tuple(f.name for f in fields(cast(Any, class_of(kind))))


def from_dict(data: Mapping[str, Any]) -> Constraint:
    """Constraint from what ``to_dict`` wrote, or from a table of a problem file."""
    kind = data.get("kind")
    make: Any = class_of(kind)
    known = fields(make)
    missing = [f.name for f in known if f.default is MISSING and f.name not in data]
    if missing:
        raise ProblemError(f"a constraint of kind {kind!r} needs {missing[0]!r}")
    said = {f.name: data[f.name] for f in known if f.name in data}
    constraint: Constraint = make(**said | {"name": str(said.get("name", ""))})
    return constraint


def from_schema(found: ConstraintSchema) -> Constraint:
    """Constraint from plain values that are known to have the right types."""
    return from_dict({"kind": found.__struct_config__.tag, **asdict(found)})


def from_file(data: Mapping[str, Any], where: str) -> Constraint:
    """Constraint from plain values that a file holds.

    Parameters
    ----------
    data : mapping
    where : str
        Names the file and the place in messages.

    Raises
    ------
    ProblemError
    """
    with refused(where, ProblemError):
        class_of(data.get("kind"))
        return from_schema(fit(data, ConstraintSchema, where, ProblemError))


def checked(constraints: Any, space: FeatureSpace) -> tuple[Constraint, ...]:
    """Constraints of one question, named and fitting the features.

    Parameters
    ----------
    constraints : Constraint, mapping, or sequence of them
    space : FeatureSpace

    Raises
    ------
    ProblemError
        One is no constraint, names what the features do not have, or two that differ share a name.
    """
    if isinstance(constraints, Constraint | Mapping):
        constraints = [constraints]
    if isinstance(constraints, str) or not isinstance(constraints, Sequence):
        raise ProblemError(f"constraints is a list of Linear, Implication, Budget and MaxChanges, not {constraints!r}")
    out: list[Constraint] = []
    for said in constraints:
        constraint = from_dict(said) if isinstance(said, Mapping) else said
        if not isinstance(constraint, Constraint):
            raise ProblemError(f"{said!r} is no constraint: give a Linear, Implication, Budget or MaxChanges")
        constraint.check(space)
        if constraint not in out:
            out.append(constraint)
    titles = [c.title for c in out]
    for title in titles:
        if titles.count(title) > 1:
            raise ProblemError(f"two constraints are called {title!r}: give each a name of its own")
    return tuple(out)


def broken_by(constraint: Constraint, space: FeatureSpace, rows: FloatArray) -> int:
    """How many coded rows break an absolute constraint.

    Parameters
    ----------
    constraint : Constraint
        Its `absolute` is true.
    space : FeatureSpace
    rows : (n, n_features) float64
        Without missing values.
    """
    if not len(rows):
        return 0
    said = tuple(constraint.rows(space, rows[0]))
    return sum(not satisfied(said, space, row) for row in rows)


def unsatisfiable(constraint: Constraint, space: FeatureSpace, rows: FloatArray) -> bool:
    """Whether no values within the bounds, widened to those of coded rows, can satisfy an absolute constraint.

    Parameters
    ----------
    constraint : Constraint
    space : FeatureSpace
    rows : (n, n_features) float64
        Coded rows, whose values are admissible even beyond the bounds.
    """
    if not len(rows) or np.isnan(rows).any():
        return False
    for row in constraint.rows(space, rows[0]):
        least = ZERO
        for i, part in row.parts.items():
            values = _extremes(space.features[i], part, rows[:, i])
            if not np.isfinite(values).all():
                return False
            least += min(part.of(float(v)) for v in values)
        if least > row.limit:
            return True
    return False


def _extremes(feature: Feature, part: Part, own: FloatArray) -> FloatArray:
    """Values among which a part that is a line between its cuts takes its least amount."""
    if feature.discrete:
        return np.arange(len(feature.levels), dtype=np.float64)
    low, high = min(feature.lower, own.min()), max(feature.upper, own.max())
    beyond = np.nextafter(part.cuts, np.inf)
    return np.clip(np.concatenate([[low, high], part.cuts, beyond]), low, high)


def _number(value: Any, what: str, *, finite: bool = True) -> float:
    number = real_number(value)
    if math.isnan(number):
        raise ProblemError(f"{what} should be a number that float64 holds, not {value!r}")
    if finite and math.isinf(number):
        raise ProblemError(f"{what} should be finite, not {value!r}")
    return number
