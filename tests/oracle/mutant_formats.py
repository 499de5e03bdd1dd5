"""The formats that mutants are made of: good files of each, and what must be true of a mutant that is read.

A judge reads a mutant. It raises an `OcfError` where ocf refuses the file, returns where all is well, and raises
`Difference` where ocf and the file's library (or the file itself) say different things.
"""

from __future__ import annotations

import io
import json
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from oracle.isolated import run_isolated
from oracle.mutators import zipped

from ocf.errors import OcfError
from ocf.trees.links import show

#: Library's own answers that are compared with ocf's: classes, or values.
Answers = Callable[[Path, pd.DataFrame], Any]

#: Relative difference of two sums of the same leaves.
TOLERANCE = 1e-4


class Difference(Exception):
    """ocf reads a file otherwise than its library does, or loses something that it holds."""


class Seed(NamedTuple):
    """A good file: its bytes, and what a judge needs to know of it; of a model of several outputs, which one."""

    name: str
    data: bytes
    about: Any = None
    output: int | None = None


@dataclass(frozen=True)
class Format:
    """How to make good files of a format and to judge bad ones.

    Attributes
    ----------
    kind : str
        Of the mutators, see `oracle.mutators.STRUCTURED`.
    name : str
        Of the file.
    seeds : callable
        Folder for scratch files -> good files.
    judge : callable
        Path of a mutant, its seed -> None; raises.
    """

    kind: str
    name: str
    seeds: Callable[[Path], Iterator[Seed]]
    judge: Callable[[Path, Seed], None]


# -- tables and models ---------------------------------------------------------------------------------------


@cache
def numbers(n: int = 120, width: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Rows of numbers and three classes."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, width)).round(3)
    return X, np.digitize(X @ np.arange(1, width + 1), [-3.0, 3.0])


@cache
def people() -> tuple[pd.DataFrame, np.ndarray]:
    """A table of numbers and words, and two classes."""
    rng = np.random.default_rng(8)
    n = 80
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": rng.normal(30, 9, n).round(2),
            "job": rng.choice(["clerk", "smith", "none"], n),
        }
    )
    return table, ((table["income"] > 30) ^ (table["job"] == "none")).to_numpy(int)


def _probe(X: Any) -> pd.DataFrame:
    """Rows on which two readings of a model are compared."""
    table = pd.DataFrame(X)
    table.columns = table.columns.map(str)
    if all(pd.api.types.is_numeric_dtype(d) for d in table.dtypes):
        rng = np.random.default_rng(9)
        wide = table.to_numpy(float)[:40] * rng.choice([0.0, 1.0, -2.0, 50.0], (min(40, len(table)), table.shape[1]))
        table = pd.concat([table[:60].astype(float), pd.DataFrame(wide, columns=table.columns)], ignore_index=True)
    return table


def _xgboost_seeds(suffix: str, folder: Path) -> Iterator[Seed]:
    import xgboost

    X, y = numbers()
    makes: dict[str, tuple[Any, Any]] = {
        "binary": (xgboost.XGBClassifier(n_estimators=3, max_depth=2, n_jobs=1), y > 1),
        "classes": (xgboost.XGBClassifier(n_estimators=2, max_depth=2, n_jobs=1), y),
        "value": (xgboost.XGBRegressor(n_estimators=3, max_depth=2, n_jobs=1), X[:, 0] * 2),
        "dart": (xgboost.XGBClassifier(n_estimators=3, max_depth=2, booster="dart", rate_drop=0.5, n_jobs=1), y > 1),
    }
    several = {
        "targets": {"multi_strategy": "one_output_per_tree"},
        "dart of targets": {"booster": "dart", "rate_drop": 0.5},
        "vectors": {"multi_strategy": "multi_output_tree"},
    }
    for name, more in several.items():
        model = xgboost.XGBRegressor(n_estimators=3, max_depth=2, n_jobs=1, **more)
        makes[name] = model, X[:, :2] * [2.0, -1.0]
    holes = X.copy()
    holes[::7, 1] = np.nan
    for name, (model, target) in makes.items():
        path = folder / f"{name}.{suffix}"
        model.fit(holes, target).save_model(path)
        yield Seed(name, path.read_bytes(), _probe(X), 1 if name in several else None)


