"""Trees made of copies of nodes."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from ocf.readers.sklearn import read
from ocf.trees.copying import Copies

X, Y = load_iris(return_X_y=True)


def test_trees_that_are_copied_node_by_node_give_the_same_scores() -> None:
    ensemble = read(RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, Y)).ensemble
    copies = Copies(ensemble)
    for root in ensemble.tree_offsets[:-1].tolist():
        waiting = [(root, -1, 0)]
        while waiting:  # breadth first, so that nodes and leaves are numbered anew
            v, parent, side = waiting.pop(0)
            new = copies.add(v, float(ensemble.threshold[v]), parent, side)
            if ensemble.left[v] >= 0:
                waiting += [(int(ensemble.left[v]), new, 0), (int(ensemble.right[v]), new, 1)]
        copies.end_tree()
    made, source = copies.ensemble()
    assert not np.array_equal(source, np.arange(len(source)))
    assert sorted(source.tolist()) == list(range(len(ensemble.kind)))
    leaf = source[np.flatnonzero(made.leaf >= 0)]  # of each new leaf, the old node
    assert np.array_equal(ensemble.leaf[leaf][made.apply(X)], ensemble.apply(X))
    assert np.array_equal(made.leaf_values[made.apply(X)], ensemble.leaf_values[ensemble.apply(X)])
