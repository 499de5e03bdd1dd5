"""Every method against brute force: what a test needs to play them against each other.

Methods come from the registries of formulations and solvers, so a new one joins by itself.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pandas as pd
from oracle import brute_force
from oracle.brute_force import Question
from oracle.instances import Instance, Spec, make

from ocf.cells.cell_problem import CellProblem
from ocf.cells.forms import to_alternatives
from ocf.explain.explainer import Explainer
from ocf.explain.explanation import Explanation
from ocf.explain.question import Question as OcfQuestion
from ocf.features.asked_rows import rows_of
from ocf.formulations import FORMULATIONS
from ocf.models.user_model import UserModel
from ocf.problem.problem import Problem
from ocf.solve.cell_search import solve_alternatives
from ocf.solve.compile import compile_formulation
from ocf.solve.task import AskedRow, Task
from ocf.solvers import CELL_SOLVERS, available, get_solver
from ocf.solvers.cell_form import Compiled
from ocf.solvers.result import SolverOptions, Status
from ocf.trees import links

#: Most points that brute force may try for one instance.
LIMIT = 20_000
#: Formulations that are for comparison only, and slow on models of realistic size.
BASELINES = ("oae", "fcca")
#: Rows of a table up to which what the model says of it is remembered: an answer is checked together with its row.
FEW = 4
#: Relative difference below which two costs are the same.
TOLERANCE = 1e-9


class Method(NamedTuple):
    """One way to solve a problem."""

    formulation: str
    solver: str
    reduce: bool

    def __str__(self) -> str:
        return f"{self.formulation}-{self.solver}{'' if self.reduce else '-unreduced'}"


class Answer(NamedTuple):
    """What a method says."""

    status: str
    cost: float | None
    bound: float
    counterfactual: pd.DataFrame | None
    verified: bool
    checks: tuple[str, ...]
    message: str


def methods() -> list[Method]:
    """Every formulation with every solver that is installed, with and without reduction."""
    solvers = [name for name, usable in available().items() if usable]
    return [
        Method(f, s, reduce)
        for f in FORMULATIONS
        for s in solvers
        for reduce in (True, False)
        if f == "interval" or s not in CELL_SOLVERS  # a search over cells takes its bounds from that model
    ]


@dataclass(frozen=True)
class Case:
    """An instance ready to be solved.

    Attributes
    ----------
    instance : Instance
    explainer : Explainer
    row : AskedRow
    task : Task
        What is asked of it.
    problem : Problem
    cells : CellProblem
    question : Question
        The same for brute force.
    """

    instance: Instance
    explainer: Explainer
    row: AskedRow
    task: Task
    problem: Problem
    cells: CellProblem
    question: Question

    def answer(self, method: Method) -> Answer:
        """Ask the Explainer, by one method."""
        found = self.explainer.explain(
            self.instance.row,
            **self.instance.question,
            formulation=method.formulation,
            solver=method.solver,
            reduce=method.reduce,
            progress=False,
        )
        return self._said(found[0])

    def answer_posed(self, method: Method) -> Answer:
        """What the Explainer says by one method, of the row that it has read: reading is the same for all of them."""
        task = replace(self.task, formulation=method.formulation, solver=method.solver, reduce=method.reduce)
        return self._said(self.explainer.asking.explanations_of(self.row, task, self.problem)[0])

    @staticmethod
    def _said(found: Explanation) -> Answer:
        return Answer(
            found.status, found.cost, found.bound, found.counterfactual, found.verified, found.checks, found.message
        )

    def describe(self) -> str:
        """How to see this case again; the problem itself is saved beside."""
        folder = Path(os.environ.get("OCF_FAILURES") or tempfile.gettempdir())
        spec = self.instance.spec
        path = folder / f"ocf-{spec.library}-{spec.layout}-{spec.seed}-{spec.shrink}.json"
        path.write_text(self.problem.to_json())
        return (
            f"\nreplay: oracle.harness.prepare({tuple(spec)!r})"
            f"\nproblem: ocf.Problem.from_json(open({str(path)!r}).read())"
            f"\nquestion: {self.instance.question}\nfeatures: {self.instance.features}"
        )


def case_of(instance: Instance) -> Case:
    """Read an instance's model and put the question to ocf and to brute force alike."""
    explainer = Explainer(instance.model, data=instance.data, features=instance.features)
    question = OcfQuestion(**instance.question)
    frame, coded, task = explainer.asking.read(rows_of(explainer.space, instance.row), question)
    row = explainer.asking.asked_rows(frame, coded, task)[0]
    problem = explainer.asking.pose(row, task)
    explainer.prepared.model = _remembering(explainer.prepared.model)
    cells = explainer.alternatives(problem)[0]
    part = cells.partition
    named = _named(instance.data, problem.space.columns)
    asked = Question(
        predict=_remembered(_predictor(instance)),
        wants=wish(instance.model, instance.question),
        space=problem.space,
        origin=problem.origin,
        cost=problem.cost,
        cuts=[part.upper[part.cells_of(i)][:-1] for i in range(part.n_features)],
        dtypes=named.dtypes,
    )
    return Case(instance, explainer, row, task, problem, cells, asked)