def _xgboost_answers(path: Path, table: pd.DataFrame) -> Any:
    import xgboost

    booster = xgboost.Booster(model_file=str(path))
    data = xgboost.DMatrix(table.to_numpy(), nthread=1)
    booster.feature_names = booster.feature_types = None
    return np.asarray(booster.predict(data), float)


def _onnx_seeds(folder: Path) -> Iterator[Seed]:
    from skl2onnx import to_onnx
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor

    X, y = numbers()
    makes: dict[str, tuple[Any, Any]] = {
        "binary": (RandomForestClassifier(3, max_depth=2, random_state=0), y > 1),
        "classes": (GradientBoostingClassifier(n_estimators=2, max_depth=2, random_state=0), y),
        "value": (RandomForestRegressor(3, max_depth=2, random_state=0), X[:, 0] * 2),
    }
    for name, (model, target) in makes.items():
        rows = X.astype(np.float32)
        target = target.astype(int) if name == "binary" else target
        made = to_onnx(model.fit(rows, target), rows[:1], options={"zipmap": False} if name != "value" else None)
        yield Seed(name, made.SerializeToString(), _probe(X))


def _onnx_answers(path: Path, table: pd.DataFrame) -> Any:
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    session = onnxruntime.InferenceSession(path.read_bytes(), settings, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    kind = np.float64 if given.type == "tensor(double)" else np.float32
    return np.asarray(session.run(None, {given.name: table.to_numpy(kind)})[-1], float).squeeze()


def _treelite_seeds(folder: Path) -> Iterator[Seed]:
    import treelite
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor

    X, y = numbers()
    makes: dict[str, tuple[Any, Any]] = {
        "binary": (GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0), (y > 1).astype(int)),
        "classes": (RandomForestClassifier(3, max_depth=2, random_state=0), y),
        "value": (RandomForestRegressor(3, max_depth=2, random_state=0), X[:, 0] * 2),
    }
    for name, (model, target) in makes.items():
        yield Seed(name, bytes(treelite.sklearn.import_model(model.fit(X, target)).serialize_bytes()), _probe(X))


def _treelite_answers(path: Path, table: pd.DataFrame) -> Any:
    import treelite

    model = treelite.Model.deserialize_bytes(path.read_bytes())
    kind = np.float32 if model.input_type == "float32" else np.float64
    return np.asarray(treelite.gtil.predict(model, np.ascontiguousarray(table.to_numpy(kind)), nthread=1)).squeeze()


def _lightgbm_seeds(folder: Path) -> Iterator[Seed]:
    import lightgbm

    X, y = numbers()
    rows = X.copy()
    rows[:, 3] = np.digitize(X[:, 3], [-1, 0, 1])
    common = {"n_estimators": 3, "num_leaves": 5, "min_child_samples": 5, "verbose": -1, "n_jobs": 1}
    makes: dict[str, tuple[Any, Any, Any]] = {
        "binary": (lightgbm.LGBMClassifier(**common), y > 1, "auto"),
        "classes": (lightgbm.LGBMClassifier(**common), y, "auto"),
        "value": (lightgbm.LGBMRegressor(**common), X[:, 0] * 2, "auto"),
        "category": (lightgbm.LGBMClassifier(**common, min_data_per_group=5, cat_smooth=1), y > 1, [3]),
    }
    for name, (model, target, categories) in makes.items():
        path = folder / f"{name}.txt"
        model.fit(rows, target, categorical_feature=categories).booster_.save_model(path)
        yield Seed(name, path.read_bytes(), _probe(rows))


def _lightgbm_answers(path: Path, table: pd.DataFrame) -> Any:
    import lightgbm

    booster = lightgbm.Booster(model_file=str(path))
    return np.asarray(booster.predict(table.to_numpy(), num_threads=1), float)


