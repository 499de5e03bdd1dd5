"""Tables, regression and stability of Amoukou and Brunel (2024), and what the optimal rules add.

    python examples/papers/rules/run.py --data DIR -o out          # or OCF_DATA=DIR; hours
    python examples/papers/rules/run.py --data DIR -o out --quick  # some minutes

Table 1 (columns L-CR and R-CR), table 2, the regression and the stability of the paper; how much larger the largest
rules are than the greedy ones; seconds of the searches and of the mathematical models. Each row that is explained is
one line of ``runs.jsonl`` in the output folder; a command that was stopped goes on where it was. Tables are printed and
written, each with a CSV file of its name: ``figures`` (means of tables 1 and 2), ``points`` (a line a point: what its
rule states, what holds of it, and its stability), ``sizes`` (of rules) and ``seconds``.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
import pandas as pd
from runs import Runs, arguments, by_processor, publish
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ocf.compare.datasets import Dataset, load_dataset
from ocf.errors import DataError, SolverError
from ocf.rules.covering import RegionalSet
from ocf.rules.explainer import CounterfactualRules
from ocf.rules.finding import GLANCE
from ocf.rules.objects import Subgroup
from ocf.rules.search import FoundBox, divergent_set, greedy_boxes, highest_level, largest_box
from ocf.rules.solving import solve_box, solve_minimal_sets, solve_most_divergent_set
from ocf.solvers import SolverOptions, Status

BINS = 10
TRUTH = ("precision", "drawn", "reached")
#: Rules of each row: the most probable one, in which the authors look for a point, and the large ones.
RULES = ("probable", "greedy", "best")
MEASURES = {"reached": "accuracy", "inlier": "plausibility", "changed": "sparsity", "cost": "cost"}
SOLVERS = ("highs", "scip")
VARIANCES = (0.01, 0.025, 0.05)
LEVEL = 0.9
#: Parts about regions: the best of the leaves around a row, and maximal sufficient rules.
REGIONAL = ("regional", "sufficient")
#: Training rows of which sufficient rules are made; 1,000 in the authors' experiments.
MADE_OF = 200
#: Parts that are timed: "models" also the largest rule, "sets" without it.
TIMED = ("models", "sets")
#: Jobs of the part "covering" -> kind of the regions.
COVERING = {"covering leaves": "leaves", "covering sufficient": "sufficient"}
#: Parts without points.
WITHOUT_POINTS = (*TIMED, *COVERING, "largest")
#: A largest rule, or none, that nothing is left to try of.
PROVED = ("optimal", "infeasible")
#: Of rules, where not `LEVEL`: on the larger sets no box reaches 0.9, see the README.
RULE_LEVEL = {"heloc": 0.7, "california": 0.7, "california-raw": 0.7}

#: Columns of ProPublica's table that rules may speak of.
PROPUBLICA = (
    "sex", "age", "race", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count", "c_charge_degree",
)  # fmt: skip

#: Accuracy, plausibility, sparsity and cost of the paper, class 1 and class 0 (tables 1 and 2).
PAPER = {
    ("compas", "RF", "local"): ("0.98 / 0.93", "0.90 / 0.92", "2.00 / 3.00", "0.65 / 0.99"),
    ("compas", "RF", "regional"): ("0.90 / 0.90", "0.83 / 0.88", "2.00 / 3.00", "0.92 / 0.99"),
    ("compas", "NN", "local"): ("0.95 / 0.88", "0.87 / 0.79", "2.64 / 3.25", "0.83 / 0.86"),
    ("compas", "NN", "regional"): ("0.98 / 0.88", "0.82 / 0.91", "3.36 / 3.29", "1.21 / 1.00"),
    ("diabetes", "RF", "local"): ("1.00 / 1.00", "0.98 / 0.89", "3.34 / 3.74", "1.34 / 1.63"),
    ("diabetes", "RF", "regional"): ("0.92 / 0.80", "0.97 / 0.89", "3.72 / 3.98", "1.53 / 1.67"),
    ("diabetes", "NN", "local"): ("1.00 / 1.00", "0.98 / 0.89", "3.34 / 3.71", "1.32 / 1.63"),
    ("diabetes", "NN", "regional"): ("0.92 / 0.78", "0.97 / 0.89", "3.72 / 3.93", "1.53 / 1.67"),
    ("heloc", "RF", "local"): ("0.98 / 0.94", "0.98 / 0.99", "5 / 5", ""),
    ("heloc", "RF", "regional"): ("0.90 / 0.94", "0.98 / 0.99", "9 / 8.43", ""),
    ("california", "RF", "local"): ("1.00", "0.92", "4.45", ""),
    ("california-raw", "RF", "local"): ("1.00", "0.92", "4.45", ""),
}
PAPER_STABILITY = {"compas": "0.98 / 0.98 / 0.98", "diabetes": "0.96 / 0.97 / 0.96"}


@dataclass(frozen=True, eq=False)
class Case:
    """A model, its rules and the rows that ask for another answer, by class."""

    model: Any
    rules: CounterfactualRules
    train: pd.DataFrame
    rows: dict[Any, pd.DataFrame]


@lru_cache(maxsize=1)
def case(name: str, kind: str, folder: str | None) -> Case:
    """Fit a model to 75 % of a data set, and the rules to its predictions there."""
    if name == "california-raw":
        return california_raw(folder)
    data = own_table(Path(name)) if name.endswith(".csv") else load_dataset(name, folder)
    train, test, y, _ = train_test_split(data.table, data.target, test_size=0.25, random_state=0)
    model = models(name)[kind].fit(train, y)
    free = {feature: {**setting, "actionability": "free"} for feature, setting in data.settings.items()}
    rules = CounterfactualRules(model, train, features=free, level=LEVEL)
    answers = model.predict(test)
    if name == "california":
        return Case(model, rules, train, {"below 1": test[answers < 1]})
    return Case(model, rules, train, {label: test[answers == label] for label in (1, 0)})


def own_table(path: Path) -> Dataset:
    """A table of the user's own, for sets that may not be passed on: two classes in its column "target", or the last.

    Rows with missing values are left out, and words become indicators. Of ProPublica's compas-scores-two-years.csv the
    6,172 rows are kept that ProPublica kept, and what was known of a person at the arrest.
    """
    table = pd.read_csv(path)
    if "days_b_screening_arrest" in table:
        kept = table.days_b_screening_arrest.abs() <= 30
        kept &= (
            (table.is_recid != -1) & (table.c_charge_degree != "O") & table.score_text.notna()
        )  # its N/A reads as missing
        table = table.loc[kept, [*PROPUBLICA, "two_year_recid"]]
    table = table.dropna()
    answer = table.pop("target" if "target" in table else table.columns[-1])
    if answer.nunique() != 2:
        raise DataError(f"{path}: the column {answer.name!r} must have two classes, not {answer.nunique()}")
    numbers = pd.get_dummies(table, dtype=int)
    return Dataset(str(path), numbers, (answer == answer.max()).astype(int), {})


def california_raw(folder: str | None) -> Case:
    """The authors' regression: totals of the block instead of averages, and the model is the forest that rules use.

    Capped prices are left out. The forest is fitted to the prices; what counts as its answers are its predictions.
    """
    data = load_dataset("california", folder)
    own = data.table
    households = (own.Population / own.AveOccup).round()
    table = own[["MedInc", "HouseAge", "Population", "Latitude", "Longitude"]].assign(
        Households=households,
        TotalRooms=(own.AveRooms * households).round(),
        TotalBedrooms=(own.AveBedrms * households).round(),
        Diagonal=own.Latitude + own.Longitude,
        BedroomsPerRoom=own.AveBedrms / own.AveRooms,
    )
    prices = np.asarray(data.target)
    kept = prices < prices.max()
    train, test, y, _ = train_test_split(table[kept], prices[kept], test_size=0.25, random_state=0)
    model = RandomForestRegressor(20, max_depth=10, random_state=0).fit(train, y)
    rules = CounterfactualRules(model, train, y, level=LEVEL, n_estimators=20, max_depth=10, seed=0)
    rules.forest = replace(rules.forest, answers=model.predict(train))
    return Case(model, rules, train, {"below 1": test[model.predict(test) < 1]})


def models(name: str) -> dict[str, Any]:
    if name.startswith("california"):
        return {"RF": RandomForestRegressor(100, max_depth=12, random_state=0)}
    network = MLPClassifier((18, 9, 3), early_stopping=True, n_iter_no_change=30, max_iter=2000, random_state=0)
    return {
        "RF": RandomForestClassifier(100, max_depth=10, random_state=0),
        "NN": make_pipeline(StandardScaler(), network),
    }


def target_of(name: str, label: Any) -> Any:
    return (2.0, 2.5) if name.startswith("california") else 1 - label


# -- one row ---------------------------------------------------------------------------------------------------


def explain(
    own: Case, name: str, kind: str, label: Any, k: int, limit: float, most: int, made_of: int = MADE_OF
) -> dict[str, Any]:
    """Set; greedy, largest and most probable rule, and a point in each.

    Parameters
    ----------
    own : Case
    name : str
        Of the data set.
    kind : str
        Part: which rules.
    label : Any
        Class of the row.
    k : int
        Its place in the class.
    limit : float
        Seconds for the largest rule.
    most : int
        Families of boxes for the largest rule.
    made_of : int
        Training rows of which sufficient rules are made.
    """
    x, target = own.rows[label].iloc[[k]], target_of(name, label)
    begin = time.process_time()
    level = RULE_LEVEL.get(name, LEVEL)
    where = x
    if kind == "regional":
        where = region(own, x, target, level)
    if kind == "sufficient":
        given = sufficient_set(own, label, target, level, made_of)
        at = int(given.assign(x)[0])
        if at < 0:  # no region holds the row
            return {"size": 0, "divergent": False, "best_status": "infeasible"}
        where = given.regions[at]
    query = own.rules.query(where, target)
    features, divergent = divergent_set(query, own.rules.candidates, LEVEL)
    set_seconds = time.process_time() - begin
    begin = time.process_time()
    greedy = greedy_boxes(query, features, level, most=1)
    greedy_seconds = time.process_time() - begin
    best = largest_box(query, features, level, start=greedy[0] if greedy else None, most=most, time_limit=limit)
    out: dict[str, Any] = {
        "size": len(features),
        "cdp": query.cdp(features),
        "divergent": divergent,
        "set_seconds": set_seconds,
        "greedy_seconds": greedy_seconds,
        "best_seconds": best.seconds,
        "best_status": best.status.value,
        "best_bound": best.bound,
        "best_nodes": best.nodes,
    }
    if kind == "largest":  # only how large rules are
        known = {"greedy": greedy[0][1] if greedy else None, "best": best.weight if best.region else None}
        return out | {rule: {"weight": weight} for rule, weight in known.items() if weight is not None}
    if greedy:
        box = FoundBox(greedy[0][0], greedy[0][1], np.inf, Status.FEASIBLE, greedy_seconds)
        out["greedy"] = point(own, query, features, box, x, target, k)
    if best.region is not None:
        out["best"] = point(own, query, features, best, x, target, k)
    most_probable = greedy_boxes(query, features, highest_level(query, features, level), most=1) if greedy else []
    if most_probable:
        box = FoundBox(most_probable[0][0], most_probable[0][1], np.inf, Status.FEASIBLE, 0.0)
        out["probable"] = point(own, query, features, box, x, target, k)
    return out


def region(own: Case, x: pd.DataFrame, target: Any, level: float) -> Subgroup:
    """Of the leaves around a row that with the most probable rule."""
    groups = own.rules.regions(target, x, most=None) or [own.rules.region_of(x, target)]
    asked = {"method": "greedy", "prefer": "probable", "rule_level": level}
    found = [own.rules.regional(group, target, **asked) for group in groups]
    best = max(range(len(groups)), key=lambda k: found[k][0].precision if found[k].rules else 0.0)
    return groups[best]


@lru_cache(maxsize=2)
def sufficient_set(own: Case, label: Any, target: Any, level: float, made_of: int = MADE_OF) -> RegionalSet:
    """A few maximal sufficient rules that hold the rows of a class, with the most probable rule of each.

    Parameters
    ----------
    own : Case
    label : Any
        Of the class.
    target : Any
    level : float
        Of the rules.
    made_of : int
        Training rows of which the rules are made.
    """
    return few_regions(own, label, target, level, "sufficient", made_of)


def few_regions(own: Case, label: Any, target: Any, level: float, kind: str, made_of: int) -> RegionalSet:
    """At most five regions of a kind with the most probable rule of each, as `sufficient_set`."""
    asked = {"method": "greedy", "prefer": "probable", "rule_level": level}
    return own.rules.regional_set(own.rows[label], target, kind=kind, rows=made_of, most=5, **asked)


def cover(own: Case, name: str, kind: str, label: Any, made_of: int) -> dict[str, Any]:
    """How many rows of the test part's class at most five regions hold, and how probable their rules are.

    Parameters
    ----------
    own : Case
    name : str
        Of the data set.
    kind : {"leaves", "sufficient"}
        Of the regions.
    label : Any
        Of the class.
    made_of : int
        Training rows of which sufficient rules are made.
    """
    begin = time.process_time()
    found = few_regions(own, label, target_of(name, label), RULE_LEVEL.get(name, LEVEL), kind, made_of)
    return {
        "made_of": made_of,
        "regions": len(found.regions),
        "n": len(own.rows[label]),
        "coverage": found.coverage,
        "precision": found.precision,
        "seconds": time.process_time() - begin,
    }


def point(
    own: Case, query: Any, features: tuple[int, ...], box: FoundBox, x: pd.DataFrame, target: Any, seed: int
) -> dict[str, Any]:
    rule = own.rules.rule(query, features, box)
    found = own.rules.sample(rule, x, target, seed=seed)
    return {
        "words": str(rule),
        "weight": rule.coverage,
        "precision": rule.precision,
        "reached": found.reached,
        "drawn": drawn(own, query, features, box, x, target),
        "inlier": found.inlier,
        "changed": len(found.changed),
        "cost": bin_cost(own, x, found.point),
        "stable": stability(own, found.point, rule.features, target, seed, np.sqrt(VARIANCES)),
        "stable_sd": stability(own, found.point, rule.features, target, seed, np.array(VARIANCES)),
    }


def drawn(own: Case, query: Any, features: tuple[int, ...], box: FoundBox, x: pd.DataFrame, target: Any) -> float:
    """Share of points drawn from the rule that get the target: what the rule's probability estimates.

    The row with S from a training row in the rule, each counted with its weight given what is held.
    """
    space, forest, where = own.rules.space, own.rules.forest, list(features)
    weights = np.where(forest.inside(box.region, features), query.weights(features), 0.0)
    points = np.repeat(space.from_frame(x), np.count_nonzero(weights), axis=0)
    points[:, where] = own.rules.rows[weights > 0][:, where]
    answers = own.model.predict(space.to_frame(points))
    return float(np.average(gets(answers, target), weights=weights[weights > 0]))


def gets(answers: Any, target: Any) -> Any:
    """Which answers are the target: a class, or within an interval."""
    return (target[0] <= answers) & (answers <= target[1]) if isinstance(target, tuple) else answers == target


def bin_cost(own: Case, x: pd.DataFrame, y: pd.DataFrame) -> float:
    """Bins between two rows: 10 of equal width on each feature's range in the training data, all of them together 1."""
    total = 0.0
    for feature in own.rules.space.features:
        before, after = x[feature.name].iloc[0], y[feature.name].iloc[0]
        if feature.kind in ("categorical", "binary"):
            total += before != after
            continue
        column = own.train[feature.name]
        edges = np.linspace(column.min(), column.max(), BINS + 1)[1:-1]
        total += abs(int(np.searchsorted(edges, after)) - int(np.searchsorted(edges, before))) / BINS
    return float(total)


