"""Steps that cut the line: KBinsDiscretizer and Binarizer. They compare, which is exact."""

from __future__ import annotations

from typing import Any

from ocf.readers.transformers.column import Column
from ocf.readers.transformers.flow import Flow

CLASSES = ("KBinsDiscretizer", "Binarizer")


def read(name: str, step: Any, flow: Flow) -> tuple[Column, ...]:
    """The number of each column's bin, or an indicator for each bin.

    Parameters
    ----------
    name : str
    step : transformer
        Fitted.
    flow : Flow
    """
    if type(step).__name__ == "Binarizer" or step.encode == "ordinal":
        return flow.each(lambda j, column: column.bent(stepped=True))
    out: list[Column] = []
    for j, column in enumerate(flow.columns):
        width = int(step.n_bins_[j])
        if not column.number:
            out += [column] * width
            continue
        edges = [(), *flow.reached(j, step.bin_edges_[j][1:-1]), ()]
        out += [column.broken((*column.breaks, *edges[k], *edges[k + 1]), stepped=True) for k in range(width)]
    return tuple(out)