#: What a model says of a table.
Ask = Callable[[pd.DataFrame], Any]


def _remembering(model: UserModel) -> UserModel:
    """The model, which answers what it was asked before from memory: most methods come to the same point."""
    shown = model.probabilities
    return replace(model, decide=_remembered(model.decide), probabilities=None if shown is None else _remembered(shown))


def _remembered(ask: Ask) -> Ask:
    known: dict[Any, Any] = {}

    def answer(table: pd.DataFrame) -> Any:
        if len(table) > FEW:
            return ask(table)
        key = (*table.columns.tolist(), *table.dtypes.tolist(), repr(table.to_numpy(object).tolist()))
        if key not in known:
            known[key] = ask(table)
        return known[key].copy()

    return answer


def _named(data: Any, columns: tuple[str, ...]) -> pd.DataFrame:
    return data if isinstance(data, pd.DataFrame) else pd.DataFrame(data, columns=list(columns))


def _predictor(instance: Instance) -> Ask:
    predict = instance.model.predict if instance.question.get("probability") is None else instance.model.predict_proba
    if isinstance(instance.data, np.ndarray):
        return lambda table: predict(table.to_numpy(instance.data.dtype))
    return predict


def wish(model: Any, question: dict[str, Any]) -> Callable[[np.ndarray], np.ndarray]:
    """Which of a model's answers a question wants, written out; answers are probabilities when one is asked for."""
    target, probability = question["target"], question.get("probability")
    if not hasattr(model, "classes_"):
        low, high = (math.inf * sign if end is None else end for end, sign in zip(target, (-1, 1), strict=True))
        return lambda values: (np.float64(low) <= values.astype(float)) & (values.astype(float) <= np.float64(high))
    labels = target if isinstance(target, list) else [target]
    if probability is None:
        return lambda answers: np.isin(answers, labels)
    wanted = np.isin(model.classes_, labels)
    return lambda shown: shown[:, wanted].astype(float).max(axis=1) >= probability


def prepare(spec: Spec | tuple[Any, ...]) -> Case:
    """Case of a spec, with as many trees as brute force can take."""
    spec = Spec(*spec)
    for shrink in range(spec.shrink, 12):
        case = case_of(make(spec._replace(shrink=shrink)))
        if brute_force.n_products(case.question) <= LIMIT:
            return case
    raise AssertionError(f"{spec} cannot be made small enough")


