"""
The cheapest change of a row
============================

A random forest calls a tumour malignant. What is the smallest change of its measurements after which it would say
benign? The bars are the changes, each divided by its feature's range in the data.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
forest = RandomForestClassifier(50, max_depth=4, random_state=0).fit(X, y)

explanation = Explainer(forest, data=X).explain(X.iloc[[5]], target=1)[0]
print(explanation)

# %%
# The same as a picture.
explanation.plot()
plt.show()
