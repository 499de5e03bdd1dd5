"""
What a constraint costs
=======================

Optima can be compared. Each wish makes the cheapest change dearer, or leaves it as it was; the difference is the price
of the wish. A heuristic has no such numbers: its costs go up and down by chance.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer, Linear, MaxChanges
from ocf.compare.datasets import load_dataset

loans = load_dataset("loans")
X, granted = loans.table.select_dtypes("number"), loans.target
forest = RandomForestClassifier(25, max_depth=4, random_state=0).fit(X, granted)
explainer = Explainer(forest, data=X, features={"age": {"actionability": "increasing"}})
refused = X[forest.predict(X) == 0].head(12)

wishes = {
    "anything may change": {},
    "the past is fixed": {
        "features_to_vary": ["income", "savings", "open_credits", "amount", "months"]
    },
    "at most one change": {"constraints": [MaxChanges(1)]},
    "own share of a fifth": {
        "constraints": [
            Linear({"savings": 1, "amount": -0.2}, ">=", 0, name="own share")
        ]
    },
    "probability of 0.6": {"probability": 0.6},
}
costs = pd.DataFrame(
    {
        wish: [answer.cost for answer in explainer.explain(refused, target=1, **asked)]
        for wish, asked in wishes.items()
    },
    index=refused.index,
)

fig, ax = plt.subplots(figsize=(8, 4))
costs.median().plot.barh(ax=ax, color="tab:blue")
ax.invert_yaxis()
ax.set(xlabel="median cost of 12 applicants", title="The price of a wish")
fig.tight_layout()
plt.show()

# %%
# No row gets cheaper by a wish.
print(costs.sub(costs["anything may change"], axis=0).min())
