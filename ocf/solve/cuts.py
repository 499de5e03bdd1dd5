"""The cells of a model's trees, for each kind of row that is asked about."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from ocf.arrays import FloatArray, IntArray
from ocf.cells.nearby import Pruner
from ocf.cells.partition import Partition, partition
from ocf.errors import DataError, ModelError
from ocf.features.lattice import rounded
from ocf.features.space import FeatureSpace
from ocf.models.detector import Detector
from ocf.models.encoding import Encoder, Encoding
from ocf.models.gaps import Gaps
from ocf.models.known_rows import KnownRows
from ocf.models.lift import Lifted, check_lift, lift, why_unproven
from ocf.models.stepped_lines import with_steps
from ocf.models.target_rows import MOST_TARGETS
from ocf.models.three_ways import check_decisions, check_three_ways, encoded
from ocf.models.user_model import UserModel
from ocf.problem.isolation_depth import IsolationDepth
from ocf.problem.problem import Problem
from ocf.problem.targets import Target
from ocf.solve.matrices import KeptMatrices
from ocf.support.kept import Kept
from ocf.trees.ensemble import Ensemble, splits_alike, values_alike
from ocf.trees.joining import split_trees

if TYPE_CHECKING:
    from ocf.solve.tree_search import TreeSearch

#: Of how many kinds of rows (what they miss, their dtypes, the isolation forest) the cells are kept.
MOST_KINDS = 256


class Key(NamedTuple):
    """Under which a cut is kept.

    Attributes
    ----------
    gaps : Gaps
    detector : hashable
        Key of the isolation forest beside the model; None without one.
    dtypes : tuple of str
        Of the row, where they matter and are not those of the data.
    """

    gaps: Gaps
    detector: Hashable
    dtypes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Cut:
    """Trees over features, cut into cells, with what rows share of them.

    Attributes
    ----------
    lifted : Lifted
        All trees, over features.
    part : Partition
        Their cells.
    space : FeatureSpace
        By whose levels they were cut.
    model : Ensemble
        The trees of the model among them.
    depth : IsolationDepth or None
        The isolation trees behind those, and what is asked of them.
    """

    lifted: Lifted
    part: Partition
    space: FeatureSpace
    model: Ensemble
    depth: IsolationDepth | None = None

    @cached_property
    def pruner(self) -> Pruner:
        """Leaves out the leaves far from a row."""
        return Pruner(self.part)

    @cached_property
    def search(self) -> TreeSearch:
        """What all queries of the leaves share."""
        from ocf.solve.tree_search import TreeSearch  # with its formulation, which other searches do without

        return TreeSearch(self.part)

    @cached_property
    def matrices(self) -> Kept[tuple[str, Target], KeptMatrices]:
        """Compiled formulations, by name and target."""
        return Kept(MOST_TARGETS)

    @cached_property
    def known(self) -> Kept[Target, IntArray]:
        """Cells of the data's rows that have a target."""
        return Kept(MOST_TARGETS)

    def __getstate__(self) -> dict[str, Any]:
        """State for worker processes, where what searches the trees is made anew."""
        return {name: value for name, value in self.__dict__.items() if name not in ("pruner", "search")}

    def is_of(self, problem: Problem) -> bool:
        """Whether the cells are those of a problem, which may come from a file, another process or another model."""
        if problem.ensemble is self.model and problem.plausibility is self.depth:
            return True
        if (self.depth is None) != (problem.plausibility is None):
            return False
        if not all(splits_alike(own, asked) for own, asked in self._beside(problem)):
            return False
        # cells end at splits, between levels and around values that are no numbers
        own, asked = (
            [(f.name, f.kind, f.levels, f.n_codes, *f.special_values.tolist()) for f in space.features]
            for space in (self.space, problem.space)
        )
        return own == asked

    def gives_values_of(self, problem: Problem) -> bool:
        """Whether the leaves are worth what those of a problem of these cells are."""
        return all(own is asked or values_alike(own, asked) for own, asked in self._beside(problem))

    def _beside(self, problem: Problem) -> list[tuple[Ensemble, Ensemble]]:
        """The model's trees and the isolation trees, each beside those of a problem."""
        pairs = [(self.model, problem.ensemble)]
        if self.depth is not None and problem.plausibility is not None:
            pairs.append((self.depth.forest, problem.plausibility.forest))
        return pairs