class Models:
    """What the methods of one case ask for in the same words, built once for all: cells among equals, and matrices.

    All solvers get the same matrix of a formulation anyway, and the cells are made without any method in view.
    """

    def __init__(self) -> None:
        self._forms: dict[Any, tuple[CellProblem, ...]] = {}
        self._matrices: dict[Any, tuple[CellProblem, Compiled]] = {}

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Have ocf take what is there."""
        with (
            patch("ocf.solve.cell_engine.to_alternatives", self._alternatives),
            patch("ocf.solve.equals.to_alternatives", self._alternatives),
            patch("ocf.solve.matrices.compile_formulation", self._compiled),
        ):
            yield

    def _alternatives(self, problem: Problem) -> tuple[CellProblem, ...]:
        trees = problem.ensemble
        arrays = (trees.tree_offsets, trees.feature, trees.threshold, trees.set_index, trees.sets, trees.leaf_values)
        limits = tuple(row.limit for row in problem.among)
        key = (problem.cost, problem.space.features, limits, *(a.tobytes() for a in arrays))
        if key not in self._forms:
            self._forms[key] = to_alternatives(problem)
        return self._forms[key]

    def _compiled(self, formulation: str, cells: CellProblem) -> Compiled:
        key = (formulation, id(cells.partition), id(cells.requirements))
        if key not in self._matrices:
            self._matrices[key] = (
                cells,
                compile_formulation(formulation, cells),
            )  # with the cells, whose ids stay theirs
        return self._matrices[key][1]


def check_case(case: Case, which: list[Method] | None = None, *, seed: int = 0) -> str:
    """Play every method against brute force and the user's model; the optimum's status.

    Raises
    ------
    AssertionError
        With what is needed to see the disagreement again.
    """
    try:
        rng = np.random.default_rng(seed)
        optimum = brute_force.search(case.question)
        brute_force.assert_nothing_cheaper(case.question, optimum.cost, rng)
        brute_force.assert_constant_within_cells(case.question, rng)
    except AssertionError as error:
        raise AssertionError(f"brute force: {error}{case.describe()}") from None
    played = which or methods()
    whole = case.instance.spec.seed % len(played)  # from the table on; the others from the row that was read
    models = Models()
    for k, method in enumerate(played):
        with models.shared():
            answer = case.answer(method) if k == whole else case.answer_posed(method)
        wrong = "; ".join(_objections(case, answer, optimum.cost))
        assert not wrong, f"{method}: {wrong}\nanswer: {answer}\nbrute force: {optimum}{case.describe()}"
    return "optimal" if math.isfinite(optimum.cost) else "infeasible"


def _objections(case: Case, answer: Answer, cost: float) -> Iterator[str]:
    """What is wrong with an answer, given the cost that brute force found."""
    if not math.isfinite(cost):
        if answer.status != "infeasible":
            yield f"status {answer.status} where nothing is feasible"
        return
    if answer.status != "optimal":
        yield f"status {answer.status} where the optimum is {cost}"
        return
    assert answer.cost is not None
    assert answer.counterfactual is not None
    if not same(answer.cost, cost):
        yield f"cost {answer.cost!r}, brute force {cost!r}"
    if not same(answer.bound, answer.cost):
        yield f"optimal, but bound {answer.bound!r} and cost {answer.cost!r} differ"
    if not answer.verified:
        yield f"not verified: {'; '.join(answer.checks)}"
    yield from point_objections(case, answer)


def point_objections(case: Case, answer: Answer) -> Iterator[str]:
    """What is wrong with a counterfactual as such: its prediction, cost, and admissibility."""
    question, frame = case.question, answer.counterfactual
    assert frame is not None
    predicted = question.predict(frame)
    if not question.wants(predicted)[0]:
        yield f"the user's model predicts {predicted[0]!r}, which is not wanted"
    point = question.space.from_frame(frame)[0]
    claimed = brute_force.cost_of_point(question, point)
    if not same(claimed, answer.cost or 0.0):
        yield f"the point costs {claimed!r}, not {answer.cost!r}"
    for feature, origin, value in zip(question.space.features, question.origin, point, strict=True):
        if math.isnan(origin) != math.isnan(value):
            yield f"feature {feature.name!r} goes from {origin} to {value}"
        elif not math.isnan(origin) and not brute_force.is_admissible(feature, origin, value):
            yield f"feature {feature.name!r}: {value!r} is not admissible from {origin!r}"


def check_problem(problem: Problem) -> float:
    """Play every method against brute force on a saved problem, with the ensemble in the place of the user's model.

    Returns
    -------
    float
        Cost of the optimum; inf if there is none.
    """
    alternatives = to_alternatives(problem)
    question = question_of(problem, alternatives[0])
    optimum = brute_force.search(question)

    def confirm(point: np.ndarray) -> bool:
        return bool(brute_force.gets_target(question, point[None, :])[0])

    for method in methods():
        found = solve_alternatives(
            alternatives,
            [partial(compile_formulation, method.formulation, cells) for cells in alternatives],
            get_solver(method.solver),
            SolverOptions(),
            confirm=confirm,
            use_reduction=method.reduce,
        )
        if math.isfinite(optimum.cost):
            assert found.status is Status.OPTIMAL, f"{method}: {found}"
            assert same(found.cost, optimum.cost), f"{method}: cost {found.cost!r}, brute force {optimum.cost!r}"
            assert same(found.bound, optimum.cost), f"{method}: bound {found.bound!r}, optimum {optimum.cost!r}"
        else:
            assert found.status is Status.INFEASIBLE, f"{method}: {found}"
    return optimum.cost


def question_of(problem: Problem, cells: CellProblem) -> Question:
    """A saved problem for brute force: its ensemble judges."""
    space, part = problem.space, cells.partition
    dtypes = {c: np.dtype(bool) if len(f.columns) > 1 else f.dtype for f in space.features for c in f.columns}

    def predict(table: pd.DataFrame) -> np.ndarray:
        scores = problem.ensemble.scores(space.from_frame(table))
        if problem.ensemble.decision.link == "mean":  # the library divides last
            leaves = problem.ensemble.apply(space.from_frame(table))
            scores = problem.ensemble.leaf_values[leaves].sum(axis=1) / problem.ensemble.n_trees
        shows = problem.target.probability is not None or problem.ensemble.decision.kind == "value"
        return links.show(problem.ensemble, scores) if shows else problem.ensemble.decide(scores)

    def wants(answers: np.ndarray) -> np.ndarray:
        return problem.target.met_by(answers, answers)

    return Question(
        predict=predict,
        wants=wants,
        space=space,
        origin=problem.origin,
        cost=problem.cost,
        cuts=[part.upper[part.cells_of(i)][:-1] for i in range(part.n_features)],
        dtypes=pd.DataFrame(columns=list(space.columns)).astype(dtypes).dtypes,
    )


def same(a: float, b: float) -> bool:
    """Whether two costs agree within the tolerance of a proof."""
    return abs(a - b) <= TOLERANCE * max(abs(a), abs(b), TOLERANCE)