def _catboost_seeds(suffix: str, folder: Path) -> Iterator[Seed]:
    import catboost

    X, y = numbers()
    holes = X.copy()
    holes[::7, 1] = np.nan
    table, label = people()
    common = {"iterations": 3, "depth": 2, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
    words = common | {"cat_features": ["job"], "max_ctr_complexity": 2, "model_size_reg": 0}
    makes: dict[str, tuple[Any, Any, Any]] = {
        "binary": (catboost.CatBoostClassifier(**common), holes, y > 1),
        "classes": (catboost.CatBoostClassifier(**common, grow_policy="Lossguide"), holes, y),
        "value": (catboost.CatBoostRegressor(**common), holes, X[:, 0] * 2),
        "category": (catboost.CatBoostClassifier(**words), table, label),
        "one-hot": (catboost.CatBoostClassifier(**words, one_hot_max_size=5), table, label),
    }
    for name, (model, rows, target) in makes.items():
        path = folder / f"{name}.{suffix}"
        model.fit(rows, target).save_model(str(path), format=suffix)
        yield Seed(name, path.read_bytes(), _probe(rows if rows is table else X))


def _catboost_answers(suffix: str, path: Path, table: pd.DataFrame) -> Any:
    import catboost

    model = catboost.CatBoost().load_model(str(path), format=suffix)
    kind = "Probability" if len(model.classes_) else "RawFormulaVal"
    return np.asarray(model.predict(table, prediction_type=kind, thread_count=1), float)


def _skops_models() -> dict[str, tuple[Any, Any, Any]]:
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import (
        AdaBoostClassifier,
        BaggingClassifier,
        GradientBoostingClassifier,
        HistGradientBoostingClassifier,
        IsolationForest,
        RandomForestClassifier,
        RandomForestRegressor,
    )
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    X, y = numbers()
    table, label = people()
    encoders = ColumnTransformer([("job", OneHotEncoder(), ["job"]), ("rest", StandardScaler(), ["age", "income"])])
    forest = RandomForestClassifier(2, max_depth=2, random_state=0)
    return {
        "tree": (DecisionTreeClassifier(max_depth=3, random_state=0), X, y),
        "forest": (RandomForestClassifier(3, max_depth=3, random_state=0), X, y),
        "values": (RandomForestRegressor(2, max_depth=3, random_state=0), X, X[:, 0]),
        "bagging": (BaggingClassifier(DecisionTreeClassifier(max_depth=2), 2, random_state=0), X, y),
        "boosting": (GradientBoostingClassifier(n_estimators=2, max_depth=2, random_state=0), X, y),
        "histograms": (HistGradientBoostingClassifier(max_iter=2, max_leaf_nodes=4, random_state=0), X, y),
        "adaboost": (AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=2, random_state=0), X, y),
        "isolation": (IsolationForest(n_estimators=2, max_samples=20, random_state=0), X, None),
        "pipeline": (Pipeline([("encode", encoders), ("forest", forest)]), table, label),
    }


def _skops_seeds(wanted: tuple[str, ...], folder: Path) -> Iterator[Seed]:
    import skops.io

    for name, (model, X, y) in _skops_models().items():
        if name in wanted:
            yield Seed(name, _numbered(skops.io.dumps(model.fit(X, y))), _probe(X))


