"""From a suite to the list of its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ocf.compare.keys import checksum, plain
from ocf.compare.methods import Method
from ocf.compare.recipes import Recipe
from ocf.compare.suite import Ask, Limits, Suite


@dataclass(frozen=True)
class PlannedInstance:
    """One question about one row of one ensemble.

    Attributes
    ----------
    recipe : Recipe
    ask : Ask
    position : int
        Of the row, in the rows of the recipe's case.
    """

    recipe: Recipe
    ask: Ask
    position: int

    @property
    def key(self) -> str:
        """The same for the same question, whatever suite it is in and whatever folder its files are in."""
        recipe = replace(
            self.recipe,
            data=self.recipe.data_label,
            model=self.recipe.model if self.recipe.trained else self.recipe.model_label,
            reference="",
        )
        return checksum([recipe, self.ask, self.position])

    def facts(self) -> dict[str, Any]:
        """What a result says of its instance."""
        return {
            "instance": self.key,
            "data": self.recipe.data_label,
            "model": self.recipe.model_label,
            "family": self.recipe.model if self.recipe.trained else self.recipe.model_label,
            "trees": self.recipe.trees if self.recipe.trained else None,
            "depth": self.recipe.depth if self.recipe.trained else None,
            "seed": self.recipe.seed,
            "position": self.position,
            "ask": self.ask.label,
        }


@dataclass(frozen=True)
class Job:
    """One run: a method, or the LP relaxation of a formulation, on one instance.

    Attributes
    ----------
    instance : PlannedInstance
    method : Method
    limits : Limits
    kind : {"run", "relaxation"}
    """

    instance: PlannedInstance
    method: Method
    limits: Limits
    kind: str = "run"

    @property
    def key(self) -> str:
        """Names the run in the results."""
        what = self.method.formulation if self.kind == "relaxation" else self.method.key
        return f"{self.kind}:{self.instance.key}:{checksum(what)}"

    def request(self) -> dict[str, Any]:
        """What a server is told; JSON-ready."""
        return {
            "kind": self.kind,
            "position": self.instance.position,
            "ask": plain(self.instance.ask),
            "method": self.method.arguments(),
            "limits": plain(self.limits),
            **({"program": self.method.program()} if self.method.command else {}),
        }

    def facts(self) -> dict[str, Any]:
        """What a result says of its run before it has run."""
        method = self.method
        return {
            "kind": self.kind,
            "key": self.key,
            **self.instance.facts(),
            "method": method.name,
            "formulation": method.formulation,
            "solver": method.solver,
            "reduce": method.reduce,
            "threads": method.threads,
            "mip_gap": method.mip_gap,
        }


def instances(
    suite: Suite, waiting: Mapping[tuple[str, str], Sequence[int]], most: int | None
) -> list[PlannedInstance]:
    """Instances of a suite, grid after grid.

    Parameters
    ----------
    suite : Suite
    waiting : mapping of (checksum of recipe, checksum of target) to positions
        Rows of each case that do not have the target yet; see `Grid.rows`. Grids without are left out.
    most : int, optional
        Rows of each grid at most.
    """
    found = []
    for grid in suite.grids:
        waits = waiting.get((checksum(grid.recipe), checksum(grid.ask.target)))
        if waits is not None:
            rows = list(waits)[: grid.rows] if isinstance(grid.rows, int) else list(grid.rows)
            found += [PlannedInstance(grid.recipe, grid.ask, row) for row in rows[:most]]
    return found


def jobs(suite: Suite, found: Sequence[PlannedInstance], methods: Sequence[Method]) -> Iterator[Job]:
    """Runs of instances; the methods take turns, so that a change in the machine's speed meets all of them.

    Parameters
    ----------
    suite : Suite
        Gives the limits, and says whether there are LP relaxations.
    found : sequence of PlannedInstance
        As `instances` finds them.
    methods : sequence of Method
        Those of the suite that are available.
    """
    for instance in found:
        if suite.bounds:
            for formulation in dict.fromkeys(m.formulation for m in methods if m.formulation):
                yield Job(instance, Method(formulation), suite.limits, "relaxation")
        for method in methods:
            yield Job(instance, method, suite.limits)