def stability(
    own: Case, y: pd.DataFrame, names: tuple[str, ...], target: Any, seed: int, deviations: np.ndarray
) -> list[float]:
    """Share of noisy copies of the action that get the action's own answer, by standard deviation on [0, 1]^p.

    The noise is on what the recourse prescribes, the numbers among the features of S; twenty draws.
    """
    rng = np.random.default_rng(seed)
    numbers = [n for n in names if pd.api.types.is_numeric_dtype(own.train[n])]
    answer = own.model.predict(y)[0]
    out = []
    for deviation in deviations:
        noisy = pd.concat([y] * 20, ignore_index=True).astype(dict.fromkeys(numbers, float))
        for n in numbers:
            span = float(own.train[n].max() - own.train[n].min())
            noisy[n] += rng.normal(0, deviation, 20) * span
        out.append(float(np.mean(gets(own.model.predict(noisy), target if isinstance(target, tuple) else answer))))
    return out


class Watch:
    """Seconds of the processor of several answers, each in a limit of its own.

    Parameters
    ----------
    limit : float
        Seconds of the processor.

    Attributes
    ----------
    out : dict
        By name: seconds, or what was wrong.
    busy : bool
        Whether the machine had too much other work to say of one.
    """

    def __init__(self, limit: float) -> None:
        self.out, self.busy, self._limit = dict[str, Any](), False, limit

    def __call__(self, name: str, ask: Callable[[float], Any], ended: Callable[[Any], bool] = lambda _: True) -> Any:
        """Answer of what takes seconds by the clock, or None.

        Parameters
        ----------
        name : str
        ask : callable
        ended : callable
            Whether an answer needed no more time than it got.
        """

        def answer(clock: float) -> Any:
            try:
                return ask(clock)
            except SolverError as error:  # a limit
                return error

        found = by_processor(answer, self._limit, lambda got: not isinstance(got, SolverError) and ended(got))
        if found is None:
            self.busy = True
            return None
        got, self.out[f"{name}_seconds"] = found
        if isinstance(got, SolverError):
            self.out[f"{name}_error"] = str(got)[:60]
            return None
        return got


