"""
What each change does to the probability
========================================

An answer tells what its changes cost. What each of them brings is for the model to say: its own ``predict_proba`` is
asked about the row with the first change, with the first two, and so on. The changes act together, and in another order
they would share the way otherwise; where it begins and ends is the same in every order.
"""

import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.compare.datasets import load_dataset

loans = load_dataset("loans")
X, granted = loans.table.select_dtypes("number"), loans.target
forest = RandomForestClassifier(50, max_depth=5, random_state=0).fit(X, granted)
explainer = Explainer(forest, data=X, features={"age": {"actionability": "fixed"}})
refused = X[forest.predict(X) == 0].head(40)

# the answer with the most changes, among applicants who want to be granted the loan with a probability of 0.6
answers = explainer.explain(refused, target=1, probability=0.6)
answer = max(answers, key=lambda a: len(a.changes))
print(answer)

answer.plot(of="waterfall")
plt.show()
