"""What of an outcome is recorded."""

from __future__ import annotations

import numpy as np


def test_history_is_of_points_that_the_model_confirmed() -> None:
    from ocf.compare.outcomes import MOST_RECORDS, confirmed, thinned

    records = [[0.1, 0.0, "inf"], [0.2, 0.5, 0.6], [0.3, 0.5, 2.0], [0.4, 0.7, 1.0]]
    assert [tuple(p) for p in confirmed(records, 1.0)] == [
        (0.1, 0.0, np.inf),
        (0.2, 0.5, np.inf),
        (0.3, 0.5, 2.0),
        (0.4, 0.7, 1.0),
    ]
    many = [[k, 0.0, 1.0] for k in range(1000)]
    assert len(thinned(many)) == MOST_RECORDS
    assert (thinned(many)[0], thinned(many)[-1]) == (many[0], many[-1])