def time_models(own: Case, name: str, what: str, label: Any, k: int, limit: float) -> dict[str, Any] | None:
    """Seconds of the processor for exhaustive search and for the mathematical models of one row.

    None where the machine had too much other work to say.

    Parameters
    ----------
    own : Case
    name : str
        Of the data set.
    what : {"models", "sets"}
        With the largest rule, or without.
    label : Any
        Class of the row.
    k : int
        Its place in the class.
    limit : float
        Seconds of the processor for each model.
    """
    query = own.rules.query(own.rows[label].iloc[[k]], target_of(name, label))
    timed, level = Watch(limit), RULE_LEVEL.get(name, LEVEL)
    out = timed.out
    features, divergent = timed("exhaustive", lambda _: divergent_set(query, own.rules.candidates, LEVEL))
    out["size"] = len(features)
    solve = solve_minimal_sets if divergent else solve_most_divergent_set
    asked = (LEVEL,) if divergent else ()

    def sets(solver: str, clock: float) -> Any:
        options = SolverOptions(time_limit=clock)
        return solve(query, own.rules.candidates, *asked, solver=solver, options=options)

    for solver in SOLVERS:
        found = timed(f"set_{solver}", partial(sets, solver))
        if found is not None:
            out[f"set_{solver}_agrees"] = abs(query.cdp(found[0] if divergent else found) - query.cdp(features)) < 1e-9
    greedy = timed("greedy", lambda _: greedy_boxes(query, features, level, most=1))
    if what == "sets":
        return None if timed.busy else out
    start = greedy[0] if greedy else None
    known = largest_box(query, features, level, start=start, most=GLANCE).region

    def search(clock: float) -> FoundBox:
        return largest_box(query, features, level, start=start, most=10**9, time_limit=clock)

    def box(solver: str, clock: float) -> FoundBox:
        options = SolverOptions(time_limit=clock)
        return solve_box(query, features, level, start=known, solver=solver, options=options)

    for key, ask in {"search": search, **{f"box_{solver}": partial(box, solver) for solver in SOLVERS}}.items():
        largest = timed(key, ask, lambda got: got.status.value in PROVED)
        if largest is not None:
            status = largest.status.value if out[f"{key}_seconds"] <= limit else "late"
            out |= {f"{key}_status": status, f"{key}_weight": largest.weight, f"{key}_bound": largest.bound}
    return None if timed.busy else out


