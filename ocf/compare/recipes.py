"""Ensembles to explain: a data set and a model that is trained on it, or a model file and its table.

What is prepared once is kept in the user's cache folder, so that every process of a comparison finds it ready.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ocf.compare.keys import checksum
from ocf.errors import DataError, MissingDependencyError, ProblemError
from ocf.support.messages import listed, nearest

if TYPE_CHECKING:
    import pandas as pd

    from ocf.compare.datasets import Dataset
    from ocf.explain.explainer import Explainer
    from ocf.models.plausibility import Plausibility

logger = logging.getLogger(__name__)

#: Name -> module, class without its last word, and the parameters for the number of trees and their depth.
RECIPES: dict[str, tuple[str, str, str | None, str]] = {
    "random_forest": ("sklearn.ensemble", "RandomForest", "n_estimators", "max_depth"),
    "extra_trees": ("sklearn.ensemble", "ExtraTrees", "n_estimators", "max_depth"),
    "decision_tree": ("sklearn.tree", "DecisionTree", None, "max_depth"),
    "gradient_boosting": ("sklearn.ensemble", "GradientBoosting", "n_estimators", "max_depth"),
    "hist_gradient_boosting": ("sklearn.ensemble", "HistGradientBoosting", "max_iter", "max_depth"),
    "adaboost": ("sklearn.ensemble", "AdaBoost", "n_estimators", "estimator__max_depth"),
    "xgboost": ("xgboost", "XGB", "n_estimators", "max_depth"),
    "lightgbm": ("lightgbm", "LGBM", "n_estimators", "max_depth"),
}

#: How the names of tables end; another name is that of a data set.
TABLES = (".csv", ".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zip", ".parquet", ".pq")

#: Share of a set's rows that the model is not trained on and that rows to explain come from.
TEST_SHARE = 0.2


@dataclass(frozen=True)
class Recipe:
    """A data set or table, and a model.

    Attributes
    ----------
    data : str
        Name of a data set (`ocf.compare.datasets.load_dataset`), or path of a table.
    model : str
        Key of `RECIPES`, or path of a model file.
    trees, depth : int
        Of a recipe.
    seed : int
        Of the split into training and test part, and of the training.
    target_column : str
        Of a table that a recipe is trained on.
    drop : tuple of str
        Columns of a table that are no inputs.
    reference : str
        Path of a model file's training data; by default its table.
    params : mapping
        Further parameters of a recipe.
    features : mapping
        Settings by feature, as `ocf.features.inference.infer_space` takes them; they override those of the data set.
    trust_pickle : bool
        Whether the model file may be a pickle.
    """

    data: str
    model: str = "random_forest"
    trees: int = 100
    depth: int = 5
    seed: int = 0
    target_column: str = ""
    drop: tuple[str, ...] = ()
    reference: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    features: Mapping[str, Any] = field(default_factory=dict)
    trust_pickle: bool = False

    @property
    def trained(self) -> bool:
        """Whether the model is trained here."""
        return self.model in RECIPES

    @property
    def is_table(self) -> bool:
        """Whether `data` is the path of a table."""
        return self.data.lower().endswith(TABLES)

    @property
    def data_label(self) -> str:
        """Name of the data for reading."""
        return Path(self.data).name.split(".")[0] if self.is_table else self.data

    @property
    def model_label(self) -> str:
        """The model for reading."""
        if not self.trained:
            return Path(self.model).name
        size = f"depth {self.depth}" if RECIPES[self.model][2] is None else f"{self.trees} × {self.depth}"
        more = "".join(f" {k}={v}" for k, v in self.params.items())
        return f"{self.model.replace('_', ' ')} {size}{more}" + (f" seed {self.seed}" if self.seed else "")

    def located(self, folder: Path) -> Recipe:
        """The same with relative paths made to count from `folder`."""

        def path(text: str) -> str:
            return str(folder / text) if text else text

        return replace(
            self,
            data=path(self.data) if self.is_table else self.data,
            model=self.model if self.trained or not self.is_file else path(self.model),
            reference=path(self.reference),
        )

    @property
    def is_file(self) -> bool:
        """Whether `model` looks like the path of a file and not like a misspelt recipe."""
        return "." in self.model or "/" in self.model or os.sep in self.model

    def check(self) -> None:
        """Refuse what contradicts itself.

        Raises
        ------
        ProblemError
        """
        if not self.trained and not self.is_file:
            raise ProblemError(f"unknown model {nearest(self.model, RECIPES)}; a model file's name has a suffix")
        if self.trained and self.is_table and not self.target_column:
            raise ProblemError(f"{self.data} needs a target_column to train {self.model} on")
        if not self.trained and not self.is_table:
            raise ProblemError(f"the model file {self.model} needs a table as its data, not {self.data!r}")


@dataclass(frozen=True, eq=False)
class Case:
    """What is prepared of a recipe.

    Attributes
    ----------
    explainer : Explainer
    rows : DataFrame
        Rows that may be explained: the test part, or the table that comes with a model file.
    reference : DataFrame
        What the model was trained on, or the table from which bounds and scales come.
    desired : object
        The favourable class, if there is one.
    facts : dict
        Sizes, test score and checksum, JSON-ready.
    wishes : dict
        Plausibility that was asked for, by the checksum of how: one isolation forest for all runs that ask the same.
    """

    explainer: Explainer
    rows: pd.DataFrame
    reference: pd.DataFrame
    desired: Any
    facts: dict[str, Any]
    wishes: dict[str, Plausibility | None] = field(default_factory=dict)

    def row(self, position: int) -> pd.DataFrame:
        """One row, as a table.

        Raises
        ------
        DataError
            There are not so many.
        """
        if not 0 <= position < len(self.rows):
            raise DataError(f"there is no row {position}; there are {len(self.rows)}, counted from 0")
        return self.rows.iloc[[position]]

    def target(self, target: Any) -> Any:
        """The target in the model's words."""
        if target != "desired" or "desired" in self.explainer.classes:
            bounds = isinstance(target, list) and not self.explainer.classes
            return [None if math.isinf(v) else v for v in target] if bounds else target
        if self.desired is None:
            raise ProblemError("the data set names no favourable class: give a target, such as target = 1")
        return self.desired

    def waiting(self, target: Any, count: int) -> list[int]:
        """Positions of the first rows that do not have the target yet.

        Parameters
        ----------
        target : object
            As a suite gives it: ``"desired"``, or what `Explainer.problem` takes.
        count : int
            How many rows at most.
        """
        wanted = self.target(target)
        found: list[int] = []
        for position in range(len(self.rows)):
            if len(found) == count:
                break
            row = self.rows.iloc[[position]]
            if not self.explainer.model.meets(self.explainer.problem(row, wanted).target, row)[0]:
                found.append(position)
        return found


