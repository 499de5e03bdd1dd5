"""Tables 2 and 3: milliseconds per row, distances and feasible shares, at three levels of constraints.

python examples/papers/oblique/tables23.py --data DIR -o out/tables23                  # oblique trees (table 2)
python examples/papers/oblique/tables23.py --data DIR -o out/tables23 --trees CART     # axis-aligned ones (table 3)
python examples/papers/oblique/tables23.py --data DIR -o out/tables23 --trees CART --round-last --sets Adult Credit
python examples/papers/oblique/tables23.py --data DIR -o out/tables23 --solvers auto highs scip  # who solves the leaves

As in the paper, features that are free have no bounds, but for pixels, which lie in [0, 1]; ``--bounded`` keeps numbers
within the range of the training rows.

Our method goes leaf by leaf. Beside it, for l2: the nearest of all known rows to which the tree gives the target
(table 2), and feature tweaking (table 3), which knows no constraints and takes the nearest of the tweaks that have the
target once they are rounded to levels and categories; with ``--round-last`` the nearest is rounded. Milliseconds are
those of the processor, so that other work on the machine does not count; "in all" adds the table, the model's own
prediction and the verification.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
from common import FIXED, Split, arguments, cart, split, tao
from runs import Runs, markdown, publish
from tweaking import decoded, tweak

from ocf import Cost, Explainer
from ocf.explain.leaf_queries import nearest_instances
from ocf.solve.leaf_search import solve_leaves
from ocf.solvers import SolverOptions

#: Milliseconds of the paper per row: l2 and l1 for each level of constraints; table 2 (oblique), table 3 (CART).
PUBLISHED = {
    "TAO": {
        "MNIST": ((40, 580), (40, 580), (40, 550)),
        "Adult": ((710, 600), (810, 590), (780, 570)),
        "Breast": ((4, 2), (3, 2), (3, 2)),
        "Spambase": ((7, 12), (6, 12), (7, 12)),
        "Letter": ((18, 20), (17, 20), (16, 190)),
        "Credit": ((50, 80), (50, 80), (50, 80)),
    },
    "CART": {
        "MNIST": ((110, 110), (110, 110), (120, 120)),
        "Adult": ((130, 130), (130, 130), (140, 140)),
        "Breast": ((0, 0), (0, 0), (0, 0)),
        "Spambase": ((3, 30), (30, 30), (40, 40)),
        "Letter": ((50, 50), (40, 50), (40, 60)),
        "Credit": ((40, 40), (40, 40), (40, 40)),
    },
}

#: Of what stands beside our method, for each level of constraints: the paper's milliseconds per row and the share of
#: rows with an answer in percent; None where its text has no number.
PUBLISHED_OTHER: dict[str, dict[str, tuple[tuple[int | None, int | None], ...]]] = {
    "TAO": {
        "MNIST": ((40, 100), (40, 100), (None, 0)),
        "Adult": ((70, 100), (4300, 100), (2700, 100)),
        "Breast": ((0, 100), (0, 77), (0, 17)),
        "Spambase": ((0, 100), (10, 32), (20, 17)),
        "Letter": ((0, 100), (0, 19), (None, 0)),
        "Credit": ((0, 100), (None, 0), (None, 0)),
    },
    "CART": {
        "MNIST": ((190, 100),),
        "Adult": ((50, 28),),
        "Breast": ((0, 100),),
        "Spambase": ((0, 100),),
        "Letter": ((30, 100),),
        "Credit": ((0, 22),),
    },
}

#: Seconds a row may take.
TIME_LIMIT = 120.0


def fixed_features(name: str, level: int, folder: str | None) -> list[str]:
    """Names of the features that stay, at level 0, 1 or 2."""
    if level == 0:
        return []
    the, wanted = split(name, folder), FIXED[name]
    drawn = np.random.default_rng(0).permutation(list(the.train.columns)).tolist()
    if name == "MNIST":
        blank = [c for c in the.train.columns if (the.train[c] == 0).all()]
        return blank + [c for c in drawn if c not in blank][: wanted[1] if level == 2 else 0]
    choice = wanted[level - 1]
    return drawn[:choice] if isinstance(choice, int) else list(choice)


@lru_cache(maxsize=1)
def explainer(name: str, kind: str, folder: str | None, quick: bool, bounded: bool) -> Explainer:
    """Of a set's tree; numbers that no fact of the data bounds are free without end, unless they are bounded."""
    the = split(name, folder)
    model = tao(name, folder, quick=quick) if kind == "TAO" else cart(name, folder)
    settings = dict(the.settings)
    for column in [c for c, s in settings.items() if s["kind"] == "numeric" and not bounded]:
        width = float(np.ptp(the.train[column])) or 1.0
        settings[column] = {"bounds": [-np.inf, np.inf], "scale": width, **settings[column]}
    return Explainer(model, data=the.train, features=settings)