# -- runs ------------------------------------------------------------------------------------------------------

#: Set, model, part, class and row.
Asked = tuple[str, str, str, Any, int]


def jobs(sets: list[str], parts: list[str], rows: int, timed: int) -> Iterator[Asked]:
    for what, name in product(parts, sets):
        if what in TIMED:
            yield from ((name, "RF", what, "below 1" if name.startswith("california") else 0, k) for k in range(timed))
            continue
        if name.startswith("california") and what in (*REGIONAL, "covering"):
            continue
        if what == "covering":
            yield from ((name, "RF", one, label, 0) for one in COVERING for label in (1, 0))
            continue
        labels = ("below 1",) if name.startswith("california") else (1, 0)
        for kind in ["RF"] if name in ("heloc", "california", "california-raw") else models(name):
            yield from ((name, kind, what, label, k) for label in labels for k in range(rows))


# -- tables ----------------------------------------------------------------------------------------------------


def write_tables(output: Path, kept: Runs, done: dict[Asked, dict[str, Any]], limits: Mapping[str, str]) -> None:
    """Write the tables of which there is anything.

    Parameters
    ----------
    output : Path
    kept : Runs
    done : dict
        Results by set, model, part, class and row.
    limits : mapping
        How many rows, and how long each might take: of rows that are explained, timed, and covered.
    """
    frame = pd.DataFrame([(*job, result) for job, result in done.items()], columns=[*"nkwlr", "result"])
    of_points = "\n\n".join(part for part in (truth(frame), noise(frame)) if part)
    for stem, text, rows, of in (
        ("figures", quality(frame), figures(done), "explained"),
        ("points", of_points, points(done), "explained"),
        ("sizes", size(frame), sizes(done), "explained"),
        ("seconds", seconds(frame), timed_rows(done), "timed"),
        ("covering", covering(done), held_rows(done), "covered"),
    ):
        if not rows.empty:
            publish(output, stem, kept, f"{text}\n", rows, limits[of])


