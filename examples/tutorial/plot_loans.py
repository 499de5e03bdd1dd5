"""
A refused loan, from the table to the answer
============================================

You have a table, a model that says yes or no, and a person who was told no. This page goes all the way: train a model,
ask for the cheapest change, look at the answer critically, say what may change in the world, look at a whole batch, and
hand the result over. Fifteen minutes; every line runs as it stands.
"""

# %%
# The table
# ---------
# A thousand applications for a loan. They are generated, of no real person, but behave like such tables do: numbers,
# whole numbers, categories, some noise.
#
# With a network at hand you may take the well-known German credit data in their place; the same steps apply to its
# columns::
#
#     from sklearn.datasets import fetch_openml
#
#     X, granted = fetch_openml("credit-g", version=1, return_X_y=True, as_frame=True)

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from ocf import Budget, Explainer, MaxChanges
from ocf.compare.loans import make_loans

table = make_loans(1000).drop(columns="rate")
X, granted = (
    table.drop(columns="granted"),
    table["granted"].map({1: "granted", 0: "refused"}),
)
X.head()

# %%
# The model
# ---------
# Two columns hold words, so an encoder stands in front of the forest. The whole Pipeline is what is explained.

train, test, y_train, y_test = train_test_split(
    X, granted, test_size=0.25, random_state=0
)
encode = make_column_transformer(
    (OneHotEncoder(), ["housing", "purpose"]), remainder="passthrough"
)
model = make_pipeline(
    encode, RandomForestClassifier(50, max_depth=5, random_state=0)
).fit(train, y_train)
print(f"right about {model.score(test, y_test):.0%} of the test rows")

refused = test[model.predict(test) == "refused"]
refused.head()

# %%
# The first answer
# ----------------
# An ``Explainer`` takes the model and the training data. From the data come the bounds of each feature, its scale, and
# the levels of categories. Building it checks that every threshold has been read exactly as the library compares.

explainer = Explainer(model, data=train)
print(explainer)

# %%
# This is how the table was read. A proof is one of *this* problem, so it pays to look: whole numbers stay whole, and no
# answer leaves the bounds. Now the first refused applicant:

answer = explainer.explain(refused.iloc[[0]], target="granted")[0]
print(answer)

# %%
# Read it from the top: what the model said and would say, what the change costs, and what proved that nothing cheaper
# does. A cost is a sum over the features that change; each change is divided by the feature's range in the training
# data, and a change of category costs 1. The changed row is an ordinary table, so you can ask the model yourself:

print(model.predict(answer.counterfactual))
answer.plot()
plt.show()

# %%
# Is it an answer to a person?
# ----------------------------
# The proof holds for the problem that was stated, and so far nothing was said about the world. Ages may fall in such an
# answer, or past payments change. Look at what the cheapest changes of some applicants use:

first = explainer.explain(refused.head(8), target="granted", progress=False)
for one in first:
    print(
        one.row,
        "; ".join(
            f"{c['feature']} {c['from']} to {c['to']}"
            for c in one.changes.to_dict("records")
        ),
    )

# %%
# So say what may change. Settings of features hold for all questions: what is fixed, what only grows, on which grid
# answers lie, and what going up or down costs.

explainer = Explainer(
    model,
    data=train,
    features={
        "age": {"actionability": "fixed"},
        "late_payments": {"actionability": "fixed"},
        "purpose": {"actionability": "fixed"},
        "employed": {"actionability": "increasing"},
        "income": {"step": 100, "actionability": "increasing"},
        "savings": {
            "step": 100,
            "weight": [1.0, 2.0],
        },  # saving is twice as dear as spending
        "amount": {"step": 100, "actionability": "decreasing"},
        "months": {"step": 6},
    },
)
answer = explainer.explain(refused.iloc[[0]], target="granted")[0]
print(answer)

# %%
# It costs at least as much as before: the first answer was the best of more. That is how optima behave, and a check
# that you can make on every row.
#
# Wishes of one question
# ----------------------
# A person may say: not more than two things, and I cannot wait. Constraints are part of the mathematical model, so the
# answer is the best that keeps them.

wishes = [
    MaxChanges(2),
    Budget(
        24,
        {"employed": (0, 12), "savings": (0, 0.005), "open_credits": (3, 0)},
        name="months",
    ),  # per unit down, up
]
answer = explainer.explain(refused.iloc[[0]], target="granted", constraints=wishes)[0]
print(answer)

# %%
# Too many wishes have no answer. That is proven, too, and ``diagnose`` names a smallest set that cannot hold together.

stuck = explainer.explain(
    refused.iloc[[0]],
    target="granted",
    features_to_vary=["open_credits"],
    probability=0.9,
    diagnose=True,
)[0]
print(stuck.status, stuck.conflict)

# %%
# Several answers
# ---------------
# People choose. The best answer comes first, then the best that leaves alone something that an earlier one changes.

for plan in explainer.explain(
    refused.iloc[[0]], target="granted", n_explanations=3, diversity="features"
):
    print(
        f"plan {plan.rank} costs {plan.cost:.3f}: {', '.join(plan.changes['feature'])}"
    )

# %%
# Everybody at once
# -----------------
# A batch prepares the model once. ``to_frame`` holds the answers, in your columns, with a
# status and a cost each; ``summary`` counts them by status.

batch = explainer.explain(
    refused.head(30), target="granted", time_limit=60, progress=False
)
batch.summary()

# %%
# What does the model ask of people? Here is the cost of the cheapest change of each, and how many features it takes.

costs = [one.cost for one in batch if one.cost is not None]
counts = [len(one.changes) for one in batch if one.cost is not None]
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2))
left.hist(costs, bins=12, color="tab:blue")
left.set(xlabel="cost", ylabel="applicants")
right.hist(
    counts, bins=range(1, max(counts) + 2), align="left", rwidth=0.8, color="tab:blue"
)
right.set(xlabel="features that change")
fig.tight_layout()
plt.show()

# %%
# Hand it over
# ------------
# JSON holds the questions, the answers and their bounds. Whoever gets it can check it against the model, by code that
# shares nothing with what found the answers: on the command line ``ocf verify answers.json --model …``.

folder = Path(tempfile.mkdtemp())
batch.to_json(folder / "answers.json")
batch.to_html(folder / "answers.html")
print(
    [path.name for path in sorted(folder.iterdir())],
    all(one.verified for one in batch if one.cost is not None),
)

# %%
# What to take along
# ------------------
# - The answer is optimal for the problem that *you* state. Say what may change before you show anything to a person.
# - ``optimal`` and ``infeasible`` are proofs. ``feasible`` comes with a gap, ``unknown`` with nothing.
# - A counterfactual speaks of the model, not of the world: see :doc:`/explanation/limits`. It is not the reason of the
#   decision either: see :doc:`/how-to/regulators`.
#
# From here the :doc:`how-to guides </how-to/index>` go on, each with one question.
