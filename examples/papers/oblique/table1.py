"""Table 1: an income below 50,000 of the Adult data, explained with more and more constraints.

python examples/papers/oblique/table1.py --data DIR -o out/table1
python examples/papers/oblique/table1.py --data DIR -o out/table1 --raw   # a year, an hour or a dollar costs 1
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

import pandas as pd
from common import arguments, split, tao
from runs import Runs, markdown, publish

from ocf import Explainer

#: What the person asks for: nothing; what nobody can change; what this person does not want to change.
LEVELS = {
    "no constraints": [],
    "some constraints": ["Sex", "NativeCountry", "Age"],
    "more constraints": ["Sex", "NativeCountry", "Age", "EducationNumber", "MaritalStatus", "Relationship"],
}

#: Seconds a level may take.
TIME_LIMIT = 60.0

#: A young worker like the paper's: see `similar`.
PAPER = {"Age": 25, "EducationNumber": 7, "HoursPerWeek": 40, "CapitalGain": 0, "CapitalLoss": 0}


def similar(test: pd.DataFrame) -> pd.DataFrame:
    """The test row most like the paper's source instance (25 years, 11th grade, private employer, 40 hours)."""
    distance = sum(((test[c] - v) / (test[c].max() - test[c].min())).abs() for c, v in PAPER.items())
    distance += (test.WorkClass.astype(str).str.lower() != "private").astype(float)
    distance += (~test.MaritalStatus.astype(str).str.lower().str.startswith("never")).astype(float)
    return test.loc[[distance.idxmin()]]


@lru_cache(maxsize=1)
def explainer(folder: str | None, quick: bool, raw: bool) -> tuple[Explainer, pd.DataFrame]:
    """Of the oblique tree, and the row that is explained; by default numbers are in units of their ranges."""
    the, model = split("Adult", folder), tao("Adult", folder, quick=quick)
    settings = {c: s if s["kind"] == "categorical" or not raw else {**s, "scale": 1.0} for c, s in the.settings.items()}
    return Explainer(model, data=the.train, features=settings), similar(the.test[model.predict(the.test) == 0])


def run(job: Mapping[str, Any], folder: str | None) -> dict[str, Any]:
    """One level of constraints: the row, and what changes."""
    explain, row = explainer(folder, job["quick"], job["raw"])
    vary = [c for c in row.columns if c not in LEVELS[job["level"]]]
    settings: dict[str, Any] = {"features_to_vary": vary, "time_limit": TIME_LIMIT, "progress": False}
    e = explain.explain(row, target=1, norm="l1", **settings)[0]
    source = {str(c): v for c, v in row.iloc[0].to_dict().items()}
    new = {} if e.counterfactual is None else e.counterfactual.iloc[0].to_dict()
    changed = {str(c): v for c, v in new.items() if v != source[str(c)]}
    ms = 1000 * sum(e.times[k] for k in ("reduce", "instance", "solve"))
    facts = {"status": e.status, "cost": e.cost, "ms": ms, "verified": bool(e.verified)}
    return {"source": source, "changed": changed, **facts}


def main() -> None:
    parser = arguments(__doc__.split("\n")[0])
    parser.add_argument("--raw", action="store_true", help="distances in the numbers' own units, not of their ranges")
    args = parser.parse_args()
    kept, found, notes = Runs(args.output), {}, []
    for name in LEVELS:
        job = {"level": name, "quick": args.quick, "raw": args.raw}
        result = found[name] = kept.made(job, partial(run, job, args.data))
        cost = "–" if result["cost"] is None else f"{result['cost']:.4f}"
        verified = f"verified: {result['verified']}"
        notes.append(f"- {name}: {result['status']}, distance {cost}, {result['ms']:.0f} ms, {verified}")
    rows: list[list[object]] = []
    for feature, value in found["no constraints"]["source"].items():
        line: list[object] = [feature, value]
        for result in found.values():
            new = result["changed"].get(feature, "==")
            line.append(f"{new:.4g}" if isinstance(new, float) else new)
        rows.append(line)
    header = ["feature", "source", *found]
    text = markdown(rows, header) + "\n" + "\n".join(notes) + "\n"
    stem, limits = f"table1{'-raw' * args.raw}{'-quick' * args.quick}", f"one row, {TIME_LIMIT:g} s a level"
    publish(args.output, stem, kept, text, pd.DataFrame(rows, columns=header), limits)


if __name__ == "__main__":
    main()
