"""Generated loans."""

from __future__ import annotations

from pandas.testing import assert_frame_equal
from sklearn.ensemble import RandomForestClassifier

from ocf.compare.datasets import load_dataset
from ocf.compare.loans import SETTINGS, make_loans
from ocf.features.inference import infer_space


def test_the_table_is_what_its_settings_say() -> None:
    table = make_loans(300, seed=3)
    assert list(table) == [*SETTINGS, "granted", "rate"]
    assert_frame_equal(table, make_loans(300, seed=3))
    assert not table.equals(make_loans(300, seed=4))
    infer_space(table[list(SETTINGS)], SETTINGS)
    for name, settings in SETTINGS.items():
        if "levels" in settings:
            assert set(table[name]) == set(settings["levels"])
        assert (table[name] % settings.get("step", 1) == 0).all() if settings["kind"] == "integer" else True
    assert (table["employed"] <= table["age"] - 18).all()


def test_who_is_granted_a_loan_can_be_learnt_and_pays_less() -> None:
    loans = load_dataset("loans")
    assert loans.desired == 1
    numbers = loans.table.select_dtypes("number")
    test = make_loans(1000, seed=1)
    forest = RandomForestClassifier(50, max_depth=6, random_state=0).fit(numbers, loans.target)
    assert forest.score(test[list(numbers)], test["granted"]) > 0.75 > test["granted"].mean()
    assert test.loc[test["granted"] == 1, "rate"].mean() + 1 < test.loc[test["granted"] == 0, "rate"].mean()
