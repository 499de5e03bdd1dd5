"""
From a value to a price
=======================

A regressor takes an interval as target: which interest rate could be had, and for how much change? Every point of the
curve is an optimum; the steps are those of the model.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import GradientBoostingRegressor

from ocf import Explainer
from ocf.compare.loans import make_loans

loans = make_loans()
X = loans[["income", "employed", "savings", "open_credits", "amount", "months"]]
model = GradientBoostingRegressor(n_estimators=25, max_depth=3, random_state=0).fit(
    X, loans["rate"]
)
explainer = Explainer(
    model, data=X, features={"amount": {"step": 100}, "savings": {"step": 100}}
)
row = X.iloc[[12]]
now = model.predict(row)[0]

rates = np.linspace(now, now - 2, 9)[1:]
costs = [explainer.explain(row, target=(None, rate))[0].cost for rate in rates]

fig, ax = plt.subplots(figsize=(7, 4))
ax.plot(np.append(now, rates), [0, *costs], "o-", color="tab:blue")
ax.invert_xaxis()
ax.set(
    xlabel="rate of at most, per cent",
    ylabel="cost of the cheapest change",
    title=f"It is {now:.2f} now",
)
ax.grid(alpha=0.3)
plt.show()
