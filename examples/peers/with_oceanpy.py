"""oceanpy's constraint programming and MaxSAT: Parmentier and Vidal (2021), https://pypi.org/project/oceanpy/.

oceanpy knows no scales: a unit of a column costs 1. Its forest is therefore ours with every threshold counted from the
feature's lower bound in units of its scale, and a point found is brought back interval by interval, so that no rounding
decides. A threshold is the largest float64 that the forest sends left, for oceanpy does not cast to float32 as it does.
Its MaxSAT counts a changed category twice (once for each of its two columns), so there all else counts double, too, and
a column of zeros and ones is written as a category of two.

``options = { backend = "cp" }`` or ``"maxsat"``.
"""

from __future__ import annotations

from copy import deepcopy
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from ocean import ConstraintProgrammingExplainer, MaxSATExplainer
from ocean.abc import Mapper
from ocean.feature import Feature
from peer import Answer, Case, Column, Question, as_row, last_left, nearest, serve

#: In the place of no bound, in scales: levels have to hold every row, and a forest never reaches them.
FAR = 1e3

Kind = Feature.Type


class Layout:
    """Which of oceanpy's columns are the forest's, and in which units.

    Parameters
    ----------
    columns : list of Column
        Of the forest.
    binary : list of bool
        Which of them hold zeros and ones only.
    double : bool
        Whether changes count double, as in MaxSAT.
    """

    def __init__(self, columns: list[Column], binary: list[bool], *, double: bool) -> None:
        self.columns, self.double = columns, double
        self.features: dict[str, Feature] = {}
        self.names: list[tuple[str, str]] = []
        self.place = np.zeros(len(columns), dtype=int)
        self.unit = np.ones(len(columns))
        self.origin = np.zeros(len(columns))
        groups: dict[str, list[int]] = {}
        for k, column in enumerate(columns):
            groups.setdefault(column.feature["name"], []).append(k)
        for name, own in groups.items():
            self._add(name, own, binary[own[0]])

    def _add(self, name: str, own: list[int], binary: bool) -> None:
        self.place[own] = len(self.names) + np.arange(len(own))
        if self.columns[own[0]].level is not None:
            codes = [str(self.columns[k].level) for k in own]
        elif binary:
            codes = ["1", "0"] if self.double else []
        else:
            codes = []
            feature = self.columns[own[0]].feature
            self.unit[own] = (2.0 if self.double else 1.0) / feature["scale"]
            self.origin[own] = float(feature["lower"]) if np.isfinite(float(feature["lower"])) else 0.0
        if codes:
            self.features[name] = Feature(Kind.ONE_HOT_ENCODED, codes=codes)
        else:
            self.features[name] = Feature(Kind.BINARY) if binary else Feature(Kind.CONTINUOUS, levels=(-FAR, FAR))
        self.names += [(name, code) for code in codes or [""]]

    @property
    def mapper(self) -> Mapper[Feature]:
        """As oceanpy takes it."""
        return Mapper(self.features, columns=pd.MultiIndex.from_tuples(self.names))

    def counted(self, values: Any, columns: Any = ...) -> Any:
        """Values of columns of the forest, by default of all, in oceanpy's units."""
        return (values - self.origin[columns]) * self.unit[columns]

    def moved(self, row: Any) -> Any:
        """A row of the forest in oceanpy's columns and units."""
        there = np.zeros(len(self.names))
        there[self.place] = self.counted(row)
        for k, (name, code) in enumerate(self.names):
            if code == "0" and self.names[k - 1] == (name, "1") and self.double:
                there[k] = 1 - there[k - 1]
        return there

    def forest(self, forest: Any) -> Any:
        """The forest in oceanpy's columns and units."""
        copy = deepcopy(forest)
        for tree in copy.estimators_:
            inner = tree.tree_.children_left >= 0
            old = tree.tree_.feature[inner]
            tree.tree_.threshold[inner] = self.counted(last_left(tree.tree_.threshold[inner]), old)
            tree.tree_.feature[inner] = self.place[old]
        return copy


def prepare(said: Question) -> tuple[str, Any]:
    """Read the forest and build the model, whose objective and target an instance gives."""
    case = Case(said)
    backend = case.options["backend"]
    layout = Layout(case.columns, case.binary, double=backend == "maxsat")
    kind = {"cp": ConstraintProgrammingExplainer, "maxsat": MaxSATExplainer}[backend]
    explainer = kind(layout.forest(case.forest), mapper=layout.mapper)
    cuts = [layout.counted(last_left(own), k) for k, own in enumerate(case.thresholds)]

    def answer(asked: Question) -> Answer:
        row = case.encoded(case.table(asked["row"]))[0]
        found = explainer.explain(
            layout.moved(row),
            y=case.target(asked),
            norm=1,
            max_time=max(int(asked["time_limit"]), 1),
            num_workers=case.threads,
            random_seed=case.seed,
        )
        status = explainer.get_solving_status().lower()
        if found is None:
            return {"status": status if status == "infeasible" else "unknown"}
        point = nearest(case, row, layout.counted(row), np.asarray(found.x)[layout.place], cuts)
        return {"status": status, "counterfactual": as_row(case, row, point)}

    return f"oceanpy {version('oceanpy')}", answer


if __name__ == "__main__":
    serve(prepare)
