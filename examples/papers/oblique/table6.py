"""Table 6: training and test error (%) of oblique trees (TAO), axis-aligned trees (CART) and random forests.

python examples/papers/oblique/table6.py --data DIR -o out/table6
"""

from __future__ import annotations

import time
from typing import Any

from common import SETS, arguments, cart, forest, last_step, split, tao
from runs import Runs, markdown, write

#: Train and test error of CART, its depth; the same of TAO; train and test error of the forest.
PUBLISHED = {
    "MNIST": (4.2, 11.9, 19, 1.4, 5.2, 9, 0.0, 3.1),
    "Adult": (12.6, 14.7, 12, 13.9, 14.6, 12, 13.2, 14.1),
    "Breast": (1.4, 2.6, 4, 1.2, 2.1, 3, 0.01, 2.1),
    "Spambase": (3.1, 7.6, 10, 4.5, 4.8, 5, 0.0, 4.2),
    "Letter": (1.2, 12.1, 25, 3.8, 7.7, 12, 0.0, 3.7),
    "Credit": (21.9, 23.5, 7, 17.5, 18.5, 8, 0.0, 21.9),
}

MODELS = ("CART", "TAO", "RF")


def errors(name: str, model: str, folder: str | None, quick: bool) -> dict[str, Any]:
    the = split(name, folder)
    begin = time.perf_counter()
    fitted = {"CART": cart, "RF": forest}[model](name, folder) if model != "TAO" else tao(name, folder, quick=quick)
    seconds = time.perf_counter() - begin
    last = last_step(fitted)
    trees = {"CART": lambda: (int(last.get_depth()), int(last.get_n_leaves())), "RF": lambda: ("", "")}
    depth, leaves = trees.get(model, lambda: (last.tree_.depth, last.n_leaves_))()
    return {
        "train": 100 * (1 - fitted.score(the.train, the.y)),
        "test": 100 * (1 - fitted.score(the.test, the.y_test)),
        "depth": depth,
        "leaves": leaves,
        "seconds": seconds,
    }


def main() -> None:
    parser = arguments(__doc__.split("\n")[0])
    args = parser.parse_args()
    names = ["Breast", "Spambase"] if args.quick else args.sets
    runs, rows = Runs(args.output), []
    for name in names:
        row: list[object] = [name]
        for model in MODELS:
            job = {"set": name, "model": model, "quick": args.quick}
            if runs.get(job) is None:
                runs.add(job, errors(name, model, args.data, args.quick))
            found = runs.get(job)
            assert found is not None
            row += [f"{found['train']:.1f}", f"{found['test']:.1f}"]
            row += [found["depth"], found["leaves"]] if model != "RF" else []
        rows.append(row + list(PUBLISHED[name]))
    tree = ("train", "test", "depth", "leaves")
    header = ["set", *(f"CART {c}" for c in tree), *(f"TAO {c}" for c in tree), "RF train", "RF test"]
    header += [f"published {m} {c}" for m in ("CART", "TAO") for c in tree[:3]] + ["published RF train", "… RF test"]
    write(args.output, "table6-quick.md" if args.quick else "table6.md", markdown(rows, header))


if __name__ == "__main__":
    assert set(PUBLISHED) == set(SETS)
    main()
