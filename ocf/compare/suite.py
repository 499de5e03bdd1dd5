"""Suites: which instances are put to which methods, written in TOML.

::

    name = "forests"
    description = "Random forests of growing size"

    [limits]                     # of every run
    time = 60                    # wall seconds
    memory = "4 GB"              # resident memory
    grace = 10                   # seconds after `time` until a run that does not stop by itself is killed

    [report]
    shift = 1                    # seconds, of shifted geometric means
    bounds = true                # LP bound of each whole formulation on each instance

    [[instances]]                # a grid: every list is crossed with every other
    data = ["breast_cancer", "german_credit", "table.csv", "openml:credit-g"]
    model = ["random_forest", "xgboost"]      # a recipe of `RECIPES`, or the path of a model file
    trees = [10, 100]
    depth = 5
    seed = 0                     # of the split and of the training
    params = { min_samples_leaf = 3 }         # the library's own
    rows = 10                    # the first ten of the test part that do not have the target yet
    target = "desired"           # the set's favourable class; a class; "opposite"; a list in a list is one target:
                                 # [[1, 2]] any of two classes, [[10, inf]] an interval of a regressor's value
    norm = ["l1", { l0 = 0.1, l1 = 1 }]
    features = { age = { actionability = "increasing" } }
    constraints = [{}, { name = "three", features_to_vary = ["age", "income", "job"] }]

    [[methods]]                  # a grid as well
    formulation = ["interval", "ocean"]
    solver = ["highs", "scip"]
    reduce = [true, false]
    options = { presolve = "on" }

    [[methods]]                  # a program of others, see `ocf.compare.programs`
    name = "another"
    command = ["~/another/bin/python", "another.py"]

Where every method has a name, ``[methods.NAME]`` says the same as ``[[methods]]`` with ``name = "NAME"``. A table in
`constraints` holds arguments of `ocf.Explainer.explain`. A key that is not known is an error that names the
nearest known one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Annotated, Any, TypedDict

from msgspec import Meta

from ocf.compare.keys import checksum, plain
from ocf.compare.methods import Method
from ocf.compare.recipes import RECIPES, Recipe
from ocf.errors import OcfError, ProblemError
from ocf.support.documents import (
    AtLeastOne,
    AtLeastZero,
    Count,
    Finite,
    Positive,
    check_settings,
    parse_toml,
    read_text,
    words_of,
)
from ocf.support.memory import parse_memory
from ocf.support.messages import nearest


@dataclass(frozen=True)
class Limits:
    """What a run may use.

    Attributes
    ----------
    time : float
        Wall seconds, of the solver and of everything else.
    memory : int
        Bytes of resident memory of the run's process, the loaded libraries and model included.
    grace : float
        Seconds after `time` until a run that does not stop by itself is killed.
    """

    time: float = 60.0
    memory: int = 4 * 10**9
    grace: float = 10.0


@dataclass(frozen=True)
class Ask:
    """What is asked about a row: target, norm, and further arguments of `ocf.Explainer.explain` under a name."""

    target: Any = "desired"
    norm: Any = "l1"
    name: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """In words, for tables."""
        norm = self.norm if isinstance(self.norm, str) else "+".join(f"{v:g} {k}" for k, v in self.norm.items())
        return " ".join(filter(None, [f"to {self.target}", norm, self.name]))


@dataclass(frozen=True)
class Grid:
    """One ensemble and the questions about it.

    Attributes
    ----------
    recipe : Recipe
    ask : Ask
    rows : int or list
        How many rows that do not have the target yet, or positions of rows.
    """

    recipe: Recipe
    ask: Ask
    rows: int | tuple[int, ...] = 10


@dataclass(frozen=True)
class Suite:
    """Instances, methods and limits.

    Attributes
    ----------
    name, description : str
    grids : tuple of Grid
    methods : tuple of Method
    limits : Limits
    shift : float
        Seconds, of shifted geometric means.
    bounds : bool
        Whether LP bounds of the whole formulations are computed.
    part_of : str
        Fingerprint of the suite that this is a part of, if it is one.
    """

    name: str
    description: str
    grids: tuple[Grid, ...]
    methods: tuple[Method, ...]
    limits: Limits = field(default_factory=Limits)
    shift: float = 1.0
    bounds: bool = True
    part_of: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        data: dict[str, Any] = plain(self)
        return data

    @property
    def fingerprint(self) -> str:
        """Checksum of all that bears on a run's result; which rows, methods and data sets are run does not."""
        if self.part_of:
            return self.part_of
        grids = [{"recipe": plain(g.recipe), "ask": plain(g.ask)} for g in self.grids]
        return checksum({"grids": grids, "limits": plain(self.limits), "bounds": self.bounds})


