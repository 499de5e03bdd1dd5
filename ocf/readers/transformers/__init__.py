"""Readers of what stands in front of a model: one file for each family of transformers.

A reader module has the names of the `CLASSES` that it reads, as `ocf.readers.transformers.flow.kind_of` gives them
without importing a library, and ``read(name, step, flow) -> tuple[Column, ...]``: the columns behind a fitted step,
from those before it. It refuses what it cannot tell, with the name of the step and what to do; columns that depend on
several features are refused by the trees that split them, and by no others.

A reader tells shapes, never values: where exactly a split of a column falls is found with the user's own transformers
(`ocf.models.lift`), to the last bit. A step that no reader knows is refused: a probe can refute, never prove. Adding a
family is one file, one line in `READERS` and its cases in ``tests/readers/transformers/``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from ocf.arrays import FloatArray
from ocf.errors import ConformanceError, DataError, ModelError, OcfError, UnsupportedModelError
from ocf.features.space import FeatureSpace
from ocf.readers.base import brief
from ocf.readers.transformers.column import CONSTANT, Column, mixed
from ocf.readers.transformers.flow import MAKE_DENSE, Flow, Source, kind_of, shown
from ocf.support.messages import nearest

#: Modules asked in turn.
READERS = (
    "ocf.readers.transformers.containers",
    "ocf.readers.transformers.scalers",
    "ocf.readers.transformers.encoders",
    "ocf.readers.transformers.imputers",
    "ocf.readers.transformers.bins",
    "ocf.readers.transformers.polynomials",
    "ocf.readers.transformers.functions",
    "ocf.readers.transformers.selectors",
    "ocf.readers.transformers.mixtures",
    "ocf.readers.transformers.category_encoders",
)

#: Those that say themselves what becomes of columns that add up others.
_TAKE_MIXTURES = tuple(
    f"ocf.readers.transformers.{name}" for name in ("containers", "scalers", "selectors", "mixtures")
)

_REMEDY = "give ocf the table after that step"


@dataclass(frozen=True)
class Preprocessing:
    """What stands between the user's table and the columns of a model.

    Attributes
    ----------
    columns : callable
        Columns of the user's table -> those of them that the first step takes, in its order.
    given : callable
        Table in the user's columns -> what the first step is given of it.
    steps : tuple of (name, transformer)
    monotone : mapping of step name to {"increasing", "decreasing"}
        What the user says of functions that ocf does not know.
    absent_is_missing : bool
        Whether the model takes what a sparse matrix leaves out for missing values, and not for zeros.
    """

    columns: Callable[[tuple[str, ...]], tuple[str, ...]]
    given: Callable[[pd.DataFrame], Any]
    steps: tuple[tuple[str, Any], ...] = ()
    monotone: Mapping[str, str] = field(default_factory=dict)
    absent_is_missing: bool = False

    def saying(self, monotone: Mapping[str, str]) -> Preprocessing:
        """The same with the user's word on functions.

        Parameters
        ----------
        monotone : mapping of step name to {"increasing", "decreasing"}
            Where a step lies in another, both names with two underscores between, or its own.

        Raises
        ------
        DataError
            There is no such FunctionTransformer, or the word is another.
        """
        functions = _functions(self.steps)
        for name, word in monotone.items():
            if word not in ("increasing", "decreasing"):
                raise DataError(f"monotone: {name!r} is said to be {word!r}; say 'increasing' or 'decreasing'")
            if not _names(name, functions):
                raise DataError(f"monotone: there is no FunctionTransformer {nearest(name, functions)}")
        return replace(self, monotone=dict(monotone))

    def heeding(self, monotone: Mapping[str, str]) -> Preprocessing:
        """The same with those of the user's words that are on its functions.

        Parameters
        ----------
        monotone : mapping of step name to {"increasing", "decreasing"}
            As in `saying`.
        """
        functions = _functions(self.steps)
        return self.saying({name: word for name, word in monotone.items() if _names(name, functions)})

    def read(self, space: FeatureSpace, base: FloatArray, domain: Callable[[], FloatArray]) -> tuple[Column, ...]:
        """The columns that the model sees.

        Parameters
        ----------
        space : FeatureSpace
        base : (n_features,) float64
            A coded row; features whose value it misses stay missing.
        domain : callable
            Gives the smallest and largest number of each feature that the way to the model takes.

        Raises
        ------
        UnsupportedModelError
            A step is not read; with its name and what to do.
        ModelError
            A step is not fitted.
        """
        owner = {c: i for i, f in enumerate(space.features) for c in f.columns}
        columns = []
        for name in self.columns(space.columns):
            i = owner[name]
            feature = space.features[i]
            miss = bool(np.isnan(base[i]))
            affine = not feature.discrete and not feature.is_time
            columns.append(CONSTANT if miss else Column(i, feature.discrete, affine=affine))
        source = Source(space, base, domain, read_step, self.monotone)
        flow = self._through_all_steps(Flow(source, tuple(columns), self.given))
        if self.absent_is_missing and _is_sparse(flow.values(space.to_frame(base))):
            flow = self._through_all_steps(Flow(replace(source, zeros_go_missing=True), tuple(columns), self.given))
        return flow.columns

    def _through_all_steps(self, flow: Flow) -> Flow:
        """Behind all steps."""
        for name, step in self.steps:
            flow = flow.through(name, step)
        return flow


@dataclass(frozen=True)
class SideBySide:
    """Ways from one table to the columns of a model that holds several Pipelines; their columns follow each other.

    Attributes
    ----------
    ways : tuple of Preprocessing
        At least one.
    """

    ways: tuple[Preprocessing, ...]

    @property
    def steps(self) -> tuple[tuple[str, Any], ...]:
        """Steps of all ways."""
        return tuple(step for way in self.ways for step in way.steps)

    @property
    def monotone(self) -> Mapping[str, str]:
        """What the user says of functions that ocf does not know."""
        return {name: word for way in self.ways for name, word in way.monotone.items()}

    def saying(self, monotone: Mapping[str, str]) -> SideBySide:
        """See `Preprocessing.saying`; a name stands for the functions of that name on all ways."""
        replace(self.ways[0], steps=self.steps).saying(monotone)  # refuses names that no way has
        return SideBySide(tuple(way.heeding(monotone) for way in self.ways))

    def read(self, space: FeatureSpace, base: FloatArray, domain: Callable[[], FloatArray]) -> tuple[Column, ...]:
        """The columns that the model sees, as `Preprocessing.read` gives those of each way.

        Parameters
        ----------
        space, base, domain
            As in `Preprocessing.read`.
        """
        return tuple(column for way in self.ways for column in way.read(space, base, domain))


#: What stands between a table and a model.
Ways = Preprocessing | SideBySide


def read_step(name: str, step: Any, flow: Flow) -> Flow:
    """The columns behind a fitted step.

    Parameters
    ----------
    name : str
        As the Pipeline calls it.
    step : transformer, "passthrough", "drop" or None
    flow : Flow
        Before it.

    Raises
    ------
    UnsupportedModelError
        It is not read; with its name and what to do.
    ModelError
        It is not fitted, or was fitted on other columns.
    """
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return flow
    if isinstance(step, str) and step == "drop":
        return flow.some([])
    reader = next((r for r in map(import_module, READERS) if kind_of(step) in r.CLASSES), None)
    if reader is None:
        kind = f"{type(step).__module__}.{type(step).__qualname__}"
        raise UnsupportedModelError(
            f"{shown(name, step)} is not read: ocf knows no reader of {kind}, and what it only tries at some values it "
            f"cannot prove; {_REMEDY}"
        )
    _check_fitted(name, step)
    if reader.__name__ not in _TAKE_MIXTURES:
        flow = flow.without_mixtures(name, step)
    behind = Flow(flow.source, (), lambda table: step.transform(flow.values(table)), flow.within)
    try:
        columns = reader.read(name, step, flow)
        handed = behind.values(flow.source.space.to_frame(flow.source.base))
    except OcfError:
        raise
    except Exception as cause:
        raise DataError(
            f"{shown(name, step)} refuses the first row of the table ({brief(cause)}): give ocf a table like the one "
            "that the Pipeline was fitted on"
        ) from cause
    if handed.shape[1] != len(columns):
        raise ConformanceError(
            f"{shown(name, step)} gives {handed.shape[1]} columns, and ocf reads {len(columns)}: it may be of a "
            f"version that ocf does not know; {_REMEDY}"
        )
    columns = tuple(
        replace(c, bent_by=shown(name, step)) if c.number and not (c.affine or c.bent_by) else c for c in columns
    )
    behind = replace(behind, columns=columns)
    if flow.source.zeros_go_missing and _is_sparse(handed):
        behind = replace(behind, columns=_without_zeros(name, step, behind))
    return behind


def _is_sparse(values: Any) -> bool:
    return hasattr(values, "tocoo")


def _without_zeros(name: str, step: Any, behind: Flow) -> tuple[Column, ...]:
    """Columns of a sparse matrix, of numbers each with a break where it reaches 0, which is left out, and leaves it.

    What scales them later keeps the entries that there are, even where they become 0.
    """
    why = (
        f"{shown(name, step)} gives a sparse matrix, of which the model takes the zeros that are left out for missing "
        f"values, and rounding decides where it has them: {MAKE_DENSE}"
    )

    def broken(j: int, column: Column) -> Column:
        breaks = behind.zeros_of(j)
        return mixed(why) if breaks is None else replace(column, breaks=breaks)

    return tuple(mixed(why) if c.mixture else c for c in behind.each(broken))


def _check_fitted(name: str, step: Any) -> None:
    """Refuse a step that was never fitted; steps without a state always are."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(step)
    except NotFittedError:
        raise ModelError(f"{shown(name, step)} is not fitted: call fit on the Pipeline first") from None
    except TypeError:  # no estimator of scikit-learn's
        return


def _functions(steps: tuple[tuple[str, Any], ...]) -> list[str]:
    """Paths of FunctionTransformers."""
    return [path for path, step in _nested_steps(steps) if type(step).__name__ == "FunctionTransformer"]


def _names(name: str, functions: list[str]) -> bool:
    """Whether a name is that of a step, with those that it lies in or without."""
    return name in functions or name in [path.rpartition("__")[2] for path in functions]


def _nested_steps(steps: tuple[tuple[str, Any], ...], above: str = "") -> list[tuple[str, Any]]:
    """Steps and those that they hold, by their names with two underscores between."""
    found: list[tuple[str, Any]] = []
    for name, step in steps:
        inner = getattr(step, "steps", None) or getattr(step, "transformer_list", None)
        inner = inner or [(part, s) for part, s, _ in getattr(step, "transformers_", [])]
        found += [(above + name, step), *_nested_steps(tuple(inner), f"{above}{name}__")]
    return found
