"""A mixed-integer linear problem as arrays: what every solver gets and every formulation is compiled to.

Nomenclature
------------
minimise  ``c'x + c0 + x'Qx / 2``  subject to  ``row_lower <= A x <= row_upper``, ``lower <= x <= upper``,
and ``x_j`` whole where ``integer[j]``. Q is symmetric and positive semidefinite, and most problems have none.

n_cols, n_rows := number of columns (variables) and rows (constraints)
"""

import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ocf.errors import ProblemError
from ocf.solvers.presolve import tidy_rows
from ocf.trees.rounding import is_exact, units

if TYPE_CHECKING:
    import pyomo.environ as pyo

logger = logging.getLogger(__name__)

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StandardForm:
    """Minimise ``c'x + c0`` subject to ``row_lower <= A x <= row_upper`` and ``lower <= x <= upper``.

    Frozen: every method returns a new form and shares what did not change.

    Parameters
    ----------
    c : (n_cols,) float array
        Costs.
    c0 : float
        Constant of the objective.
    A : (n_rows, n_cols) sparse array
        Coefficients; kept as CSR with sorted indices, without duplicates and explicit zeros.
    row_lower, row_upper : (n_rows,) float arrays
        Sides of the rows, -inf and inf where open.
    lower, upper : (n_cols,) float arrays
        Bounds of the columns, -inf and inf where open.
    integer : (n_cols,) bool array
        Columns that take whole numbers only.
    column_names, row_names : tuple of str, optional
        Used by `ocf.solvers.model_files.write_model`.
    infeasible : bool
        Proven empty without a solver (see `tidy`); solvers answer INFEASIBLE at once.
    Q : (n_cols, n_cols) sparse array, optional
        Of a quadratic objective; symmetric and positive semidefinite, which is not checked.

    Raises
    ------
    ProblemError
        When shapes do not fit or a number is NaN.
    """

    c: Vector
    c0: float
    A: Any
    row_lower: Vector
    row_upper: Vector
    lower: Vector
    upper: Vector
    integer: NDArray[np.bool_]
    column_names: tuple[str, ...] | None = None
    row_names: tuple[str, ...] | None = None
    infeasible: bool = False
    Q: Any = None

    def __post_init__(self) -> None:
        matrix = _canonical(self.A)
        n_rows, n_cols = matrix.shape
        put = object.__setattr__
        put(self, "A", matrix)
        put(self, "c0", float(self.c0))
        for name, size in (("c", n_cols), ("lower", n_cols), ("upper", n_cols)):
            put(self, name, _vector(getattr(self, name), size, name))
        for name in ("row_lower", "row_upper"):
            put(self, name, _vector(getattr(self, name), n_rows, name))
        put(self, "integer", np.ascontiguousarray(self.integer, dtype=bool))
        if self.integer.shape != (n_cols,):
            raise ProblemError(f"integer has shape {self.integer.shape}, A has {n_cols} columns")
        if not (np.isfinite(self.c).all() and math.isfinite(self.c0) and np.isfinite(matrix.data).all()):
            raise ProblemError("costs and coefficients must be finite numbers")
        if self.Q is not None:
            quadratic = _canonical(self.Q)
            if quadratic.shape != (n_cols, n_cols) or not np.isfinite(quadratic.data).all():
                raise ProblemError(f"Q must be a finite ({n_cols}, {n_cols}) matrix")
            put(self, "Q", quadratic if quadratic.nnz else None)
        for name, size in (("column_names", n_cols), ("row_names", n_rows)):
            names = getattr(self, name)
            if names is not None and len(names) != size:
                raise ProblemError(f"{name} has {len(names)} names where {size} are needed")

    @property
    def n_cols(self) -> int:
        """Number of columns (variables)."""
        return int(self.A.shape[1])

    @property
    def n_rows(self) -> int:
        """Number of rows (constraints)."""
        return int(self.A.shape[0])

    @property
    def sizes(self) -> dict[str, int]:
        """Numbers of rows, columns, nonzeros and binaries, under these names."""
        return {
            "rows": self.n_rows,
            "columns": self.n_cols,
            "nonzeros": int(self.A.nnz),
            "binaries": int(self.integer.sum()),
        }

    # ---- the same problem with other numbers

    def with_costs(self, c: ArrayLike, c0: float = 0.0) -> "StandardForm":
        """Replace the objective by ``c'x + c0``.

        Parameters
        ----------
        c : (n_cols,) array
        c0 : float
        """
        return replace(self, c=np.asarray(c, dtype=float), c0=c0)

    def with_bounds(self, lower: ArrayLike, upper: ArrayLike) -> "StandardForm":
        """Replace the bounds of the columns, each (n_cols,).

        Parameters
        ----------
        lower, upper : (n_cols,) array
        """
        return replace(self, lower=np.asarray(lower, dtype=float), upper=np.asarray(upper, dtype=float))

    def relaxed(self) -> "StandardForm":
        """The continuous relaxation: every column may take any number within its bounds."""
        return replace(self, integer=np.zeros(self.n_cols, bool))

    def without_names(self) -> "StandardForm":
        """The same, its columns and rows without names."""
        return replace(self, column_names=None, row_names=None)

    def append_rows(
        self, A: Any, row_lower: ArrayLike, row_upper: ArrayLike, names: Sequence[str] | None = None
    ) -> "StandardForm":
        """Add rows below the present ones, for instance cuts.

        Parameters
        ----------
        A : (n_new, n_cols) sparse or dense array
            Coefficients; one row may be given as (n_cols,).
        row_lower, row_upper : (n_new,) float arrays
            Sides; numbers are used for every new row.
        names : sequence of str, optional
            Names of the new rows, for a form that has names.
        """
        added = sp.csr_array(A if sp.issparse(A) else np.atleast_2d(np.asarray(A, dtype=float)))
        if added.shape[1] != self.n_cols:
            raise ProblemError(f"the new rows have {added.shape[1]} columns, the form has {self.n_cols}")
        n_new = added.shape[0]
        row_names = None
        if self.row_names is not None:
            row_names = (*self.row_names, *(names or [f"row{self.n_rows + i}" for i in range(n_new)]))
        return replace(
            self,
            A=sp.vstack([self.A, added], format="csr"),
            row_lower=np.concatenate([self.row_lower, np.broadcast_to(np.asarray(row_lower, float), n_new)]),
            row_upper=np.concatenate([self.row_upper, np.broadcast_to(np.asarray(row_upper, float), n_new)]),
            row_names=row_names,
        )

    def in_units(self, columns: ArrayLike = 1.0, rows: ArrayLike = 1.0) -> "StandardForm":
        """The same with other units: column j counts in ``columns[j]``, and row i is multiplied by ``rows[i]``.

        Parameters
        ----------
        columns : (n_cols,) float array or float
            Positive; powers of two change no digit. 1 for integer columns.
        rows : (n_rows,) float array or float
            Positive.
        """
        unit = np.broadcast_to(np.asarray(columns, dtype=float), self.n_cols)
        factor = np.broadcast_to(np.asarray(rows, dtype=float), self.n_rows)
        if (unit == 1).all() and (factor == 1).all():
            return self
        by_unit = sp.diags_array(unit)
        return replace(
            self,
            c=self.c * unit,
            Q=None if self.Q is None else by_unit @ self.Q @ by_unit,
            A=sp.diags_array(factor) @ self.A @ by_unit,
            row_lower=self.row_lower * factor,
            row_upper=self.row_upper * factor,
            lower=self.lower / unit,
            upper=self.upper / unit,
        )

    # ---- smaller problems

    def substitute(self, P: Any, x0: ArrayLike) -> "Reduced":
        """Replace the columns by fewer ones, ``x = P x' + x0``.

        A row of `P` without entry fixes its column at ``x0``; rows with their 1 in the same place make their columns
        one. Bounds of columns that become one are intersected; one whole column among them makes all whole.

        Parameters
        ----------
        P : (n_cols, n_new) sparse array
            At most one entry a row, equal to 1, and at least one a column.
        x0 : (n_cols,) float array
            Offsets. Zero is usual where `P` has an entry.

        Returns
        -------
        Reduced
            The smaller form (not tidied) with the way there and back, its sides widened by what rounding may take from
            them. Its form is flagged ``infeasible`` when a fixed value violates the bounds or the integrality of its
            column.

        Raises
        ------
        ProblemError
            When `P` or `x0` has another shape or content.
        """
        matrix = _canonical(P)
        offset = _vector(x0, self.n_cols, "x0")
        _check_substitution(matrix, offset, self)
        kept = np.diff(matrix.indptr) == 1
        lower, upper, integer = _domains_of_joined(self, matrix, offset)
        fixed = offset[~kept]
        misfit = (fixed < self.lower[~kept]) | (fixed > self.upper[~kept])
        misfit |= self.integer[~kept] & (fixed != np.rint(fixed))
        shift, error = self.A @ offset, self._rounding_of_shift(offset)
        slope, quadratic, constant = self.c, None, 0.0
        if self.Q is not None:
            slope = self.c + self.Q @ offset
            quadratic = matrix.T @ self.Q @ matrix
            constant = float(offset @ (self.Q @ offset)) / 2
        form = StandardForm(
            c=matrix.T @ slope,
            c0=self.c0 + float(self.c @ offset) + constant,
            Q=quadratic,
            A=self.A @ matrix,
            row_lower=self.row_lower - shift - error,
            row_upper=self.row_upper - shift + error,
            lower=lower,
            upper=upper,
            integer=integer,
            column_names=_first_names(self.column_names, np.flatnonzero(kept), matrix.indices, matrix.shape[1]),
            row_names=self.row_names,
            infeasible=self.infeasible or bool(misfit.any()),
        )
        return Reduced(form=form, P=matrix, x0=offset)

    def _rounding_of_shift(self, offset: Vector) -> Vector:
        """Bounds on the rounding of ``A @ offset``, of its coefficients and of what is left of the sides, (n_rows,).

        Of an equation that is decided altogether a contradiction of a last bit would be left.
        """
        used = offset[self.A.indices]
        rows, data = np.repeat(np.arange(self.n_rows), np.diff(self.A.indptr))[used != 0], self.A.data[used != 0]
        used, sides = used[used != 0], np.array([self.row_lower, self.row_upper])
        count = np.bincount(rows, minlength=self.n_rows)
        largest = np.where(np.isfinite(sides), np.abs(sides), 0.0).max(axis=0)
        size = largest + np.bincount(rows, np.abs(data * used), self.n_rows)
        unit = units(sides).min(axis=0)
        np.minimum.at(unit, rows, units(data) * units(used))
        return np.where((count == 0) | is_exact(unit, size), 0.0, 2.0**-52 * (count + 2) * size)

    def tidy(self) -> "StandardForm":
        """Drop every row that says nothing, exactly: the same points stay feasible, the columns stay the same.

        Rows that the bounds of their columns already imply are dropped (empty rows among them), rows with one entry
        become bounds, rows with equal coefficients become one. No tolerance is used: where rounding may decide, the
        row stays. A contradiction sets ``infeasible``.
        """
        rows = tidy_rows(self.A, self.row_lower, self.row_upper, self.lower, self.upper, self.integer)
        names = self.row_names
        return replace(
            self,
            A=rows.A,
            row_lower=rows.row_lower,
            row_upper=rows.row_upper,
            lower=rows.lower,
            upper=rows.upper,
            row_names=None if names is None else tuple(names[i] for i in rows.kept),
            infeasible=self.infeasible or rows.infeasible,
        )

    # ---- looking at a point

    def objective(self, x: ArrayLike) -> float:
        """Cost ``c'x + c0 + x'Qx / 2`` of the point `x`, (n_cols,)."""
        point = np.asarray(x, dtype=float)
        quadratic = 0.0 if self.Q is None else float(point @ (self.Q @ point)) / 2
        return float(self.c @ point) + self.c0 + quadratic

    def noise(self, x: ArrayLike) -> float:
        """What rounding may add to the cost of the point `x`, (n_cols,), whose products may cancel."""
        size = np.abs(np.asarray(x, dtype=float))
        products = float(np.abs(self.c) @ size)
        if self.Q is not None:
            products += float(size @ (abs(self.Q) @ size)) / 2
        return (self.n_cols + 2) * float(np.finfo(float).eps) * products

    def activity(self, x: ArrayLike) -> Vector:
        """Values ``A x`` of the rows at `x`, (n_rows,)."""
        return np.asarray(self.A @ np.asarray(x, dtype=float), dtype=float)

    def contradicts_itself(self) -> bool:
        """Whether the form is flagged infeasible or a pair of bounds or sides crosses."""
        return bool(self.infeasible or (self.lower > self.upper).any() or (self.row_lower > self.row_upper).any())