def rows_of(frame: pd.DataFrame, name: str, kind: str, what: str) -> Iterator[list[dict[str, Any]]]:
    """Results by class, 1 first."""
    own = frame[(frame.n == name) & (frame.k == kind) & (frame.w == what)]
    for label in sorted(own.l.unique(), key=str, reverse=True):
        yield own[own.l == label].result.tolist()


def paper_key(name: str, kind: str, what: str) -> tuple[str, str, str]:
    """Where the paper has the figures of a part."""
    return name, kind, "regional" if what in REGIONAL else what


def quality(frame: pd.DataFrame) -> str:
    lines = [
        "| set | model | rules | rows with a rule | accuracy | plausibility | sparsity | cost |",
        "|---|---|---|---|---|---|---|---|",
    ]
    others = {key: None for key in zip(frame.n, frame.k, frame.w, strict=True) if key[2] not in WITHOUT_POINTS}
    for (name, kind, what), paper in (PAPER | {key: PAPER.get(paper_key(*key)) for key in others}).items():
        groups = list(rows_of(frame, name, kind, what))
        if not groups:
            continue
        for rule in RULES:
            cells = []
            for key in MEASURES:
                shares = [[r[rule][key] for r in own if rule in r] for own in groups]
                cells.append(" / ".join(f"{np.mean(v):.2f}" if v else "–" for v in shares))
            found = " / ".join(f"{sum(rule in r for r in own)} of {len(own)}" for own in groups)
            lines.append(f"| {name} | {kind} | {what}, {rule} | {found} | {' | '.join(cells)} |")
        if paper is not None:
            lines.append(f"| {name} | {kind} | {what}, *paper* | | {' | '.join(paper)} |")
    return "\n".join(lines) if len(lines) > 2 else ""


