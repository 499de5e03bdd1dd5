"""Tables of the comparison: every ordered feature a number, every feature free, and the class that is wanted 1.

The libraries compared know continuous numbers, zeros and ones, and categories; ordered levels and what may not change
they do not know all. So that the problem is the same for all, ordered levels become continuous numbers here.

    OCF_DATA=folder python tables.py tables
"""

from __future__ import annotations

import sys
from pathlib import Path

from ocf.compare.datasets import load_dataset

SETS = ("breast_cancer", "german_credit", "adult", "compas", "credit_default", "heloc", "spambase")


def write(name: str, folder: Path) -> None:
    """Write a data set as a table, its target last.

    Parameters
    ----------
    name : str
    folder : Path
    """
    data = load_dataset(name)
    table = data.table.copy()
    for feature, setting in data.settings.items():
        if setting["kind"] in ("numeric", "ordinal"):
            table[feature] = table[feature].astype(float)
    wanted = (data.target == data.desired).astype(int)
    table.assign(target=wanted).dropna().to_csv(folder / f"{name}.csv", index=False)


if __name__ == "__main__":
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for name in SETS:
        write(name, out)
