"""The independent check must accept what is true and catch every tampering."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ocf.features.feature import Feature
from ocf.verify.check import Claims, Verification, verify

COLUMNS = ["age", "rate", "grade", "job", "car_none", "car_red"]


def decide(table: pd.DataFrame) -> np.ndarray:
    return ((table["age"] >= 40) | (table["job"] == "smith")).to_numpy(np.int64)


def model(rule: Any = decide) -> Any:
    """Stands for a UserModel: it shows no probabilities."""
    return SimpleNamespace(classes=("no", "yes"), decide=rule, probabilities=None)


def described(name: str, kind: str, **settings: Any) -> dict[str, Any]:
    return {
        "name": name, "kind": kind, "columns": [name], "base": False, "levels": [], "lower": "-inf", "upper": "inf",
        "step": None, "scale": 1.0, "action": "free", "weight_down": 1.0, "weight_up": 1.0, "permitted": None,
    } | settings  # fmt: skip


def space(**changes: dict[str, Any]) -> dict[str, Any]:
    features = [
        described("age", "integer", lower=18.0, upper=90.0, scale=10.0),
        described("rate", "numeric", step=0.07, scale=0.5, weight_down=3.0),
        described("grade", "ordinal", levels=[1, 2, 5], scale=4.0),
        described("job", "categorical", levels=["clerk", "smith"]),
        described("car", "categorical", columns=["car_none", "car_red"], levels=["blue", "none", "red"], base=True),
    ]
    return {"columns": COLUMNS, "features": [f | changes.get(f["name"], {}) for f in features]}


ROW: dict[str, Any] = {"age": 30, "rate": 0.333, "grade": 2, "job": "clerk", "car_none": 0, "car_red": 1}


def table(**changes: Any) -> pd.DataFrame:
    return pd.DataFrame([ROW | changes], index=["r7"])


OLDER = Claims("optimal", 1.0, 1.0, "no", "yes")


def check(
    after: pd.DataFrame | None,
    claims: Claims = OLDER,
    norm: dict[str, float] | None = None,
    target: str = "yes",
    rule: Any = decide,
    original: pd.DataFrame | None = None,
    **changes: dict[str, Any],
) -> Verification:
    return verify(
        model(rule),
        table() if original is None else original,
        after,
        target=target,
        features=space(**changes),
        norm=norm or {"l0": 0.0, "l1": 1.0, "l2": 0.0},
        claims=claims,
    )


def test_a_true_result_passes() -> None:
    assert check(table(age=40)) == Verification(True, (), 1.0, "yes")


@pytest.mark.parametrize(
    ("after", "norm", "cost"),
    [
        ({"age": 45}, {"l0": 0.0, "l1": 1.0, "l2": 0.0}, 1.5),
        ({"age": 45}, {"l0": 0.25, "l1": 0.0, "l2": 2.0}, 0.25 + 2 * 2.25),
        ({"age": 40, "rate": 0.07}, {"l0": 0.0, "l1": 1.0, "l2": 0.0}, 1 + 3 * (0.333 - 0.07) / 0.5),
        ({"age": 40, "rate": 0.35}, {"l0": 1.0, "l1": 1.0, "l2": 0.0}, 2 + 1 + (0.35 - 0.333) / 0.5),
        ({"grade": 5, "job": "smith"}, {"l0": 0.0, "l1": 1.0, "l2": 0.0}, 0.75 + 1),
        ({"age": 40, "car_red": 0}, {"l0": 0.0, "l1": 0.0, "l2": 1.0}, 2.0),
        ({"age": 40, "car_red": 0, "car_none": 1}, {"l0": 3.0, "l1": 1.0, "l2": 0.0}, 8.0),
    ],
)
def test_costs_from_raw_values(after: dict[str, Any], norm: dict[str, float], cost: float) -> None:
    found = check(table(**after), Claims("optimal", cost, cost, "no", "yes"), norm)
    assert found.ok, found.problems
    assert found.cost == pytest.approx(cost, rel=1e-12)


@pytest.mark.parametrize(
    ("claims", "sentence"),
    [
        (replace(OLDER, cost=1.0 + 1e-8, bound=1.0 + 1e-8), "cost 1.0, not 1.00000001"),
        (replace(OLDER, bound=0.9), "does not prove"),
        (replace(OLDER, bound=-math.inf), "does not prove"),
        (replace(OLDER, status="feasible", bound=1.1), "above the cost"),
        (replace(OLDER, status="infeasible", bound=math.inf), "there is a counterfactual"),
        (replace(OLDER, status="unknown", bound=0.0), "there is a counterfactual"),
        (replace(OLDER, status="proven"), "none that ocf gives"),
        (replace(OLDER, cost=None), "no cost"),
        (replace(OLDER, cost=math.nan), "no finite number"),
        (replace(OLDER, bound=math.nan), "not a number"),
        (replace(OLDER, predicted="yes"), "gives the original 'no'"),
        (replace(OLDER, decided="no"), "gives the counterfactual 'yes', not 'no' as claimed"),
    ],
)
def test_false_claims(claims: Claims, sentence: str) -> None:
    found = check(table(age=40), claims)
    assert not found.ok
    assert any(sentence in problem for problem in found.problems), found.problems


@pytest.mark.parametrize(
    ("after", "changes", "sentence"),
    [
        ({"age": 39}, {}, "gives the counterfactual 'no', not the wanted 'yes'"),
        ({"age": 40}, {"age": {"action": "fixed"}}, "'age' is fixed, but 30.0 became 40.0"),
        ({"age": 40}, {"age": {"action": "decreasing"}}, "'age' may only decrease"),
        ({"job": "smith", "age": 29}, {"age": {"action": "increasing"}}, "'age' may only increase"),
        (
            {"job": "smith", "grade": 1},
            {"grade": {"action": "increasing"}},
            "'grade' may only increase, but 2 became 1",
        ),
        ({"age": 40.5}, {}, "not a whole number"),
        ({"age": 91}, {}, "outside the bounds"),
        ({"age": 40}, {"age": {"permitted": [41, 60]}}, "outside the permitted range"),
        ({"job": "smith"}, {"rate": {"permitted": [0.4, 0.9]}}, "'rate': 0.333 is outside the permitted range"),
        ({"age": 40}, {"job": {"permitted": ["smith"]}}, "'job': 'clerk' is none of the permitted levels"),
        ({"age": 40, "rate": 0.1}, {}, "no multiple of 0.07"),
        ({"age": 40, "job": "duke"}, {}, "'duke' is none of its levels"),
        ({"age": 40, "car_none": 1}, {}, "single 1"),
        ({"age": 40, "car_none": 0.5}, {}, "single 1"),
        ({"age": 40, "rate": np.nan}, {}, "must stay missing"),
        ({"age": 40, "rate": np.inf}, {}, "not finite"),
        ({"age": 40, "rate": "much"}, {}, "not a number"),
        ({"age": 40, "extra": 1}, {}, "other columns"),
    ],
)
def test_forbidden_changes(after: dict[str, Any], changes: dict[str, Any], sentence: str) -> None:
    found = check(table(**after), **changes)
    assert not found.ok
    assert any(sentence in problem for problem in found.problems), found.problems


SPECIAL = {"codes": [-9.0], "missing": True, "supplying": 0.5, "becoming": None}


@pytest.mark.parametrize(
    ("before", "after", "special", "sentence"),
    [
        ({"rate": np.nan}, {"rate": 0.07}, {}, ""),
        ({"rate": -9.0}, {"rate": 0.07}, {}, ""),
        ({"rate": -9.0}, {"rate": -9.0}, {"supplying": None}, "wanted 'yes'"),
        ({"rate": np.nan}, {"rate": 0.1}, {}, "no multiple of 0.07"),
        ({"rate": np.nan}, {"rate": 7.0}, {}, "outside the bounds"),
        ({"rate": np.nan}, {"rate": 0.07}, {"supplying": None}, "a missing value must stay missing"),
        ({"rate": -9.0}, {"rate": 0.07}, {"supplying": None}, "a special value must stay as it is"),
        ({"rate": -9.0}, {"rate": np.nan}, {"becoming": 0.5}, "must stay"),
        ({"rate": 0.35}, {"rate": -9.0}, {}, "a special value must stay as it is"),
        ({"rate": 0.35}, {"rate": np.nan}, {}, "a missing value must stay missing"),
        ({"rate": 0.35}, {"rate": np.nan}, {"becoming": 0.25}, "The changes cost 0.25, not 0.5"),
        ({"rate": 0.35}, {"rate": -9.0}, {"becoming": 0.5}, ""),
    ],
)
def test_special_values(before: dict[str, Any], after: dict[str, Any], special: dict[str, Any], sentence: str) -> None:
    found = check(
        table(**after),
        replace(OLDER, cost=0.5, bound=0.5, predicted=None, decided=None),
        target="no" if sentence != "wanted 'yes'" else "yes",
        original=table(**before),
        rate={"special": SPECIAL | special, "upper": 1.0},
    )
    assert found.ok == (not sentence), found.problems
    assert not sentence or any(sentence in problem for problem in found.problems), found.problems


def test_a_fixed_feature_is_not_supplied() -> None:
    changes = {"special": SPECIAL, "action": "fixed"}
    found = check(table(rate=0.07), replace(OLDER, cost=0.5, bound=0.5), original=table(rate=np.nan), rate=changes)
    assert any("'rate' is fixed" in problem for problem in found.problems), found.problems


@pytest.mark.parametrize("k", [1, 3, 7, 11, 100, 10**7])
def test_multiples_of_a_decimal_step_are_on_the_grid(k: int) -> None:
    value = k * 7 / 100
    cost = 1 + abs(value - 0.333) / 0.5 * (3 if value < 0.333 else 1)
    found = check(table(age=40, rate=value), Claims("optimal", cost, cost))
    assert found.ok, found.problems


def test_own_value_may_lie_outside_bounds_and_off_the_grid() -> None:
    odd = table(age=95)
    found = check(
        odd.assign(job="smith"),
        Claims("optimal", 1.0, 1.0),
        rule=lambda t: (t["job"] == "smith").to_numpy(int),
        original=odd,
    )
    assert found.ok, found.problems


def test_missing_values_that_stay_cost_nothing() -> None:
    found = check(table(age=40, rate=np.nan), original=table(rate=np.nan))
    assert found.ok
    assert found.cost == 1.0
    filled = check(table(age=40), original=table(rate=np.nan))
    assert not filled.ok
    assert filled.cost is None


def test_without_a_counterfactual() -> None:
    assert check(None, Claims("infeasible", None, math.inf, "no")).ok
    assert check(None, Claims("unknown", None, 0.2, "no")).ok
    assert not check(None, Claims("infeasible", None, 3.0, "no")).ok
    assert not check(None, Claims("optimal", 1.0, 1.0, "no")).ok
    assert not check(None, Claims("infeasible", None, math.inf, "yes")).ok


def test_more_than_one_row() -> None:
    found = check(pd.concat([table(age=40)] * 2))
    assert any("2 rows" in problem for problem in found.problems)


def test_a_model_that_raises_is_a_finding() -> None:
    def raises(table: pd.DataFrame) -> np.ndarray:
        raise RuntimeError("no such column")

    found = check(table(age=40), rule=raises)
    assert any("RuntimeError: no such column" in problem for problem in found.problems)


def test_columns_in_another_order_are_put_right() -> None:
    seen = []

    def positional(t: pd.DataFrame) -> np.ndarray:
        seen.append(list(t.columns))
        return decide(t)

    assert check(table(age=40)[COLUMNS[::-1]], rule=positional).ok
    assert seen == [COLUMNS, COLUMNS]


# -- targets of other kinds ------------------------------------------------------------------------------------


def shows(table: pd.DataFrame) -> np.ndarray:
    yes = np.minimum(table["age"].to_numpy(float) / 80, 1.0)
    return np.column_stack([1 - yes, yes])


def judged(
    after: pd.DataFrame,
    target: Any,
    probability: float | None = None,
    *,
    regressor: bool = False,
    before: Any = None,
) -> list[str]:
    """What is wrong when the age decides: half its value in years by a regressor, age / 80 as a probability."""
    user = model((lambda table: table["age"].to_numpy(float) / 2) if regressor else decide)
    if regressor:
        user.classes = ()
    user.probabilities = None if regressor else shows
    answer = 20.0 if regressor else "yes"
    claims = Claims("optimal", 1.0, 1.0, before or (15.0 if regressor else "no"), answer)
    norm = {"l0": 0.0, "l1": 1.0, "l2": 0.0}
    found = verify(
        user, table(), after, target=target, probability=probability, features=space(), norm=norm, claims=claims
    )
    return list(found.problems)


@pytest.mark.parametrize("target", [(20, None), (None, 20.0), (19.5, 20.5), [20.0, 20.0]])
def test_values_inside_an_interval_pass(target: Any) -> None:
    assert judged(table(age=40), target, regressor=True) == []


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ((np.nextafter(20.0, 21), None), "less than the wanted"),
        ((None, np.nextafter(20.0, 0)), "more than the wanted"),
        ("yes", "no pair of bounds"),
        ((1, 2, 3), "no pair of bounds"),
    ],
)
def test_values_outside_an_interval_do_not(target: Any, sentence: str) -> None:
    (problem,) = judged(table(age=40), target, regressor=True)
    assert sentence in problem


def test_values_may_be_summed_otherwise_in_a_batch_than_by_themselves() -> None:
    assert judged(table(age=40), (20, None), regressor=True, before=np.nextafter(15.0, 16)) == []
    (problem,) = judged(table(age=40), (20, None), regressor=True, before=15.000001)
    assert "gives the original 15.0, not 15.000001" in problem


def test_any_class_of_a_set_will_do() -> None:
    assert judged(table(age=40), ("yes", "perhaps")) == []
    assert "not the wanted 'no' or 'perhaps'" in judged(table(age=40), ["no", "perhaps"])[0]


def test_probabilities_are_the_models_own() -> None:
    assert judged(table(age=40), "yes", 0.5) == []
    assert judged(table(age=40), ("no", "yes"), 0.5) == []
    assert "a probability of 0.5, less than the wanted 0.51" in judged(table(age=40), "yes", 0.51)[0]


@pytest.mark.parametrize("step", [0.1, 0.7, 3.0, 5.5])
def test_multiples_that_a_narrow_column_rounds_are_on_the_grid(step: float) -> None:
    """Between powers of two a multiple may be held as a number that is nearer to another one: 8195 as 8192."""
    numbers = np.unique(np.arange(8000.0, 8400.0).astype(np.float16).astype(float))
    held = Feature("rate", "numeric", step=step, dtype="float16").between(8000.0, numbers[-1])
    assert [v for v in numbers if "no multiple" not in str(check_rate(v, step))] == held.tolist()
    assert 8192.0 in held


def check_rate(value: float, step: float) -> Verification:
    before, after = (table(rate=np.float16(v), age=age) for v, age in ((0.0, 30), (value, 40)))
    for frame in (before, after):
        frame["rate"] = frame["rate"].astype(np.float16)
    return check(after, original=before, rate={"step": step, "dtype": "float16"})
