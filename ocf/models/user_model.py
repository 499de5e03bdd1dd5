"""The user's own model: what it takes, what it decides, and the trees inside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray
from ocf.errors import DataError, ModelError, OcfError, UnsupportedModelError
from ocf.features.frames import PANDAS, FrameKind, kind_of
from ocf.features.space import FeatureSpace, in_order
from ocf.models.encoding import Encoding
from ocf.models.giving import giving, input_columns, matching_columns
from ocf.models.last_table import LastTable
from ocf.models.named import categories_behind, coded
from ocf.problem.targets import Target
from ocf.readers import read_model
from ocf.readers.base import Rows, TreeModel, brief
from ocf.readers.nesting import bare, flows_of, holds_pipelines, makes_arrays, opened
from ocf.readers.outputs import one_output
from ocf.readers.transformers import Preprocessing, SideBySide, Ways
from ocf.readers.transformers.containers import is_sampler
from ocf.readers.transformers.flow import MAKE_DENSE
from ocf.support.messages import listed


@dataclass(frozen=True)
class UserModel:
    """A fitted model or Pipeline.

    Attributes
    ----------
    native : object
        As the user has it.
    trees : TreeModel
        Its last step, read.
    columns : tuple of str or None
        Columns of the table it takes, if it knows their names.
    encode : callable
        Table in the user's columns -> (n, n_model_columns) float64: what the trees get to see.
    decide : callable
        Table in the user's columns -> (n,) class indices or values, by the user's own model. Judges every point.
    preprocessing : Preprocessing or SideBySide
        What stands between the table and the trees, to be read.
    probabilities : callable or None
        Table in the user's columns -> (n, n_classes) float64, by the user's own model; None without such.
    frames : FrameKind
        Of the user's data. A Pipeline is given tables of that kind; arrays only if it knows no names and they are such.
    order : tuple of str or None
        Columns of the user's data. Tables may have them in any order: a model that takes arrays is given this one.
    numbers : callable or None
        As `encode`, with zeros for what a sparse matrix leaves out, where the trees take that for missing values.
    """

    native: Any
    trees: TreeModel
    columns: tuple[str, ...] | None
    encode: Callable[[pd.DataFrame], FloatArray]
    decide: Callable[[pd.DataFrame], NDArray[Any]]
    preprocessing: Ways
    probabilities: Callable[[pd.DataFrame], FloatArray] | None = None
    frames: FrameKind = PANDAS
    order: tuple[str, ...] | None = None
    numbers: Callable[[pd.DataFrame], FloatArray] | None = None

    def meets(self, target: Target, table: pd.DataFrame) -> BoolArray:
        """Which rows of a table in the user's columns have a target, by the user's own model, (n,).

        Parameters
        ----------
        target : Target
        table : (n, n_columns) DataFrame
            In the user's columns and dtypes.
        """
        if target.probability is None or self.probabilities is None:
            return target.met_by(self.decide(table))
        return target.met_by(self.decide(table), self.probabilities(table))

    def saying(self, monotone: Mapping[str, str] | None) -> UserModel:
        """The same with the user's word on functions that ocf does not know.

        Parameters
        ----------
        monotone : mapping of step name to {"increasing", "decreasing"} or None
        """
        return replace(self, preprocessing=self.preprocessing.saying(monotone or {}))

    def over(self, columns: tuple[str, ...] | None) -> UserModel:
        """The same, asked about tables with these columns in any order.

        Parameters
        ----------
        columns : tuple of str or None
            Those of the user's data; a table's own labels may be numbers. None: it stays as it is.
        """
        if columns is None or columns == self.order:
            return self
        decide, encode, show, numbers = self.decide, self.encode, self.probabilities, self.numbers
        own = in_order(columns)
        return replace(
            self,
            order=columns,
            decide=lambda table: decide(own(table)),
            encode=lambda table: encode(own(table)),
            probabilities=None if show is None else lambda table: show(own(table)),
            numbers=None if numbers is None else lambda table: numbers(own(table)),
        )

    def in_frames(self, frames: FrameKind, table: pd.DataFrame) -> UserModel:
        """The same, asked about tables of the user's kind where it was most likely fitted on such.

        Steps of scikit-learn take tables of pandas and polars, and only some of them others: a model is asked about
        those only if it refuses pandas. One that knows no names of its columns is asked about arrays if it refuses
        tables.

        Parameters
        ----------
        frames : FrameKind
            Of the user's data; of arrays it stays as it is.
        table : DataFrame (n, n_columns)
            Some of the data, in the user's columns.
        """
        nameless = self.columns is None and bool(self.preprocessing.steps)
        if frames.like is None or not (frames or nameless):
            return self
        said = self.preprocessing.monotone
        own = _read_again(self.native, said, frames)
        plain = _read_again(self.native, said, kind_of(table)) if frames and nameless else own if nameless else self
        ways = (own, plain, self) if frames.library == "polars" else (plain, own, self)
        return next((way for way in ways if way.takes(table)), plain)

    def takes(self, table: pd.DataFrame) -> bool:
        """Whether the model answers to a table in the user's columns."""
        try:
            self.decide(table)
        except (OcfError, ValueError, TypeError, AttributeError):
            return False
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        """The way to another process: the native model, read anew there."""
        return _read_again, (self.native, dict(self.preprocessing.monotone), self.frames, self.order)

    def naming(self, space: FeatureSpace, base: FloatArray | None = None) -> UserModel:
        """The same with the levels of a table's features, for a library that keeps no names of categories.

        Parameters
        ----------
        space : FeatureSpace
            The table's.
        base : (n_features,) float64, optional
            A coded row of it. Behind steps categories are named once there is one.
        """
        if self.trees.naming is None:
            return self
        before = self.preprocessing
        if not isinstance(before, Preprocessing):
            raise UnsupportedModelError(
                f"the {type(self.trees.native).__name__} has category columns of its own behind the steps of a "
                f"Pipeline inside a {type(self.native).__name__}: give ocf that Pipeline, or put an encoder before it"
            )
        if before.steps:
            return self if base is None else self._naming_behind(space, base)
        columns = before.columns(space.names)
        features = {j: space.features[space.index(columns[j])] for j in self.trees.categories}
        for feature in features.values():
            if not feature.discrete:
                raise DataError(
                    f"the model treats feature {feature.name!r} as categories: describe it as kind 'categorical'"
                )
        levels = {j: f.levels for j, f in features.items()}
        if levels == self.trees.categories:
            return self
        return _alone(self.native, self.trees.naming(levels), self.frames).over(self.order)

    def _naming_behind(self, space: FeatureSpace, base: FloatArray) -> UserModel:
        """The same with the categories that steps make of the levels of a table's features."""
        assert self.trees.naming is not None
        columns = Encoding(space, self.encode, base, self.preprocessing.read).columns
        Encoding(space, self.encode, base, lambda *_: columns).check_width(self.trees.feature_names)
        levels = categories_behind(self.trees, columns, _passage(self.native, self.frames)[2], space, base)
        own = _pipeline(self.native, self.frames, self.trees.naming(levels))
        return own.saying(self.preprocessing.monotone).over(self.order)

    @property
    def rests_on(self) -> str:
        """What the user has said of functions that ocf does not know, in words; empty if nothing."""
        said = [f"the step {name!r} is {word}" for name, word in self.preprocessing.monotone.items()]
        return f"this rests on your word that {listed(said)}" if said else ""

    @property
    def classes(self) -> tuple[Any, ...]:
        """Class labels, by index; empty for regressors."""
        return self.trees.classes