# -- what is allowed ---------------------------------------------------------------------------------------


def _is_not_empty(value: Any) -> bool:
    return value not in ([], "")


_Text = Annotated[str, Meta(description="a text")]
_Texts = Annotated[list[str], Meta(min_length=1)]
_Seconds = Annotated[Positive, Meta(description="a positive number of seconds")]
_Counts = Annotated[
    AtLeastOne | Annotated[list[AtLeastOne], Meta(min_length=1)],
    Meta(description="a whole number of at least 1, or a list of them"),
]
_Seed = Annotated[int, Meta(ge=0, lt=2**31)]
_Seeds = Annotated[
    _Seed | Annotated[list[_Seed], Meta(min_length=1)],
    Meta(description="a whole number of at least 0, or a list of them"),
]
_Mix = dict[str, Finite]
_Tables = list[dict[str, Any]]


class TopSettings(TypedDict, total=False):
    """A suite."""

    name: _Text
    description: _Text
    limits: Annotated[dict[str, Any], Meta(description="a table, [limits]")]
    report: Annotated[dict[str, Any], Meta(description="a table, [report]")]
    instances: Annotated[_Tables, Meta(description="tables, each [[instances]]")]
    methods: Annotated[
        _Tables | dict[str, dict[str, Any]],
        Meta(description="tables, each [[methods]], or each [methods.NAME]"),
    ]


class LimitSettings(TypedDict, total=False):
    """The section ``[limits]``."""

    time: _Seconds
    memory: Annotated[str | Positive, Meta(description='an amount such as "4 GB"')]
    grace: Annotated[AtLeastZero, Meta(description="a number of seconds")]


class ReportSettings(TypedDict, total=False):
    """The section ``[report]``."""

    shift: _Seconds
    bounds: Annotated[bool, Meta(description="true or false")]


class InstanceSettings(TypedDict, total=False):
    """A section ``[[instances]]``; lists are crossed."""

    data: Annotated[
        str | _Texts,
        Meta(description="the name of a data set, openml:NAME, or the path of a table, or a list of them"),
    ]
    target_column: Annotated[str, Meta(description="the name of the column to be predicted")]
    drop: Annotated[list[str], Meta(description="a list of columns")]
    reference: Annotated[str, Meta(description="the path of the training data of a model file")]
    model: Annotated[
        str | _Texts,
        Meta(description=f"one of {', '.join(RECIPES)}, or the path of a model file, or a list of them"),
    ]
    trees: _Counts
    depth: _Counts
    seed: _Seeds
    params: Annotated[dict[str, Any], Meta(description="a table of the library's own parameters")]
    features: Annotated[dict[str, Any], Meta(description="a table of feature settings, as in a problem file")]
    rows: Annotated[
        AtLeastOne | Annotated[list[Count], Meta(min_length=1)],
        Meta(description="a number of rows, or a list of positions"),
    ]
    target: Annotated[Any, Meta(description="a class, or a list of them to be crossed", extra={"holds": _is_not_empty})]
    norm: Annotated[
        str | _Mix | Annotated[list[str | _Mix], Meta(min_length=1)],
        Meta(description='"l0", "l1", "l2", or a mix such as { l0 = 0.1, l1 = 1 }'),
    ]
    constraints: Annotated[
        _Tables, Meta(min_length=1, description="a list of tables, each of arguments of Explainer.explain")
    ]


