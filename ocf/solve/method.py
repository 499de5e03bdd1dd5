"""Which formulation and solver a problem is given to, and by which other one its answer is checked.

The rule of ``solver="auto"`` is short because the measurements are clear. Here solvers of matrices got them whole (they
get boxes since, and take about as long as the box search: `ocf.solve.halved`). Random forests of 50 trees of depth 4 to
300 of depth 5 and 100 of depth 7, XGBoost of 50 x 4, 100 x 5 and 200 x 3, l1 and some l0, four rows each of
breast_cancer, german_credit, credit_default, spambase and students, 20 seconds a row, one thread, two busy cores, one
run. Of 180 rows the reduction proved 109 alone; of the others, without three in which kernels were compiled, solver
seconds:

==================  ======  ======  ======
68 rows             box     HiGHS   SCIP
==================  ======  ======  ======
median              0.07    0.14    0.15
nine of ten within  1.2     8.3     6.9
all together        68      164     139
proved              66      64      64
==================  ======  ======  ======

The box search was at least as fast as HiGHS in 81 % of the rows, as SCIP in 88 %, and at no size of model slower in
the median. HiGHS and SCIP were level (HiGHS no slower in 49 %). With boxes of cells for HiGHS, random forests of 10 to
500 trees and depths 3 to 8 on eight sets, some 3,800 runs: 0.01 to 1.9 s in the mean of a set and size by either, HiGHS
up to five times as long as box, and seconds to minutes for both on spambase's hardest row, which is left out of these.

Of whole matrices SCIP branches on the cells of the interval model as the box search does, since then, so it comes first
where that does not know something. With a constraint on the sum of two features, random forests of 100 trees of depth
5, a minute a row, seconds of the processor together:

=====================  =====  =====
rows                   HiGHS  SCIP
=====================  =====  =====
breast_cancer, 8       11.9   8.0
students, 10           10.8   6.7
credit_default, 10     23.2   10.8
online_news, 10        4.4    4.2
german_credit, 10      2.0    1.7
adult, 10              2.4    2.2
spambase, 6            10.0   7.8
=====================  =====  =====

Spambase's seventh row SCIP proved in 59 s, and HiGHS did not.

Trees of hyperplanes, by l1: ten columns of breast_cancer behind a PCA to so many components, or bags of oblique trees,
four rows, seconds together, one core, one run:

===========================  =====  =====
trees                        box    SCIP
===========================  =====  =====
10 x 3, 2 components         0.9    1.0
20 x 4, 3                    0.5    1.9
20 x 6, 6                    1.3    6.1
30 x 5, 4                    0.8    4.1
30 of any depth, 3           1.1    12.7
50 x 4, 4                    0.9    5.0
50 x 5, 4                    1.1    8.4
50 x 5, 4, whole numbers     1.3    17.2
60 x 6, 3                    2.0    18.1
60 x 3, 3, boosted           0.7    1.8
100 x 4, 5                   1.7    15.2
100 x 5, 5                   2.5    33.9
100 x 5, 3, and categories   2.2    14.0
10 oblique trees             0.9    1.3
20 of depth 5, three rows    1.1    3.1
===========================  =====  =====

And by l2; "all behind" are eight numbers, a whole number, a flag and the eight columns of two one-hot encoded
categories, three rows by l1 and l2:

==============================  =====  =====
trees                           box    SCIP
==============================  =====  =====
10 x 3, 2 components            1.0    1.7
20 x 4, 3                       0.6    5.2
20 x 6, 6                       0.9    28.0
30 x 5, 4                       0.8    19.1
50 x 5, 4                       1.4    40.0
30 x 5, 3, and categories       1.0    5.9
10 oblique trees                0.8    3.6
20 x 4, all behind 3, l1        1.6    2.3
50 x 5, all behind 4, l1        1.3    6.5
20 x 4, all behind 3, l2        1.2    5.1
50 x 5, all behind 4, l2        1.3    32.9
==============================  =====  =====

Most of that is no search, which takes 0.02 to 0.4 s a row. Of 30 columns behind 10 components three rows of 100 x 5
take 32 s, and 19 by two threads; of them SCIP proves one within a minute. Behind 20 the search proved one row of four,
and SCIP none of three. What it does not know (prices of leaving a value, quadratic forms) goes to SCIP: HiGHS took one
to six times as long on the same forests by l1, l2 and l0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ocf.cells.cell_problem import CellProblem
from ocf.errors import ProblemError, SolverError
from ocf.formulations import AUTO as AUTO
from ocf.formulations import VALUE_FORMULATIONS, WITH_VALUES, check_formulation
from ocf.models.plausibility import Plausibility
from ocf.solvers import CELL_SOLVERS, SOLVERS, CellSolver, Solver, get_solver, takes
from ocf.trees.ensemble import Ensemble

#: The formulation that searches over cells take their bounds from, since it is the tightest.
BOUNDS_FROM = "interval"

#: Solvers, in turn, of models that are not for the box search: SCIP branches on cells, and is faster with hyperplanes.
BRANCHING_FIRST = ("scip", "highs")


@dataclass(frozen=True)
class Way:
    """A formulation, a solver, and why they were chosen (empty when they were asked for)."""

    formulation: str
    solver: str
    why: str = ""


def choose(cells: CellProblem, formulation: str = BOUNDS_FROM, solver: str = AUTO, cuts: str = "none") -> Way:
    """The way in which a problem is solved.

    Parameters
    ----------
    cells : CellProblem
        Any alternative of the problem.
    formulation, solver, cuts : str
        As they were asked for.

    Raises
    ------
    ProblemError
        The solver that was asked for cannot do all that the problem says.
    SolverError
        It is unknown or not installed.
    """
    if solver != AUTO:
        refusal = get_solver(solver).refuses(cells)
        if refusal:
            raise ProblemError(f"the solver {solver!r} {refusal}: ask for 'auto' or one of {', '.join(SOLVERS)}")
        # a search over cells takes its bounds from the tightest model, whatever was asked for
        return Way(BOUNDS_FROM if solver in CELL_SOLVERS else formulation, solver)
    box = usable_solver("box")
    assert box is not None  # needs nothing but NumPy and Numba
    refusal = box.refuses(cells)
    order = BRANCHING_FIRST if refusal and formulation == BOUNDS_FROM else SOLVERS
    solver = next((name for name in order if usable_solver(name)), "")
    if refusal and not solver:
        raise SolverError(f"the box search {refusal}, and no MILP solver can be imported: pip install highspy")
    if refusal:
        return Way(formulation, solver, f"the box search {refusal}")
    if formulation != BOUNDS_FROM and solver:
        return Way(formulation, solver, f"the formulation {formulation!r} was asked for, which the box search is not")
    if cuts != "none" and solver:
        return Way(formulation, solver, f"cuts={cuts!r} were asked for, which the box search does without")
    if not solver:
        return Way(BOUNDS_FROM, "box", "no MILP solver can be imported")
    known = "only the cost couples the features" if cells.coupling else "nothing couples the features"
    return Way(BOUNDS_FROM, "box", f"{known}, and the box search is the fastest then")


def formulation_for(ensemble: Ensemble, asked: str, of_tree: bool, wish: Plausibility | None) -> str:
    """The formulation that is asked for, or the one that fits.

    Parameters
    ----------
    ensemble : Ensemble
    asked : str
    of_tree : bool
        Whether something is asked that only a model of a single tree knows: class costs or a split margin.
    wish : Plausibility, optional
        Adds the trees of an isolation forest.

    Raises
    ------
    ProblemError
        It is not known, or does not fit.
    """
    check_formulation(asked)
    oblique = ensemble.is_oblique or (wish is not None and wish.has_hyperplanes)
    single = ensemble.n_trees == 1 and wish is None
    if asked == AUTO:
        asked = ("oblique" if single or of_tree else "hyperplanes") if oblique or of_tree else BOUNDS_FROM
    if oblique:
        asked = WITH_VALUES.get(asked, asked)
    if of_tree and not single:
        raise ProblemError(
            "class costs and split margins are weighed leaf by leaf, in a single tree, and the model has "
            f"{ensemble.n_trees}{'' if wish is None else ', and a plausibility adds more'}; leave them out"
        )
    if of_tree and asked != "oblique":
        raise ProblemError(f"class costs and split margins need formulation='oblique', not {asked!r}")
    if asked == "oblique" and not single:
        raise ProblemError(
            f"the formulation 'oblique' goes through the leaves of a single tree: the model has {ensemble.n_trees}"
            f"{'' if wish is None else ', and a plausibility adds more'}; use 'hyperplanes'"
        )
    if oblique and asked not in VALUE_FORMULATIONS:
        raise ProblemError(
            f"the model, or its isolation forest, has oblique splits or adds up numbers of the table, which {asked!r} "
            "has no cells for: use 'hyperplanes'"
        )
    return asked


def other_solvers(cells: CellProblem, first: Way) -> list[str]:
    """Names of solvers that go on, in turn, where the one that ``"auto"`` chose errs.

    Parameters
    ----------
    cells : CellProblem
        Any alternative of the problem.
    first : Way
        That was chosen; its solver is left out.
    """
    found = {name: usable_solver(name) for name in (*SOLVERS, *CELL_SOLVERS) if name != first.solver}
    return [name for name, solver in found.items() if solver is not None and not solver.refuses(cells)]


def second_way(cells: CellProblem, first: Way) -> Way:
    """A way that shares neither formulation nor solver with the first.

    Parameters
    ----------
    cells : CellProblem
        Any alternative of the problem.
    first : Way
        In which the problem was solved.

    Raises
    ------
    SolverError
        There is none here.
    """
    for formulation, solver in (("ocean", "scip"), ("ocean", "highs"), (BOUNDS_FROM, "box"), (BOUNDS_FROM, "highs")):
        usable = usable_solver(solver)
        if usable and formulation != first.formulation and solver != first.solver and not usable.refuses(cells):
            return Way(formulation, solver)
    raise SolverError(
        f"nothing here checks {first.solver!r} on {first.formulation!r} independently: pip install highspy pyscipopt"
    )


def second_value_way(first: Way, single: bool) -> Way:
    """A way through hyperplanes of another formulation and, where there is a choice, by another solver.

    Parameters
    ----------
    first : Way
        With the solver that was asked for.
    single : bool
        Whether there is one tree, which can be gone through leaf by leaf.

    Raises
    ------
    SolverError
        There is none here.
    """
    others = ("hyperplanes", "oblique" if single else "ocean_hyperplanes")
    formulation = next(name for name in others if name != first.formulation)
    by_scip = first.solver == "scip" or (first.solver == AUTO and first.formulation != "oblique")
    solver = "highs" if by_scip else "scip"
    if usable_solver(solver) is None:
        raise SolverError(f"nothing here checks {first.formulation!r} independently: {solver} cannot be imported")
    return Way(formulation, solver)


def other_linear_way(first: Way) -> Way:
    """The one model of a linear score by the other solver.

    Raises
    ------
    SolverError
        It cannot be imported.
    """
    solver = "highs" if first.solver == "scip" else "scip"
    if usable_solver(solver) is None:
        raise SolverError(f"nothing here checks {first.solver!r} on a linear model: {solver} cannot be imported")
    return Way(first.formulation, solver)


def branching_solvers(raw: Mapping[str, Any]) -> list[str]:
    """Names of the solvers that ``"auto"`` asks in turn where a model has hyperplanes.

    Those that can be imported and take the raw options; where there are none, the first all the same, which says so.

    Parameters
    ----------
    raw : mapping of str to object
        See `ocf.solvers.SolverOptions.options`.
    """
    return [name for name in BRANCHING_FIRST if takes(name, raw)] or [BRANCHING_FIRST[0]]


def usable_solver(name: str) -> Solver | CellSolver | None:
    """The solver, None when it cannot be imported."""
    try:
        return get_solver(name)
    except SolverError:
        return None