def as_user_model(
    model: Any, *, trust_pickle: bool = False, frames: FrameKind = PANDAS, output: int | str | None = None
) -> UserModel:
    """Wrap a fitted estimator, a Pipeline that ends in one, or a model file.

    Parameters
    ----------
    model : estimator, Pipeline, path, or UserModel
    trust_pickle : bool
        Whether a path may be a pickle or joblib file, which can run any code when it is loaded.
    frames : FrameKind
        Of the user's data, and so, as is taken for granted, of the table that a Pipeline was fitted on.
    output : int or str, optional
        Which output of a model that predicts several at once.

    Raises
    ------
    ModelError
        Unfitted, unreadable or unsupported, or it has no such output.
    """
    if isinstance(model, UserModel):
        return model
    if isinstance(model, str | Path):
        from ocf.readers.files import load_model

        model = load_model(Path(model), trust_pickle=trust_pickle)
    model = bare(model)
    if output is not None:
        model = one_output(model, output)
    if holds_pipelines(model):
        return _nested(model, frames)
    if hasattr(model, "steps") and hasattr(model, "named_steps"):
        return _pipeline(model, frames)
    return _alone(model, read_model(model), frames)


def _alone(model: Any, trees: TreeModel, frames: FrameKind) -> UserModel:
    """A model without a Pipeline."""
    names = trees.ensemble.feature_names
    known = tuple(str(n) for n in getattr(model, "feature_names_in_", ())) or given_names(names)

    def arranged(table: pd.DataFrame) -> pd.DataFrame:
        columns = tuple(table.columns.tolist())
        wanted = known or (names if {*columns} == {*names} else columns)
        # a copy either way, for the model may write to what it is given; picking columns is the slower one
        return table.copy() if columns == wanted else table[list(matching_columns(wanted, columns))]

    def encode(table: pd.DataFrame) -> FloatArray:
        return _numbers(arranged(table), trees.categories)

    def given(table: pd.DataFrame) -> Rows:
        # an array model is given an array, in the dtype that the columns have in common; where it has categories by
        # values, an array is taken for their codes, and a table for the values
        if known or trees.categories:
            return arranged(table)
        array = arranged(table).to_numpy()
        # nullable columns have none in common but that of objects, which libraries do not read as numbers
        return _numbers(arranged(table), {}) if array.dtype == object else array

    def decide(table: pd.DataFrame) -> NDArray[Any]:
        with working(model, table):
            return trees.decide(given(table))

    show = trees.probabilities
    shown = None if show is None else lambda table: show(given(table))
    return UserModel(model, trees, known, encode, decide, preprocessing_of(known, given), shown, frames)


