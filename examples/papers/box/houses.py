"""Use case 3, tables IV to VIII and figure 7: what a house would have to be like to sell at another price.

python examples/papers/box/houses.py --data DIR -o results/houses

XGBoost regression on the sales of Ames, Iowa. The seller asks which changes of what can be changed lift the price into
an interval (tables IV to VI), the buyer which concessions lower it (tables VII and VIII). Figure 7 shows for which
living and lot areas the model gives a price near 200,000, the rest of a house being as it is up to small changes.

Two tables of trade-offs follow. By price: the least change of the seller of table V for one asking price after the
other. By lot: which living areas have a price near 200,000 on lots of one size after the other, over all decision
regions of some houses; the paper reads off its figure 7 that a larger lot is paid for by living area.

As in the paper, values are scaled to [0, 1] and categories ordered by how they are appreciated: here by the mean price
of the houses that have them, where the paper has an order of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from cases import Words, arguments, changes, long_table, run_all
from runs import Runs, markdown, publish
from sklearn.compose import ColumnTransformer
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OrdinalEncoder
from xgboost import XGBRegressor

from ocf import Explainer
from ocf.cells.cell_problem import CellProblem
from ocf.compare.datasets import Dataset, load_dataset
from ocf.solvers.box import PureBox, decompose

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.patches import Rectangle

#: What a seller can have changed: finish and materials, interior, basement, garage, porches, equipment.
SELLER = (
    "overall_cond", "roof_matl", "exterior_1st", "exterior_2nd", "mas_vnr_type", "mas_vnr_area", "exter_qual",
    "exter_cond", "bsmt_cond", "bsmtfin_type_1", "bsmtfin_sf_1", "bsmtfin_type_2", "bsmtfin_sf_2", "bsmt_unf_sf",
    "heating", "heating_qc", "central_air", "electrical", "kitchen_qual", "functional", "fireplaces", "fireplace_qu",
    "garage_type", "garage_finish", "garage_qual", "garage_cond", "paved_drive", "wood_deck_sf", "open_porch_sf",
    "enclosed_porch", "three_season_porch", "screen_porch", "pool_qc", "fence",
)  # fmt: skip

#: Where the buyer of table VII yields: finish, quality of materials, the outside, the month.
FINISH = (
    "overall_cond", "roof_matl", "exterior_1st", "exterior_2nd", "mas_vnr_type", "exter_qual", "exter_cond",
    "kitchen_qual", "heating_qc", "functional", "fireplace_qu", "garage_finish", "garage_qual", "garage_cond",
    "paved_drive", "wood_deck_sf", "open_porch_sf", "enclosed_porch", "three_season_porch", "screen_porch", "fence",
    "mo_sold",
)  # fmt: skip

#: And of table VIII: the condition, and areas that nobody lives in.
CONDITION = (
    "overall_cond", "exter_cond", "bsmt_cond", "bsmtfin_type_1", "bsmtfin_sf_1", "bsmtfin_type_2", "bsmtfin_sf_2",
    "bsmt_unf_sf", "functional", "garage_cond", "garage_area", "wood_deck_sf", "open_porch_sf", "enclosed_porch",
    "three_season_porch", "screen_porch",
)  # fmt: skip

#: Table, price of the house in the paper, interval, what may change, and the paper's new price.
TABLES = (
    ("IV", 168_810, (199_010, 250_000), SELLER, 199_014),
    ("V", 195_832, (203_382, 250_000), SELLER, 203_474),
    ("VI", 195_832, (211_442, 250_000), SELLER, 211_496),
    ("VII", 414_419, (350_000, 376_669), FINISH, 376_420),
    ("VIII", 257_897, (200_000, 235_247), CONDITION, 235_204),
)

#: Figure 7: price, tolerance, the two axes and what of them is shown, and what else may
#: change within the radius.
PRICE, TOLERANCE, AXES = 200_000, 5_000, ("gr_liv_area", "lot_area")
WINDOW = ((500.0, 3000.0), (1500.0, 20_000.0))
BESIDES = ("overall_cond",)

#: Squared distance within which the features besides the axes may change.
RADIUS = 0.02

#: The trade-offs: asking prices of the seller of table V, and lots in square feet.
ASKING = tuple(range(198_000, 219_000, 3_000))
LOTS = (4_000, 6_000, 8_000, 10_000, 12_000, 14_000, 16_000)


def ordered_levels(data: Dataset) -> dict[str, list[Any]]:
    """Levels of the categories by the mean price of their houses."""
    out = {}
    for feature, setting in data.settings.items():
        if setting["kind"] == "categorical":
            mean = data.target.groupby(data.table[feature]).mean()
            out[feature] = sorted(setting["levels"], key=lambda level, mean=mean: mean.get(level, mean.mean()))
    return out


def fit(data: Dataset, trees: int, depth: int) -> tuple[Pipeline, Explainer, pd.DataFrame, pd.DataFrame, float]:
    """Pipeline, explainer, training and test part, and the R2 on the test part."""
    levels = ordered_levels(data)
    train, test, y, y_test = train_test_split(data.table, data.target, test_size=0.2, random_state=0)
    codes = OrdinalEncoder(categories=list(levels.values()))
    encode = ColumnTransformer(
        [("codes", codes, list(levels))], remainder="passthrough", verbose_feature_names_out=False
    )
    model = XGBRegressor(n_estimators=trees, max_depth=depth, learning_rate=0.1, n_jobs=1, random_state=0)
    pipeline = Pipeline([("encode", encode), ("model", model)]).fit(train, y)
    settings = {}
    for feature, setting in data.settings.items():
        settings[feature] = {**setting, "actionability": "free"}
        if feature in levels:
            settings[feature] |= {"kind": "ordinal", "levels": levels[feature]}
        elif setting["kind"] == "numeric":
            settings[feature]["step"] = 1
    explainer = Explainer(pipeline, data=data.table, features=settings)
    return pipeline, explainer, train, test, float(r2_score(y_test, pipeline.predict(test)))


def main() -> None:
    parser = arguments(__doc__.split("\n")[0])
    parser.add_argument("--trees", type=int, default=250, help="trees of the model (default: 250)")
    parser.add_argument("--depth", type=int, default=6, help="their depth (default: 6)")
    parser.add_argument("--boxes", type=int, default=20_000, help="most decision regions of a house in figure 7")
    parser.add_argument("--houses", type=int, default=10, help="houses whose decision regions are counted by lot")
    args = parser.parse_args()
    trees, depth, houses = (40, 3, 2) if args.quick else (args.trees, args.depth, args.houses)
    data = load_dataset("ames", args.data)
    pipeline, explainer, _, test, r2 = fit(data, trees, depth)
    prices = pipeline.predict(test)
    runs, words = Runs(args.output), Words("ames", args.data)
    cases = {name: rest for name, *rest in TABLES}
    usual = houses_near(test, prices)

    def change(job: Mapping[str, Any]) -> dict[str, Any]:
        price, interval, vary, _ = cases[job["table"]]
        interval = (job.get("asking", interval[0]), interval[1])
        row = test.iloc[[int(np.argmin(np.abs(prices - price)))]]
        e = explainer.explain(
            row,
            target=interval,
            norm="l2",
            features_to_vary=vary,
            solver="box",
            time_limit=args.time_limit,
            threads=args.threads,
        )[0]
        found = e.counterfactual is not None
        return {
            "status": e.status,
            "verified": e.verified,
            "cost": e.cost,
            "seconds": e.times.get("total"),
            "nodes": e.nodes,
            "price": float(pipeline.predict(row)[0]),
            "new": float(pipeline.predict(e.counterfactual)[0]) if found else None,
            "changes": changes(e) if found else {},
        }

    def areas(job: Mapping[str, Any]) -> dict[str, Any]:
        cells, boxes = regions(explainer, usual.iloc[[job["house"]]], job["boxes"])
        return {"status": f"{len(boxes)} regions", "regions": len(boxes), "living": living_areas(cells, boxes)}

    base = {"trees": trees, "depth": depth, "limit": args.time_limit}
    results = run_all(runs, [{**base, "table": name} for name in cases], change)
    asked = run_all(runs, [{**base, "table": "V", "asking": price} for price in ASKING], change)
    of = {"trees": trees, "depth": depth, "boxes": args.boxes}
    lots = run_all(runs, [{**of, "house": k} for k in range(min(houses, len(usual)))], areas)
    text = [f"# House prices\n\n{trees} trees of depth {depth}, R2 on the test part {r2:.3f}.\n"]
    for result in results:
        price, interval, vary, new = cases[result["table"]]
        text += [
            f"## Table {result['table']}\n",
            f"A house at ${result['price']:,.0f} (the paper's: ${price:,}), to be sold in [${interval[0]:,}, "
            f"${interval[1]:,}]; {len(vary)} characteristics may change. {_answer(result)} The paper's: ${new:,}.\n",
            _changes(words, result["changes"]) if result["changes"] else "",
        ]
    figure, about = drawn(explainer, usual.iloc[[0]], args.boxes)
    figure.savefig(Path(args.output) / "figure7.png", dpi=130)
    plt.close(figure)
    text.append(f"## Figure 7\n\n{about}\n\n![decision regions](figure7.png)\n")
    quick = "-quick" if args.quick else ""
    changed = long_table(results, ["table", "price", "new", "cost", "status", "seconds"])
    limits = f"a house a table, {args.time_limit:g} s each"
    publish(args.output, f"houses{quick}", runs, "\n".join(text), changed, limits)
    limits = f"one house, {args.time_limit:g} s a price"
    costs = pd.DataFrame(asked).drop(columns="changes")
    publish(args.output, f"houses-asking{quick}", runs, by_price(asked), costs, limits)
    table, every = by_lot(lots)
    limits = f"{len(lots)} houses, at most {args.boxes:,} decision regions each"
    publish(args.output, f"houses-lots{quick}", runs, table, every, limits)


def _answer(result: Mapping[str, Any]) -> str:
    if not result["changes"]:
        return f"No such change ({result['status']}, {result['seconds']:.1f} s)."
    word = "smallest" if result["status"] == "optimal" else "best found within the limit"
    return (
        f"The {word} change costs {result['cost']:.4g} and gives ${result['new']:,.0f} "
        f"({result['seconds']:.1f} s, {result['nodes']} nodes)."
    )


def _changes(words: Words, found: Mapping[str, Sequence[Any]]) -> str:
    return markdown(
        [[name, *(words.of(f, pair[k]) for f, pair in found.items())] for k, name in enumerate(("initial", "CF"))],
        ["", *(f.replace("_", " ") for f in found)],
    )


def houses_near(test: pd.DataFrame, prices: np.ndarray[Any, Any]) -> pd.DataFrame:
    """Houses of usual size, the one whose price is nearest to 200,000 first."""
    usual = np.flatnonzero(test.lot_area.between(*WINDOW[1]) & test.gr_liv_area.between(*WINDOW[0]))
    return test.iloc[usual[np.argsort(np.abs(prices[usual] - PRICE), kind="stable")]]


def regions(explainer: Explainer, row: pd.DataFrame, limit: int) -> tuple[CellProblem, list[PureBox]]:
    """Decision regions around a house in which the price is near 200,000."""
    # along the axes any value is as good as any other: the radius bounds what else changes
    problem = explainer.problem(
        row,
        target=(PRICE - TOLERANCE, PRICE + TOLERANCE),
        norm="l2",
        features_to_vary=[*AXES, *BESIDES],
        weights=dict.fromkeys(AXES, 0.0),
        permitted_range=dict(zip(AXES, WINDOW, strict=True)),
    )
    cells = explainer.cells(problem)
    return cells, list(decompose(cells, radius=RADIUS, target_only=True, limit=limit))


def living_areas(cells: CellProblem, boxes: Sequence[PureBox]) -> dict[str, list[tuple[float, float]]]:
    """Intervals of the living area, without overlap, that have the price on each lot.

    Parameters
    ----------
    cells : CellProblem
    boxes : sequence of PureBox
        Decision regions.
    """
    across, along = (cells.problem.space.index(name) for name in AXES)
    out: dict[str, list[tuple[float, float]]] = {}
    for lot in LOTS:
        ends = [_interval(cells, box, along) for box in boxes]
        found = sorted({_interval(cells, box, across) for box, (a, b) in zip(boxes, ends, strict=True) if a < lot <= b})
        joined: list[tuple[float, float]] = []
        for low, high in found:
            if joined and low <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(joined[-1][1], high))
            else:
                joined.append((low, high))
        out[str(lot)] = joined
    return out


def by_price(asked: Sequence[Mapping[str, Any]]) -> str:
    """The least change for each asking price."""
    rows = [
        [f"${r['asking']:,}", r["status"], *([f"{r['cost']:.4g}", len(r["changes"]), f"${r['new']:,.0f}"]
         if r["changes"] else ["–"] * 3), f"{r['seconds']:.1f}"]
        for r in asked
    ]  # fmt: skip
    return markdown(rows, ["asking price", "status", "cost (l2)", "changes", "new price", "seconds"])


def by_lot(lots: Sequence[Mapping[str, Any]]) -> tuple[str, pd.DataFrame]:
    """Living areas at the price on each lot: the least, the middle and the greatest, in the mean over the houses."""
    every = pd.DataFrame(
        [
            {"house": r["house"], "regions": r["regions"], "lot": int(lot), "least": spans[0][0],
             "middle": sum(b * b - a * a for a, b in spans) / sum(b - a for a, b in spans) / 2,
             "greatest": spans[-1][1]}
            for r in lots
            for lot, spans in r["living"].items()
            if spans
        ]
    )  # fmt: skip
    rows = [
        [
            f"{lot:,}",
            f"{same.house.nunique()}/{len(lots)}",
            *(f"{v:,.0f}" for v in same[["least", "middle", "greatest"]].mean()),
        ]
        for lot, same in every.groupby("lot")
    ]
    ranks = every[["lot", "middle"]].groupby(every.house).corr("spearman").xs("lot", level=1).middle
    text = markdown(rows, ["lot", "houses", "least living area", "middle", "greatest"])
    told = f"from {ranks.min():.2f} to {ranks.max():.2f}, negative for {(ranks < 0).sum()} of {len(ranks)} houses"
    return f"{text}\nRank correlation of the lot and the middle within a house: {told}.\n", every


def drawn(explainer: Explainer, row: pd.DataFrame, limit: int) -> tuple[Any, str]:
    """Figure 7 for one house, and what it shows in words."""
    cells, boxes = regions(explainer, row, limit)
    axes = [explainer.space.index(name) for name in AXES]
    house = [float(row[name].iloc[0]) for name in AXES]
    figure, ax = plt.subplots(figsize=(7.5, 5.5))
    scores = np.array([box.scores[0] for box in boxes])
    colour = plt.get_cmap("viridis")
    for box, score in zip(boxes, scores, strict=True):
        (x0, x1), (y0, y1) = (_interval(cells, box, i) for i in axes)
        x0, x1 = np.clip((x0, x1), *WINDOW[0])
        y0, y1 = np.clip((y0, y1), *WINDOW[1])
        shade = colour((score - PRICE + TOLERANCE) / (2 * TOLERANCE))
        ax.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, facecolor=shade, alpha=0.5, linewidth=0))
    ax.plot(*house, "r*", markersize=12, label="the house")
    ax.set_xlim(WINDOW[0])
    ax.set_ylim(WINDOW[1])
    ax.set_xlabel("ground living area (square feet)")
    ax.set_ylabel("lot area (square feet)")
    ax.set_title(f"where the model's price is {PRICE:,} ± {TOLERANCE:,}")
    ax.legend(loc="upper right")
    bar = figure.colorbar(
        mpl.cm.ScalarMappable(mpl.colors.Normalize(PRICE - TOLERANCE, PRICE + TOLERANCE), "viridis"), ax=ax
    )
    bar.set_label("price")
    figure.tight_layout()
    found = "all" if len(boxes) < limit else "the first"
    about = (
        f"{found.capitalize()} {len(boxes)} decision regions with a price within ${TOLERANCE:,} of ${PRICE:,} around a "
        f"house of {house[0]:.0f} square feet on a lot of {house[1]:.0f}, projected on the two areas; "
        f"{' and '.join(BESIDES).replace('_', ' ')} may change too, within a squared distance of {RADIUS:g}."
    )
    return figure, about


def _interval(cells: CellProblem, box: PureBox, i: int) -> tuple[float, float]:
    """Range of a box on a feature."""
    part = cells.partition
    first, last = part.offsets[i] + box.cells[i][0], part.offsets[i] + box.cells[i][-1]
    feature = cells.problem.space.features[i]
    return max(float(part.lower[first]), feature.lower), min(float(part.upper[last]), feature.upper)


if __name__ == "__main__":
    main()
