"""The share of wanted rows in the cell of a tree as a decision diagram over what is chosen of a region.

It starts at the tree's root. At a split it is known of each side whether the region has cells there, or it depends on
a choice; then that choice is asked. A state of the descent is the set of rows that are left in the cell, the splits
that wait for a choice, and what is known of the region as far as it can matter below these splits: equal states are
visited once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ocf.arrays import BoolArray
from ocf.formulations.blocks.diagrams import Diagram, reduced_diagram
from ocf.regional.query import ProbabilityQuery
from ocf.regional.splits import Split, open_sides, split_at

#: Whether each side of a split is open; None where that depends on a choice.
Sides = tuple[bool | None, bool | None]
#: What is known of the region, by feature.
Known = Mapping[int, Any]


class Choices(Protocol):
    """What can be chosen of a region."""

    start: Known

    def sides(self, split: Split, known: Known) -> Sides:
        """Whether the sides of a split are open.

        Parameters
        ----------
        split : Split
        known : mapping of int to object
            What is known of the region, by feature.
        """

    def ask(self, split: Split, known: Known) -> tuple[Any, Known | None, Known | None]:
        """Key of a choice on which the sides depend, and what is known without and with it; None if not allowed.

        Parameters
        ----------
        split : Split
            With a side that depends on a choice.
        known : mapping of int to object
        """

    def relevant(self, known: Known, features: frozenset[int]) -> Hashable:
        """What matters of the known where only splits on some features follow, as ``tuple(known.items())``.

        Parameters
        ----------
        known : mapping of int to object
        features : frozenset of int
            Features of the splits that follow.
        """


def share_diagram(query: ProbabilityQuery, tree: int, choices: Choices, most: int) -> Diagram | None:
    """Share of wanted rows in the cell of a tree, as a diagram over the choices.

    Parameters
    ----------
    query : ProbabilityQuery
    tree : int
    choices : Choices
    most : int
        Most states of the descent.

    Returns
    -------
    Diagram or None
        None if the descent has more states.
    """
    descent = _Descent(query, choices)
    root = int(query.forest.arrays.trees.root[tree])
    return reduced_diagram(descent.settle(descent.everything, [root], choices.start), descent.ask, most)


class _Descent:
    """The descent from the root of a tree: what becomes of a state once its choice is made."""

    def __init__(self, query: ProbabilityQuery, choices: Choices) -> None:
        self._query, self._choices = query, choices
        self._node = query.forest.arrays.trees.node
        self._wanted, self.everything = bits(query.wanted), (1 << len(query.wanted)) - 1
        self._splits: dict[int, tuple[Split, int]] = {}
        self._below: dict[int, frozenset[int]] = {}

    def settle(self, rows: int, nodes: Iterable[int], known: Known | None) -> Hashable | None:
        """State in which all splits wait for a choice; None where what is known is not allowed."""
        if known is None:
            return None
        node, waiting, stack = self._node, [], list(nodes)
        while stack:
            k = stack.pop()
            if node[k, 0] < 0:
                continue
            own, goes_left = self._split(k)
            left, right = self._choices.sides(own, known)
            if left is None or right is None:
                waiting.append(k)
                continue
            if left != right:
                rows &= goes_left if left else self.everything & ~goes_left
            stack += [int(child) for child, is_open in ((node[k, 2], left), (node[k, 3], right)) if is_open]
        if not rows & self._wanted:
            rows, waiting = 0, []
        following = frozenset[int]().union(*map(self._features_below, waiting))
        return rows, tuple(sorted(waiting)), self._choices.relevant(known, following) if waiting else ()

    def ask(self, state: Any) -> float | tuple[Any, Hashable | None, Hashable | None]:
        """Share at a state where nothing waits, or the choice that is asked for and the states without and with it."""
        rows, nodes, items = state
        if not nodes:
            return (rows & self._wanted).bit_count() / rows.bit_count() if rows else 0.0
        key, without, given = self._choices.ask(self._split(nodes[0])[0], dict(items))
        return key, self.settle(rows, nodes, without), self.settle(rows, nodes, given)

    def _split(self, k: int) -> tuple[Split, int]:
        """A split, and the rows that go left."""
        if k not in self._splits:
            own = split_at(self._query, k)
            self._splits[k] = own, bits(own.left[self._query.forest.cells[:, own.feature]])
        return self._splits[k]

    def _features_below(self, k: int) -> frozenset[int]:
        if self._node[k, 0] < 0:
            return frozenset()
        if k not in self._below:
            children = map(self._features_below, map(int, self._node[k, 2:4]))
            self._below[k] = frozenset([int(self._node[k, 0])]).union(*children)
        return self._below[k]


def bits(mask: BoolArray) -> int:
    """A set as the bits of an integer."""
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")


class SetChoices:
    """Which features are in S. Known of a feature: whether it is.

    Parameters
    ----------
    query : ProbabilityQuery
    candidates : sequence of int
        The keys of the choices.
    """

    def __init__(self, query: ProbabilityQuery, candidates: Sequence[int]) -> None:
        self.query, self.candidates = query, frozenset(candidates)
        self.start: Known = {}
        self._sides: dict[tuple[int, bytes], tuple[Sides, Sides]] = {}

    def sides(self, split: Split, known: Known) -> Sides:
        """See `Choices`.

        Parameters
        ----------
        split, known
            See `Choices.sides`.
        """
        outside, inside = self._both(split)
        if outside == inside or split.feature not in self.candidates:
            return outside
        if split.feature not in known:
            return None, None
        return inside if known[split.feature] else outside

    def ask(self, split: Split, known: Known) -> tuple[Any, Known | None, Known | None]:
        """See `Choices`.

        Parameters
        ----------
        split, known
            See `Choices.ask`.
        """
        i = split.feature
        return i, {**known, i: False}, {**known, i: True}

    def relevant(self, known: Known, features: frozenset[int]) -> Hashable:
        """See `Choices`.

        Parameters
        ----------
        known, features
            See `Choices.relevant`.
        """
        return tuple(sorted((i, chosen) for i, chosen in known.items() if i in features))

    def _both(self, split: Split) -> tuple[Sides, Sides]:
        key = split.feature, split.left.tobytes()
        if key not in self._sides:
            held, free = self.query.held, self.query.free
            self._sides[key] = open_sides(self.query, held, split), open_sides(self.query, free, split)
        return self._sides[key]


class Ends(NamedTuple):
    """What is known of a box on an ordered feature: ``low`` and ``high`` are its first and last cell.

    Attributes
    ----------
    low_from, low_to : int
        ``low_from <= low <= low_to``
    high_from, high_to : int
        ``high_from <= high <= high_to``
    """

    low_from: int
    low_to: int
    high_from: int
    high_to: int

    def holds(self, cells: np.ndarray[Any, Any]) -> BoolArray:
        """Which cells may be in the box."""
        return np.asarray((self.low_from <= cells) & (cells <= self.high_to))


class Levels(NamedTuple):
    """What is known of a box on an unordered feature, as bits of integers.

    Attributes
    ----------
    possible, sure : int
        Levels that may be in the box, and that are.
    """

    possible: int
    sure: int

    def holds(self, cells: np.ndarray[Any, Any]) -> BoolArray:
        """Which levels may be in the box."""
        return np.asarray(self.possible >> cells & 1, bool)


class BoxChoices:
    """Where the ends of a box on S lie, and which levels it has; boxes that capture too little are not allowed.

    Parameters
    ----------
    query : ProbabilityQuery
    features : sequence of int
        S. The keys of the choices are ("alpha", i, j): the box lies right of cut j; ("beta", i, j): left of it;
        ("gamma", i, l): it has level l.
    above : float
        Least weight that a box has to capture.
    """

    def __init__(self, query: ProbabilityQuery, features: Sequence[int], above: float) -> None:
        self.query, self.above = query, above
        self.start: Known = {i: _nothing_known(query, i) for i in features}
        weights = query.weights(features)
        rows = np.flatnonzero((weights > 0) & query.forest.inside(query.free, features))
        self._cells, self._weights = query.forest.cells[rows], weights[rows]
        self._heavy: dict[Hashable, bool] = {}

    def sides(self, split: Split, known: Known) -> Sides:
        """See `Choices`.

        Parameters
        ----------
        split, known
            See `Choices.sides`.
        """
        own = known.get(split.feature)
        if own is None:
            return open_sides(self.query, self.query.held, split)
        if isinstance(own, Ends):
            j = split.cut
            return _settled(own.low_to <= j, own.low_from > j), _settled(own.high_from > j, own.high_to <= j)
        left = bits(split.left)
        return (
            _settled(bool(own.sure & left), not own.possible & left),
            _settled(bool(own.sure & ~left), not own.possible & ~left),
        )

    def ask(self, split: Split, known: Known) -> tuple[Any, Known | None, Known | None]:
        """See `Choices`.

        Parameters
        ----------
        split, known
            See `Choices.ask`.
        """
        i, j = split.feature, split.cut
        own, (left, _) = known[i], self.sides(split, known)
        key: Any
        answers: tuple[Ends | Levels, Ends | Levels]
        if isinstance(own, Ends):
            a, b, c, d = own
            if left is None:
                key, answers = ("alpha", i, j), (Ends(a, min(b, j), c, d), Ends(j + 1, b, max(c, j + 1), d))
            else:
                key, answers = ("beta", i, j), (Ends(a, b, max(c, j + 1), d), Ends(a, min(b, j), c, j))
        else:
            side = bits(split.left) if left is None else ~bits(split.left)
            unsettled = own.possible & ~own.sure & side
            level = unsettled & -unsettled
            rest = own.possible & ~level
            only = rest if rest.bit_count() == 1 else own.sure  # some level is in the box
            key, answers = (
                ("gamma", i, level.bit_length() - 1),
                (Levels(rest, only), own._replace(sure=own.sure | level)),
            )
        without, given = (self._allowed({**known, i: answer}) for answer in answers)
        return key, without, given

    def relevant(self, known: Known, features: frozenset[int]) -> Hashable:
        """See `Choices`.

        Parameters
        ----------
        known, features
            See `Choices.relevant`.
        """
        return tuple(
            (i, own if i in features else _ended(own)) for i, own in known.items() if i in features or self.above > 0
        )

    def possible(self, key: Any) -> bool:
        """Whether some box heavy enough lies right or left of a cut: keys ("alpha", i, j) and ("beta", i, j)."""
        name, i, j = key
        own: Ends = self.start[i]
        side = own._replace(low_from=j + 1) if name == "alpha" else own._replace(high_to=j)
        return self._allowed({**self.start, i: side}) is not None

    def _allowed(self, known: Known) -> Known | None:
        """The known, or None when all that may be in the box captures too little."""
        if self.above <= 0:
            return known
        key = tuple((own[0], own[-1]) if isinstance(own, Ends) else own.possible for own in known.values())
        if key not in self._heavy:
            inside = np.logical_and.reduce([own.holds(self._cells[:, i]) for i, own in known.items()])
            self._heavy[key] = bool(self._weights[inside].sum() > self.above - 1e-9)
        return known if self._heavy[key] else None


def _nothing_known(query: ProbabilityQuery, i: int) -> Ends | Levels:
    if query.forest.partition.ordered[i]:
        low, high = int(query.free.low[i]), int(query.free.high[i])
        return Ends(low, high, low, high)
    levels = bits(query.forest.cells_of(query.free, i))
    return Levels(levels, levels if levels.bit_count() == 1 else 0)


def _ended(own: Ends | Levels) -> Ends | Levels:
    """The same where nothing but the cells that may be in the box matters."""
    if isinstance(own, Ends):
        return Ends(own.low_from, own.high_to, own.low_from, own.high_to)
    return Levels(own.possible, 0)


def _settled(is_open: bool, is_shut: bool) -> bool | None:
    return True if is_open else False if is_shut else None