def _numbered(data: bytes) -> bytes:
    """A skops file in which objects go by small numbers and not by the places in memory that they once had."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = members.pop("schema.json").decode()
    places = {place: str(k) for k, place in enumerate(dict.fromkeys(re.findall(r"\d{9,}", schema)), 10_001)}

    def renamed(text: str) -> str:
        return re.sub(r"\d{9,}", lambda m: places.get(m[0], m[0]), text)

    arrays = {renamed(name): content for name, content in members.items()}
    return zipped({"schema.json": renamed(schema).encode()} | dict(sorted(arrays.items())))


def _skops_answers(path: Path, table: pd.DataFrame) -> Any:
    import skops.io

    model = skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))
    rows = table if hasattr(model, "feature_names_in_") else table.to_numpy()
    if hasattr(model, "score_samples"):
        return np.asarray(model.score_samples(rows), float)
    return np.asarray(model.predict_proba(rows) if hasattr(model, "predict_proba") else model.predict(rows), float)


def _same(ours: Any, theirs: Any) -> bool:
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    ours = ours[:, 1] if ours.ndim == theirs.ndim + 1 and ours.shape[1] == 2 else ours
    if ours.shape != theirs.shape:
        return False
    close = np.isclose(ours, theirs, rtol=TOLERANCE, atol=1e-6, equal_nan=True)
    return bool(close.all())


def _shown(model: Any, table: pd.DataFrame) -> Any:
    """What ocf makes of rows from the trees that it has read: probabilities, or values."""
    scores = model.trees.ensemble.scores(model.encode(table))
    rule = model.trees.ensemble.decision
    if rule.totals:
        return show(model.trees.ensemble, scores)
    if rule.link == "logistic":
        positive = 1 / (1 + np.exp(-scores[:, 0]))
        return np.column_stack([1 - positive, positive])
    if rule.link == "softmax":
        shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
        return shifted / shifted.sum(axis=1, keepdims=True)
    if rule.classes and rule.link != "mean":
        return None
    return scores if rule.classes else model.decide(table)


def _without_parameters(path: Path) -> None:
    """Leave the parameters of the training out of a LightGBM file: ocf does not read them, but LightGBM does."""
    before, _, rest = path.read_text().partition("\nparameters:")
    path.write_text(before + "\n" + rest.partition("end of parameters")[2].lstrip("\n"))


def _without_blanks(path: Path) -> None:
    """Leave the blanks out of a JSON file: XGBoost takes them in most places where JSON has them, but not in all."""
    path.write_text(json.dumps(json.loads(path.read_text()), separators=(",", ":")))


def _without_training(path: Path) -> None:
    """Leave the parameters of the training out of a CatBoost JSON: ocf does not read them, but CatBoost does."""
    document = json.loads(path.read_text(encoding="utf-8"))
    info = document["model_info"]
    loss = info["params"]["loss_function"]["type"]
    kept = {key: info[key] for key in ("class_params", "binclass_probability_threshold") if key in info}
    own = {"flat_params": {"loss_function": loss}, "loss_function": {"type": loss, "params": {}}}
    path.write_text(json.dumps(document | {"model_info": kept | {"params": own}}), encoding="utf-8")


def _model_judge(answers: Answers, plain: Callable[[Path], None] | None = None) -> Callable[[Path, Seed], None]:
    def judge(path: Path, seed: Seed) -> None:
        from ocf.features.inference import infer_space
        from ocf.models.user_model import as_user_model

        warnings.simplefilter("ignore")
        model = as_user_model(path, output=seed.output)
        names = model.columns
        table = seed.about
        if model.trees.naming is not None:
            model = model.naming(infer_space(table))
        if names is None and model.trees.ensemble.n_features != table.shape[1] and not hasattr(model.native, "steps"):
            return  # a model of other columns: whoever uses it will be told
        table = (
            table if names is None else table.set_axis(list(names), axis=1) if len(names) == table.shape[1] else None
        )
        if table is None:
            return
        theirs = run_isolated(lambda: answers(path, seed.about))
        if theirs.end != "done" and plain is not None:
            plain(path)
            theirs = run_isolated(lambda: answers(path, seed.about))
        # a model that fails on these rows may do so in both
        if theirs.end != "done" and run_isolated(lambda: model.decide(table)).end == "refused":
            return
        if theirs.end != "done":
            raise Difference(f"ocf reads it, but its library does not: {theirs.words}")
        native = model.decide(table)
        ours, decided = _shown(model, table), np.asarray(theirs.value)
        if seed.output is not None and decided.ndim == 2:
            decided = decided[:, seed.output]
        if ours is not None and not _same(ours, decided):
            raise Difference("the trees that ocf has read give other answers than its library")
        if ours is None and decided.ndim == 2 and not np.array_equal(native, decided.argmax(axis=1)):
            raise Difference("ocf decides otherwise than its library")

    return judge


def _isolation_judge(path: Path, seed: Seed) -> None:
    from ocf.readers.files import load_model
    from ocf.readers.isolation import read_isolation_forest

    read = read_isolation_forest(load_model(path))
    if read.ensemble.n_features != seed.about.shape[1]:
        return
    rows = seed.about.to_numpy()
    depth, score = read.measure(rows)
    theirs = run_isolated(lambda: _skops_answers(path, seed.about))
    if theirs.end != "done":
        raise Difference(f"ocf reads it, but its library does not: {theirs.words}")
    ours = read.ensemble.scores(rows)[:, 0] / read.ensemble.n_trees
    if not _same(score, theirs.value) or not _same(ours, depth):
        raise Difference("the isolation trees that ocf has read give other depths than its library")


# -- problems ------------------------------------------------------------------------------------------------

PROBLEM = """
[solve]
target = 1
norm = { l0 = 0.1, l1 = 1 }
features_to_vary = ["age", "income", "job"]
time_limit = 60
threads = 1
seed = 0
n_explanations = 2
diversity = "features"
options = { presolve = "on" }

[features.age]
kind = "integer"
bounds = [18, 90]
actionability = "increasing"

