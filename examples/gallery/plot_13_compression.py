"""
The few thresholds that matter
==============================

Where many counterfactuals cross a threshold, the model decides. Darker is crossed more often; what is kept at a level Q
becomes a binary feature, and a small tree on those is easy to read.
"""

import matplotlib.pyplot as plt
from sklearn.ensemble import GradientBoostingClassifier

from ocf import CounterfactualDiscretizer, SurrogateTree
from ocf.compare.datasets import load_dataset
from ocf.compression.plots import plot_thresholds

loans = load_dataset("loans")
X, granted = loans.table.select_dtypes("number").head(300), loans.target.head(300)
model = GradientBoostingClassifier(n_estimators=40, max_depth=1, random_state=0).fit(
    X, granted
)

discretizer = CounterfactualDiscretizer(model, prefit=True, Q=0.7).fit(X, granted)
plot_thresholds(discretizer)
plt.show()

# %%
# A tree of depth 3 on the thresholds that are left, beside the model itself.
tree = SurrogateTree(discretizer, method="cart").fit(X, granted)
print(tree)
print(
    f"right on {tree.score(X, granted):.0%} of the rows, the model itself on {model.score(X, granted):.0%}"
)
