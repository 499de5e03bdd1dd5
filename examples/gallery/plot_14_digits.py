"""
Which shades make it another digit
==================================

A forest reads digits of 8 by 8 pixels. The fewest shades of grey that turn what it sees into another digit show how it
looks at them, and how far from a person that is.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer

X, y = load_digits(return_X_y=True, as_frame=True)
forest = RandomForestClassifier(10, max_depth=5, random_state=0).fit(X, y)
explainer = Explainer(forest, data=X)
row = X.iloc[[4]]

fig, axes = plt.subplots(1, 4, figsize=(10, 2.9))
axes[0].imshow(row.to_numpy().reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
axes[0].set_title(f"read as {forest.predict(row)[0]}")
for ax, digit in zip(axes[1:], [1, 6, 9], strict=True):
    answer = explainer.explain(row, target=digit, time_limit=20)[0]
    moves = (answer.counterfactual - row).to_numpy().reshape(8, 8)
    ax.imshow(row.to_numpy().reshape(8, 8), cmap="gray_r", vmin=0, vmax=30)
    for i, j in zip(*moves.nonzero(), strict=True):
        colour = "tab:red" if moves[i, j] > 0 else "tab:blue"
        ax.text(j, i, f"{moves[i, j]:+.1f}", color=colour, ha="center", va="center")
    ax.set_title(f"to {digit}: {len(answer.changes)} pixels")
for ax in axes:
    ax.set_axis_off()
fig.tight_layout()
plt.show()
