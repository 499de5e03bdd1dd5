"""Tables 4 and A2: share of plausible counterfactuals, cost and seconds, without and with an isolation forest.

python examples/papers/ocean/table4.py --data DIR -o results/table4
python examples/papers/ocean/table4.py --data DIR -o results/table4 --depths 5 6 7 8      # A2

The isolation forest is fitted on the training rows of class 1, with trees as deep as the forest's; a point is plausible
when its average depth is above that of the lowest tenth of those rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from common import METHODS, Case, arguments, measure, parse, seconds
from runs import Runs, markdown, write
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import make_pipeline

from ocf import Explanation, Plausibility
from ocf.models.plausibility import Detector, make_detector

#: Points that are asked for.
KINDS = ("all", "plausible")

#: Plausible share, cost and seconds of the paper, without and with the isolation forest.
PUBLISHED = {
    "AD": ("55 %", 0.21, 0.75, "100 %", 0.40, 1.82),
    "CC": ("0 %", 0.03, 0.99, "100 %", 0.56, 1.54),
    "CP": ("25 %", 0.12, 0.44, "100 %", 0.57, 0.85),
    "GC": ("25 %", 0.09, 0.60, "100 %", 1.13, 1.71),
    "ON": ("100 %", 0.01, 1.34, "100 %", 0.01, 1.64),
    "PH": ("35 %", 0.78, 0.36, "100 %", 2.40, 1.81),
    "SP": ("100 %", 0.02, 2.71, "100 %", 0.02, 4.43),
    "ST": ("40 %", 1.18, 0.62, "100 %", 1.63, 1.36),
}


@lru_cache(maxsize=1)
def judge(case: Case, depth: int) -> Detector:
    """The forest by which all points are judged, fitted on all training rows of class 1.

    Isolation trees of at most some depth: a tree over ``2**depth`` rows stops there.
    """
    model = case.explainer.model.native
    rows = case.train[model.predict(case.train) == 1]
    forest = IsolationForest(n_estimators=100, max_samples=min(2**depth, len(rows)), random_state=0)
    if hasattr(model, "steps"):  # the encoder of the categories, which sets without any do not have
        forest = make_pipeline(model[:-1], forest)
    return make_detector(Plausibility(forest.fit(rows)), case.explainer.model, rows, ())


@lru_cache(maxsize=1)
def wish(case: Case, depth: int) -> Plausibility:
    """The same forest and depth, as they are asked for."""
    detector = judge(case, depth)
    return Plausibility(detector.wish.forest, depth=detector.least)


def settings(case: Case, job: Mapping[str, Any]) -> dict[str, Any]:
    return {"plausibility": wish(case, job["depth"])} if job["points"] == "plausible" else {}


def remark(case: Case, job: Mapping[str, Any], e: Explanation) -> dict[str, Any]:
    if e.counterfactual is None:
        return {"is_plausible": None}
    return {"is_plausible": judge(case, job["depth"]).accepts(e.counterfactual)}


def main() -> None:
    parser = arguments(__doc__.split("\n")[0])
    parser.add_argument("--method", choices=METHODS, default="interval")
    parser.add_argument("--depths", nargs="+", type=int, default=[5])
    args = parse(parser)
    trees, depths = (20, [3]) if args.quick else (100, args.depths)
    base = {"method": args.method, "norm": "l1", "limit": args.time_limit}
    jobs = [
        {"set": s, "trees": trees, "depth": d, "points": p, "row": k, **base}
        for d in depths
        for s in args.sets
        for k in range(args.rows)
        for p in KINDS
    ]
    results = measure(Runs(args.output), jobs, args.data, settings, remark)
    rows = []
    for (depth, name), same in results.groupby(["depth", "set"], sort=False):
        rows.append([name, depth])
        for kind in KINDS:
            group = same[same.points == kind]
            found = group[group.cost.notna()]
            share = f"{found.is_plausible.astype(float).mean():.0%}" if len(found) else "–"
            rows[-1] += [share, f"{found.cost.astype(float).mean():.3f}", seconds(group, same.row.nunique())]
        rows[-1] += PUBLISHED[name] if (trees, depth) == (100, 5) else [""] * 6
    kinds = [f"{kind} {c}" for kind in ("without", "with") for c in ("P", "C", "T(s)")]
    header = ["set", "depth", *kinds, *(f"published {k}" for k in kinds)]
    write(args.output, "table4-quick.md" if args.quick else "table4.md", markdown(rows, header))


if __name__ == "__main__":
    main()