[features.income]
step = 0.01
scale = 10000.0
weight = [2.0, 1.0]
permitted_range = [0, 60]

[features.job]
kind = "categorical"
levels = ["clerk", "none", "smith"]
cost = { none = 3, clerk = 1.5 }

[[constraints]]
name = "solvent"
kind = "linear"
terms = { income = 1, age = -2, job = { smith = -500 } }
sense = "<="
bound = 1000

[[constraints]]
kind = "implication"
when = { job = ["none"] }
then = { income = { max = 1000 } }

[[constraints]]
name = "months"
kind = "budget"
limit = 24
costs = { job = { smith = 12 }, income = [0, 0.01], age = { points = [[0, 0], [12, 5]], of = "change" } }

[[constraints]]
kind = "max_changes"
most = 3
among = ["age", "income"]
"""


@cache
def _pipeline() -> Any:
    model, table, label = _skops_models()["pipeline"]
    return model.fit(table, label)


@cache
def _user_model() -> Any:
    from ocf.models.user_model import as_user_model

    return as_user_model(_pipeline())


def _toml_seeds(folder: Path) -> Iterator[Seed]:
    from ocf.explain.explainer import Explainer
    from ocf.problem.problem_template import write_problem_file

    table, _ = people()
    explainer = Explainer(_user_model(), data=table)
    yield Seed("all", PROBLEM.encode())
    yield Seed("made", write_problem_file(explainer.space, (0, 1)).encode())


def _toml_judge(path: Path, seed: Seed) -> None:
    from ocf.features.inference import infer_space
    from ocf.models.plausibility import Plausibility
    from ocf.problem.problem_file import read_problem_file

    read = read_problem_file(path)
    table, _ = people()
    space = infer_space(table, read.features)
    for constraint in read.constraints:
        constraint.check(space)
        constraint.words()
        list(constraint.rows(space, space.from_frame(table.iloc[[0]])[0]))
    wish = dict(read.solve).pop("plausibility", None)
    Plausibility.parse(wish if isinstance(wish, dict) else None)


@cache
def _problems() -> tuple[str, ...]:
    from oracle.harness import prepare
    from oracle.instances import Spec

    from ocf.explain.explainer import Explainer

    made = [prepare(Spec(*spec)).problem for spec in (("forest", "pipeline", 2), ("tree", "frame", 0))]
    table, _ = people()
    explainer = Explainer(_user_model(), data=table)
    row = table.iloc[[int(np.flatnonzero(_user_model().decide(table) == 0)[0])]]
    wished = explainer.problem(row, 1, plausibility={"trees": 2, "samples": 16})
    return tuple(p.to_json() for p in (*made, wished))


def _problem_seeds(folder: Path) -> Iterator[Seed]:
    for number, text in enumerate(_problems()):
        yield Seed(f"problem {number}", text.encode())


def _problem_judge(path: Path, seed: Seed) -> None:
    from ocf.cells.forms import to_alternatives
    from ocf.problem.problem import Problem

    problem = Problem.from_json(path.read_text(encoding="utf-8", errors="surrogateescape"))
    again = problem.to_json()
    if Problem.from_json(again).to_json() != again:
        raise Difference("the problem changes when it is written and read")
    rows = np.random.default_rng(0).normal(size=(5, len(problem.space)))
    problem.ensemble.scores(rows)
    to_alternatives(problem)


# -- answers -------------------------------------------------------------------------------------------------


@cache
def _answers() -> tuple[bytes, ...]:
    from ocf.explain.explainer import Explainer

    table, _ = people()
    model = _user_model()
    explainer = Explainer(model, data=table, features={"age": {"actionability": "increasing"}})
    waiting = table[model.decide(table) == 0][:2]
    constraints = [
        {"kind": "implication", "when": {"job": ["none"]}, "then": {"income": {"max": 1000}}},
        {"kind": "budget", "limit": 2400, "costs": {"job": {"smith": 12}, "income": [0, 0.01]}},
        {"kind": "max_changes", "most": 3},
    ]
    found = explainer.explain(waiting, 1, constraints=constraints, solver="box", progress=False, n_optimal=2)
    return found[0].to_json().encode(), found.to_json().encode()


def _answer_seeds(folder: Path) -> Iterator[Seed]:
    for number, data in enumerate(_answers()):
        yield Seed(f"answers {number}", data)


def _answer_judge(path: Path, seed: Seed) -> None:
    from ocf.explain.explanation import Explanations
    from ocf.verify.files import verify_file

    refused: OcfError | None = None
    try:
        found = Explanations.from_json(path)
        str(found), found.to_frame(), found.summary(), found.to_json()
    except OcfError as error:
        refused = error
    verify_file(path, _user_model())
    if refused:
        raise refused


# -- thresholds, checkpoints, comparisons --------------------------------------------------------------------


def _threshold_seeds(folder: Path) -> Iterator[Seed]:
    from sklearn.ensemble import RandomForestClassifier

    from ocf.compression.guessing import GuessingThresholds

    X, y = numbers()
    table = pd.DataFrame(X, columns=list("abcd"))
    fitted = GuessingThresholds(RandomForestClassifier(3, max_depth=2, random_state=0)).fit(table, y)
    yield Seed("thresholds", json.dumps(fitted.to_dict()).encode(), table)


def _threshold_judge(path: Path, seed: Seed) -> None:
    from ocf.compression.transformer import ThresholdBinarizer

    binarizer = ThresholdBinarizer.from_json(path)
    binarizer.get_feature_names_out()
    binarizer.to_dict()
    binarizer.transform(seed.about)


def _kept(path: Path, said: list[Any], data: bytes, good: bytes) -> None:
    """Refuse where lines that the mutant did not touch are neither read nor kept aside."""
    aside = path.with_name(path.name + ".unreadable")
    there = {json.dumps(line, sort_keys=True) for line in said}
    put_aside = set(aside.read_bytes().split(b"\n")) if aside.exists() else set()
    untouched = set(data.split(b"\n")[1:-1]) & set(good.split(b"\n")[1:-1])
    lost = [line for line in untouched if json.dumps(_unsealed(json.loads(line)), sort_keys=True) not in there]
    if any(line not in put_aside for line in lost):
        raise Difference(f"{len(lost)} untouched lines are lost, such as {lost[0][:60]!r}")
    rows = [json.loads(line).get("row") for line in lost]
    if any(data.count(b'"row": %d,' % row) < 2 for row in rows if row is not None):
        raise Difference(f"good lines are put aside: {lost}")


def _unsealed(line: dict[str, Any]) -> dict[str, Any]:
    """What a line says, without its checksum."""
    return {key: value for key, value in line.items() if key != "check"}


def _checkpoint_seeds(folder: Path) -> Iterator[Seed]:
    from ocf.compression.discretizer import record_check
    from ocf.support.checkpoint import Checkpoint

    path = folder / "rows"
    with Checkpoint(path, {"the model": "ab12"}, record_check(8, 4)) as kept:
        for k in range(8):
            cost = None if k == 3 else k / 3
            kept.add(k, {"status": "optimal" if k != 3 else "infeasible", "cost": cost, "changes": [[k % 4, k / 7]]})
    yield Seed("rows", path.read_bytes())


def _checkpoint_judge(path: Path, seed: Seed) -> None:
    from ocf.compression.discretizer import record_check
    from ocf.support.checkpoint import Checkpoint

    data = path.read_bytes()
    with Checkpoint(path, {"the model": "ab12"}, record_check(8, 4)) as kept:
        done = dict(kept.done)
    for record in done.values():
        if not isinstance(record["status"], str) or not all(isinstance(i, int) for i, _ in record["changes"]):
            raise Difference(f"a record that means nothing is taken over: {record}")
    _kept(path, [{"row": k, **r} for k, r in done.items()], data, seed.data)
    with Checkpoint(path, {"the model": "ab12"}, record_check(8, 4)) as kept:
        if kept.done != done:
            raise Difference("the second reading differs from the first")


def _result_seeds(folder: Path) -> Iterator[Seed]:
    from compare.synthetic import standard

    yield Seed("results", (standard(folder / "made") / "results.jsonl").read_bytes())


def _result_judge(path: Path, seed: Seed) -> None:
    from ocf.compare.frame import compare
    from ocf.compare.report import raw_rows, summary, to_html, to_markdown
    from ocf.compare.results import Writer, read
    from ocf.compare.tables import tables

    data = path.read_bytes()
    lines = read(path.parent).lines
    _kept(path, lines, data, seed.data)
    with Writer(path.parent, {"name": "made", "fingerprint": "f"}) as writer:
        if writer.lines and [line for line in writer.lines if line["kind"] == "run"] != [
            line for line in lines if line["kind"] == "run"
        ]:
            raise Difference("the writer has read other runs than the reader")
    compared = compare(read(path.parent))
    found = tables(compared)
    summary(compared), raw_rows(compared)
    if data == seed.data or len(data) % 8 == 0:  # the pages take most of the time
        to_markdown(compared, found), to_html(compared, found)


SUITE = """
name = "forests"
description = "Random forests of growing size"

