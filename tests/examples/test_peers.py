"""Across files: ocf beside other libraries, what the adapters share, and the page that is drawn from kept results."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from ocf.compare import load_suite, parse_suite, run_suite
from ocf.compare.client import close_all
from ocf.compare.frame import compare

PEERS = Path(__file__).parents[2] / "examples" / "peers"

SUITE = """
limits = {{ time = 600, memory = "2 GB" }}
report = {{ bounds = false }}
instances = [{{ data = "loans.csv", target_column = "granted", trees = 5, depth = 3, rows = 2, target = 1 }}]

[methods.ours]
solver = "box"

[methods.tweaking]
command = ["{python}", "{peers}/feature_tweaking.py"]

[methods.pyomo]
command = ["{python}", "{peers}/with_pyomo.py"]
options = {{ solver = "appsi_highs", settings = {{ mip_rel_gap = 0.0 }} }}

[methods.nowhere]
command = ["{python}", "{peers}/with_pyomo.py"]
options = {{ solver = "no_such_solver" }}
"""


@pytest.fixture(autouse=True)
def at_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PEERS)


@pytest.mark.slow
def test_adapters_answer_and_never_beat_the_optimum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ocf.compare.loans import make_loans

    monkeypatch.setenv("OCF_CACHE", str(tmp_path / "cache"))
    make_loans().to_csv(tmp_path / "loans.csv", index=False)
    text = SUITE.format(python=sys.executable, peers=PEERS)
    comparison = compare(run_suite(parse_suite(text, "suite", tmp_path), tmp_path / "results"))
    close_all()
    assert comparison.disagreements == []
    runs = comparison.runs.set_index(["position", "method"])
    for position in comparison.runs["position"].unique():
        ours, theirs = runs.loc[position, "ours"], runs.loc[position, "tweaking"]
        assert (ours["status"], theirs["status"]) == ("ok", "unproved"), theirs["message"]
        assert not theirs["found"] or theirs["cost"] >= ours["cost"] * (1 - 1e-9)
        solver = runs.loc[position, "pyomo"]
        assert (solver["status"], solver["answer"]) == ("ok", "optimal"), solver["message"]
        assert solver["cost"] == pytest.approx(ours["cost"], rel=1e-6)
    assert comparison.runs.loc[comparison.runs["method"] == "tweaking", "found"].any()
    nowhere = comparison.runs[comparison.runs["method"] == "nowhere"]
    assert nowhere["status"].tolist() == ["error", "error"]
    assert "no_such_solver is not available" in nowhere["message"].iloc[0]


def test_edges_are_those_of_a_forest() -> None:
    from peer import edges

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1)) * np.logspace(-3, 3, 60)[:, None]
    tree = RandomForestClassifier(1, bootstrap=False, random_state=0).fit(X, rng.integers(0, 2, 60)).estimators_[0]
    cuts = tree.tree_.threshold[tree.tree_.children_left >= 0]
    assert len(cuts) > 10
    for cut in cuts:
        left, right = edges(cut)
        assert np.nextafter(left, np.inf) == right
        assert np.float32(left) <= cut < np.float32(right)


def test_the_suite_of_the_comparison_is_read() -> None:
    suite = load_suite(PEERS / "suite.toml")
    assert len(suite.grids) == 63
    adapters = {word for m in suite.methods for word in m.command if word.endswith(".py")}
    assert all((PEERS / name).exists() for name in adapters)


def test_the_page_shows_the_kept_results() -> None:
    import page

    text = page.PAGE.read_text(encoding="utf-8")
    assert page.drawn(page.load(page.newest())) in text, f"python {PEERS / 'page.py'} draws it anew"


def test_what_was_kept_before_is_kept_and_replaced_by_newer_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import page

    before = page.newest()
    facts, *lines = map(json.loads, before.read_text(encoding="utf-8").splitlines())
    monkeypatch.setattr(page, "KEPT", tmp_path / "kept")
    path = page.keep([before])
    assert [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] == [facts, *lines]
    newer = tmp_path / "newer.jsonl"
    other = facts | {"machine": facts["machine"] | {"CPU": "another"}}
    newer.write_text("".join(json.dumps(line) + "\n" for line in (other, {**lines[0], "cost": -1.0})), encoding="utf-8")
    kept = page.load(page.keep([path, newer]))
    assert len(kept.runs) == len(lines)
    assert (kept.runs["cost"] == -1.0).sum() == 1
    assert kept.facts["machine"]["CPU"] == facts["machine"]["CPU"] + " and another"


def a_run(**known: object) -> dict[str, object]:
    import page

    row = dict.fromkeys(page.COLUMNS, "") | {"data": "d", "trees": 10, "depth": 3, "position": 0, "checks": []}
    return row | {"cost": None, "seconds": 1.0, "cpu": 1.0, "peak_memory": 1} | known


def test_what_is_kept_is_not_run_again() -> None:
    from run import still_to_run

    grid = load_suite(PEERS / "suite.toml").grids[0]
    data = grid.recipe.data_label
    kept = [a_run(data=data, position=position, method="first") for position in (4, 7)]
    kept += [a_run(data=data, position=4, method="all"), a_run(data="other", position=9, method="first")]
    kept += [a_run(data=data, position=position, method="all") for position in (7, 9)]
    found = still_to_run(grid, [4, 7, 9], ["first", "all", "none", "new"], kept)
    assert found == {(9,): ["first"], (4, 7, 9): ["none", "new"]}
    assert still_to_run(grid, [4, 7], ["first", "all"], kept) == {}


def test_what_the_limit_stopped_twice_is_given_up_on_larger_forests() -> None:
    import page
    from given_up import cells_given_up

    sizes = [(10, 3), (10, 5), (100, 3), (100, 5)]
    ours = [
        a_run(trees=trees, depth=depth, position=position, method="ocf box", status="ok", answer="optimal", cost=1.0)
        for trees, depth in sizes
        for position in (4, 7, 9)
    ]
    slow = [
        a_run(trees=10, depth=5, position=position, method="slow", status=status)
        for position, status in ((4, "time out"), (7, "memory out"))
    ]
    once = [a_run(position=position, method="once", status=status) for position, status in ((4, "time out"), (7, "ok"))]
    runs = [*ours, *slow, *once]
    cells = [("d", *size) for size in sizes]
    assert cells_given_up(runs, [*cells, ("other", 500, 8)]) == {("d", 10, 5, "slow"), ("d", 100, 5, "slow")}
    judged = page.Kept("2026-01-01", {"limits": {"time": 60}}, pd.DataFrame(runs)).judged
    given_up = judged[judged["status"] == page.GIVEN_UP]
    assert given_up[["trees", "depth", "position"]].to_numpy().tolist() == [
        [10, 5, 9], [100, 5, 4], [100, 5, 7], [100, 5, 9]
    ]  # fmt: skip
    assert set(given_up["time"]) == {60.0}
    assert not given_up[["proved", "wrong"]].to_numpy().any()
    shown = page.summary(judged).set_index("method")
    assert shown.loc["slow", ["run", "proved", "time out", "given up"]].tolist() == [6, 0, 2, 4]


def test_cells_that_a_method_was_not_asked_in_are_not_kept() -> None:
    import page

    ours = [a_run(trees=trees, position=p, method="ocf box", status="ok") for trees in (10, 100) for p in (1, 2)]
    slow = [a_run(position=p, method="slow", status="time out") for p in (1, 2)]
    quick = [a_run(method="quick", status="ok")]
    assert page.of_whole_cells([*ours, *slow]) == [*ours, *slow]
    assert page.of_whole_cells([*ours, *slow, *quick]) == [*ours[:2], *slow, *quick]


def test_claims_are_judged_by_the_points_of_others() -> None:
    import page

    def run(method: str, status: str, answer: str, cost: float | None, *checks: str) -> dict[str, object]:
        return a_run(method=method, status=status, answer=answer, cost=cost, checks=list(checks))

    runs = [
        run("ocf box", "ok", "optimal", 1.0),
        run("near", "ok", "optimal", 1.0 + 1e-8),
        run("far", "ok", "optimal", 1.01),
        run("denies", "ok", "infeasible", None),
        run("lies", "wrong", "feasible", 0.5, "The model says no."),
        run("guesses", "unproved", "feasible", 3.0),
    ]
    kept = page.Kept("2026-01-01", {"limits": {"time": 60}}, pd.DataFrame(runs))
    judged = kept.judged.set_index("method")
    assert judged["proved"][lambda s: s].index.tolist() == ["ocf box", "near"]
    assert judged["wrong"][lambda s: s].index.tolist() == ["far", "denies", "lies"]
    assert judged.loc["guesses", "ratio"] == 3.0
    assert np.isnan(judged.loc["lies", "ratio"])
    said = " ".join(page.wrong(kept.judged))
    assert "far: 1 proofs of a cost that another point undercuts, by up to 1 %" in said
    assert "lies: 1 points that the check refuses" in said


def test_kept_results_name_no_host() -> None:
    import page

    facts = json.loads(page.newest().read_text(encoding="utf-8").splitlines()[0])
    assert "host" not in facts["machine"]
    assert os.uname().nodename not in json.dumps(facts)