@dataclass(frozen=True, eq=False)
class Reduced:
    """A form after `StandardForm.substitute`, with the way there and back.

    Attributes
    ----------
    form : StandardForm
        The problem in the new columns.
    P : (n_cols, n_new) CSR array
    x0 : (n_cols,) float array
        ``x = P x' + x0``.
    """

    form: StandardForm
    P: Any
    x0: Vector

    def restore(self, x: ArrayLike) -> Vector:
        """Take a point of the reduced form, (n_new,), to the original columns, (n_cols,)."""
        return np.asarray(self.P @ np.asarray(x, dtype=float) + self.x0, dtype=float)

    def scaled(self, columns: ArrayLike, rows: ArrayLike) -> "Reduced":
        """The same with other units: column j counts in ``columns[j]``, and row i is multiplied by ``rows[i]``.

        Parameters
        ----------
        columns : (n_new,) float array
            Positive; powers of two change no digit. 1 for integer columns.
        rows : (n_rows,) float array
            Positive.
        """
        return Reduced(self.form.in_units(columns, rows), sp.csr_array(self.P @ sp.diags_array(columns)), self.x0)


def compile_model(
    model: "pyo.ConcreteModel", columns: Iterable[Any] | None = None, *, names: bool = False
) -> StandardForm:
    """Compile a Pyomo model with linear constraints to arrays.

    Parameters
    ----------
    model : pyomo ConcreteModel
        With at most one active objective, linear or quadratic. A maximisation is compiled as the minimisation of the
        negated objective.
        Fixed variables count as constants.
    columns : iterable of pyomo VarData, optional
        Variables that become the first columns, in this order, also those that no row mentions (a fixed one gets its
        value as both bounds). Other variables of the model follow. None takes the variables in use, in the order in
        which they appear.
    names : bool
        Keep the names of variables and constraints, for `StandardForm.write`; takes a few microseconds a name.

    Returns
    -------
    StandardForm
        A range constraint is one row. When fixed variables already violate a constraint, the form has no row but that
        contradiction and is flagged ``infeasible``.

    Raises
    ------
    ProblemError
        When the model is not linear, has several objectives or a variable with a domain that is neither an interval nor
        whole numbers.
    """
    wanted = list(columns) if columns is not None else []
    quadratic = _quadratic_objective(model)
    if quadratic is not None:
        return _compile_quadratic(model, wanted, *quadratic, names=names)
    info = _compiled_by_pyomo(model)
    if info is None:
        return _contradiction(wanted, names)

    variables = list({id(v): v for v in (*wanted, *info.columns)}.values())
    position = {id(v): j for j, v in enumerate(variables)}
    place = np.fromiter((position[id(v)] for v in info.columns), dtype=np.int32, count=len(info.columns))
    c, c0 = _objective(info, place, len(variables))
    matrix, row_lower, row_upper, constraints = _rows(info, place, len(variables))
    lower, upper, integer = _domains(variables)
    return StandardForm(
        c=c,
        c0=c0,
        A=matrix,
        row_lower=row_lower,
        row_upper=row_upper,
        lower=lower,
        upper=upper,
        integer=integer,
        column_names=tuple(v.name for v in variables) if names else None,
        row_names=tuple(con.name for con in constraints) if names else None,
    )


