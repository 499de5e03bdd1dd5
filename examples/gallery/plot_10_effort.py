"""
Who is asked for how much
=========================

An audit: the proven least effort that a model asks of each refused applicant, by group. Since each cost is an optimum,
a difference between groups lies in the model and the data, and not in a search that did worse for some.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from ocf import Explainer
from ocf.compare.datasets import load_dataset

loans = load_dataset("loans")
X, granted = loans.table, loans.target
encode = make_column_transformer(
    (OneHotEncoder(), ["housing", "purpose"]), remainder="passthrough"
)
model = make_pipeline(
    encode, RandomForestClassifier(15, max_depth=4, random_state=0)
).fit(X, granted)

fixed = {
    name: {"actionability": "fixed"}
    for name in ("age", "housing", "purpose", "late_payments")
}
refused = X[model.predict(X) == 0].head(60)
answers = Explainer(model, data=X, features=fixed).explain(
    refused, target=1, progress=False
)

fig, ax = plt.subplots(figsize=(7, 4.5))
for housing, colour in zip(
    ["family", "owner", "tenant"], ["tab:blue", "tab:green", "tab:orange"], strict=True
):
    costs = np.sort(
        [
            a.cost
            for a in answers
            if a.status == "optimal" and a.original["housing"].iloc[0] == housing
        ]
    )
    ax.step(
        costs,
        np.arange(1, len(costs) + 1) / len(costs),
        where="post",
        color=colour,
        label=housing,
    )
ax.set(
    xlabel="cost of the cheapest change",
    ylabel="share of the group that it suffices for",
    ylim=(0, 1.02),
)
ax.legend(title="housing")
plt.show()

# %%
# For these no admissible change suffices, which is proven as well.
print([answer.row for answer in answers if answer.status == "infeasible"])
