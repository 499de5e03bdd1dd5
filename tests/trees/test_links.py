from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from small_problems import stumps

from ocf.trees import links
from ocf.trees.ensemble import Decision, Ensemble

SHOWN = {
    "identity": lambda s: s,
    "mean": lambda s: s,
    "exp": np.exp,
    "logistic": expit,
    "signed_square": lambda s: s * abs(s),
}


def with_link(link: str, kind: str = "value", n_outputs: int = 1, classes: tuple = ()) -> Ensemble:
    return stumps(np.zeros((1, 2, n_outputs)), Decision(kind, classes, link=link))


@pytest.mark.parametrize("link", SHOWN)
@given(score=st.floats(-30, 30))
def test_scores_outside_are_shown_as_less_or_more(link: str, score: float) -> None:
    ensemble = with_link(link)
    value = float(SHOWN[link](np.float64(score)))
    low, high = links.scores_around(ensemble, value)
    assert low <= score <= high
    for other, shown_is_right in ((low, np.less), (high, np.greater)):
        beyond = math.nextafter(other, -math.inf if shown_is_right is np.less else math.inf)
        if math.isfinite(beyond):
            assert not (np.greater if shown_is_right is np.less else np.less)(SHOWN[link](np.float64(beyond)), value)
    np.testing.assert_allclose(links.show(ensemble, np.array([[score]])), [value], rtol=1e-14)


def test_values_that_no_score_has() -> None:
    assert links.scores_around(with_link("exp"), -1.0) == (-math.inf, -math.inf)
    assert links.scores_around(with_link("logistic"), 1.5) == (math.inf, math.inf)
    assert links.scores_around(with_link("logistic"), -0.5) == (-math.inf, -math.inf)
    low, high = links.scores_around(with_link("exp"), 0.0)
    assert low == -math.inf
    assert np.exp(high) < 1e-300


def test_probabilities_add_up() -> None:
    scores = np.array([[0.3], [-700.0]])
    binary = links.show(with_link("logistic", "threshold", classes=(0, 1)), scores)
    np.testing.assert_allclose(binary, np.column_stack([expit(-scores), expit(scores)]))
    several = links.show(with_link("softmax", "argmax", 3, (0, 1, 2)), np.array([[1.0, 2.0, 1000.0]]))
    np.testing.assert_allclose(several.sum(axis=1), 1.0)
    np.testing.assert_allclose(several[0, 2], 1.0)