# -- preparing ---------------------------------------------------------------------------------------------


def prepare(recipe: Recipe, folder: str | None = None) -> Case:
    """The case of a recipe: from the cache, or made and put there.

    Parameters
    ----------
    recipe : Recipe
    folder : str, optional
        Of data sets; default the environment variable ``OCF_DATA``.

    Raises
    ------
    OcfError
        The data or the model cannot be had.
    """
    import joblib

    path = cache_folder() / f"{_key(recipe, folder)}.joblib"
    try:
        case = joblib.load(path)
        if isinstance(case, Case):
            return case
    except FileNotFoundError:
        pass
    except Exception as error:  # of another version, or cut off
        logger.info("%s is of no use (%s); it is made anew", path, error)
    case = _make_case(recipe, folder)
    _keep(case, path)
    return case


def cache_folder() -> Path:
    """Folder of prepared cases: ``OCF_CACHE``, or ``ocf`` in the user's cache folder."""
    chosen = os.environ.get("OCF_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(chosen) if chosen else base / "ocf" / "compare"


def _keep(case: Case, path: Path) -> None:
    """Write a case in one step; a full or read-only disk only costs time."""
    import joblib

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            joblib.dump(case, file)
        Path(file.name).replace(path)
    except OSError as error:
        logger.info("cannot keep %s: %s", path, error)


def _key(recipe: Recipe, folder: str | None) -> str:
    """Checksum of the recipe, the files it reads and the versions that bear on what comes of it."""
    held = [f.name for f in fields(Case)]
    return checksum([recipe, stamps(recipe, folder), _versions(), code_checksum(), held])


def stamps(recipe: Recipe, folder: str | None) -> list[tuple[str, str]]:
    """Files that a recipe reads, each with its checksum.

    Parameters
    ----------
    recipe : Recipe
    folder : str or None
        Of data sets.
    """
    from ocf.compare.datasets import dataset_files

    if recipe.is_table:
        files = [recipe.data, recipe.reference, "" if recipe.trained else recipe.model]
    else:
        files = [str(f) for f in dataset_files(recipe.data, folder)]
    return [(f, hashlib.sha256(Path(f).read_bytes()).hexdigest()) for f in files if f and Path(f).is_file()]


def _versions() -> dict[str, str]:
    out = {}
    for name in ("ocf", "numpy", "pandas", "scikit-learn", "xgboost-cpu", "xgboost", "lightgbm"):
        try:
            out[name] = version(name)
        except PackageNotFoundError:
            out[name] = ""
    return out


#: Where the sources of ocf are.
PACKAGE = Path(__file__).parents[1]


@cache
def code_checksum(root: Path = PACKAGE) -> str:
    """Checksum of ocf's sources: what was pickled by others may not be read any more."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in ("compare", "cli"):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _make_case(recipe: Recipe, folder: str | None) -> Case:
    from ocf.explain.explainer import Explainer

    if recipe.trained:
        data = _dataset(recipe, folder)
        table, dropped = _complete(data)
        model, train, rows, score = _trained(recipe, table)
        settings = _merged(table.settings, recipe.features)
        explainer, reference = Explainer(model, data=train, features=settings, groups=False), train
        desired = data.desired.item() if hasattr(data.desired, "item") else data.desired
        facts = {"train_rows": len(train), "dropped_rows": dropped, "score": score}
    else:
        explainer, rows, reference = _load_given(recipe)
        desired, facts = None, {}
    return Case(explainer, rows, reference, desired, facts | _facts(explainer, rows))


def _dataset(recipe: Recipe, folder: str | None) -> Dataset:
    from ocf.compare.datasets import Dataset, described, load_dataset

    if not recipe.is_table:
        return load_dataset(recipe.data, folder)
    from ocf.models.tables import drop_columns, in_words, read_table, said_levels

    (table,) = drop_columns([read_table(Path(recipe.data))], recipe.drop)
    table = in_words(table, Path(recipe.data), said_levels(recipe.features))
    if recipe.target_column not in table:
        raise DataError(f"{recipe.data} has no column {nearest(recipe.target_column, table.columns)}")
    target = table.pop(recipe.target_column)
    return Dataset(recipe.data_label, table, target, described(table))


def _complete(data: Dataset) -> tuple[Dataset, int]:
    """The set without rows that miss a value, and how many those are."""
    whole = ~(data.table.isna().any(axis=1) | data.target.isna())
    if not whole.any():
        raise DataError(f"every row of {data.name} misses a value: leave out the columns that do with drop")
    return replace(data, table=data.table[whole], target=data.target[whole]), int((~whole).sum())


def _trained(recipe: Recipe, data: Dataset) -> tuple[Any, pd.DataFrame, pd.DataFrame, float]:
    """Fitted model, training rows, test rows, and the score on these: accuracy, or R² of a regressor."""
    from sklearn.model_selection import train_test_split

    from ocf.compare.datasets import one_hot_pipeline

    train, test, y_train, y_test = train_test_split(
        data.table, data.target, test_size=TEST_SHARE, random_state=recipe.seed
    )
    model = one_hot_pipeline(data, estimator(recipe, regression=data.regression))
    try:
        model.fit(train, y_train)
    except Exception as error:  # each library refuses what it does not like in its own way
        reason = str(error).splitlines() or [type(error).__name__]
        raise ProblemError(f"{recipe.model} cannot be trained on {data.name}: {reason[0]}") from error
    return model, train, test, float(model.score(test, y_test))


def estimator(recipe: Recipe, *, regression: bool = False) -> Any:
    """The model that a recipe trains, not fitted yet, on one thread; its regressor where a value is predicted.

    Parameters
    ----------
    recipe : Recipe
        With a model that is trained, not a file.
    regression : bool
        Whether a value is predicted and not a class.

    Raises
    ------
    MissingDependencyError
        Its library is not installed.
    ProblemError
        It has no such parameter.
    """
    from importlib import import_module

    module, name, trees, depth = RECIPES[recipe.model]
    kind = "Regressor" if regression else "Classifier"
    try:
        cls = getattr(import_module(module), name + kind)
    except ImportError:
        raise MissingDependencyError(module, module, f"training {recipe.model}") from None
    params: dict[str, Any] = {"random_state": recipe.seed}
    if recipe.model == "adaboost":
        params["estimator"] = getattr(import_module("sklearn.tree"), f"DecisionTree{kind}")(max_depth=recipe.depth)
    else:
        params[depth] = recipe.depth
    if trees is not None:
        params[trees] = recipe.trees
    if recipe.model in ("xgboost", "lightgbm"):
        params["n_jobs"] = 1
    if recipe.model == "lightgbm":
        params |= {"num_leaves": 2**recipe.depth, "verbose": -1}
    try:
        return cls().set_params(**(params | dict(recipe.params)))
    except (TypeError, ValueError) as error:
        raise ProblemError(f"{recipe.model} cannot be made with {listed(list(recipe.params))}: {error}") from None


def _merged(settings: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {**settings.get(name, {}), **more.get(name, {})} for name in (*settings, *more)}


def _load_given(recipe: Recipe) -> tuple[Explainer, pd.DataFrame, pd.DataFrame]:
    """Explainer of a model file, the rows of its table, and the reference."""
    from ocf.explain.explainer import Explainer
    from ocf.models.rehearsal import rehearse
    from ocf.models.tables import drop_columns, fit_columns, read_table, said_levels
    from ocf.models.user_model import as_user_model

    paths = [Path(recipe.data)] + ([Path(recipe.reference)] if recipe.reference else [])
    tables = drop_columns(map(read_table, paths), recipe.drop)
    rehearse(Path(recipe.model), trust_pickle=recipe.trust_pickle)
    model = as_user_model(recipe.model, trust_pickle=recipe.trust_pickle)
    said = said_levels(recipe.features)
    fitted = [fit_columns(table, model, path, said) for table, path in zip(tables, paths, strict=True)]
    return Explainer(model, data=fitted[-1], features=dict(recipe.features)), fitted[0], fitted[-1]


def _facts(explainer: Explainer, rows: pd.DataFrame) -> dict[str, Any]:
    """Sizes, and a checksum of the ensemble and the rows: runs are compared only where it is the same."""
    import pandas as pd

    ensemble = explainer.prepared.ensemble
    digest = hashlib.sha256(repr(ensemble.to_dict()).encode())
    digest.update(pd.util.hash_pandas_object(rows).to_numpy().tobytes())
    return {
        "features": len(explainer.space),
        "trees": ensemble.n_trees,
        "leaves": ensemble.n_leaves,
        "rows": len(rows),
        "checksum": digest.hexdigest()[:16],
    }