def _read_again(
    native: Any, monotone: Mapping[str, str], frames: FrameKind, order: tuple[str, ...] | None = None
) -> UserModel:
    return as_user_model(native, frames=frames).saying(monotone).over(order)


def preprocessing_of(
    columns: tuple[str, ...] | None,
    given: Callable[[pd.DataFrame], Any],
    steps: Sequence[tuple[str, Any]] = (),
    absent_is_missing: bool = False,
) -> Preprocessing:
    """What stands between a table and a model.

    Parameters
    ----------
    columns : tuple of str or None
        As the model knows them; None where it takes an array.
    given : callable
        Table in the user's columns -> what the first step is given.
    steps : sequence of (name, transformer)
        Fitted; samplers, which are left out at prediction, may be among them.
    absent_is_missing : bool
        Whether the model takes what a sparse matrix leaves out for missing values.
    """

    def taken(table: tuple[str, ...]) -> tuple[str, ...]:
        return table if columns is None else matching_columns(columns, table)

    read = tuple((name, step) for name, step in steps if not is_sampler(step))
    return Preprocessing(taken, given, read, absent_is_missing=absent_is_missing)


def given_names(names: tuple[str, ...]) -> tuple[str, ...] | None:
    """The names, unless they are those that a library makes up for the columns of an array."""
    made_up = any(all(n == f"{stem}{j}" for j, n in enumerate(names)) for stem in ("x", "f", "Column_"))
    return None if made_up else names


#: Where libraries take categories that the reader could not place.
_ORDERED = (
    "; of ordered categories beside columns of few whole numbers LightGBM does not keep which are which: fit it on "
    "unordered ones; XGBoost before 3.1 keeps no categories: fit it again with a newer one"
)


def _numbers(table: pd.DataFrame, categories: Mapping[int, tuple[Any, ...]]) -> FloatArray:
    """Model columns of a table: category codes where the model has its own, the numbers themselves elsewhere."""
    out = np.empty(table.shape, np.float64)
    for j, name in enumerate(table.columns):
        column = table[name]
        if j in categories:
            codes = {level: float(code) for code, level in enumerate(categories[j])}
            out[:, j] = [codes.get(v, np.nan) for v in column.astype(object)]
            continue
        try:
            out[:, j] = column.to_numpy(np.float64, na_value=np.nan)
        except (ValueError, TypeError):
            hint = _ORDERED if isinstance(column.dtype, pd.CategoricalDtype) else ""
            raise DataError(f"the model takes numbers, but column {name!r} holds {_held(column)}{hint}") from None
    return out


def _held(column: pd.Series[Any]) -> str:
    """What a column that should be of numbers holds, and what to do about it.

    Where most of a column of text are numbers, the others are slips such as "34,600", not words to encode.
    """
    words = column[pd.to_numeric(column.astype(object), errors="coerce").isna() & column.notna()]
    such = f", such as {words.iloc[0]!r} in row {words.index[0]!r}" if len(words) else ""
    if column.dtype != "category" and 2 * len(words) <= column.count():
        return f"text{such}: write numbers plainly, as 34600 or 0.5, and leave the cell of an unknown one empty"
    return (
        f"{column.dtype} values{such}: put an encoder before the model in a Pipeline (for example OneHotEncoder), or "
        "give ocf the encoded table"
    )


