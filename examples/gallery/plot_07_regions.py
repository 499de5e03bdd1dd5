"""
Every region around a row
=========================

Not only the nearest point: all boxes within a cost in which the model says yes, over two features. The others stay as
they are.
"""

import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.compare.datasets import load_dataset

loans = load_dataset("loans")
X, granted = loans.table.select_dtypes("number"), loans.target
forest = RandomForestClassifier(15, max_depth=4, random_state=0).fit(X, granted)
row = X[forest.predict(X) == 0].iloc[[2]]

regions = Explainer(forest, data=X).counterfactual_regions(
    row, target=1, radius=0.5, features_to_vary=["amount", "savings"]
)
regions.plot("amount", "savings")
plt.show()

# %%
# The same as a table. `complete` says that no region within the radius is missing.
print(regions.complete)
regions.to_frame()[
    ["cost", "amount_lowest", "amount_highest", "savings_lowest", "savings_highest"]
].head()
