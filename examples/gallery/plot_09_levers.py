"""
Which levers the model leaves
=============================

For every refused applicant the cheapest change with at most two features; then, how often each feature is part of it,
and in which direction. Levers that nobody can pull, or that point the wrong way, are worth a talk with whoever trained
the model.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer, MaxChanges
from ocf.compare.datasets import load_dataset

loans = load_dataset("loans")
X, granted = loans.table.select_dtypes("number"), loans.target
forest = RandomForestClassifier(20, max_depth=4, random_state=0).fit(X, granted)
refused = X[forest.predict(X) == 0].head(60)
answers = Explainer(forest, data=X).explain(
    refused, target=1, constraints=[MaxChanges(2)], progress=False
)

moves = pd.concat(
    [(a.counterfactual - a.original) for a in answers if a.counterfactual is not None]
)
levers = pd.DataFrame({"up": (moves > 0).mean(), "down": -(moves < 0).mean()}).loc[
    lambda t: t.any(axis=1)
]

fig, ax = plt.subplots(figsize=(7, 4))
levers.plot.barh(stacked=True, ax=ax, color=["tab:blue", "tab:orange"])
ax.axvline(0, color="black", linewidth=0.8)
ax.xaxis.set_major_formatter(lambda share, _: f"{abs(share):.0%}")
ax.set(xlabel="share of the applicants", title="What changes, and which way")
fig.tight_layout()
plt.show()
