"""What a user gets: one `Explanation` per row, `Explanations` for several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

import msgspec
import numpy as np
import pandas as pd
from msgspec.structs import asdict

from ocf.errors import DataError
from ocf.explain import pages, plots
from ocf.explain import text as render
from ocf.explain.answer import CHANGE, STATUSES, Answer
from ocf.features.feature import Feature
from ocf.features.frames import PANDAS, FrameKind, as_pandas
from ocf.features.reading import Reading
from ocf.features.space import FeatureSpace
from ocf.problem.constraints import from_schema
from ocf.problem.costs import Cost
from ocf.solvers.result import Progress
from ocf.support import json_records as records
from ocf.support.documents import fit, refused
from ocf.support.json_dtypes import plain, stand_as_texts, value_like
from ocf.support.schemas import BoxSchema, EndsSchema, ExplanationSchema, SpaceSchema


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Answer):
    """The answer for one row.

    Attributes
    ----------
    row : label
        Index label of the row in the user's table.
    status : {"optimal", "feasible", "infeasible", "unknown", "error", "interrupted"}
        ``"optimal"``: no admissible change is cheaper, proven. ``"feasible"``: the model gives the target, but
        something cheaper than `cost` and dearer than `bound` may exist. ``"infeasible"``: proven that no admissible
        change gives the target. ``"unknown"``: a limit was hit before anything was found.
    original : DataFrame (1, n_columns)
        The row as the user gave it, also of polars or another library, as all tables of the answer are then.
    counterfactual : DataFrame (1, n_columns) or None
        The changed row in the same columns, units, dtypes and under the same label. What does not change is taken
        over bit by bit. A column takes another dtype only where its own cannot hold the new value exactly.
    predicted : label, float or None
        Class, or value, of the original by the user's model.
    target : label, tuple of labels, (lowest, highest), or None
        Class or classes that were wanted, or bounds of a regressor's value, None for an open end.
    probability : float or None
        Probability of the class, or of one of the classes, that was wanted.
    decided : label, float or None
        Class, or value, of the counterfactual by the user's own model.
    cost : float or None
        Cost of the counterfactual.
    bound : float
        Nothing admissible is cheaper: -inf when nothing is known, inf when proven infeasible.
    gap : float
        Relative distance of `bound` from `cost`: 0 when proven optimal, inf without a counterfactual.
    times : dict of str to float
        Seconds, by `TIMES`; build and compile are 0 for rows that share the compiled model of an earlier one, and ties
        are what finding the best, or several, of the points that cost the same took, with all their steps.
    nodes : int
        Of the branch and bound: of the solver's, or boxes that were looked at.
    refused : int
        Points of the solver that the user's model refused and that were cut off.
    proved_by : str
        ``"origin"``, ``"reduction"``, the name of a solver, or ""; of oblique trees also ``"closed form"``,
        ``"dual ascent"`` and ``"active set"``, joined by ``+`` where several worked.
    method : dict
        ``formulation, solver, solver_version, options, reduction``.
    sizes : dict of str to int
        Leaves and cells before and after the reduction; rows, columns, … of the matrix.
    history : tuple of Progress
        Bound and incumbent over time.
    verified : bool
        Whether there is a counterfactual and the independent check found nothing wrong.
    checks : tuple of str
        What that check found wrong; empty when all is well.
    message : str
        What a user should know, such as the cause of an error.
    space : FeatureSpace or None
        Descriptions of the features; None for rows that failed before there were any.
    norm : Cost or None
        The cost that was minimised.
    classes : tuple
        Class labels of the model.
    ties : tuple of DataFrames (1, n_columns)
        Other counterfactuals of the same, optimal cost, as many as were asked for.
    ties_complete : bool or None
        Whether these, with their `ranges`, are all optimal answers; None when none were asked for.
    ranges : tuple of dicts
        Of the counterfactual and then of each of the `ties`, where they were asked for: values that neither the model
        nor the cost tells from those of the answer, by feature, ``{"lowest": 2.5, "highest": 7.0}`` (inclusive) of
        numbers and a list of levels of others. Any combination of them is an answer of the same cost.
    problem : Problem, LinearProblem or None
        To replay; None after loading from JSON.
    plausibility : dict or None
        Of the counterfactual, where plausibility was asked for, by the isolation forest's own library: average
        ``depth`` over its ``trees``, the ``least`` that was wanted (None: none), and the library's ``score``. The cost
        holds ``weight`` times what ``depth`` falls short of ``deepest``, the largest that the trees could give.
        Where rows of the data say what is plausible, how many ``rows``, and whether they are of the target ``by`` the
        model's ``"prediction"`` or their ``"label"``.
    constraints : tuple of Constraint
        What every counterfactual had to respect.
    rank : int
        1 for the best explanation of a row, 2 for the next that differs, and so on.
    conflict : tuple of str
        Of a row that is infeasible, when `explain` was asked to diagnose it: a smallest set of the user's wishes that
        cannot hold together. Empty as well where the target is out of reach without any of them.
    imputations : dict or None
        Of a row whose missing values have completions: their ``values`` by column, the ``share`` that was wanted, which
        is the ``least`` number of them, and how many ``met`` the target and are deep enough, where a plausibility was
        asked for. `predicted` and `decided` are then what most completions get.
    box : dict or None
        Where it was asked for: the largest box around the counterfactual in which every admissible point has the
        target; see `ocf.explain.answer_box.AnswerBox`.
    probabilities : tuple of (n_classes,) tuples, or None
        Of all classes, of the original and, where there is one, of the counterfactual, by the user's own
        ``predict_proba``; None of models without one, and of rows with completions. `before` and `after` are those of
        the class that was wanted, `likely`.
    partway : tuple of tuples of float, or None
        What the model gives between the original and the counterfactual: the row with the first of its `changes`, with
        the first two, and so on, each the probabilities of all classes, or a regressor's value. `path` goes from
        `before` over these to `after`.
    margins : dict of feature name to float
        How far each value that changes had to stand from the thresholds that it passes, in the user's units.
    frames : FrameKind
        The library of the tables, and the dtypes of their columns; see `ocf.features.frames`.
    """

    def __eq__(self, other: object) -> bool:
        """Equal when everything that JSON keeps is equal; `problem` is not compared."""
        return self.to_dict() == other.to_dict() if isinstance(other, Explanation) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # the tables inside have none

    def __repr__(self) -> str:
        return f"<Explanation row={self.row!r} status={self.status!r} cost={self.cost!r} verified={self.verified}>"

    def __str__(self) -> str:
        return render.to_text(self)

    def _repr_html_(self) -> str:
        return pages.to_fragment(self)

    def to_frame(self) -> pd.DataFrame:
        """The counterfactual as a table of one row; see `Explanations.to_frame`."""
        return Explanations([self]).to_frame()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict of schema ``ocf.explanation/1``, enough for `ocf.verify.files.verify_file`."""
        return {
            "schema": records.ONE,
            "row": plain(self.row),
            "rank": int(self.rank),
            "status": self.status,
            "conflict": list(self.conflict),
            "predicted": plain(self.predicted),
            "target": plain(self.target),
            "probability": plain(self.probability),
            "probabilities": plain(self.probabilities),
            "partway": plain(self.partway),
            "margins": plain(self.margins),
            "decided": plain(self.decided),
            "cost": plain(self.cost),
            "bound": plain(self.bound),
            "gap": plain(self.gap),
            "verified": bool(self.verified),
            "checks": list(self.checks),
            "message": self.message,
            "changes": plain([dict(zip(CHANGE, row, strict=True)) for row in self.list_changes(self.counterfactual)]),
            "original": _record(self.original),
            "counterfactual": _record(self.counterfactual) if self.found else None,
            "ties": [_record(table) for table in self.ties],
            "ties_complete": self.ties_complete,
            "ranges": plain(self.ranges),
            "times": plain(self.times),
            "nodes": int(self.nodes),
            "refused": int(self.refused),
            "proved_by": self.proved_by,
            "sizes": plain(self.sizes),
            "history": plain(self.history),
            "method": plain(self.method),
            "norm": None if self.norm is None else plain(self.norm.to_dict()),
            "plausibility": None if self.plausibility is None else plain(self.plausibility),
            "constraints": plain([c.to_dict() for c in self.constraints]),
            "imputations": None if self.imputations is None else plain(self.imputations),
            "box": None if self.box is None else plain(self.box),
            "classes": plain(self.classes),
            "features": None if self.space is None else plain(self.space.to_dict()),
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """Strict JSON of `to_dict`; written to `path` if one is given."""
        return records.dumps(self.to_dict(), path)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Explanation:
        """Explanation from what `to_dict` wrote; without `problem`, and with column labels as text.

        Raises
        ------
        DataError
            It is something else, or a part of it is missing or malformed.
        """
        found = records.unpack(data)
        if len(found) != 1:
            raise DataError(f"this holds {len(found)} explanations: use Explanations.from_json")
        with refused("the explanation"):
            return _from_schema(fit(found[0], ExplanationSchema, "the explanation"))

    @classmethod
    def from_json(cls, source: str | Path) -> Explanation:
        """Explanation from a JSON text or from the file of that name."""
        found = records.loads(source)
        if len(found) != 1:
            raise DataError(f"this holds {len(found)} explanations: use Explanations.from_json")
        return cls.from_dict(found[0])

    def to_html(self, path: str | Path | None = None) -> str:
        """A self-contained web page; written to `path` if one is given."""
        return pages.to_page([self], path)

    def plot(self, ax: Any = None, *, of: str = "changes") -> Any:
        """Bars of what each change costs, or of what the model gives before and after, or change by change.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        of : {"changes", "prediction", "waterfall"}
            ``"prediction"``: the probability of each class, or the value beside the one that was wanted.
            ``"waterfall"``: how that of the class that was wanted, or the value, moves as the changes are made one
            after another, in the order of `changes`; in another order they would share it otherwise.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        MissingDependencyError
            Without matplotlib.
        DataError
            Nothing is known of the prediction.
        """
        return plots.plot(self, ax, of)


class Explanations(Sequence[Explanation]):
    """Explanations of several rows, in the order of the user's rows. Immutable."""

    def __init__(self, explanations: Iterable[Explanation] = ()) -> None:
        self._rows = tuple(explanations)

    def in_frames(self, frames: FrameKind) -> Explanations:
        """The same with all tables as the user has them; rows have no labels beyond their places there."""
        if not frames:
            return self
        native = frames.native
        return Explanations(
            replace(
                e,
                original=native(e.original),
                counterfactual=native(e.counterfactual),
                ties=tuple(map(native, e.ties)),
                frames=frames,
            )
            for e in self._rows
        )

    def by_row(self) -> list[Explanations]:
        """Those of each row by themselves, the best first."""
        starts = [k for k, e in enumerate(self._rows) if k == 0 or e.rank == 1]
        ends = [*starts, len(self)][1:]
        return [Explanations(self._rows[start:end]) for start, end in zip(starts, ends, strict=True)]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Explanation]:
        return iter(self._rows)

    @overload
    def __getitem__(self, index: int) -> Explanation: ...
    @overload
    def __getitem__(self, index: slice) -> Explanations: ...
    def __getitem__(self, index: int | slice) -> Explanation | Explanations:
        return Explanations(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __eq__(self, other: object) -> bool:
        return self._rows == other._rows if isinstance(other, Explanations) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Explanations: {render.counts_by_status(self)}>"

    def __str__(self) -> str:
        return render.batch_to_text(self)

    def _repr_html_(self) -> str:
        return pages.batch_to_fragment(self)

    def to_frame(self) -> pd.DataFrame:
        """Table of the counterfactuals, one row each, under the labels of the user's rows.

        Returns
        -------
        DataFrame (n, n_columns + 8)
            The user's columns, then ``status, cost, before, after, bound, gap, verified, seconds``, and ``rank`` before
            them where rows have several explanations; `before` and `after` are those of `Explanation`, where the model
            gives them. Those names get the prefix ``ocf_`` where the user's table has one of them. The
            values are missing in rows without a counterfactual.
        """
        frame: pd.DataFrame = self._frames.native(self._as_pandas())
        return frame

    @property
    def _frames(self) -> FrameKind:
        return self._rows[0].frames if self._rows else PANDAS

    def _as_pandas(self) -> pd.DataFrame:
        """`to_frame` as a DataFrame of pandas."""
        if not self._rows:
            return pd.DataFrame()
        tables = [as_pandas(e.counterfactual) for e in self._rows if e.found]
        places = [k for k, e in enumerate(self._rows) if e.found]
        if tables:
            values = pd.concat(tables, ignore_index=True).set_axis(places, axis=0)
            values = values.reindex(range(len(self))) if len(places) < len(self) else values
        else:
            values = pd.DataFrame(index=range(len(self)), columns=as_pandas(self._rows[0].original).columns)
        results = pd.DataFrame(
            {
                "status": [e.status for e in self._rows],
                "cost": np.array([np.nan if e.cost is None else e.cost for e in self._rows], np.float64),
                "bound": np.array([e.bound for e in self._rows], np.float64),
                "gap": np.array([e.gap for e in self._rows], np.float64),
                "verified": np.array([e.verified for e in self._rows], bool),
                "seconds": np.array([e.times.get("total", np.nan) for e in self._rows], np.float64),
            }
        )
        if any(e.before is not None for e in self._rows):
            for place, name in ((2, "before"), (3, "after")):
                results.insert(place, name, np.array([getattr(e, name) for e in self._rows], np.float64))
        if any(e.rank > 1 for e in self._rows):
            results.insert(0, "rank", [e.rank for e in self._rows])
        if set(results.columns) & set(values.columns):
            results = results.add_prefix("ocf_")
        frame = pd.concat([values, results], axis=1)
        indices = [as_pandas(e.original).index for e in self._rows]
        frame.index = indices[0].append(indices[1:])
        return frame

    def summary(self) -> pd.DataFrame:
        """Table by status: ``rows, verified`` (counts), ``median_cost, median_seconds``."""
        out = []
        for status in STATUSES:
            rows = [e for e in self._rows if e.status == status]
            if rows:
                costs = [e.cost for e in rows if e.cost is not None]
                out.append(
                    {
                        "status": status,
                        "rows": len(rows),
                        "verified": sum(e.verified for e in rows),
                        "median_cost": float(np.median(costs)) if costs else np.nan,
                        "median_seconds": float(np.median([e.times.get("total", 0.0) for e in rows])),
                    }
                )
        return pd.DataFrame(out, columns=["status", "rows", "verified", "median_cost", "median_seconds"]).set_index(
            "status"
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict of schema ``ocf.explanations/1``; what all rows share is written once."""
        return records.pack(e.to_dict() for e in self._rows)

    def to_json(self, path: str | Path | None = None) -> str:
        """Strict JSON of `to_dict`; written to `path` if one is given."""
        return records.dumps(self.to_dict(), path)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Explanations:
        """Explanations from what `to_dict` wrote, here or in `Explanation`."""
        return cls(Explanation.from_dict(record) for record in records.unpack(data))

    @classmethod
    def from_json(cls, source: str | Path) -> Explanations:
        """Explanations from a JSON text or from the file of that name, which may hold a single one."""
        return cls(Explanation.from_dict(record) for record in records.loads(source))

    def to_csv(self, path: str | Path | None = None) -> str:
        """CSV of `to_frame`; written to `path` if one is given."""
        text: str = self._as_pandas().to_csv(lineterminator="\n")
        if path is not None:
            Path(path).write_text(text, encoding="utf-8", newline="")
        return text

    def to_html(self, path: str | Path | None = None) -> str:
        """A self-contained web page; written to `path` if one is given."""
        return pages.to_page(self, path)


def _from_schema(found: ExplanationSchema) -> Explanation:
    row = _label(found.row)
    tables = [None if t is None else records.table_from_schema(t, row) for t in (found.original, found.counterfactual)]
    told, wanted = found.probabilities, 1 + (found.counterfactual is not None)
    if told is not None and len(told) < wanted:
        raise DataError(f"it holds probabilities of {len(told)} rows in the place of {wanted}")
    bound, gap = records.number(found.bound), records.number(found.gap)
    made = asdict(found) | {
        "row": row,
        "original": tables[0],
        "counterfactual": tables[1],
        "target": _label(found.target),
        "cost": records.number(found.cost),
        "bound": -np.inf if bound is None else bound,
        "gap": np.inf if gap is None else gap,
        "history": tuple(Progress(*map(float, record)) for record in found.history),
        "checks": tuple(found.checks),
        "space": None if found.features is None else _space(found.features, found.method, tables),
        "norm": None if found.norm is None else Cost(**asdict(found.norm)),
        "classes": tuple(found.classes),
        "ties": tuple(records.table_from_schema(table, row) for table in found.ties),
        "ranges": tuple(map(_range, found.ranges)),
        "plausibility": msgspec.to_builtins(found.plausibility),
        "constraints": tuple(map(from_schema, found.constraints)),
        "conflict": tuple(found.conflict),
        "imputations": None if found.imputations is None else asdict(found.imputations),
        "box": None if found.box is None else _box(found.box),
        "probabilities": None if found.probabilities is None else tuple(map(tuple, found.probabilities)),
        "partway": None if found.partway is None else tuple(map(tuple, found.partway)),
    }
    del made["features"], made["changes"]  # the space, and what follows from the tables
    return Explanation(**made)


def _space(features: SpaceSchema, method: Mapping[str, Any], tables: Sequence[pd.DataFrame | None]) -> FeatureSpace:
    """The features, with levels as the tables hold them, and how the table was read where the method keeps that."""
    space = FeatureSpace.from_schema(features)
    space = replace(space, features=tuple(_with_levels_of(tables, feature) for feature in space.features))
    return replace(space, reading=Reading.from_dict(method["table"])) if "table" in method else space


def _with_levels_of(tables: Sequence[pd.DataFrame | None], feature: Feature) -> Feature:
    """A feature whose levels are no longer texts where these stood for something else."""
    if not feature.discrete or len(feature.columns) > 1:
        return feature
    columns = [table[feature.columns[0]] for table in tables if table is not None and feature.columns[0] in table]
    like = next((column for column in columns if column.notna().all()), None)
    if like is None or not stand_as_texts(like):
        return feature
    permitted = feature.permitted and tuple(value_like(level, like) for level in feature.permitted)
    return replace(feature, levels=tuple(value_like(level, like) for level in feature.levels), permitted=permitted)


def _record(table: Any) -> dict[str, Any]:
    return records.table_to_record(as_pandas(table))


def _label(value: Any) -> Any:
    """A label, or the tuple of labels that JSON has as a list."""
    return tuple(value) if isinstance(value, list) else value


def _box(found: BoxSchema) -> dict[str, Any]:
    ranges = {name: None if held is None else _range({name: held})[name] for name, held in found.ranges.items()}
    return asdict(found) | {"ranges": ranges, "bound": np.inf if found.bound is None else records.number(found.bound)}


def _range(said: Mapping[str, EndsSchema | list[Any]]) -> dict[str, Any]:
    return {
        name: held
        if isinstance(held, list)
        else {"lowest": records.number(held.lowest), "highest": records.number(held.highest)}
        for name, held in said.items()
    }