def _compiled_by_pyomo(model: "pyo.ConcreteModel") -> Any | None:
    """Pyomo's own standard form of a linear model; None when fixed variables already violate a constraint."""
    from pyomo.common.errors import InfeasibleConstraintException
    from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

    try:
        return LinearStandardFormCompiler().write(model, mixed_form=True, set_sense=None)
    except InfeasibleConstraintException as error:
        logger.info("%s", error)
        return None
    except ValueError as error:  # of which the newest Pyomo has kinds of its own
        raise ProblemError(f"only linear models can be compiled: {error}") from error


def _quadratic_objective(model: "pyo.ConcreteModel") -> tuple[Any, Any] | None:
    """The only active objective and its standard form, when it is quadratic."""
    from pyomo.environ import Objective
    from pyomo.repn import generate_standard_repn

    objectives = list(model.component_data_objects(Objective, active=True))
    if len(objectives) != 1 or objectives[0].expr.polynomial_degree() != 2:
        return None
    return objectives[0], generate_standard_repn(objectives[0].expr, quadratic=True)


def _compile_quadratic(
    model: "pyo.ConcreteModel", wanted: list[Any], objective: Any, repn: Any, *, names: bool
) -> StandardForm:
    """Compile the constraints alone, then set the objective."""
    first = [*wanted, *repn.linear_vars, *(v for pair in repn.quadratic_vars for v in pair)]
    objective.deactivate()
    try:
        form = compile_model(model, first, names=names)
    finally:
        objective.activate()
    place = {key: j for j, key in enumerate(dict.fromkeys(map(id, first)))}
    sense = float(objective.sense)
    c = np.zeros(form.n_cols)
    c[[place[id(v)] for v in repn.linear_vars]] = [sense * float(a) for a in repn.linear_coefs]
    pairs = [(place[id(a)], place[id(b)]) for a, b in repn.quadratic_vars]
    i, j = np.array(pairs).reshape(-1, 2).T
    # a x_i x_j is x'Qx / 2 with a at (i, j) and at (j, i); on the diagonal the two fall together
    a = sense * np.array(repn.quadratic_coefs, dtype=float)
    q = sp.coo_array(
        (np.concatenate([a, a]), (np.concatenate([i, j]), np.concatenate([j, i]))), shape=(form.n_cols, form.n_cols)
    )
    return replace(form, c=c, c0=sense * float(repn.constant), Q=q.tocsr())


