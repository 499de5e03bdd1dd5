"""What a run does, in its own process, and how its answer is checked, in another."""

from __future__ import annotations

import math
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ocf.compare.keys import checksum
from ocf.explain.answers import failed
from ocf.models.plausibility import Plausibility
from ocf.solve.compile import compile_formulation
from ocf.solvers import available
from ocf.solvers.result import SolverOptions
from ocf.support import json_records as records
from ocf.support.json_dtypes import plain
from ocf.verify.files import verify_file

if TYPE_CHECKING:
    from ocf.compare.programs import Programs
    from ocf.compare.recipes import Case
    from ocf.models.detector import Detector
    from ocf.problem.problem import Problem


#: What of an answer's record is the question.
QUESTION = ("original", "features", "norm", "target", "probability", "constraints")


def explain(case: Case, request: dict[str, Any]) -> dict[str, Any]:
    """Explain a row.

    Parameters
    ----------
    case : Case
    request : dict
        As `ocf.compare.plan.Job.request` makes it.

    Returns
    -------
    dict
        As `ocf.explain.explanation.Explanation.to_dict` makes it.
    """
    target, norm, settings = _question(case, request)
    explanation = case.explainer.explain(
        case.row(request["position"]),
        target=target,
        norm=norm,
        **settings,
        **request["method"],
        time_limit=request["limits"]["time"],
        break_ties=False,  # methods are compared by the time that the optimum takes them
        progress=False,
    )[0]
    return explanation.to_dict()


def ask_program(case: Case, request: dict[str, Any], programs: Programs) -> dict[str, Any]:
    """Put a row to a program of others.

    Parameters
    ----------
    case : Case
    request : dict
        As `ocf.compare.plan.Job.request` makes it.
    programs : Programs

    Returns
    -------
    dict
        As `ocf.compare.server.forked` gives it.
    """
    problem, detector = _problem(case, request)
    if detector:
        refused = "programs are not told of plausibility: leave this question to other methods"
        return {"end": "error", "message": refused, "value": None, "wall": 0.0, "cpu": 0.0, "peak_memory": 0}
    return programs.run(request, _expected_question(case, request, problem), problem)


def relaxation(case: Case, request: dict[str, Any]) -> dict[str, Any]:
    """LP bound and size of the whole formulation, before any reduction.

    Parameters
    ----------
    case : Case
    request : dict
        As `ocf.compare.plan.Job.request` makes it.
    """
    from ocf.solvers.highs import HighsSolver

    bound = math.inf
    times = dict.fromkeys(("build", "compile", "solve"), 0.0)
    sizes: Counter[str] = Counter()
    # a target of several alternatives is met by the cheapest of them
    for cells in case.explainer.alternatives(_problem(case, request)[0]):
        if cells.infeasible:
            continue
        compiled = compile_formulation(request["method"]["formulation"], cells)
        form = compiled.instance(cells).form
        begin = time.perf_counter()
        result = HighsSolver().solve_relaxation(form, SolverOptions(time_limit=request["limits"]["time"]))
        bound = min(bound, result.bound)
        times["build"] += compiled.build_seconds
        times["compile"] += compiled.compile_seconds
        times["solve"] += time.perf_counter() - begin
        sizes.update(rows=form.n_rows, columns=form.n_cols, nonzeros=form.A.nnz, binaries=form.integer.sum())
    return {"bound": plain(bound), "times": times, "sizes": plain(sizes)}


