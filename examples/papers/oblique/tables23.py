"""Tables 2 and 3: milliseconds per row, distances and feasible shares, at three levels of constraints.

python examples/papers/oblique/tables23.py --data DIR -o out/tables23                  # oblique trees (table 2)
python examples/papers/oblique/tables23.py --data DIR -o out/tables23 --trees CART     # axis-aligned ones (table 3)

Our method goes leaf by leaf. Beside it, for l2: the nearest of all known rows to which the tree gives the target
(table 2), and feature tweaking (table 3), which knows no constraints. Milliseconds are those of the processor, so that
other work on the machine does not count; "in all" adds the table, the model's own prediction and the verification.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from common import FIXED, arguments, cart, split, tao
from runs import Runs, markdown, write
from tweaking import tweak

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
def explainer(name: str, kind: str, folder: str | None, quick: bool) -> Explainer:
    the = split(name, folder)
    model = tao(name, folder, quick=quick) if kind == "TAO" else cart(name, folder)
    return Explainer(model, data=the.train, features=the.settings)


def sources(name: str, kind: str, folder: str | None, rows: int, quick: bool) -> Iterator[tuple[int, Any]]:
    """Places of test rows, some of each class, and another class as target."""
    the, rng = split(name, folder), np.random.default_rng(0)
    model = explainer(name, kind, folder, quick).model.native
    predicted = model.predict(the.test)
    classes = np.unique(the.y)
    for label in classes:
        for k in rng.permutation(np.flatnonzero((the.y_test == label) & (predicted == label)))[:rows]:
            yield int(k), rng.choice(classes[classes != label])


def run(job: Mapping[str, Any], folder: str | None, quick: bool) -> dict[str, Any]:
    """One row, one method, one level of constraints."""
    the, explain = split(job["set"], folder), explainer(job["set"], job["trees"], folder, quick)
    row = the.test.iloc[[job["row"]]]
    stays = fixed_features(job["set"], job["level"], folder)
    vary = [c for c in the.train.columns if c not in set(stays)] if stays else "all"
    target = next(c for c in explain.classes if str(c) == job["target"])
    begin = time.process_time()
    if job["method"] == "ours":
        problem = explain.problem(row, target, job["norm"], features_to_vary=vary)
        explain.query(problem)  # compiles the matrix, once for all rows
        middle = time.process_time()
        solve_leaves(explain.query(problem, SolverOptions(time_limit=120)), lambda point: True)
        begin = time.process_time()
        solving = begin - middle
        e = explain.explain(
            row, target, job["norm"], features_to_vary=vary, formulation="oblique", progress=False, time_limit=120
        )[0]
        found, cost, status = e.found, e.cost, e.status
    elif job["method"] == "instances":
        known = pd.concat([the.train, the.test])
        e = nearest_instances(explain, row, known, target, job["norm"], features_to_vary=vary)[0]
        found, cost, status, solving = e.found, e.cost, e.status, e.times["solve"]
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
        "solving_ms": 1000 * solving,
        "total_ms": 1000 * (time.process_time() - begin),
    }


def table(results: pd.DataFrame, kind: str) -> str:
    """Mean milliseconds, mean and deviation of the distances, feasible shares."""
    other = "instances" if kind == "TAO" else "tweaking"
    rows = []
    for (name, level), group in results.groupby(["set", "level"], sort=False):
        line: list[object] = [name, f"{int(group.fixed.iloc[0])}"]
        for norm in ("l2", "l1"):
            ours = group[(group.method == "ours") & (group.norm == norm)]
            cost = ours.cost.dropna().astype(float)
            proved = ours.status.isin(["optimal", "infeasible"]).mean()
            line += [f"{ours.solving_ms.mean():.0f}", f"{ours.total_ms.mean():.0f}"]
            line += [f"{cost.mean():.3g} ± {cost.std():.2g}", f"{ours.found.mean():.0%}", f"{proved:.0%}"]
        theirs = group[group.method == other]
        cost = theirs.cost.dropna().astype(float)
        line += (
            ["–"] * 3
            if theirs.empty
            else [
                f"{theirs.solving_ms.mean():.0f}",
                f"{cost.mean():.3g} ± {cost.std():.2g}",
                f"{theirs.found.mean():.0%}",
            ]
        )
        line += ["{} / {}".format(*PUBLISHED[kind][name][level]), len(group[group.method == "ours"]) // 2]
        rows.append(line)
    columns = [f"{n} {c}" for n in ("l2", "l1") for c in ("ms", "ms in all", "distance", "feasible", "proved")]
    header = ["set", "fixed", *columns, f"{other} ms", f"{other} l2", "feasible", "published ms (l2 / l1)", "rows"]
    return markdown(rows, header)


def main() -> None:
    parser = arguments(__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=20, help="rows per class (default: 20, as in the paper)")
    parser.add_argument("--trees", choices=["TAO", "CART"], default="TAO")
    args = parser.parse_args()
    names = ["Breast", "Spambase"] if args.quick else args.sets
    per_class = 2 if args.quick else args.rows
    runs, results = Runs(args.output), []
    other = "instances" if args.trees == "TAO" else "tweaking"
    for name in names:
        for row, target in sources(name, args.trees, args.data, per_class, args.quick):
            for level in range(3):
                asked = [("ours", "l2"), ("ours", "l1")]
                asked += [(other, "l2")] if other == "instances" or level == 0 else []
                for method, norm in asked:
                    job = {"set": name, "trees": args.trees, "row": row, "target": str(target), "level": level}
                    job |= {"method": method, "norm": norm, "quick": args.quick}
                    if runs.get(job) is None:
                        runs.add(job, run(job, args.data, args.quick))
                    fixed = len(fixed_features(name, level, args.data))
                    results.append({**job, "fixed": fixed, **(runs.get(job) or {})})
        print(name, "done", flush=True)
    number = 2 if args.trees == "TAO" else 3
    text = table(pd.DataFrame(results), args.trees)
    write(args.output, f"table{number}-quick.md" if args.quick else f"table{number}.md", text)


if __name__ == "__main__":
    main()