def sources(
    name: str, kind: str, folder: str | None, rows: int, quick: bool, bounded: bool
) -> Iterator[tuple[int, Any]]:
    """Places of test rows, some of each class, and another class as target."""
    the, rng = split(name, folder), np.random.default_rng(0)
    model = explainer(name, kind, folder, quick, bounded).model.native
    predicted = model.predict(the.test)
    classes = np.unique(the.y)
    for label in classes:
        for k in rng.permutation(np.flatnonzero((the.y_test == label) & (predicted == label)))[:rows]:
            yield int(k), rng.choice(classes[classes != label])


def rounded_last(model: Any, row: pd.DataFrame, target: Any, the: Split) -> pd.DataFrame | None:
    """Feature tweaking over one-hot columns as if they were numbers, the nearest tweak rounded at the end.

    Parameters
    ----------
    model : Pipeline
        Ends in a DecisionTreeClassifier.
    row : DataFrame (1, n_columns)
    target : label
    the : Split

    Returns
    -------
    DataFrame or None
        None where no tweak gets the target, or the nearest loses it by rounding.
    """
    encoder, tree = model[:-1], model[-1]
    names = list(encoder.get_feature_names_out())
    origin, train = (pd.DataFrame(np.asarray(encoder.transform(t), float)) for t in (row, the.train))
    point = tweak(tree, origin, target, train, {})
    if point is None:
        return None
    rounded = decoded(point.set_axis(names, axis=1), row, the.settings).set_axis(row.index)
    return rounded if model.predict(rounded)[0] == target else None


def run(job: Mapping[str, Any], folder: str | None, quick: bool) -> dict[str, Any]:
    """One row, one method, one level of constraints."""
    the = split(job["set"], folder)
    explain = explainer(job["set"], job["trees"], folder, quick, job["bounded"])
    row = the.test.iloc[[job["row"]]]
    stays = fixed_features(job["set"], job["level"], folder)
    vary = [c for c in the.train.columns if c not in set(stays)] if stays else "all"
    target = next(c for c in explain.classes if str(c) == job["target"])
    begin, solver = time.process_time(), ""
    if job["method"] == "ours":
        problem = explain.problem(row, target, job["norm"], features_to_vary=vary)
        explain.query(problem, solver=job["solver"])  # compiles the matrix, once for all rows
        middle = time.process_time()
        solve_leaves(explain.query(problem, SolverOptions(time_limit=TIME_LIMIT), job["solver"]), lambda point: True)
        begin = time.process_time()
        solving = begin - middle
        settings: dict[str, Any] = {"formulation": "oblique", "solver": job["solver"], "time_limit": TIME_LIMIT}
        e = explain.explain(row, target, job["norm"], features_to_vary=vary, progress=False, **settings)[0]
        found, cost, status, solver = e.found, e.cost, e.status, e.method["solver"]
    elif job["method"] == "instances":
        known = pd.concat([the.train, the.test])
        e = nearest_instances(explain, row, known, target, job["norm"], features_to_vary=vary)[0]
        found, cost, status, solving = e.found, e.cost, e.status, e.times["solve"]
    else:
        if job.get("round_last"):
            point = rounded_last(explain.model.native, row, target, the)
        else:
            point = tweak(explain.model.native, row, target, the.train, the.settings)
        solving = time.process_time() - begin
        found, cost, status = point is not None, None, "found" if point is not None else "none"
        if point is not None:
            cost = Cost.parse("l2").total(explain.space, *explain.space.from_frame(pd.concat([row, point])))
    return {
        "found": bool(found),
        "cost": cost,
        "status": status,
        "solved_by": solver,
        "solving_ms": 1000 * solving,
        "total_ms": 1000 * (time.process_time() - begin),
    }


def spread(values: pd.Series, digits: int = 3) -> str:
    """Mean ± standard deviation over the rows, – where there are none."""
    known = values.dropna().astype(float)
    if known.empty:
        return "–"
    return f"{known.mean():.{digits}g} ± {known.std(ddof=0):.2g}"


def milliseconds(rows: pd.DataFrame) -> str:
    """Of the processor, mean ± standard deviation."""
    return f"{rows.solving_ms.mean():.0f} ± {rows.solving_ms.std(ddof=0):.0f}"


