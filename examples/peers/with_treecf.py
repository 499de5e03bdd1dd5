"""treecf: genetic search and exact branch-and-bound, https://pypi.org/project/treecf/.

``options = { backend = "exact" }`` or ``"genetic"``. Scales become its normalizers, the columns of a category its
one-hot groups, and zeros and ones its whole numbers. Nodes are not limited, so that time decides.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np
from peer import Answer, Case, Question, as_row, last_left, nearest, scales, serve
from treecf import Counterfactual, Explainer, OneHot, Range, Target
from treecf.ir.parsers import parse_model

#: More nodes than any search visits.
NODES = 10**12


def prepare(said: Question) -> tuple[str, Any]:
    """Read the forest."""
    case = Case(said)
    search = explainer(case)
    cuts = [last_left(own) for own in case.thresholds]

    def answer(asked: Question) -> Answer:
        row = case.encoded(case.table(asked["row"]))[0]
        # a tie of the two classes goes to the first, and a sum of shares may miss a half by a rounding
        wanted = Target.raw(op=">=" if case.target(asked) else "<=", value=0.5 + 1e-9)
        exact = case.options["backend"] == "exact"
        more = {"node_budget": NODES} if exact else {}
        found = search.explain(
            row, wanted, backend=case.options["backend"], time_budget_s=asked["time_limit"], seed=case.seed, **more
        )
        if not isinstance(found, Counterfactual):
            return {"status": "infeasible" if found.proof == "certified" else "unknown", "message": found.reason}
        status = "optimal" if found.proof == "optimal" else "feasible"
        # it takes values that float32 holds; the nearest float64 with the same way through the trees is as good
        point = nearest(case, row, row, np.asarray(found.x_cf), cuts)
        return {"status": status, "counterfactual": as_row(case, row, point)}

    return f"treecf {version('treecf')}", answer


def explainer(case: Case) -> Explainer:
    """The forest with the question's scales, bounds and categories."""
    names = list(parse_model(case.forest).feature_names)
    groups: dict[str, list[str]] = {}
    constraints: list[Any] = []
    policy = {}
    for name, column, binary in zip(names, case.columns, case.binary, strict=True):
        if column.level is not None:
            groups.setdefault(column.feature["name"], []).append(name)
        elif binary:
            policy[name] = "integer"
            constraints.append(Range(name, 0.0, 1.0))
        else:
            constraints.append(Range(name, float(column.feature["lower"]), float(column.feature["upper"])))
    constraints += [OneHot(tuple(group)) for group in groups.values()]
    sigma = dict(zip(names, (1 / scales(case.columns)).tolist(), strict=True))
    return Explainer(case.forest, constraints=constraints, normalizers=sigma, value_policy=policy)


if __name__ == "__main__":
    serve(prepare)
