"""Table 1: an income below 50,000 of the Adult data, explained with more and more constraints.

python examples/papers/oblique/table1.py --data DIR -o out/table1
"""

from __future__ import annotations

import pandas as pd
from common import arguments, split, tao
from runs import markdown, publish

from ocf import Explainer

#: What the person asks for: nothing; what nobody can change; what this person does not want to change.
LEVELS = {
    "no constraints": [],
    "some constraints": ["Sex", "NativeCountry", "Age"],
    "more constraints": ["Sex", "NativeCountry", "Age", "EducationNumber", "MaritalStatus", "Relationship"],
}

#: A young worker like the paper's: see `similar`.
PAPER = {"Age": 25, "EducationNumber": 7, "HoursPerWeek": 40, "CapitalGain": 0, "CapitalLoss": 0}


def similar(test: pd.DataFrame) -> pd.DataFrame:
    """The test row most like the paper's source instance (25 years, 11th grade, private employer, 40 hours)."""
    distance = sum(((test[c] - v) / (test[c].max() - test[c].min())).abs() for c, v in PAPER.items())
    distance += (test.WorkClass.astype(str).str.lower() != "private").astype(float)
    distance += (~test.MaritalStatus.astype(str).str.lower().str.startswith("never")).astype(float)
    return test.loc[[distance.idxmin()]]


def main() -> None:
    parser = arguments(__doc__.split("\n")[0])
    args = parser.parse_args()
    the, model = split("Adult", args.data), tao("Adult", args.data, quick=args.quick)
    explainer = Explainer(model, data=the.train, features=the.settings)
    low = the.test[model.predict(the.test) == 0]
    row = similar(low)
    columns, notes = {}, []
    for name, stays in LEVELS.items():
        vary = [c for c in the.train.columns if c not in stays]
        e = explainer.explain(row, target=1, norm="l1", features_to_vary=vary, progress=False)[0]
        columns[name] = e
        ms = 1000 * sum(e.times[k] for k in ("reduce", "instance", "solve"))
        cost = "–" if e.cost is None else f"{e.cost:.4f}"
        notes.append(f"- {name}: {e.status}, distance {cost}, {ms:.0f} ms, verified: {e.verified}")
    rows: list[list[object]] = []
    for feature in the.train.columns:
        line: list[object] = [feature, row[feature].iloc[0]]
        for e in columns.values():
            new = None if e.counterfactual is None else e.counterfactual[feature].iloc[0]
            same = new is None or new == row[feature].iloc[0]
            line.append("==" if same else f"{new:.4g}" if isinstance(new, float) else new)
        rows.append(line)
    text = markdown(rows, ["feature", "source", *columns]) + "\n" + "\n".join(notes) + "\n"
    stem, header = f"table1{'-quick' * args.quick}", ["feature", "source", *columns]
    publish(args.output, stem, None, text, pd.DataFrame(rows, columns=header), "one row, no limit")


if __name__ == "__main__":
    main()