def _objective(info: Any, place: NDArray[np.int32], n_cols: int) -> tuple[Vector, float]:
    """Costs and constant of the only objective, as a minimisation."""
    if len(info.objectives) > 1:
        found = ", ".join(objective.name for objective in info.objectives)
        raise ProblemError(f"a model needs one active objective, this one has {found}: deactivate the others")
    c = np.zeros(n_cols)
    if not info.objectives:
        return c, 0.0
    sense = float(info.objectives[0].sense)  # 1 for minimize, -1 for maximize
    c[place] = sense * info.c.toarray()[0]
    return c, sense * float(info.c_offset[0])


def _rows(info: Any, place: NDArray[np.int32], n_cols: int) -> tuple[Any, Vector, Vector, list[Any]]:
    """Matrix, sides and constraints; the two rows that the compiler makes of a range become one again."""
    kind = np.fromiter((row.bound_type for row in info.rows), dtype=np.int8, count=len(info.rows))
    rhs = np.asarray(info.rhs, dtype=float).reshape(-1)
    row_lower = np.where(kind <= 0, rhs, -np.inf)
    row_upper = np.where(kind >= 0, rhs, np.inf)

    constraints = [row.constraint for row in info.rows]
    owner = np.fromiter(map(id, constraints), dtype=np.int64, count=len(constraints))
    first_of_range = np.flatnonzero(owner[1:] == owner[:-1])
    row_lower[first_of_range] = row_lower[first_of_range + 1]
    keep = np.ones(len(constraints), dtype=bool)
    keep[first_of_range + 1] = False

    compiled = info.A.tocsr()
    matrix = sp.csr_array((compiled.data, place[compiled.indices], compiled.indptr), shape=(len(constraints), n_cols))
    if len(first_of_range):
        matrix = matrix[keep]
        constraints = [constraints[i] for i in np.flatnonzero(keep)]
    return matrix, row_lower[keep], row_upper[keep], constraints