def points(done: dict[Asked, dict[str, Any]]) -> pd.DataFrame:
    """The point in each rule, one row each: what the rule states, what holds of it, and the point's stability."""
    noisy = [
        (f"{words} {amount:g}", key, k)
        for words, key in (("variance", "stable"), ("deviation", "stable_sd"))
        for k, amount in enumerate(VARIANCES)
    ]
    lines = [
        {"set": name, "model": kind, "rules": what, "class": label, "row": k, "rule": rule}
        | {"probability": result[rule]["precision"], "drawn": result[rule].get("drawn")}
        | {words: float(result[rule][key]) for key, words in MEASURES.items()}
        | {words: result[rule][key][place] for words, key, place in noisy if key in result[rule]}
        for (name, kind, what, label, k), result in done.items()
        for rule in RULES
        if rule in result and what not in WITHOUT_POINTS
    ]
    return pd.DataFrame(lines)


def figures(done: dict[Asked, dict[str, Any]]) -> pd.DataFrame:
    """Means of each kind of rule and each class, one row each, for comparing runs."""
    lines = points(done)
    if lines.empty:
        return lines
    groups = lines.groupby(["set", "model", "rules", "class", "rule"], sort=False)
    means = groups[["probability", *MEASURES.values()]].mean()
    return means.round(4).assign(rows=groups.size()).reset_index()


def held_rows(done: dict[Asked, dict[str, Any]]) -> pd.DataFrame:
    """Rows that a few regions hold, one line a set, class and kind of regions."""
    lines = [
        {"set": name, "model": model, "kind": COVERING[what], "class": label, **result}
        for (name, model, what, label, _), result in done.items()
        if what in COVERING
    ]
    return pd.DataFrame(lines)


def covering(done: dict[Asked, dict[str, Any]]) -> str:
    """Share of the rows that a few regions hold, and the mean probability of their rules."""
    lines = ["| set | model | answer | regions | rows held | mean probability | s |", "|---|---|---|---|---|---|---|"]
    for held in held_rows(done).to_dict("records"):
        answer = f"{held['class']} → {1 - held['class']}"
        share = f"{held['coverage']:.0%} of {held['n']} | {held['precision']:.2f} | {held['seconds']:.0f}"
        lines.append(f"| {held['set']} | {held['model']} | {answer} | {held['regions']} {held['kind']} | {share} |")
    return "\n".join(lines)