def check(case: Case, request: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """Check an answer against the user's model and against the question, in a process that had no part in it.

    Parameters
    ----------
    case : Case
    request : dict
        As `ocf.compare.plan.Job.request` makes it.
    record : dict
        The answer, as `explain` makes it.

    Returns
    -------
    dict
        ``problems`` (a list of sentences, empty when all is well) and ``cost`` (recomputed).
    """
    if record["status"] == "error":
        return {"problems": [], "cost": None}
    problem, detector = _problem(case, request)
    asked = _expected_question(case, request, problem)
    problems = [
        f"The answer is about another {what} than the one that was asked about."
        for what in QUESTION
        if record[what] != asked[what]
    ]
    if detector and record["counterfactual"]:
        wanted = {"least": detector.least, "weight": detector.wish.weight, "deepest": detector.deepest}
        if not wanted.items() <= (record["plausibility"] or {}).items():
            problems.append("The answer is about another plausibility than the one that was asked for.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answer.json"
        records.dumps(record, path)
        ((_, verification),) = verify_file(path, case.explainer.model, detector.recount if detector else None)
    return {"problems": problems + list(verification.problems), "cost": plain(verification.cost)}


def warm_up(case: Case, request: dict[str, Any]) -> None:
    """Load the compiled kernels and what is made lazily, so that no run pays for it.

    Nothing here may start a solver: its threads and state would not survive the fork.

    Parameters
    ----------
    case : Case
    request : dict
        As `ocf.compare.plan.Job.request` makes it.
    """
    import pyomo.environ  # noqa: F401  # else the first model of each run would import it

    from ocf.cells.incumbent import find_incumbent
    from ocf.cells.reduction import reduce
    from ocf.solvers.box.search import solve_cells

    available()  # imports the solvers
    explainer = case.explainer
    problem = _problem(case, request)[0]
    explainer.model.decide(case.row(request["position"]))
    if explainer.prepared.pruner(problem) is not None:
        return  # so large a model has no cells of all leaves
    cells = explainer.alternatives(problem)[0]
    if not cells.infeasible:
        incumbent = find_incumbent(cells, None, lambda point: True, effort=0)
        reduce(cells, incumbent.cost if incumbent else math.inf)
        solve_cells(cells, SolverOptions(time_limit=0.05))


def rehearsal(case: Case, request: dict[str, Any]) -> None:
    """A run whose answer nobody reads: after it, Numba's cache on the disk holds what even a warm server lacks.

    Parameters
    ----------
    case : Case
    request : dict
        As `ocf.compare.plan.Job.request` makes it. Of its method the formulation, solver, reduction and options are
        replaced.
    """
    box = {"solver": "box", "formulation": "interval", "reduce": False}
    explain(case, request | {"method": request["method"] | box | {"options": {}}})


def settle(case: Case, request: dict[str, Any]) -> None:
    """Make what all runs on a question share: its cells, and the isolation forest if it asks for one.

    Parameters
    ----------
    case : Case
    request : dict
        As `ocf.compare.plan.Job.request` makes it.
    """
    problem, _ = _problem(case, request)
    if case.explainer.prepared.pruner(problem) is None:
        case.explainer.alternatives(problem)


def _question(case: Case, request: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Target, norm, and further arguments of `Explainer.explain`; the same wish for plausibility every time."""
    ask = request["ask"]
    settings = dict(ask["settings"])
    if "plausibility" in settings:
        key = checksum(settings["plausibility"])
        settings["plausibility"] = case.wishes.setdefault(key, Plausibility.parse(settings["plausibility"]))
    return case.target(ask["target"]), ask["norm"], settings


def _problem(case: Case, request: dict[str, Any]) -> tuple[Problem, Detector | None]:
    target, norm, settings = _question(case, request)
    problem = case.explainer.problem(case.row(request["position"]), target, norm, **settings)
    return problem, case.explainer.prepared.detector(settings.get("plausibility"), problem.target)


def _expected_question(case: Case, request: dict[str, Any], problem: Problem) -> dict[str, Any]:
    """The question in the words of an answer, made from the suite and not from what the run says."""
    row = case.row(request["position"])
    asked = failed(row.index[0], row, "unknown", "", problem=problem).to_dict()
    return asked | {
        "target": plain(problem.target.named(case.explainer.classes)),
        "probability": problem.target.probability,
        "constraints": plain([c.to_dict() for c in problem.constraints]),
    }
