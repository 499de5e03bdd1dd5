"""DiCE: Mothilal, Sharma, Tan (2020), https://pypi.org/project/dice-ml/.

``options = { method = "genetic" }``, ``"random"`` or ``"kdtree"``, and ``total``: how many points it is asked for, of
which the cheapest is the answer.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import dice_ml
import pandas as pd
from peer import Answer, Case, Question, cost, serve
from raiutils.exceptions import UserConfigValidationException


class Casting:
    """The model for tables whose categories DiCE has made texts.

    Parameters
    ----------
    case : Case
    """

    def __init__(self, case: Case) -> None:
        self.case = case

    def predict(self, table: pd.DataFrame) -> Any:
        """Classes."""
        return self.case.model.predict(cast(self.case, table))

    def predict_proba(self, table: pd.DataFrame) -> Any:
        """Probabilities."""
        return self.case.model.predict_proba(cast(self.case, table))


def cast(case: Case, table: pd.DataFrame) -> pd.DataFrame:
    """A table of DiCE's in the columns and dtypes of the data."""
    out = {}
    for name, dtype in case.dtypes.items():
        values = pd.Series(table[name].tolist(), index=table.index)
        if dtype.kind == "b":
            out[name] = values.astype(str) == "True"
        else:
            out[name] = pd.to_numeric(values).astype(dtype) if dtype.kind in "iuf" else values.astype(str)
    return pd.DataFrame(out)


def prepare(said: Question) -> tuple[str, Any]:
    """The data with the model's own answers as outcome: nothing else is known of them."""
    case = Case(said)
    kinds = dict(case.dtypes.items())
    continuous = [name for name, dtype in kinds.items() if dtype.kind == "f" and not case.data[name].isin((0, 1)).all()]
    outcome = "the outcome"
    words = {name: str for name in kinds if name not in continuous}
    table = case.data.astype(words).assign(**{outcome: case.model.predict(case.data).astype(int)})
    data = dice_ml.Data(dataframe=table, continuous_features=continuous, outcome_name=outcome)
    model = dice_ml.Model(model=Casting(case), backend="sklearn")
    explainer = dice_ml.Dice(data, model, method=case.options["method"])
    more = {"random_seed": case.seed} if case.options["method"] == "random" else {}

    def answer(asked: Question) -> Answer:
        row = case.table(asked["row"])
        try:
            found = explainer.generate_counterfactuals(
                row.astype(words),
                total_CFs=case.options.get("total", 4),
                desired_class=int(asked["target"]),
                verbose=False,
                **more,
            ).cf_examples_list[0]
        except UserConfigValidationException as error:
            if "No counterfactuals found" not in str(error):
                raise
            return {"status": "unknown", "message": "it found no point"}
        points = found.final_cfs_df_sparse if found.final_cfs_df_sparse is not None else found.final_cfs_df
        if points is None or points.empty:
            return {"status": "unknown", "message": "it found no point"}
        points = cast(case, points)
        points = points[case.model.predict(points) == asked["target"]]
        if points.empty:
            return {"status": "unknown", "message": "no point of its sparse ones has the target"}
        before = case.encoded(row)[0]
        prices = [cost(case.columns, before, after) for after in case.encoded(points)]
        best = points.iloc[prices.index(min(prices))]
        return {"status": "feasible", "counterfactual": {str(k): plain(v) for k, v in best.items()}}

    return f"dice-ml {version('dice-ml')}", answer


def plain(value: Any) -> Any:
    """A value of a table as JSON has it."""
    return value.item() if hasattr(value, "item") else value


if __name__ == "__main__":
    serve(prepare)
