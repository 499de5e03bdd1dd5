"""
The cheapest change, and the cheapest plausible one
===================================================

The nearest point beyond the threshold may lie where no data do. With ``plausibility`` an isolation forest of the
wanted class keeps the answer among its rows; it is the cheapest of those, proven. Here it
has to be as deep among them as half of the rows are.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer

X, y = load_wine(return_X_y=True, as_frame=True)
X = X[["flavanoids", "color_intensity"]]
forest = RandomForestClassifier(25, max_depth=4, random_state=0).fit(X, y)
explainer = Explainer(forest, data=X, labels=y)
row = X.iloc[[160]]

plain = explainer.explain(row, target=1)[0]
plausible = explainer.explain(
    row, target=1, plausibility={"trees": 30, "quantile": 0.5}
)[0]

fig, ax = plt.subplots(figsize=(7, 5))
for label, colour in enumerate(["tab:blue", "tab:green", "tab:orange"]):
    ax.scatter(
        *X[y == label].to_numpy().T,
        s=14,
        alpha=0.5,
        color=colour,
        label=f"class {label}",
    )
ax.plot(*row.to_numpy()[0], "ko", markersize=9)
ax.annotate("the row", row.to_numpy()[0], xytext=(10, -4), textcoords="offset points")
for answer, words, marker in [
    (plain, "cheapest", "X"),
    (plausible, "cheapest plausible", "P"),
]:
    point = answer.counterfactual.to_numpy()[0]
    ax.plot(
        *point,
        marker,
        color="black",
        markersize=11,
        label=f"{words}: cost {answer.cost:.3g}",
    )
    ax.annotate(
        "", point, row.to_numpy()[0], arrowprops={"arrowstyle": "->", "color": "grey"}
    )
ax.set(xlabel=X.columns[0], ylabel=X.columns[1], title="From class 2 to class 1")
ax.legend()
plt.show()