def _domains_of_joined(form: StandardForm, P: Any, x0: Vector) -> tuple[Vector, Vector, NDArray[np.bool_]]:
    """Bounds and integrality of the columns that ``x = P x' + x0`` leaves, each (n_new,)."""
    n_new, target, kept = P.shape[1], P.indices, np.diff(P.indptr) == 1
    lower, upper = np.full(n_new, -np.inf), np.full(n_new, np.inf)
    np.maximum.at(lower, target, form.lower[kept] - x0[kept])
    np.minimum.at(upper, target, form.upper[kept] - x0[kept])
    integer = np.zeros(n_new, dtype=bool)
    integer[target[form.integer[kept]]] = True
    return lower, upper, integer


def _domains(variables: list[Any]) -> tuple[Vector, Vector, NDArray[np.bool_]]:
    """Bounds and integrality of Pyomo variables."""
    n = len(variables)
    lower, upper, integer = np.full(n, -np.inf), np.full(n, np.inf), np.zeros(n, dtype=bool)
    for j, variable in enumerate(variables):
        low, high = (variable.value, variable.value) if variable.fixed else variable.bounds
        if low is not None:
            lower[j] = low
        if high is not None:
            upper[j] = high
        if not variable.is_continuous():
            if not variable.is_integer():
                raise ProblemError(
                    f"the domain {variable.domain} of variable {variable.name!r} is neither an interval nor whole "
                    "numbers: model it with binaries"
                )
            integer[j] = True
    return lower, upper, integer