def _pipeline(model: Any, frames: FrameKind, trees: TreeModel | None = None) -> UserModel:
    """A Pipeline; its last step is read, unless that was done."""
    if len(model.steps) < 2:
        return as_user_model(model.steps[-1][1], frames=frames)
    steps = flat_steps(model)
    trees = trees or read_model(steps[-1][1])
    columns, given, through = _passage(model, frames)
    encode = _encoder(model, through, trees.absent_is_missing, trees)
    asked = (steps[-1][1], through) if _asks_its_last_step(model) else (model, given)
    before = preprocessing_of(columns, given, steps[:-1], bool(trees.absent_is_missing))
    numbers = _encoder(model, through, False, trees) if trees.absent_is_missing else None
    return replace(_behind(model, asked, trees, columns, encode, before), frames=frames, numbers=numbers)


def _asks_its_last_step(model: Any) -> bool:
    """Whether a Pipeline answers what its last step says of what the others make of a table, as scikit-learn's do."""
    from sklearn.pipeline import Pipeline

    while hasattr(model, "steps"):
        if type(model) is not Pipeline or {"predict", "predict_proba"} & vars(model).keys():
            return False
        model = model.steps[-1][1]
    return True


def _nested(model: Any, frames: FrameKind) -> UserModel:
    """A model that holds Pipelines: what they make of a table stands side by side, and the trees see their own part."""
    flows = flows_of(model)
    trees = read_model(opened(model, flows))
    pipelines = [flow.pipeline if flow.steps else None for flow in flows]
    columns = input_columns(model) or next((c for c in map(input_columns, filter(None, pipelines)) if c), None)
    absent = [flow.absent_is_missing for flow in flows]

    given = giving(model, columns, frames)
    # what holds the Pipelines may know names and hand on arrays, as OneVsOneClassifier does
    arrays = [p is not None and input_columns(p) is None and (bool(columns) or makes_arrays(model)) for p in pipelines]
    kinds = [PANDAS if array else frames for array in arrays]

    def encoder_of(absent: Sequence[bool]) -> Callable[[pd.DataFrame], FloatArray]:
        ways = zip(pipelines, absent, kinds, strict=True)
        parts = [p and pipeline_encoder(p, gone, kind)[2] for p, gone, kind in ways]

        def encode(table: pd.DataFrame) -> FloatArray:
            own = table[list(columns)] if columns else table
            return np.hstack([_numbers(own, {}) if part is None else part(own) for part in parts])

        return encode

    def array_of(table: pd.DataFrame) -> Any:
        return np.asarray(given(table))

    first = [array_of if array else given for array in arrays]
    ways = zip(first, flows, absent, strict=True)
    read = SideBySide(tuple(preprocessing_of(columns, g, flow.steps, gone) for g, flow, gone in ways))
    numbers = encoder_of([False] * len(flows)) if any(absent) else None
    own = _behind(model, (model, given), trees, columns, encoder_of(absent), read)
    return replace(own, frames=frames, numbers=numbers)


def _behind(
    model: Any,
    asked: tuple[Any, Callable[[pd.DataFrame], Any]],
    trees: TreeModel,
    columns: tuple[str, ...] | None,
    encode: Callable[[pd.DataFrame], FloatArray],
    preprocessing: Ways,
) -> UserModel:
    """A model behind what encodes its table; `asked` is who predicts in it, and what that is given of a table."""
    predictor, given = asked
    classes = {label: index for index, label in enumerate(trees.ensemble.decision.classes)}

    def decide(table: pd.DataFrame) -> NDArray[Any]:
        with working(model, table):
            answers = predictor.predict(given(table))
            if not classes:
                return np.asarray(answers, np.float64)
            return np.array([classes[label] for label in np.asarray(answers).ravel().tolist()], np.int64)

    def probabilities(table: pd.DataFrame) -> FloatArray:
        with working(model, table):
            return np.asarray(predictor.predict_proba(given(table)), np.float64)

    show = probabilities if trees.probabilities else None
    return UserModel(model, trees, columns, encode, decide, preprocessing, show)


def flat_steps(model: Any) -> list[tuple[str, Any]]:
    """Steps of a Pipeline; those of a Pipeline at its end stand in its place."""
    steps: list[tuple[str, Any]] = []
    while hasattr(model, "steps"):
        steps += model.steps
        model = steps[-1][1]
        if hasattr(model, "steps"):
            steps.pop()
    return steps


