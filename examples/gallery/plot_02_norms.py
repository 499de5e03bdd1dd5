"""
What the norm asks for
======================

Two features, one forest, one row. With l0 as few features as possible change, with l1 the sum of the changes is
least, with l2 they are spread. Each point is optimal, for its own question.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer

X, y = load_iris(return_X_y=True, as_frame=True)
X = X[["sepal length (cm)", "sepal width (cm)"]]
forest = RandomForestClassifier(25, max_depth=4, random_state=0).fit(X, y)
explainer = Explainer(forest, data=X)
row = X.iloc[[128]]

fig, ax = plt.subplots(figsize=(7, 5))
across, up = np.meshgrid(np.linspace(4.2, 7.2, 400), np.linspace(2.1, 4.2, 400))
grid = pd.DataFrame({X.columns[0]: across.ravel(), X.columns[1]: up.ravel()})
ax.pcolormesh(
    across,
    up,
    forest.predict(grid).reshape(across.shape),
    cmap="Pastel1",
    vmin=0,
    vmax=8,
)
ax.plot(*row.to_numpy()[0], "ko")
ax.annotate("the row", row.to_numpy()[0], xytext=(8, -4), textcoords="offset points")
for norm, marker in [("l0", "s"), ("l1", "o"), ("l2", "^")]:
    answer = explainer.explain(row, target=0, norm=norm)[0]
    point = answer.counterfactual.to_numpy()[0]
    ax.plot(
        *point,
        marker,
        label=f"{norm}: {len(answer.changes)} changed, cost {answer.cost:.3g}",
        markersize=9,
    )
    ax.plot(*zip(row.to_numpy()[0], point, strict=True), "k:", linewidth=1)
ax.set(
    xlabel=X.columns[0], ylabel=X.columns[1], title="The cheapest way to the red class"
)
ax.legend()
plt.show()
