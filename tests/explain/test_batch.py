"""Batches in which a row fails, or which are interrupted."""

from __future__ import annotations

from .people import refused


def test_interrupted_batch_keeps_what_is_finished(credit, monkeypatch) -> None:
    table, model, explainer = credit
    rows = refused(table, model).iloc[:4]
    explain_row = explainer.explain_row
    calls = []

    def interrupted(row, task):
        calls.append(row.label)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return explain_row(row, task)

    monkeypatch.setattr(explainer, "explain_row", interrupted)
    found = explainer.explain(rows, target="granted")
    assert [e.status for e in found] == ["optimal", "optimal", "interrupted", "interrupted"]


def test_failing_row_does_not_lose_the_others(credit, monkeypatch) -> None:
    table, model, explainer = credit
    rows = refused(table, model).iloc[:3]
    solve = explainer.solve

    def failing(row, *args):
        if row.label == rows.index[1]:
            raise RuntimeError("boom")
        return solve(row, *args)

    monkeypatch.setattr(explainer, "solve", failing)
    found = explainer.explain(rows, target="granted")
    assert [e.status for e in found] == ["optimal", "error", "optimal"]
    assert "boom" in found[1].message