def timed_rows(done: dict[Asked, dict[str, Any]]) -> pd.DataFrame:
    """Seconds and proofs of what is timed, one line a row."""
    lines = [
        {"set": name, "part": what, "class": label, "row": k, **result}
        for (name, _, what, label, k), result in done.items()
        if what in TIMED
    ]
    return pd.DataFrame(lines)


def sizes(done: dict[Asked, dict[str, Any]]) -> pd.DataFrame:
    """What merged leaves and the largest rule capture, and what is proved of it, one line a row."""
    lines = [
        {
            "set": name,
            "model": kind,
            "rules": what,
            "class": label,
            "row": k,
            "features": result["size"],
            "greedy": result.get("greedy", {}).get("weight"),
            "largest": result.get("best", {}).get("weight"),
            "bound": result["best_bound"],
            "status": result["best_status"],
            "families": result.get("best_nodes"),
        }
        for (name, kind, what, label, k), result in done.items()
        if "best_bound" in result
    ]
    return pd.DataFrame(lines).round(4)


def truth(frame: pd.DataFrame) -> str:
    """Stated probability of greedy rules, and shares of drawn and of annealed points that get the target."""
    lines = ["| set | model | rules | rows | stated | drawn | annealed |", "|---|---|---|---|---|---|---|"]
    for name, kind, what in PAPER:
        groups = [[r["greedy"] for r in own if "greedy" in r] for own in rows_of(frame, name, kind, what)]
        groups = [own for own in groups if own and all("drawn" in r for r in own)]
        if groups:
            cells = [" / ".join(f"{np.mean([r[k] for r in own]):.2f}" for own in groups) for k in TRUTH]
            rows = " / ".join(str(len(own)) for own in groups)
            lines.append(f"| {name} | {kind} | {what} | {rows} | {' | '.join(cells)} |")
    return "\n".join(lines) if len(lines) > 2 else ""


def noise(frame: pd.DataFrame) -> str:
    """Stability, with 0.01, 0.025 and 0.05 read as the variance and as the standard deviation of the noise."""
    lines = ["| set | rules | rows | variance | standard deviation | paper |", "|---|---|---|---|---|---|"]
    for (name, paper), rule in product(PAPER_STABILITY.items(), ("probable", "greedy")):
        results = [r[rule] for own in rows_of(frame, name, "RF", "local") for r in own if rule in r]
        if results:
            cells = [
                " / ".join(f"{s:.2f}" for s in np.mean([r[key] for r in results if key in r], axis=0))
                if any(key in r for r in results)
                else "–"
                for key in ("stable", "stable_sd")
            ]
            lines.append(f"| {name} | local, {rule} | {len(results)} | {' | '.join(cells)} | {paper} |")
    return "\n".join(lines) if len(lines) > 2 else ""


