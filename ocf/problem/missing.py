"""What may happen to values that are missing, or that are codes: what the user says of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from ocf.arrays import FloatArray
from ocf.errors import ProblemError
from ocf.features.feature import Feature
from ocf.features.space import FeatureSpace
from ocf.features.special import Special
from ocf.problem.constraints import Constraint, MaxChanges
from ocf.problem.costs import Cost
from ocf.problem.diversity import Keeps
from ocf.support.amounts import real_number
from ocf.support.messages import listed, nearest

#: A number, or a number for each of some features.
Prices = float | Mapping[str, float]


@dataclass(frozen=True)
class Missing:
    """What may happen to missing values, and to special values, which stand for something that is missing.

    Attributes
    ----------
    cost_of_supplying : float or mapping of feature name to float, optional
        What it costs to supply a value where the row has none: the distance that such a change counts for in l1 and
        l2; l0 counts it as one change. Features without one stay as they are.
    may_become_missing : bool or list of feature names
        Whether a value may become missing, or a special one.
    cost_of_becoming_missing : float or mapping of feature name to float, optional
        What that costs, counted in the same way. Needed where it may be.
    """

    cost_of_supplying: Prices | None = None
    may_become_missing: bool | Iterable[str] = False
    cost_of_becoming_missing: Prices | None = None

    @classmethod
    def parse(cls, said: Any) -> Missing | None:
        """From what a user says: None for nothing, True to supply each value at 1.0, or a mapping of the attributes.

        Raises
        ------
        ProblemError
            It is something else.
        """
        if said is None or said is False or isinstance(said, Missing):
            return said or None
        if said is True:
            return cls(cost_of_supplying=1.0)
        if not isinstance(said, Mapping):
            raise ProblemError(f"missing is True or a mapping such as {{'cost_of_supplying': 1.0}}, not {said!r}")
        for key in said:
            if key not in SETTINGS:
                raise ProblemError(f"missing: unknown setting {nearest(key, SETTINGS)}")
        return cls(**said)

    def __post_init__(self) -> None:
        may = self.may_become_missing
        if isinstance(may, str) or not isinstance(may, bool | Iterable):
            raise ProblemError("missing: may_become_missing is True, False or a list of feature names")
        if self.may_become_missing and self.cost_of_becoming_missing is None:
            raise ProblemError("missing: say what it costs that a value becomes missing, as cost_of_becoming_missing")
        if not self.may_become_missing and self.cost_of_becoming_missing is not None:
            raise ProblemError("missing: cost_of_becoming_missing needs may_become_missing, True or a list of features")
        for prices in (self.cost_of_supplying, self.cost_of_becoming_missing):
            for price in () if prices is None else prices.values() if isinstance(prices, Mapping) else [prices]:
                if not _is_price(price):
                    raise ProblemError(f"missing: a cost is a finite number of at least 0, not {price!r}")

    def changes(self, space: FeatureSpace) -> dict[str, Special]:
        """The special values of each feature, with what moves to and from them cost."""
        becoming = self._prices(space, self.cost_of_becoming_missing)
        if self.may_become_missing is not True:
            wanted = {space.names[space.index(name)] for name in self.may_become_missing or ()}
            for name in sorted(wanted - becoming.keys()):
                raise ProblemError(f"missing: cost_of_becoming_missing has no number for {name!r}")
            becoming = {name: becoming[name] for name in wanted}
        supplying = self._prices(space, self.cost_of_supplying)
        return {
            f.name: replace(f.special or Special(), supplying=supplying.get(f.name), becoming=becoming.get(f.name))
            for f in space.features
            if f.name in supplying or f.name in becoming
        }

    @staticmethod
    def _prices(space: FeatureSpace, said: Prices | None) -> dict[str, float]:
        """The number for each feature that has one."""
        if isinstance(said, Mapping):
            return {space.names[space.index(name)]: float(price) for name, price in said.items()}
        return {} if said is None else dict.fromkeys(space.names, float(said))


#: What a user may say.
SETTINGS = tuple(field.name for field in fields(Missing))


def _is_price(price: Any) -> bool:
    return 0 <= real_number(price) < math.inf


def refuse_relations(space: FeatureSpace, origin: FloatArray, cost: Cost, constraints: Iterable[Constraint]) -> None:
    """Refuse what relates values of features that may be, or may become, no point on the line.

    Parameters
    ----------
    space : FeatureSpace
    origin : (n_features,) float64
        Coded.
    cost : Cost
    constraints : iterable of Constraint

    Raises
    ------
    ProblemError
        With the constraint, or the quadratic norm, and the features.
    """
    value = dict(zip(space.names, origin.tolist(), strict=True))
    said = {f"constraint {c.title!r}": [name for name, _ in c.named()] for c in constraints if _relates(c)}
    said["norm"] = list(cost.coupled_names)
    for what, names in said.items():
        features = [space.features[space.index(name)] for name in names]
        _refuse(what, "is missing or a special value in this row", [f for f in features if f.is_special(value[f.name])])
        unsure = [f for f in features if f.may_become_special and len(f.special_values) > 0]
        _refuse(what, "may become missing or a special value", unsure, "leave it as it is, or ")


def _refuse(what: str, state: str, touched: Sequence[Feature], remedy: str = "") -> None:
    """Refuse a relation between values, if features are in a state that has no number."""
    if touched:
        names = listed([f.name for f in touched])
        raise ProblemError(
            f"the {what} needs a number of {names}, which {state}: {remedy}leave it out of that relation"
        )


def _relates(constraint: Constraint) -> bool:
    """Whether a constraint asks for values, and not just whether they change."""
    return not isinstance(constraint, MaxChanges | Keeps)