class MethodSettings(TypedDict, total=False):
    """A section ``[[methods]]``; lists are crossed."""

    name: _Text
    formulation: Annotated[str | _Texts, Meta(description="the name of a formulation, or a list of them")]
    solver: Annotated[str | _Texts, Meta(description="the name of a solver, or a list of them")]
    reduce: Annotated[
        bool | Annotated[list[bool], Meta(min_length=1)], Meta(description="true or false, or a list of both")
    ]
    threads: _Counts
    mip_gap: Annotated[
        AtLeastZero | Annotated[list[AtLeastZero], Meta(min_length=1)],
        Meta(description="a number of at least 0, or a list of them"),
    ]
    seed: _Seeds
    cuts: Annotated[str | _Texts, Meta(description="when cuts between trees are made, or a list of such words")]
    options: Annotated[dict[str, Any], Meta(description="a table of the solver's or program's own options")]
    command: Annotated[_Texts, Meta(description="a list of words: a program and its arguments")]


# -- reading -----------------------------------------------------------------------------------------------


def built_in() -> list[str]:
    """Names of the suites that come with ocf."""
    folder = resources.files("ocf.compare") / "suites"
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))


def load_suite(source: str | Path) -> Suite:
    """Suite by the name of a built-in one, or from a TOML file.

    Parameters
    ----------
    source : str or Path
        Relative paths inside a file count from its folder.

    Raises
    ------
    ProblemError
        No such suite or file, no TOML, or a key or value that means nothing; the message says what to write instead.
    """
    if str(source) in built_in():
        text = (resources.files("ocf.compare") / "suites" / f"{source}.toml").read_text(encoding="utf-8")
        return parse_suite(text, str(source))
    path = Path(source)
    if not path.exists():
        raise ProblemError(f"there is no suite {nearest(source, built_in())}, nor a file of that name")
    return parse_suite(read_text(path, ProblemError, "the suite"), str(path), path.parent)


