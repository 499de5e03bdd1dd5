"""
A rule in the place of a point
==============================

Ranges of values that turn the answer with high probability, for any model: here one that ocf cannot read, so that
everything is estimated from its predictions.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier

from ocf import CounterfactualRules

X, y = load_iris(return_X_y=True, as_frame=True)
rules = CounterfactualRules(KNeighborsClassifier().fit(X, y), X)
found = rules.local(X.iloc[[100]], target=1)
print(found)

# %%
# The ranges, and where the row is.
found.plot()
plt.show()
