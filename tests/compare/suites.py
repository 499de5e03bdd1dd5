"""Suites of one grid."""

from __future__ import annotations

from ocf.compare import parse_suite

METHOD = '[[methods]]\nsolver = "box"\n'


def suite(instances: str = "", methods: str = METHOD, top: str = ""):
    return parse_suite(f'{top}\n[[instances]]\ndata = "iris"\ntarget = 1\n{instances}\n{methods}', "a.toml")
