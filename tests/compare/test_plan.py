"""From a suite to its instances and runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ocf.compare import parse_suite
from ocf.compare.plan import PlannedInstance, instances, jobs

from .suites import METHOD, suite


def test_plan() -> None:
    from ocf.compare.keys import checksum

    s = suite("rows = 3", methods='[[methods]]\nformulation = ["interval", "ocean"]\n[[methods]]\nsolver = "box"')
    (grid,) = s.grids
    waiting = {(checksum(grid.recipe), checksum(grid.ask.target)): [4, 7, 9, 11]}
    found = instances(s, waiting, None)
    assert [i.position for i in found] == [4, 7, 9]
    assert [i.position for i in instances(s, waiting, 2)] == [4, 7]
    assert instances(s, {}, None) == []
    planned = list(jobs(s, found[:1], s.methods))
    assert [(j.kind, j.method.name) for j in planned] == [
        ("relaxation", "interval/highs"),
        ("relaxation", "ocean/highs"),
        ("run", "interval/highs"),
        ("run", "ocean/highs"),
        ("run", "box"),
    ]
    assert len({j.key for j in planned}) == 5
    assert not [j for j in jobs(replace(s, bounds=False), found, s.methods) if j.kind == "relaxation"]


def test_instance_is_the_same_in_another_folder() -> None:
    (a,), (b,) = (
        parse_suite('instances = [{ data = "t.csv", target_column = "y" }]\n' + METHOD, "a", Path(p)).grids
        for p in ("here", "there")
    )
    assert a.recipe != b.recipe
    assert PlannedInstance(a.recipe, a.ask, 0).key == PlannedInstance(b.recipe, b.ask, 0).key
    assert PlannedInstance(a.recipe, a.ask, 0).key != PlannedInstance(a.recipe, a.ask, 1).key
