"""Feature tweaking, our own implementation, from the paper.

Tolomei, Silvestri, Haines, Lalmas (2017): Interpretable predictions of tree-based ensembles via actionable feature
tweaking, https://doi.org/10.1145/3097983.3098039.

For every tree whose vote is not the wanted one (section 4, algorithm 1) and every path of it that ends in a leaf with
that vote, the row is moved by the least that satisfies the path with a margin ε: a value on the wrong side of a
threshold θ goes to θ − ε or θ + ε (equation 4). Of the candidates that the whole forest gives the wanted class the
cheapest is the answer. It proves nothing, and where no single tree's path turns the forest it has none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from peer import Answer, Case, Question, as_row, edges, scales, serve


def paths(tree: Any, wanted: int) -> list[list[tuple[int, float, bool]]]:
    """Paths of a tree to leaves that vote for a class: (column, threshold, whether left) by step."""
    found = []
    stack: list[tuple[int, list[tuple[int, float, bool]]]] = [(0, [])]
    while stack:
        node, steps = stack.pop()
        if tree.children_left[node] < 0:
            if int(np.argmax(tree.value[node, 0])) == wanted:
                found.append(steps)
            continue
        split = (int(tree.feature[node]), float(tree.threshold[node]))
        stack.append((tree.children_left[node], [*steps, (*split, True)]))
        stack.append((tree.children_right[node], [*steps, (*split, False)]))
    return found


def tweaked(row: Any, path: list[tuple[int, float, bool]], margin: Any) -> Any:
    """The row moved onto a path, by ε beyond each threshold that it is on the wrong side of."""
    moved = row.copy()
    for column, threshold, left in path:
        below, above = edges(threshold)
        if left and moved[column] > below:
            moved[column] = min(below, threshold - margin[column])
        elif not left and moved[column] <= below:
            moved[column] = max(above, threshold + margin[column])
    return moved


def prepare(said: Question) -> tuple[str, Any]:
    """Read the paths of all trees."""
    case = Case(said)
    forest = case.forest
    known = {wanted: [paths(t.tree_, wanted) for t in forest.estimators_] for wanted in range(len(forest.classes_))}

    def answer(asked: Question) -> Answer:
        columns = case.columns
        row = case.encoded(case.table(asked["row"]))[0]
        price, wanted = scales(columns), case.target(asked)
        # indicators flip as a group; ε in units of the feature's range, as the paper standardizes columns
        margin = np.array(
            [
                0.0 if c.level is not None else case.options.get("epsilon", 0.0) / p
                for c, p in zip(columns, price, strict=True)
            ]
        )
        candidates = [
            whole(tweaked(row, path, margin), row, columns)
            for tree, own in zip(forest.estimators_, known[wanted], strict=True)
            if int(np.argmax(tree.tree_.value[tree.apply(row[None].astype(np.float32))[0], 0])) != wanted
            for path in own
        ]
        points = np.array([c for c in candidates if c is not None])
        if len(points):
            points = points[np.argsort(np.abs(points - row) @ price, kind="stable")]
            for k in range(0, len(points), 256):
                good = np.flatnonzero(forest.predict(points[k : k + 256]) == forest.classes_[wanted])
                if len(good):
                    return {"status": "feasible", "counterfactual": as_row(case, row, points[k + good[0]])}
        return {"status": "unknown", "message": "no path of a single tree turns the forest"}

    return "2017", answer


def whole(moved: Any, row: Any, columns: list[Any]) -> Any:
    """A point with its indicators made a category again: one that is raised lowers the others; None if it cannot be."""
    groups: dict[str, list[int]] = {}
    for k, column in enumerate(columns):
        if column.level is not None:
            groups.setdefault(column.feature["name"], []).append(k)
    for group in groups.values():
        old = next(k for k in group if row[k] > 0.5)
        raised = [k for k in group if moved[k] > 0.5 and k != old]
        lowered = {k for k in group if moved[k] <= 0.5 < row[k]}
        free = [k for k in group if k != old]
        if len(raised) > 1:
            return None
        new = raised[0] if raised else free[0] if lowered else old
        moved[group] = 0.0
        moved[new] = 1.0
    return moved


if __name__ == "__main__":
    serve(prepare)
