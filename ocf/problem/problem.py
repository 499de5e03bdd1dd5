"""A counterfactual problem: everything that a formulation or a search may know about one query."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from msgspec.structs import asdict

from ocf.arrays import BoolArray, FloatArray
from ocf.errors import ProblemError
from ocf.features.feature import grid_unit
from ocf.features.space import FeatureSpace
from ocf.problem.completions import Completions
from ocf.problem.constraints import Constraint, from_schema
from ocf.problem.costs import Cost
from ocf.problem.isolation_depth import IsolationDepth
from ocf.problem.requirements import Requirements
from ocf.problem.rows import Row
from ocf.problem.targets import Target, target_from_schema
from ocf.support.documents import fit, parse_json, refused
from ocf.support.json_dtypes import plain
from ocf.support.schemas import ProblemSchema
from ocf.trees.dead_zones import with_dead_zones
from ocf.trees.ensemble import Ensemble
from ocf.trees.joining import join_trees

#: Of the JSON that `Problem.to_json` writes.
SCHEMA = "ocf.problem/1"


@dataclass(frozen=True, eq=False)
class Problem:
    """The cheapest admissible point to which the ensemble gives the target.

    Attributes
    ----------
    ensemble : Ensemble
        Its splits test the features of `space`, in coded values.
    space : FeatureSpace
    origin : (n_features,) float64
        The coded row; NaN for a missing value that stays so, see `Feature.missing_code` for another.
    target : Target
        What is wanted of the model's answer; see `ocf.problem.targets`.
    cost : Cost
    plausibility : IsolationDepth or None
        How deep the point must lie in isolation trees.
    constraints : tuple of Constraint
        What every counterfactual must respect; see `ocf.problem.constraints`.
    completions : Completions or None
        Of the row's missing values: the ensemble holds the trees of all of them.
    margins : tuple of (feature name, distance)
        How far a value that changes must stand from the thresholds that it passes, in the user's units; see `guarded`.
    dead : tuple of int
        Leaves of the ensemble for values that stand nearer.
    among : tuple of Row
        What points must satisfy besides, to find the best of those that cost the same; no part of the JSON.
    """

    ensemble: Ensemble
    space: FeatureSpace
    origin: FloatArray
    target: Target
    cost: Cost
    plausibility: IsolationDepth | None = None
    constraints: tuple[Constraint, ...] = ()
    completions: Completions | None = None
    margins: tuple[tuple[str, float], ...] = ()
    dead: tuple[int, ...] = ()
    among: tuple[Row, ...] = ()

    def __post_init__(self) -> None:
        if self.origin.shape != (len(self.space),):
            raise ProblemError(f"the origin has shape {self.origin.shape}, not ({len(self.space)},)")
        if self.ensemble.n_features != len(self.space):
            raise ProblemError(f"the ensemble tests {self.ensemble.n_features} features, not {len(self.space)}")
        if self.plausibility and self.plausibility.forest.n_features != len(self.space):
            raise ProblemError(
                f"the isolation trees test {self.plausibility.forest.n_features} features, not {len(self.space)}"
            )

    @property
    def cuts_cells(self) -> bool:
        """Whether cells must also end where something else than the ensemble changes: a constraint or a user's cost.

        The trees of a row's own completions are its own, too.
        """
        return bool(self.constraints or self.completions or self.dead or self.among) or self.has_own_costs

    @property
    def has_own_costs(self) -> bool:
        """Whether costs are the user's own, or of several features together."""
        return bool(self.cost.couples) or any(f.cost is not None for f in self.space.features)

    @property
    def costs_by_cell(self) -> bool:
        """Whether a point costs no less than its cells in the model's own trees, feature by feature."""
        own = self.completions is not None or self.plausibility is not None or self.dead or self.among
        return not (self.has_own_costs or own)

    def costs(self, table: FloatArray) -> FloatArray:
        """Cost of each coded row that misses the values that the origin misses, without that of its plausibility.

        Parameters
        ----------
        table : (n, n_features) float64

        Returns
        -------
        (n,) float64
        """
        total, distance = np.zeros(len(table)), np.zeros_like(table)
        for i in np.flatnonzero(~np.isnan(self.origin)).tolist():
            total += self.cost.of(self.space.features[i], self.origin[i], table[:, i])
            distance[:, i] = self.space.features[i].distance(self.origin[i], table[:, i])
        scale = {feature.name: feature.scale for feature in self.space.features}
        for k, form in enumerate((*self.cost.forms, *self.cost.absolutes)):
            whole = np.asarray(sum(c * scale[name] * distance[:, self.space.index(name)] for name, c in form))
            total += whole**2 if k < len(self.cost.forms) else abs(whole)
        return total

    def permits(self, table: FloatArray) -> BoolArray:
        """Which values lie within what is permitted, and are missing where the origin's are, (n, n_features).

        Constraints are not looked at.

        Parameters
        ----------
        table : (n, n_features) float64
            Coded rows.
        """
        out = np.isnan(table)
        for i in np.flatnonzero(~np.isnan(self.origin)).tolist():
            feature, values = self.space.features[i], table[:, i]
            low, high = feature.limits(self.origin[i])
            codes = feature.permitted_codes()
            out[:, i] = (low <= values) & (values <= high) & (codes is None or np.isin(values, sorted(codes)))
        return out

    def way_to(self, row: FloatArray, steps: int, start: FloatArray | None = None) -> FloatArray:
        """Coded points on the straight way to a row; discrete features are the row's from the start.

        Parameters
        ----------
        row : (n_features,) float64
        steps : int
        start : (n_features,) float64, optional
            By default the origin.

        Returns
        -------
        (steps, n_features) float64
            The row is the last.
        """
        share = np.arange(1, steps + 1)[:, None] / steps
        start = self.origin if start is None else start
        return np.where(self.space.discrete, row, start + share * (row - start))

    @cached_property
    def trees(self) -> Ensemble:
        """All trees: those of the model and, behind them, the isolation trees."""
        depth = self.plausibility
        if depth is None:
            return self.ensemble
        joint: Ensemble = self.ensemble.derived.get(depth, lambda: join_trees(self.ensemble, depth.forest))
        return joint

    @cached_property
    def alternatives(self) -> tuple[Requirements, ...]:
        """What target and plausibility ask of the leaves of all trees, one per alternative of the target."""
        if self.completions is not None:
            return self.completions.alternatives(self.target, self.ensemble, self.trees, self.plausibility)
        key = (self.target, self.plausibility)
        asked: tuple[Requirements, ...] = self.ensemble.derived.get(key, self._asked_of_leaves)
        return asked

    def _asked_of_leaves(self) -> tuple[Requirements, ...]:
        asked = self.target.alternatives(self.ensemble)
        return tuple(self.plausibility.added_to(a, self.trees) for a in asked) if self.plausibility else asked

    @cached_property
    def penalty(self) -> FloatArray | None:
        """Cost of each leaf of all trees, (n_leaves,), at least 0; None where leaves cost nothing."""
        if self.plausibility is None or self.plausibility.weight == 0:
            return None
        return np.concatenate([np.zeros(self.ensemble.n_leaves), self.plausibility.penalty])

    def guarded(self, margins: FloatArray) -> Problem:
        """The problem in which values that change must stand so far from the thresholds that they pass.

        Then every tree keeps its leaf, and the model its answer, where such values fall short by less.

        Parameters
        ----------
        margins : (n_features,) float64
            In the user's units; 0 for none.
        """
        if not margins.any():
            return self
        special = [f.is_special(v).item() for f, v in zip(self.space.features, self.origin.tolist(), strict=True)]
        steps = np.array([grid_unit(f) for f in self.space.features])
        ensemble, dead = with_dead_zones(self.ensemble, self.origin, np.where(special, 0.0, margins), steps)
        named = tuple((name, float(m)) for name, m in zip(self.space.names, margins, strict=True) if m > 0)
        return replace(self, ensemble=ensemble, margins=named, dead=tuple(dead.tolist()))

    def check(self) -> None:
        """Refuse parts that do not fit each other, which those that an `Explainer` makes always do.

        Raises
        ------
        ProblemError
        """
        self.target.check(self.ensemble)
        for feature, value in zip(self.space.features, self.origin.tolist(), strict=True):
            fits = value in range(feature.n_codes) if feature.discrete else math.isfinite(value)
            if not (fits or math.isnan(value) or feature.is_special(value)):
                raise ProblemError(f"feature {feature.name!r}: the origin {value!r} is none of its values")
            feature.permitted_codes()
        if self.plausibility and (self.plausibility.forest.n_outputs != 1 or not self.plausibility.is_finite):
            raise ProblemError("the plausibility holds a number that is not finite, or trees of more than one depth")
        if self.completions is not None:
            self.completions.check(self.ensemble, self.plausibility.forest if self.plausibility else None)
        for constraint in self.constraints:
            constraint.check(self.space)
        if any(leaf >= self.ensemble.n_leaves for leaf in self.dead):
            raise ProblemError(f"a dead leaf is none of the {self.ensemble.n_leaves} leaves of the ensemble")

    def to_json(self) -> str:
        """JSON from which `from_json` makes the same problem again, to the last bit."""
        data = {
            "schema": SCHEMA,
            "ensemble": self.ensemble.to_dict(),
            "space": self.space.to_dict(),
            "origin": [None if np.isnan(v) else v for v in self.origin.tolist()],
            "target": self.target.to_dict(),
            "cost": self.cost.to_dict(),
            "plausibility": None if self.plausibility is None else self.plausibility.to_dict(),
            "constraints": plain([c.to_dict() for c in self.constraints]),
            "completions": None if self.completions is None else self.completions.to_dict(),
            "margins": [list(pair) for pair in self.margins],
            "dead": list(self.dead),
        }
        return json.dumps(data)

    @classmethod
    def from_json(cls, text: str) -> Problem:
        """Problem from what `to_json` wrote.

        Raises
        ------
        ProblemError, DataError, ModelError
            It is something else, or a part is missing, malformed or does not fit the others; the message names it.
        """
        # the thresholds of leaves are NaN, and some bounds infinite
        data: Any = parse_json(text, "the problem", ProblemError, infinite=True)
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise ProblemError(f"not a problem of schema {SCHEMA!r}")
        found = fit(data, ProblemSchema, "the problem", ProblemError)
        with refused("the problem", ProblemError):
            problem = cls(
                Ensemble.from_schema(found.ensemble),
                FeatureSpace.from_schema(found.space),
                np.array([np.nan if v is None else v for v in found.origin], np.float64),
                target_from_schema(found.target),
                Cost(**asdict(found.cost)),
                None if found.plausibility is None else IsolationDepth.from_schema(found.plausibility),
                tuple(map(from_schema, found.constraints)),
                None if found.completions is None else Completions(**asdict(found.completions)),
                tuple(found.margins),
                tuple(found.dead),
            )
            problem.check()
            return problem
