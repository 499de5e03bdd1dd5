"""Batches in which a row fails, or which are interrupted."""

from __future__ import annotations

from .people import refused


def test_interrupted_batch_keeps_what_is_finished(credit, monkeypatch) -> None:
    table, model, explainer = credit
    rows = refused(table, model).iloc[:4]
    for settings in ({}, {"n_optimal": 2}):  # judged together, and each by itself
        pose, calls = explainer.pose, []

        def interrupted(row, task, pose=pose, calls=calls):
            calls.append(row.label)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return pose(row, task)

        with monkeypatch.context() as patch:
            patch.setattr(explainer, "pose", interrupted)
            found = explainer.explain(rows, target="granted", **settings)
        assert [e.status for e in found] == ["optimal", "optimal", "interrupted", "interrupted"]
        assert all(e.verified for e in found[:2])


def test_failing_row_does_not_lose_the_others(credit, monkeypatch) -> None:
    table, model, explainer = credit
    rows = refused(table, model).iloc[:3]
    pose = explainer.pose

    def failing(row, *args):
        if row.label == rows.index[1]:
            raise RuntimeError("boom")
        return pose(row, *args)

    monkeypatch.setattr(explainer, "pose", failing)
    found = explainer.explain(rows, target="granted")
    assert [e.status for e in found] == ["optimal", "error", "optimal"]
    assert "boom" in found[1].message
