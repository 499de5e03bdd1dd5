"""A formulation of ocf, solved by any solver that Pyomo has an interface to, in an environment that has ocf and it.

``options = { solver = "gurobi", formulation = "interval", settings = { MIPGap = 0 } }``: the name that
`pyomo.environ.SolverFactory` takes (``gurobi_direct``, ``cplex_direct``, ``xpress_direct``, ``appsi_highs``, …) and the
solver's own settings. A gap that is not set to 0 lets a solver call optimal what is not.

Nothing is reduced beforehand: it is the whole formulation that the solver gets.
"""

from __future__ import annotations

from typing import Any

import joblib
import pandas as pd
import pyomo.environ as pyo
from peer import Answer, Question, serve

from ocf import Explainer
from ocf.features.space import FeatureSpace, counterfactual_frame
from ocf.formulations import get_formulation

#: What Pyomo calls the ends of a solver, in our words.
ENDS = {"optimal": "optimal", "infeasible": "infeasible", "maxTimeLimit": "feasible", "feasible": "feasible"}


def prepare(said: Question) -> tuple[str, Any]:
    """Read the forest, and find the solver."""
    space = FeatureSpace.from_dict(said["features"])
    data = pd.read_csv(said["data"])
    explainer = Explainer(joblib.load(said["model"]), data=data, features=space)
    options = said["options"]
    solver = pyo.SolverFactory(options["solver"])
    if not solver.available(exception_flag=False):
        raise RuntimeError(f"Pyomo's solver {options['solver']} is not available here")
    build = get_formulation(options.get("formulation", "interval"))

    def answer(asked: Question) -> Answer:
        row = pd.DataFrame([asked["row"]])[list(data.columns)].astype(data.dtypes)
        norm = {name: asked["norm"][name] for name in ("l0", "l1", "l2") if asked["norm"][name]}
        problem = explainer.problem(row, asked["target"], norm, constraints=asked["constraints"] or None)
        (cells,) = explainer.alternatives(problem)  # several where a target has several classes
        formulated = build(cells)
        for name, value in options.get("settings", {}).items():
            solver.options[name] = value
        found = solver.solve(formulated.model, load_solutions=False, timelimit=asked["time_limit"])
        status = ENDS.get(str(found.solver.termination_condition), "unknown")
        if status == "infeasible" or not len(found.solution):
            return {"status": status if status == "infeasible" else "unknown"}
        formulated.model.solutions.load_from(found)
        choice = formulated.decode(cells)
        if choice is None:
            return {"status": "unknown", "message": "the solver's tolerances leave no cell"}
        table = counterfactual_frame(problem.space, row, problem.origin, cells.point(choice))
        values = {str(k): v.item() if hasattr(v, "item") else v for k, v in table.iloc[0].items()}
        return {"status": status, "counterfactual": values}

    return f"Pyomo's {options['solver']}", answer


if __name__ == "__main__":
    serve(prepare)