def size(frame: pd.DataFrame) -> str:
    """How much more weight the largest rules capture than the greedy ones at the same precision."""
    lines = [
        "| set | rules | rows with both | CDP ≥ 0.9 | proven largest (of rows) | larger than greedy | "
        "mean weight greedy → largest | where larger, times: median (at most) | only by search |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (name, what), own in frame[~frame.w.isin((*TIMED, *COVERING))].groupby(["n", "w"], sort=False):
        results = own.result.tolist()
        both = [(r["greedy"]["weight"], r["best"]["weight"]) for r in results if "greedy" in r and "best" in r]
        if not both:
            continue
        greedy, best = np.array(both).T
        proven = sum(r["best_status"] in PROVED for r in results)
        times = (best / greedy)[best > greedy + 1e-9]
        lines.append(
            f"| {name} | {what} | {len(both)} | {np.mean([r['divergent'] for r in results]):.2f} | "
            f"{proven} of {len(results)} | {len(times)} | {greedy.mean():.3f} → {best.mean():.3f} | "
            f"{f'{np.median(times):.2f} ({times.max():.3g})' if len(times) else '–'} | "
            f"{sum('best' in r and 'greedy' not in r for r in results)} |"
        )
    return "\n".join(lines) if len(lines) > 2 else ""


def seconds(frame: pd.DataFrame) -> str:
    """Median seconds of the processor, and on how many rows an answer was proved."""
    every = ("exhaustive", "set_highs", "set_scip", "greedy", "search", "box_highs", "box_scip")
    methods = [m for m in every if any(f"{m}_seconds" in r for r in frame.result)]
    lines = [f"| set | rows | features in S | {' | '.join(methods)} |", "|---" * (len(methods) + 3) + "|"]
    for name, own in frame[frame.w.isin(TIMED)].groupby("n", sort=False):
        results = own.result.tolist()
        sizes = [r["size"] for r in results]
        cells = []
        for method in methods:
            if method + "_seconds" not in results[0]:
                cells.append("–")
                continue
            median = np.median([r[method + "_seconds"] for r in results])
            if method.startswith("set_"):
                note = f" ({sum(r.get(method + '_agrees', False) for r in results)})"
            elif method in ("exhaustive", "greedy"):
                note = ""
            else:
                proved = [r.get(method + "_status") in PROVED for r in results]
                note = f" ({sum(proved)})"
            cells.append(f"{median:.2f}{note}")
        lines.append(f"| {name} | {len(results)} | {min(sizes)} to {max(sizes)} | {' | '.join(cells)} |")
    return "\n".join(lines) if len(lines) > 2 else ""


def main() -> None:
    parser = arguments(__doc__.splitlines()[0], "three rows of each class")
    parser.add_argument("--rows", type=int, help="rows of each class; default 20, quick 3")
    parser.add_argument("--timed", type=int, help="rows on which the models are timed; default 10, quick 1")
    parser.add_argument("--limit", type=float, default=1.0, help="seconds for the largest rule; default 1")
    parser.add_argument(
        "--most", type=int, default=10**9, help="families of boxes looked at for the largest rule; default: no limit"
    )
    parser.add_argument("--made-of", type=int, help="training rows that make sufficient rules; default 200, quick 20")
    parser.add_argument(
        "--sets",
        nargs="+",
        default=["compas", "diabetes", "heloc", "california", "california-raw"],
        help="names, or CSV files of your own with two classes in the column 'target' or the last one",
    )
    parser.add_argument("--models", nargs="+", default=["RF", "NN"], help="which explained models; default: both")
    parser.add_argument(
        "--parts",
        nargs="+",
        default=["local", *REGIONAL, "models"],
        help="which kinds of rules, and whether the models are timed; default: all; 'largest' looks for no points, "
        "'sets' times no largest rule, 'covering' counts the rows that a few regions hold",
    )
    parser.add_argument(
        "--kinds", nargs="+", choices=[*COVERING.values()], default=[*COVERING.values()], help="regions of 'covering'"
    )
    args = parser.parse_args()
    rows = args.rows or (3 if args.quick else 20)
    timed = args.timed if args.timed is not None else (1 if args.quick else 10)
    made_of = args.made_of or (20 if args.quick else MADE_OF)
    kept, done, starved = Runs(args.output), {}, 0
    for name, kind, what, label, k in jobs(args.sets, args.parts, rows, timed):
        limit = 6 * args.limit if what in TIMED else args.limit
        job = {"set": name, "model": kind, "part": what, "class": label, "row": k, "limit": limit, "most": args.most}
        if kind not in args.models or (what in COVERING and COVERING[what] not in args.kinds):
            continue
        job |= {"made_of": made_of} if "sufficient" in what else {}
        if kept.get(job) is None:
            own = case(name, kind, args.data)
            if k >= len(own.rows[label]):
                continue
            if what in TIMED:
                result = time_models(own, name, what, label, k, limit)
            elif what in COVERING:
                result = cover(own, name, COVERING[what], label, made_of)
            else:
                result = explain(own, name, what, label, k, limit, args.most, made_of)
            if result is None:
                starved += 1
                continue
            kept.add(job, result)
            print(name, kind, what, label, k, file=sys.stderr, flush=True)
        done[name, kind, what, label, k] = kept.get(job) or {}
    if starved:
        print(f"{starved} rows had too little of the processor: run the command again", file=sys.stderr)
    most = "" if args.most >= 10**9 else f", or {args.most:,} families of boxes"
    explained = f"up to {rows} rows a class, {args.limit:g} s for the largest rule{most}"
    made = f"sufficient rules of {made_of} training rows"
    limits = {
        "explained": f"{explained}; {made}" if "sufficient" in args.parts else explained,
        "timed": f"{timed} rows a set, {6 * args.limit:g} s of the processor a model",
        "covered": f"{made}, no limit",
    }
    write_tables(args.output, kept, done, limits)


if __name__ == "__main__":
    main()