@contextmanager
def working(model: Any, table: pd.DataFrame | None = None) -> Iterator[None]:
    """Turn what a model or the steps of a Pipeline raise on a table into an error that says so.

    Parameters
    ----------
    model : estimator or Pipeline
    table : DataFrame, optional
        That it is asked about.

    Raises
    ------
    DataError
        The table has missing values, and the error speaks of them.
    ModelError
        Something else than an error of ocf was raised inside.
    """
    try:
        yield
    except OcfError:
        raise
    except Exception as cause:
        lacking = [] if table is None else [str(c) for c, gap in table.isna().any().items() if gap]
        if lacking and "nan" in str(cause).lower():
            raise DataError(
                f"the table misses values (NaN) of {listed(lacking)}, and the {_kind(model)} has no rule for that "
                f"({brief(cause)}): fill them in, or fit the model behind an imputer in a Pipeline"
            ) from cause
        raise ModelError(
            f"the {_kind(model)} fails on this table ({brief(cause)}): give it a table like the one that it was fitted "
            "on; if that fails too, it is corrupt: fit it again"
        ) from cause


def _kind(model: Any) -> str:
    steps = getattr(model, "steps", None) or []
    return type(model).__name__ + (f" ({', '.join(type(step).__name__ for _, step in steps)})" if steps else "")


def pipeline_encoder(
    model: Any, absent_is_missing: bool = False, frames: FrameKind = PANDAS
) -> tuple[tuple[str, ...] | None, Callable[[pd.DataFrame], Any], Callable[[pd.DataFrame], FloatArray]]:
    """Input columns of a Pipeline, what it is given of a table, and what its last step gets to see of one.

    Parameters
    ----------
    model : Pipeline
    absent_is_missing : bool
        Whether its last step takes the entries that a sparse matrix leaves out for missing values.
    frames : FrameKind
        Of the table that it is given.
    """
    columns, given, through = _passage(model, frames)
    return columns, given, _encoder(model, through, absent_is_missing)


def _passage(
    model: Any, frames: FrameKind
) -> tuple[tuple[str, ...] | None, Callable[[pd.DataFrame], Any], Callable[[pd.DataFrame], Any]]:
    """Input columns of a Pipeline, what it is given of a table, and what it hands its last step."""
    columns = input_columns(model)
    given = giving(model, columns, frames)
    before = [s for _, s in flat_steps(model)[:-1] if s is not None and s != "passthrough" and not is_sampler(s)]

    def through(table: pd.DataFrame) -> Any:
        with working(model):
            encoded = given(table)
            for step in before:
                encoded = step.transform(encoded)
            return encoded

    return columns, given, LastTable(through)


#: Why a model that holds others, of XGBoost and of other libraries, is not read behind sparse matrices.
_TWO_WAYS = (
    "the steps hand the model a sparse matrix, and of the models that it holds some take the zeros that are left out "
    f"for missing values, as XGBoost does, and some do not: {MAKE_DENSE}"
)


def _encoder(
    model: Any,
    through: Callable[[pd.DataFrame], Any],
    absent_is_missing: bool | None,
    trees: TreeModel | None = None,
) -> Callable[[pd.DataFrame], FloatArray]:
    """What the last step of a Pipeline, which is read already, gets to see of a table, from what it is handed."""
    categories = {} if trees is None else trees.categories

    def encode(table: pd.DataFrame) -> FloatArray:
        with working(model):
            encoded = through(table)
            if hasattr(encoded, "tocoo"):
                if absent_is_missing is None:
                    raise UnsupportedModelError(_TWO_WAYS)
                encoded = _dense(encoded, np.nan if absent_is_missing else 0.0)
            if categories and trees is not None and trees.naming is not None:
                return coded(encoded, categories)
            if categories:
                return _numbers(pd.DataFrame(encoded), categories)
            if isinstance(encoded, pd.DataFrame):
                return encoded.to_numpy(np.float64, copy=True, na_value=np.nan)
            return np.array(encoded, np.float64)  # a copy: others may be handed the same

    return encode


def _dense(encoded: Any, absent: float) -> FloatArray:
    """A sparse matrix as the model sees it: a zero that is stored is a zero, even where what is not is missing."""
    entries = encoded.tocoo()
    out = np.full(entries.shape, absent)
    out[entries.row, entries.col] = entries.data
    return out


def table_columns(model: UserModel, data_columns: tuple[str, ...]) -> tuple[str, ...]:
    """Columns of the user's data that the model takes, in the model's order.

    Parameters
    ----------
    model : UserModel
    data_columns : tuple of str
        Of the user's table.

    Raises
    ------
    DataError
        Some are missing, or the number of columns differs.
    """
    if model.columns is not None:
        return matching_columns(model.columns, data_columns)
    names = model.trees.feature_names
    if not model.preprocessing.steps and {*names} == {*data_columns}:
        return names
    width = len(names)
    if not model.preprocessing.steps and len(data_columns) != width:
        raise DataError(
            f"the data has {len(data_columns)} columns, but the model was fitted on {width} and knows no names"
        )
    return data_columns
