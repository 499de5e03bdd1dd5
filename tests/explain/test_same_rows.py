"""Rows that are the same are solved once, and each gets the answer that it gets alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ocf import Explainer
from ocf.explain.same_rows import same_rows
from ocf.solve.task import AskedRow

from .people import refused


def test_rows_that_are_the_same_are_solved_once(credit, tmp_path: Path) -> None:
    table, model, explainer = credit
    once = refused(table, model).iloc[:3]
    rows = pd.concat([once, once.iloc[[0, 2]], once.iloc[[0]]]).set_axis([f"row {k}" for k in range(6)])
    found = explainer.explain(rows, target="granted", n_optimal=2, checkpoint=tmp_path / "kept.jsonl")
    assert [e.row for e in found] == list(rows.index)
    for e, k in zip(found, [0, 1, 2, 0, 2, 0], strict=True):
        alone = explainer.explain(once.iloc[[k]], target="granted", n_optimal=2)[0]
        assert (e.status, e.cost, e.verified, len(e.ties)) == (alone.status, alone.cost, True, len(alone.ties))
        assert e.original.index.tolist() == e.counterfactual.index.tolist() == [e.row]
        assert all(tie.index.tolist() == [e.row] for tie in e.ties)
        assert e.counterfactual.equals(alone.counterfactual.set_axis([e.row]))
    assert [max(e.times.values()) > 0 for e in found] == [True, True, True, False, False, False]
    again = explainer.explain(rows, target="granted", n_optimal=2, checkpoint=tmp_path / "kept.jsonl")
    assert [(e.row, e.cost, e.times) for e in again] == [(e.row, e.cost, e.times) for e in found]


def test_rows_of_which_only_some_are_kept(credit, tmp_path: Path) -> None:
    table, model, explainer = credit
    once = refused(table, model).iloc[:2]
    rows = pd.concat([once, once]).set_axis(list("abcd"))
    kept = tmp_path / "kept.jsonl"
    explainer.explain(rows, target="granted", checkpoint=kept)
    lines = kept.read_text().splitlines(keepends=True)
    kept.write_text("".join(lines[:-1]))
    found = explainer.explain(rows, target="granted", checkpoint=kept)
    assert [e.row for e in found] == list("abcd")
    assert found[0].cost == found[2].cost
    assert found[1].cost == found[3].cost


def test_values_that_only_look_the_same_make_other_rows() -> None:
    def asked(*values: object) -> list[AskedRow]:
        frame = pd.DataFrame({"a": pd.Series(values, dtype=object)})
        return [AskedRow(k, frame.iloc[[k]], np.zeros(1), 0) for k in range(len(values))]

    nan = float("nan")
    groups = same_rows(asked(0, 0.0, -0.0, False, 0, nan, None, nan, 0.0), range(9))
    assert groups == [[0, 4], [1, 8], [2], [3], [5, 7], [6]]
    assert same_rows(asked(0, 0, 0), [2, 1]) == [[2, 1]]


def test_rows_that_fail_alike_each_say_so(credit, monkeypatch) -> None:
    table, model, _ = credit
    explainer = Explainer(model, table)
    once = refused(table, model).iloc[:2]
    rows = pd.concat([once, once]).set_axis(list("abcd"))
    pose = explainer.asking.pose

    def failing(row: AskedRow, task: object) -> object:
        if row.label == "a":
            raise RuntimeError("no")
        return pose(row, task)

    monkeypatch.setattr(explainer.asking, "pose", failing)
    found = explainer.explain(rows, target="granted")
    assert [e.status == "error" for e in found] == [True, False, True, False]
    assert [e.row for e in found] == list("abcd")
