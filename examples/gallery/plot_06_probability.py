"""
How sure should the model be?
=============================

Beyond the decision one may ask for a probability. A safer answer costs more; how much more is a curve of optima, one
for each applicant.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.compare.datasets import load_dataset

loans = load_dataset("loans")
X, granted = loans.table.select_dtypes("number"), loans.target
forest = RandomForestClassifier(20, max_depth=4, random_state=0).fit(X, granted)
explainer = Explainer(forest, data=X, features={"age": {"actionability": "fixed"}})
refused = X[forest.predict(X) == 0].head(5)

levels = np.arange(0.5, 0.81, 0.05)
costs = np.array(
    [
        [a.cost or np.nan for a in explainer.explain(refused, target=1, probability=p)]
        for p in levels
    ]
)

fig, ax = plt.subplots(figsize=(7, 4))
ax.plot(levels, costs, "o-")
ax.legend([f"row {label}" for label in refused.index])
ax.set(xlabel="probability of at least", ylabel="cost of the cheapest change")
ax.grid(alpha=0.3)
plt.show()