def parse_suite(text: str, where: str, folder: Path = Path()) -> Suite:
    """Suite from the text of a TOML file.

    Parameters
    ----------
    text : str
    where : str
        Names the file in messages; its stem is the suite's name if it gives itself none.
    folder : Path
        From which relative paths count.

    Raises
    ------
    ProblemError
    """
    data = parse_toml(text, where, ProblemError)
    check_settings(data, TopSettings, where, ProblemError)
    limits = data.get("limits", {})
    report = data.get("report", {})
    check_settings(limits, LimitSettings, f"{where}: [limits]", ProblemError)
    check_settings(report, ReportSettings, f"{where}: [report]", ProblemError)
    if "memory" in limits:
        limits = limits | {"memory": parse_memory(limits["memory"], f"{where}: [limits]")}
    grids: dict[str, Grid] = {}
    for k, table in enumerate(data.get("instances", []), 1):
        grids |= {checksum(grid): grid for grid in _grids(table, f"{where}: [[instances]] {k}", folder)}
    methods: dict[str, Method] = {}
    for place, table in _method_tables(data.get("methods", [])):
        for method in _methods(table, f"{where}: {place}", folder):
            if methods.setdefault(method.name, method) != method:
                raise ProblemError(f"{where}: two methods are called {method.name!r}: give them names of their own")
    for part, found in (("instances", grids), ("methods", methods)):
        if not found:
            raise ProblemError(f"{where} yields no run: it has no [[{part}]]")
    return Suite(
        data.get("name", Path(where).stem),
        data.get("description", ""),
        tuple(grids.values()),
        tuple(methods.values()),
        Limits(**limits),
        float(report.get("shift", 1.0)),
        report.get("bounds", True),
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _grids(table: dict[str, Any], where: str, folder: Path) -> Iterator[Grid]:
    check_settings(table, InstanceSettings, where, ProblemError)
    if "data" not in table:
        raise ProblemError(f"{where}: 'data' is missing: {words_of(InstanceSettings, 'data')}")
    table = dict(table)
    rows = table.pop("rows", 10)
    asks = list(_asks(table, where))
    shared = {k: table.pop(k) for k in ("target_column", "drop", "reference", "params", "features") if k in table}
    for values in product(*map(_listed, table.values())):
        chosen = dict(zip(table, values, strict=True)) | shared
        recipe = Recipe(**(chosen | {"drop": tuple(chosen.get("drop", ()))})).located(folder)
        try:
            recipe.check()
        except OcfError as error:
            raise ProblemError(f"{where}: {error}") from None
        for ask in asks:
            yield Grid(recipe, ask, tuple(rows) if isinstance(rows, list) else rows)


def _asks(table: dict[str, Any], where: str) -> Iterator[Ask]:
    """Questions of a grid, taken out of its table."""
    targets, norms = _listed(table.pop("target", "desired")), _listed(table.pop("norm", "l1"))
    constraints = table.pop("constraints", [{}])
    known = settings_known()
    for number, asked in enumerate(constraints, 1):
        settings = {k: v for k, v in asked.items() if k != "name"}
        for key in settings:
            if key not in known:
                raise ProblemError(f"{where}: constraints: unknown key {nearest(key, ['name', *known])}")
        name = str(asked.get("name", f"constraints {number}" if settings else ""))
        for target, norm in product(targets, norms):
            yield Ask(target, norm, name, settings)


def settings_known() -> list[str]:
    """Arguments of `Explainer.problem` that a table in `constraints` may hold; methods say how it is solved."""
    from ocf.explain.question import OF_PROBLEM

    return [name for name in OF_PROBLEM if name not in ("target", "norm")]


def _method_tables(tables: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where each table of a method stands, and what it says."""
    if isinstance(tables, dict):
        yield from ((f"[methods.{name}]", {"name": name, **table}) for name, table in tables.items())
    else:
        yield from ((f"[[methods]] {k}", table) for k, table in enumerate(tables, 1))


def _methods(table: dict[str, Any], where: str, folder: Path) -> Iterator[Method]:
    check_settings(table, MethodSettings, where, ProblemError)
    table = dict(table)
    shared: dict[str, Any] = {k: table.pop(k) for k in ("name", "options") if k in table}
    if "command" in table:
        shared |= {"command": tuple(table.pop("command")), "folder": str(folder)}
    try:
        made = [
            Method(**dict(zip(table, values, strict=True)), **shared)
            for values in product(*map(_listed, table.values()))
        ]
    except OcfError as error:
        raise ProblemError(f"{where}: {error}") from None
    unlike = {m.key for m in made}
    if "name" in shared and len(unlike) > 1:
        raise ProblemError(
            f"{where}: {shared['name']!r} would name {len(unlike)} methods: give each a table of its own"
        )
    yield from made


def all_methods() -> list[Method]:
    """Every formulation with every solver, and every search over cells."""
    from ocf.formulations import FORMULATIONS
    from ocf.solvers import CELL_SOLVERS, SOLVERS

    return [Method(f, s) for f in FORMULATIONS for s in SOLVERS] + [Method(solver=s) for s in CELL_SOLVERS]


# -- choosing ----------------------------------------------------------------------------------------------


def limited(suite: Suite, *, time: float | None = None, memory: int | None = None) -> Suite:
    """Suite with other limits, which makes it another suite.

    Parameters
    ----------
    suite : Suite
    time : float, optional
        Seconds a run; default: the suite's.
    memory : int, optional
        Bytes a run; default: the suite's.
    """
    limits = suite.limits
    if time is not None:
        limits = replace(limits, time=float(time))
    if memory is not None:
        limits = replace(limits, memory=memory)
    return replace(suite, limits=limits)


def part(suite: Suite, methods: Sequence[str] | None = None, sets: Sequence[str] | None = None) -> Suite:
    """Part of a suite: some of its methods or data sets, with results that go into the folder of the whole.

    Parameters
    ----------
    suite : Suite
    methods : sequence of str, optional
        Names of methods; all by default.
    sets : sequence of str, optional
        Data sets, as `Recipe.data_label` names them; all by default.

    Raises
    ------
    ProblemError
        A method or data set that the suite does not have.
    """
    fingerprint = suite.fingerprint
    if methods:
        suite = replace(suite, methods=tuple(_chosen(suite.methods, methods, "method", lambda m: m.name)))
    if sets:
        suite = replace(suite, grids=tuple(_chosen(suite.grids, sets, "data set", lambda g: g.recipe.data_label)))
    return replace(suite, part_of=fingerprint)


def _chosen(items: Iterable[Any], names: Sequence[str], what: str, label: Callable[[Any], str]) -> Iterator[Any]:
    items = list(items)
    known = list(dict.fromkeys(map(label, items)))
    for name in names:
        if name not in known:
            raise ProblemError(f"the suite has no {what} {nearest(name, known)}")
    return (item for item in items if label(item) in names)
