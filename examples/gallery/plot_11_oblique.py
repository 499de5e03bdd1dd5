"""
Trees with slanted splits
=========================

The splits of an oblique tree weigh features against each other. It is explained leaf by leaf: one small convex problem
each, and the nearest leaf wins. With a margin the answer keeps off the splits.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_iris

from ocf import Explainer, explain_margins
from ocf.oblique import TAOClassifier

X, y = load_iris(return_X_y=True, as_frame=True)
X = X[["sepal length (cm)", "sepal width (cm)"]]
tree = TAOClassifier(2, C=10, random_state=0).fit(X, y)
row = X.iloc[[140]]
margins = [0, 2, 4, 6]  # in units of the weighed sums
answers = explain_margins(Explainer(tree, data=X), row, margins, target=0, norm="l2")

fig, ax = plt.subplots(figsize=(7, 5))
across, up = np.meshgrid(np.linspace(4.2, 8, 400), np.linspace(1.9, 4.5, 400))
grid = pd.DataFrame({X.columns[0]: across.ravel(), X.columns[1]: up.ravel()})
ax.pcolormesh(
    across, up, tree.predict(grid).reshape(across.shape), cmap="Pastel1", vmin=0, vmax=8
)
ax.scatter(*X.to_numpy().T, s=8, color="grey")
ax.plot(*row.to_numpy()[0], "ko", markersize=9, label="the row")
for margin, answer in zip(margins, answers, strict=True):
    if answer.counterfactual is not None:
        ax.plot(
            *answer.counterfactual.to_numpy()[0],
            "P",
            markersize=9,
            label=f"margin {margin:g}",
        )
ax.set(
    xlabel=X.columns[0],
    ylabel=X.columns[1],
    title="Farther and farther from the splits",
)
ax.legend()
plt.show()