[limits]
time = 60
memory = "4 GB"
grace = 10

[report]
shift = 1
bounds = true

[[instances]]
data = ["breast_cancer", "german_credit"]
model = ["random_forest", "xgboost"]
trees = [10, 100]
depth = 5
seed = 0
params = { min_samples_leaf = 3 }
rows = 10
target = ["desired", [10, inf]]
norm = ["l1", { l0 = 0.1, l1 = 1 }]
features = { age = { actionability = "increasing" } }
constraints = [{}, { name = "three", features_to_vary = ["age", "income"] }]

[[methods]]
formulation = ["interval", "ocean"]
solver = ["highs", "scip"]
reduce = [true, false]
options = { presolve = "on" }
"""


def _suite_seeds(folder: Path) -> Iterator[Seed]:
    yield Seed("suite", SUITE.encode())


def _suite_judge(path: Path, seed: Seed) -> None:
    from ocf.compare.suite import load_suite

    suite = load_suite(path)
    json.dumps(suite.to_dict())
    str(suite.fingerprint), [g.ask.label for g in suite.grids], [g.recipe.model_label for g in suite.grids]


def _skops(*wanted: str) -> Callable[[Path], Iterator[Seed]]:
    return lambda folder: _skops_seeds(wanted, folder)


#: Every format by its name.
FORMATS: dict[str, Format] = {
    "xgboost-json": Format(
        "json", "m.json", lambda f: _xgboost_seeds("json", f), _model_judge(_xgboost_answers, _without_blanks)
    ),
    "xgboost-ubj": Format("ubj", "m.ubj", lambda f: _xgboost_seeds("ubj", f), _model_judge(_xgboost_answers)),
    "onnx": Format("protobuf", "m.onnx", _onnx_seeds, _model_judge(_onnx_answers)),
    "lightgbm": Format("text", "m.txt", _lightgbm_seeds, _model_judge(_lightgbm_answers, _without_parameters)),
    "catboost-json": Format(
        "json",
        "m.json",
        lambda f: _catboost_seeds("json", f),
        _model_judge(partial(_catboost_answers, "json"), _without_training),
    ),
    "catboost-cbm": Format(
        "bytes", "m.cbm", lambda f: _catboost_seeds("cbm", f), _model_judge(partial(_catboost_answers, "cbm"))
    ),
    "treelite": Format("bytes", "m.tl", _treelite_seeds, _model_judge(_treelite_answers)),
    "skops-trees": Format(
        "skops", "m.skops", _skops("tree", "forest", "values", "bagging"), _model_judge(_skops_answers)
    ),
    "skops-boosting": Format(
        "skops", "m.skops", _skops("boosting", "histograms", "adaboost"), _model_judge(_skops_answers)
    ),
    "skops-isolation": Format("skops", "m.skops", _skops("isolation"), _isolation_judge),
    "skops-pipeline": Format("skops", "m.skops", _skops("pipeline"), _model_judge(_skops_answers)),
    "problem-toml": Format("toml", "problem.toml", _toml_seeds, _toml_judge),
    "problem-json": Format("json", "problem.json", _problem_seeds, _problem_judge),
    "suite": Format("toml", "suite.toml", _suite_seeds, _suite_judge),
    "results": Format("lines", "results.jsonl", _result_seeds, _result_judge),
    "checkpoint": Format("lines", "rows", _checkpoint_seeds, _checkpoint_judge),
    "thresholds": Format("json", "thresholds.json", _threshold_seeds, _threshold_judge),
    "answers": Format("json", "answers.json", _answer_seeds, _answer_judge),
}

#: Formats of models, which their own libraries read too.
MODELS = tuple(
    name for name in FORMATS if name.startswith(("xgboost", "lightgbm", "catboost", "onnx", "skops", "treelite"))
)
