"""
Bound and incumbent, until they meet
====================================

A proof is two curves that meet: the best answer so far comes down, and the bound below which nothing is possible goes
up. Where a time limit cuts them off, the gap between them says what is not known. Here the reduction is off, so that
the solver has something to do.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
forest = RandomForestClassifier(40, max_depth=4, random_state=0).fit(X, y)
explainer = Explainer(forest, data=X)

fig, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
for ax, formulation in zip(axes, ["ocean", "interval"], strict=True):
    answer = explainer.explain(
        X.iloc[[5]],
        target=1,
        formulation=formulation,
        solver="highs",
        reduce=False,
        time_limit=20,
    )[0]
    seconds = [point.seconds for point in answer.history]
    ax.step(
        seconds,
        [point.incumbent for point in answer.history],
        where="post",
        label="best answer so far",
    )
    ax.step(
        seconds,
        [point.bound for point in answer.history],
        where="post",
        label="nothing is cheaper than",
    )
    ax.set(title=f"{formulation}: {answer.status}", xlabel="seconds", ylim=(0, 0.3))
    ax.legend(loc="lower right")
axes[0].set_ylabel("cost")
fig.tight_layout()
plt.show()