class Cuts:
    """The cells of a model's trees, by what a row misses, its dtypes and the isolation forest; each is made once.

    Parameters
    ----------
    model : UserModel
    space : FeatureSpace
        In the dtypes of the data.
    data : KnownRows
    checked : (n, n_features) float64, optional
        Coded rows by which what was read is held against the library; by default nothing is.
    """

    def __init__(
        self, model: UserModel, space: FeatureSpace, data: KnownRows, checked: FloatArray | None = None
    ) -> None:
        self.model = model
        self._space, self._data, self._checked = space, data, checked
        self._encodings: Kept[tuple[str, ...], Encoding] = Kept(MOST_KINDS)
        self._made: Kept[Key, Cut] = Kept(MOST_KINDS)

    @cached_property
    def ensemble(self) -> Ensemble:
        """The model's trees, over what the steps before them make of the features."""
        return with_steps(self.model.trees.ensemble, self.encoding_of(self._space))

    def encoding_of(self, space: FeatureSpace) -> Encoding:
        """The way from features in the dtypes of `space` to model columns."""

        def made() -> Encoding:
            base = rounded(space, self._data.base(self._space)[None])[0]
            return Encoding(space, self.model.encode, base, self.model.preprocessing.read, self.model.numbers)

        return self._encodings.get(tuple(f.dtype for f in space.features), made)

    def cut(self, gaps: Gaps, detector: Detector | None = None, space: FeatureSpace | None = None) -> Cut:
        """Cells of all trees, with the isolation trees behind those of the model.

        Parameters
        ----------
        gaps : Gaps
            Which features are missing, and of which that is a value like others.
        detector : Detector, optional
            Whose isolation trees are added.
        space : FeatureSpace, optional
            With the dtypes of the rows; by default those of the data.
        """
        space = space or self._space
        key = self._key(gaps, detector, space)
        return self._made.get(key, lambda: self._make(gaps, detector, space if key.dtypes else self._space))

    def _make(self, gaps: Gaps, detector: Detector | None, space: FeatureSpace) -> Cut:
        encoding = self.encoding_of(space)
        ensemble = self.ensemble if space is self._space else with_steps(self.model.trees.ensemble, encoding)
        if detector is not None:
            if (gaps.missing or gaps.supplied) and detector.forest.ensemble.missing_left is None:
                raise DataError(
                    "the row has missing values (NaN), and no rule of the isolation forest for them is read: fill them "
                    "in, or leave out the plausibility"
                )
            ensemble, encoding = detector.beside(ensemble, encoding)
        lifted = lift(ensemble, encoding, gaps.missing, gaps.supplied)
        if self._checked is not None and not gaps.missing:
            check_lift(lifted, ensemble, encoding, gaps.supplied)
        opened = gaps.opened(self._space)
        part = partition(lifted.ensemble, opened)
        if self._checked is not None:
            self._check_rows(self._checked, ensemble, lifted, encoding, part, gaps)
        if detector is None:
            return Cut(lifted, part, opened, part.ensemble)
        own, forest = split_trees(part.ensemble, self.ensemble)
        return Cut(lifted, part, opened, own, detector.requirement(forest))

    def of_problem(self, problem: Problem) -> Cut:
        """The cells that a problem's trees were taken from; else those of the model by itself.

        A problem with trees of its own (completions, margins, another explainer's) has the latter, which are not its
        own: see `shared`.
        """
        if (depth := problem.plausibility) is not None:
            for cut in self._made.values():
                if cut.depth is depth:
                    return cut
        return self.cut(Gaps.of_problem(problem), None, problem.space)

    def shared(self, problem: Problem) -> Cut | None:
        """The cells of a problem that other rows have too; None where they are the row's own.

        So are those of a problem that was read from a file, or is of another explainer.
        """
        if problem.cuts_cells:
            return None
        cut = self.of_problem(problem)
        return cut if cut.is_of(problem) else None

    def unproven(self, problem: Problem) -> str:
        """Why nothing is proven of a problem through the user's preprocessing; empty where proofs hold."""
        cuts = [self.of_problem(problem)]
        if problem.completions is not None and problem.plausibility is not None:
            cuts += [cut for cut in self._made.values() if cut.depth is not None]
        return next(filter(None, (why_unproven(cut.lifted) for cut in cuts)), "")

    def encoded(self, table: pd.DataFrame, encode: Encoder) -> FloatArray:
        """Model columns of rows; names the level where the preprocessing refuses one.

        Parameters
        ----------
        table : DataFrame (n, n_columns)
        encode : callable
            Table -> model columns.
        """
        try:
            return encoded(encode, table)
        except ModelError:
            for i in np.flatnonzero(self._space.discrete).tolist():
                self.encoding_of(self._space).levels(i)
            raise

    def _check_rows(
        self,
        checked: FloatArray,
        ensemble: Ensemble,
        lifted: Lifted,
        encoding: Encoding,
        part: Partition,
        gaps: Gaps,
    ) -> None:
        """Hold leaves of rows of the data, and the user's own answers, against the trees (but for oblique ones).

        The columns of the isolation trees, where there are some, lie behind those of the model.
        """
        rows = checked[gaps.holds(checked) & encoding.knows(checked)]
        if not len(rows):
            return
        coded = gaps.opened(encoding.space).with_missing(rounded(encoding.space, rows))
        table = encoding.space.to_frame(coded)
        columns = self.encoded(table, encoding.encode)
        check_three_ways(ensemble, lifted, columns, part, encoding.space, coded)
        if not self.ensemble.is_oblique:
            own = columns[:, : self.ensemble.n_features]
            check_decisions(self.ensemble, own, np.asarray(self.model.decide(table)))

    def _key(self, gaps: Gaps, detector: Detector | None, space: FeatureSpace) -> Key:
        """The key of a row.

        Without a preprocessing the dtypes of a row do not matter: the trees compare the numbers themselves.
        """
        through = bool(self.model.preprocessing.steps) or detector is not None
        dtypes = tuple(f.dtype for f in space.features)
        own = through and dtypes != tuple(f.dtype for f in self._space.features)
        return Key(gaps, None if detector is None else detector.key, dtypes if own else ())

    def __getstate__(self) -> dict[str, Any]:
        """State for worker processes; encoders are made anew there."""
        return {**self.__dict__, "_encodings": Kept(MOST_KINDS)}