def _contradiction(wanted: list[Any], names: bool) -> StandardForm:
    """Return the columns with the one row ``1 <= 0``."""
    lower, upper, integer = _domains(wanted)
    n = len(wanted)
    return StandardForm(
        c=np.zeros(n),
        c0=0.0,
        A=sp.csr_array((1, n)),
        row_lower=np.ones(1),
        row_upper=np.full(1, np.inf),
        lower=lower,
        upper=upper,
        integer=integer,
        column_names=tuple(v.name for v in wanted) if names else None,
        row_names=("contradiction",) if names else None,
        infeasible=True,
    )


def _canonical(matrix: Any) -> Any:
    """CSR with int32 sorted indices and no duplicates or zeros; the argument itself when it already is."""
    if sp.issparse(matrix) and matrix.format == "csr" and isinstance(matrix, sp.csr_array):
        tidy = matrix.has_canonical_format and matrix.indices.dtype == np.int32
        if tidy and matrix.dtype == np.float64 and np.count_nonzero(matrix.data) == matrix.nnz:
            return matrix
    out = sp.csr_array(matrix, dtype=np.float64, copy=True)
    out.sum_duplicates()
    out.eliminate_zeros()
    out.indices = out.indices.astype(np.int32, copy=False)
    out.indptr = out.indptr.astype(np.int32, copy=False)
    return out


def _vector(values: ArrayLike, size: int, name: str) -> Vector:
    """Contiguous float64 vector of the given size without NaN."""
    out = np.ascontiguousarray(values, dtype=np.float64)
    if out.shape != (size,):
        raise ProblemError(f"{name} has shape {out.shape} where ({size},) is needed")
    if np.isnan(out).any():
        raise ProblemError(f"{name}[{int(np.isnan(out).argmax())}] is NaN")
    return out


def _check_substitution(P: Any, x0: Vector, form: StandardForm) -> None:
    if P.shape[0] != form.n_cols:
        raise ProblemError(f"P has {P.shape[0]} rows, the form has {form.n_cols} columns")
    if not np.isfinite(x0).all():
        raise ProblemError("x0 must be finite")
    entries = np.diff(P.indptr)
    if (entries > 1).any() or (P.data != 1.0).any():
        raise ProblemError("every row of P must be empty or hold a single 1")
    unused = np.bincount(P.indices, minlength=P.shape[1]) == 0
    if unused.any():
        raise ProblemError(f"column {int(unused.argmax())} of P is empty: no column of the form depends on it")
    shifted = x0[(entries == 1) & form.integer]
    if (shifted != np.rint(shifted)).any():
        raise ProblemError("x0 must be whole where P keeps an integer column")


def _first_names(
    names: tuple[str, ...] | None, kept: NDArray[np.intp], target: NDArray[np.int32], n_new: int
) -> tuple[str, ...] | None:
    """Give each new column the name of the first column that it stands for."""
    if names is None:
        return None
    first = np.empty(n_new, dtype=np.intp)
    first[target[::-1]] = kept[::-1]
    return tuple(names[i] for i in first)
