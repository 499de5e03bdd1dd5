"""HiGHS and its own options."""

from __future__ import annotations

import highspy

from ocf.solvers import SolverOptions
from ocf.solvers.adapter import ask
from ocf.solvers.highs_api import PROOF, raw_options

from .forms import knapsack


def test_highs_looks_for_no_points_where_one_over_cells_is_known() -> None:
    def raw(cutoff: float | None, over_cells: bool, **options: object) -> dict[str, object]:
        return raw_options(ask(knapsack(), SolverOptions(options=options), None, cutoff), 1.0, over_cells)

    kept = {name: value for name, value in PROOF.items() if name in dir(highspy.HighsOptions())}
    assert kept["mip_heuristic_effort"] == 0.0
    assert kept.items() <= raw(5.0, over_cells=True).items()
    assert not kept.keys() & raw(5.0, over_cells=False).keys()
    assert not kept.keys() & raw(None, over_cells=True).keys()
    assert raw(5.0, over_cells=True, mip_pscost_minreliable=3)["mip_pscost_minreliable"] == 3
