"""
Why finitely many points are enough
===================================

The thresholds of all trees cut the plane into cells, and within a cell the forest never changes its mind. So of each
cell only the nearest admissible point matters: a dot. The cheapest dot in the wanted class is the answer, and all dots
on the near side of it, inside the dashed line, lie in cells of another class: that is the proof. With many features
there are too many cells to look at, and solvers exclude nearly all of them at once.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer

X, y = load_iris(return_X_y=True, as_frame=True)
X = X[["petal length (cm)", "petal width (cm)"]]
forest = RandomForestClassifier(8, max_depth=3, random_state=1).fit(X, y)
row = X.iloc[[105]]
start, ranges = row.to_numpy()[0], np.ptp(X.to_numpy(), axis=0)


def nearest_values(feature: int) -> np.ndarray:
    """Of each cell of a feature the value next to the row's own, but for a hair: it may not be a float32."""
    trees = [tree.tree_ for tree in forest.estimators_]
    cuts = np.unique(np.concatenate([t.threshold[t.feature == feature] for t in trees]))
    beyond = np.where(cuts < start[feature], cuts - 1e-6, cuts + 1e-6)
    return np.append(beyond, start[feature])


across, up = map(np.ravel, np.meshgrid(nearest_values(0), nearest_values(1)))
dots = pd.DataFrame({X.columns[0]: across, X.columns[1]: up})
costs = (np.abs(dots.to_numpy() - start) / ranges).sum(axis=1)
wanted = forest.predict(dots) == 1

answer = Explainer(forest, data=X).explain(row, target=1)[0]
print(
    f"{len(dots)} cells; the cheapest dot of the class costs {costs[wanted].min():.4f}"
)
print(f"the answer, with proof, costs {answer.cost:.4f}")

# %%
# The plane, the cells, the dots and the answer.
fig, ax = plt.subplots(figsize=(7, 5))
mesh = np.meshgrid(np.linspace(0.8, 7.1, 500), np.linspace(0, 2.6, 500))
grid = pd.DataFrame({c: m.ravel() for c, m in zip(X.columns, mesh, strict=True)})
decisions = forest.predict(grid).reshape(mesh[0].shape)
ax.pcolormesh(*mesh, decisions, cmap="Pastel1", vmin=0, vmax=8)
ax.scatter(across[~wanted], up[~wanted], s=8, color="grey")
ax.scatter(
    across[wanted], up[wanted], s=10, color="tab:blue", label="dots of the class"
)
reach = answer.cost * ranges
diamond = start + np.array([[1, 0], [0, 1], [-1, 0], [0, -1], [1, 0]]) * reach
ax.plot(*diamond.T, "k--", linewidth=1, label=f"cost of {answer.cost:.3f}")
ax.plot(*start, "ko", markersize=8, label="the row")
ax.plot(*answer.counterfactual.to_numpy()[0], "r*", markersize=14, label="the answer")
ax.set(xlabel=X.columns[0], ylabel=X.columns[1], xlim=(0.8, 7.1), ylim=(0, 2.6))
ax.legend(loc="lower right")
plt.show()