def table(results: pd.DataFrame, kind: str) -> str:
    """Milliseconds and distances with their deviations, shares of rows with an answer, and of those that are proved."""
    other = "instances" if kind == "TAO" else "tweaking"
    rows = []
    for (name, level), group in results.groupby(["set", "level"], sort=False):
        ours, theirs = group[(group.method == "ours") & (group.solver == "auto")], group[group.method == other]
        l2, l1 = (ours[ours.norm == norm] for norm in ("l2", "l1"))
        line: list[object] = [name, int(group.fixed.iloc[0]), len(l2)]
        line += [milliseconds(l2), milliseconds(l1), f"{l2.total_ms.mean():.0f} / {l1.total_ms.mean():.0f}"]
        line += ["{} / {}".format(*PUBLISHED[kind][name][level]), spread(l2.cost), spread(l1.cost)]
        line += [f"{ours.found.mean():.0%}", f"{ours.status.isin(['optimal', 'infeasible']).mean():.0%}"]
        if len(theirs):
            ms, found = PUBLISHED_OTHER[kind][name][level]
            line += [spread(theirs.cost), f"{theirs.found.mean():.0%} ({'–' if found is None else f'{found}%'})"]
            rows.append([*line, f"{theirs.solving_ms.mean():.0f} ({'–' if ms is None else ms})"])
        else:
            rows.append([*line, "–", "–", "–"])
    header = ["set", "fixed", "rows", "ms, l2", "ms, l1", "in all", "paper", "distance, l2", "distance, l1"]
    return markdown(rows, [*header, "with an answer", "proved", f"{other}: l2", "… found (paper)", "… ms (paper)"])


def solver_table(results: pd.DataFrame) -> str:
    """Who solves the leaves: milliseconds of each, over all levels, and how often a solver needed help."""
    ours = results[results.method == "ours"]
    columns = ["set", "level", "row", "target", "norm"]
    known = ours[ours.solver == ours.solver.iloc[0]].set_index(columns).cost.astype(float)
    rows = []
    for (name, norm, solver), group in ours.groupby(["set", "norm", "solver"], sort=False):
        words = group.solved_by.value_counts(normalize=True)
        cost = group.set_index(columns).cost.astype(float)
        gap = float((cost - known).abs().max())
        proved = group.status.isin(["optimal", "infeasible"]).mean()
        by = ", ".join(f"{word} {share:.0%}" for word, share in words.items())
        rows.append([name, norm, solver, len(group), milliseconds(group), by, f"{proved:.0%}", f"{gap:.1g}"])
    return markdown(rows, ["set", "norm", "solver", "rows", "ms", "solved by", "proved", "largest difference in cost"])


def main() -> None:
    parser = arguments(__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=20, help="rows per class (default: 20, as in the paper)")
    parser.add_argument("--trees", choices=["TAO", "CART"], default="TAO")
    parser.add_argument("--bounded", action="store_true", help="keep numbers within the range of the training rows")
    parser.add_argument("--round-last", action="store_true", help="round feature tweaking's nearest point at the end")
    parser.add_argument("--solvers", nargs="+", choices=["auto", "highs", "scip"], default=["auto"])
    args = parser.parse_args()
    if args.round_last and (args.trees == "TAO" or not set(args.sets) <= {"Adult", "Credit"}):
        parser.error("--round-last is of feature tweaking with categories: --trees CART --sets Adult Credit")
    names = ["Breast", "Spambase"] if args.quick else args.sets
    per_class = 2 if args.quick else args.rows
    runs, results = Runs(args.output), []
    other = "instances" if args.trees == "TAO" else "tweaking"
    for name in names:
        for row, target in sources(name, args.trees, args.data, per_class, args.quick, args.bounded):
            for level in range(3):
                fixed = len(fixed_features(name, level, args.data))
                asked = [("ours", norm, solver) for norm in ("l2", "l1") for solver in args.solvers]
                asked += [(other, "l2", "")] if other == "instances" or level == 0 else []
                for method, norm, solver in asked:
                    job = {"set": name, "trees": args.trees, "row": row, "target": str(target), "level": level}
                    job |= {"method": method, "norm": norm, "quick": args.quick}
                    job |= {"solver": solver, "bounded": args.bounded}
                    job |= {"round_last": True} if args.round_last and method == "tweaking" else {}
                    result = runs.made(job, partial(run, job, args.data, args.quick))
                    results.append({**job, "fixed": fixed, **result})
        print(name, "done", flush=True)
    found, stem = pd.DataFrame(results), f"table{2 if args.trees == 'TAO' else 3}"
    stem += f"{'-bounded' * args.bounded}{'-round-last' * args.round_last}{'-quick' * args.quick}"
    text = table(found, args.trees) if "auto" in args.solvers else ""
    if len(args.solvers) > 1:
        text += f"\n{solver_table(found)}"
    limits = f"{per_class} rows a class, {TIME_LIMIT:g} s a row"
    publish(
        args.output, stem, runs, text, found.drop(columns=["quick", "trees", "round_last"], errors="ignore"), limits
    )


if __name__ == "__main__":
    main()
