"""
Several answers to choose from
==============================

The best answer, then the best that leaves alone something that an earlier one changes. Each column is a plan; the
number is the change, in the table's own units.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.compare.datasets import load_dataset

loans = load_dataset("loans")
X, granted = loans.table.select_dtypes("number"), loans.target
forest = RandomForestClassifier(25, max_depth=4, random_state=0).fit(X, granted)
explainer = Explainer(forest, data=X, features={"age": {"actionability": "fixed"}})
row = X[forest.predict(X) == 0].iloc[[7]]

answers = explainer.explain(row, target=1, n_explanations=5, diversity="features")
moves = pd.DataFrame(
    {f"plan {a.rank}\n{a.cost:.3f}": (a.counterfactual - row).iloc[0] for a in answers}
)
moves = moves[(moves != 0).any(axis=1)]
shares = moves.div((X.max() - X.min())[moves.index], axis=0)

fig, ax = plt.subplots(figsize=(8, 4))
image = ax.imshow(shares, cmap="RdBu", vmin=-0.5, vmax=0.5, aspect="auto")
ax.set_xticks(range(len(moves.columns)), moves.columns)
ax.set_yticks(range(len(moves)), moves.index)
for i, j in (
    (i, j) for i in range(len(moves)) for j in range(moves.shape[1]) if moves.iloc[i, j]
):
    ax.text(j, i, f"{moves.iloc[i, j]:+,.0f}", ha="center", va="center")
fig.colorbar(image, label="change, as a part of the range")
ax.set_title("Plans, and what each costs")
fig.tight_layout()
plt.show()
