"""Curves as users write them."""

from __future__ import annotations

import json

from ocf.features.curve import Curve


def test_curves_read_what_a_user_writes() -> None:
    assert Curve.parse(2).rate == (2.0, 2.0)
    assert Curve.parse([1, 2]).rate == (1.0, 2.0)
    assert Curve.parse({"a": 1}).levels == (("a", 1.0),)
    assert Curve.parse({"between": [1, 2]}).between == (1.0, 2.0)
    assert Curve.parse({"points": [[1, 1], [0, 0]]}).points == ((0.0, 0.0), (1.0, 1.0))
    for said in (2, [1, 2], {"a": 1}, {"between": [1, 2]}, {"points": [[0, 0], [1, 1]], "of": "value", "steps": True}):
        assert Curve.parse(json.loads(json.dumps(Curve.parse(said).to_plain()))) == Curve.parse(said)
