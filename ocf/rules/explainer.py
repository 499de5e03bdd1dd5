"""Counterfactual rules: ranges of values that give a row, or a region, the wanted answer with high probability.

Source: Amoukou and Brunel, Local and Regional Counterfactual Rules: Summarized and Robust Recourses (2024).

Unlike `ocf.explain.explainer`, this needs no trees to explain: any model with ``predict`` will do, or none, since a
random forest is fitted to the model's predictions or to observed answers and everything is estimated from it
(`ocf.regional.forest`).

Choices where the paper is silent
---------------------------------
* *No set reaches the level.* CDP_S >= pi is often out of reach: a set that leaves out what speaks against the target
  keeps what speaks for it, and a row seldom has enough of that. The set with the largest CDP_S is taken then, and
  marked (``divergent`` is False); the rule on it still has to reach its own level.
* *Regions.* The paper takes them as given; the authors' experiments take maximal sufficient rules of a thousand
  training rows and give a row the one whose counterfactual rule is most probable. `CounterfactualRules.regions`
  proposes either these or leaves of the forest, whose training rows mostly lack the target, chosen greedily to cover as
  many rows as possible.
* *Which rule a point is looked for in.* The authors' code anneals within its most probable rule, of which the text does
  not speak. The largest rule at a level is just as precise as the level, so that the least outlying of its points may
  well lie where it fails; ``prefer="probable"`` asks for the largest rule at the highest probability of a leaf.
* *Monotone features in a region.* Every row of the region must be able to make the change, so a feature that may only
  rise is free from the region's upper end on.
* *Values that do not exist.* Thresholds between the same two values of a feature, such as 2.0 and 2.5 of whole numbers,
  are taken for one, so that a box has the probability of the values that it names. An ordinal feature of which a level
  between permitted ones is not permitted is split like a category.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.errors import DataError, ModelError, ProblemError
from ocf.features.asked_rows import NO_ROWS, frames_of, rows_of
from ocf.features.feature import Feature
from ocf.features.frames import kind_of, table_of
from ocf.features.inference import as_table, infer_space
from ocf.features.space import FeatureSpace
from ocf.models.user_model import UserModel
from ocf.problem.costs import Cost
from ocf.problem.targets import wanted_class
from ocf.regional.forest import CellBox
from ocf.regional.query import ProbabilityQuery
from ocf.rules.answering import AnsweringModel, distinct, plain_answer
from ocf.rules.conditions import Condition, intervals_of
from ocf.rules.covering import (
    SUFFICIENT_ROWS,
    RegionalSet,
    RegionWish,
    assigned,
    check_most,
    check_region_share,
    chosen_regions,
    cover,
    proposed_regions,
)
from ocf.rules.finding import PREFERENCES, TIME_LIMIT, RuleSearch, check_choice, find_boxes, find_features
from ocf.rules.fitting import fit_forest
from ocf.rules.objects import ChangeSet, Rule, RulePoint, RuleSet, RuleSets, Subgroup
from ocf.rules.points import FoundPoint, IsolationTrees, annealed_point, cheapest_point, most_plausible_point
from ocf.rules.reachable import (
    complete_rows,
    conditions_of,
    free_cells,
    reachable_from_all,
    reachable_from_row,
    region_of_words,
    subgroup_of,
)
from ocf.rules.search import FoundBox, most_used
from ocf.rules.trading import LEVELS, checked_levels, safe_points
from ocf.rules.wanted import Wanted, is_regression
from ocf.solvers.result import SolverOptions
from ocf.support.amounts import is_whole, real_number
from ocf.support.documents import check_names
from ocf.support.interruption import Interruption, is_interruption
from ocf.support.limits import memory_of, within
from ocf.support.messages import counted, listed
from ocf.support.progress import ProgressBar

logger = logging.getLogger(__name__)

POINT_METHODS = ("annealing", "milp", "cheapest")

#: Of a rule that is not probable at all for some row, any part is looked into.
LEAST_LEVEL = 1e-9


# long: half of it says what users may ask and what they get
class CounterfactualRules:
    """Local and regional counterfactual rules of a model or of observed answers.

    Parameters
    ----------
    model : object with ``predict``, UserModel, or None
        Anything that predicts for tables like `X`, for instance a scikit-learn Pipeline. None with `y`: the rules are
        about the observed answers.
    X : table of any kind, or array (n, n_columns)
        Training rows, without missing values.
    y : (n,) array, optional
        Observed answers, to which the forest is fitted; by default it is fitted to the model's predictions.
    features : mapping of feature name to settings, or FeatureSpace, optional
        See `ocf.features.inference.infer_space`. Fixed features never change.
    groups : bool
        Whether indicator columns of one category, as ``pandas.get_dummies`` makes them, are recognised and change
        together, as by `ocf.Explainer`.
    features_to_vary : "all" or list of names
        The others are fixed.
    regression : bool, optional
        Whether answers are numbers and targets intervals. Default: floats that are not whole are.
    candidates : int
        K: only subsets of the K most used features of the forest are considered.
    level : float
        The paper's pi, for the probability that changing a set of features gives the target; calls may say another.
    rule_level : float
        The paper's pi_C, for the probability of the target inside a rule; calls may say another.
    n_estimators, max_depth, seed, forest
        Of the regional forest; `forest` holds further settings of scikit-learn's.
    memory_limit : float or str, optional
        As in `ocf.Explainer.explain`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> rules = CounterfactualRules(KNeighborsClassifier().fit(X, y), X)
    >>> print(rules.local(X.iloc[[70]], target=1)[0])  # doctest: +SKIP
    """

    def __init__(
        self,
        model: Any,
        X: pd.DataFrame | ArrayLike,
        y: ArrayLike | None = None,
        *,
        features: Mapping[str, Mapping[str, Any]] | FeatureSpace | None = None,
        groups: bool = True,
        features_to_vary: Iterable[str] | Literal["all"] = "all",
        regression: bool | None = None,
        candidates: int = 10,
        level: float = 0.9,
        rule_level: float = 0.9,
        n_estimators: int = 20,
        max_depth: int | None = 10,
        seed: int = 0,
        memory_limit: float | str | None = None,
        forest: Mapping[str, Any] | None = None,
    ) -> None:
        RuleSearch(level=level, rule_level=rule_level)  # refuses what is no probability
        if not isinstance(candidates, int | np.integer) or not 1 <= real_number(candidates) <= 25:
            raise ProblemError(
                f"candidates is a whole number between 1 and 25, not {candidates!r}: 2**candidates sets are tried"
            )
        if model is None and y is None:
            raise ProblemError("give a model with predict, or the observed answers y")
        if model is not None and not isinstance(model, UserModel) and not hasattr(model, "predict"):
            raise ModelError(f"{type(model).__name__} has no method predict: give a fitted model or a Pipeline")
        memory_of(memory_limit)  # refuses what is no amount
        self.memory_limit = memory_limit
        self.level, self.rule_level, self.seed = float(level), float(rule_level), seed
        table, self._frames = as_table(X), kind_of(X)
        own = features if isinstance(features, FeatureSpace) else infer_space(table, features, groups=groups)
        self.space = own.varying(features_to_vary)
        self._answering = AnsweringModel(model, self.space, table, self._frames, array=table_of(X) is None)
        self.model = self._answering.model
        self.rows = self.space.from_frame(table)
        predicted = None if model is None else self._answering.to_data(table, self.rows)
        answers = np.asarray(predicted if y is None else y)
        if answers.dtype == object and answers.ndim == 1:  # numbers may stand among objects
            answers = pd.Series(answers).infer_objects().to_numpy()
        self.regression = is_regression(answers) if regression is None else regression
        if answers.ndim != 1 or pd.isna(answers).any():
            raise DataError("answers must be one per row, without missing ones")
        if self.regression and answers.dtype.kind == "f" and not np.isfinite(answers).all():
            raise DataError("answers must be finite numbers: leave out the rows where they are infinite")
        self.classes = () if self.regression else distinct(answers)
        if not self.regression and len(self.classes) < 2:
            raise DataError(f"all answers are {self.classes[0]!r}: there is nothing that a change could turn")
        self.forest = fit_forest(
            self.space, self.rows, answers, regression=self.regression, n_estimators=n_estimators,
            max_depth=max_depth, seed=seed, **(forest or {}),
        )  # fmt: skip
        self.n_candidates = candidates
        self._changeable = np.array([f.action != "fixed" for f in self.space.features])
        self.candidates = most_used(self.forest.use, self._changeable, candidates)
        if not self.candidates:
            raise ProblemError("no feature may change: every one is fixed or not used by the forest")

    # -- questions -----------------------------------------------------------------------------------------

    def local(
        self,
        x: pd.DataFrame | pd.Series[Any] | ArrayLike,
        target: Any = None,
        *,
        level: float | None = None,
        rule_level: float | None = None,
        n_rules: int = 1,
        prefer: str = "large",
        sets: str = "exhaustive",
        method: str = "search",
        solver: str = "highs",
        time_limit: float | None = TIME_LIMIT,
        every_set: bool = False,
        answer: Any = None,
    ) -> RuleSet:
        """Rules for one row.

        Parameters
        ----------
        x : one row
            A table of any kind with one row, a Series, a dict, or an array.
        target : object
            A class, or for regression a pair ``(lowest, highest)``; by default the other of two classes.
        level, rule_level : float, optional
            Probabilities that the set and the rule have to reach; by default those of the class.
        n_rules : int
            Disjoint rules at most.
        prefer : {"large", "probable"}
            The rule that covers most at `rule_level`, or the largest one that is as probable as the most probable leaf
            of the forest, in which the authors' own experiments look for points.
        sets : {"exhaustive", "milp", "paths"}
            How the minimal divergent explanation is found: exactly over all subsets of the `candidates` most used
            features, by trying them or by a mathematical model; or, the paper's other way, over the sets that decision
            paths of the forest split on, of all features that may change.
        method : {"search", "greedy", "milp"}
            How rules are found: the largest by branch and bound or by the mathematical model, or the paper's merging of
            leaves, which also starts the other two.
        solver : {"highs", "scip"}
            For ``"milp"``.
        time_limit : float or None
            Seconds for each rule; when they are over, the best rule so far is given with a bound.
        every_set : bool
            Whether all minimal divergent explanations are named (`RuleSet.others`); the rules are about the most
            probable one.
        answer : object, optional
            What the row has now, such as an observed answer; by default what the model gives it.

        Returns
        -------
        RuleSet
        """
        begin = time.perf_counter()
        search = self._search(
            level, rule_level, n_rules=n_rules, prefer=prefer, sets=sets, method=method, solver=solver,
            time_limit=time_limit, every_set=every_set,
        )  # fmt: skip
        table, coded = self._row(x)
        predicted = self._answering.first(coded) if answer is None else self._known([answer])[0]
        wanted = self._wanted(target, predicted)
        original = dict(zip(self.space.names, map(Feature.label, self.space.features, coded[0]), strict=True))
        blank = RuleSet(table.index[0], "local", predicted, wanted.words, original=original)
        if predicted is not None and wanted.holds(np.array([predicted]))[0]:
            return replace(blank, status="already", seconds=time.perf_counter() - begin)
        return self._solve(self._local_query(coded, wanted), blank, begin, search)

    def query(
        self, where: pd.DataFrame | pd.Series[Any] | ArrayLike | Subgroup | Mapping[str, Any], target: Any
    ) -> ProbabilityQuery:
        """What is asked of the forest about a row, or a region: for `ocf.rules.search` and `ocf.rules.solving`.

        Parameters
        ----------
        where : one row, or a region as in `regional`
        target : object
        """
        wanted = self._wanted(target, None)
        if isinstance(where, Subgroup | Mapping):
            return self._regional_query(where, wanted)
        return self._local_query(self._row(where)[1], wanted)

    def _local_query(self, coded: FloatArray, wanted: Wanted) -> ProbabilityQuery:
        held = self.forest.at(self.forest.partition.locate(coded)[0])
        free = free_cells(self.forest, reachable_from_row(self.space, coded[0]), held)
        return ProbabilityQuery(self.forest, held, free, wanted.holds(self.forest.answers))

    def _regional_query(self, region: Subgroup | Mapping[str, Any], wanted: Wanted) -> ProbabilityQuery:
        if not isinstance(region, Subgroup | Mapping):
            raise ProblemError(
                f"a region is one of `regions` or `region_of`, or a mapping such as {{{self.space.names[0]!r}: …}}, "
                f"not {region!r}"
            )
        held = region.region if isinstance(region, Subgroup) else region_of_words(self.forest, self.space, region)
        free = free_cells(self.forest, reachable_from_all(self.forest, self.space, held), held)
        return ProbabilityQuery(self.forest, held, free, wanted.holds(self.forest.answers))

    def local_many(
        self,
        rows: pd.DataFrame | ArrayLike,
        target: Any = None,
        *,
        answers: ArrayLike | None = None,
        progress: bool | None = None,
        **settings: Any,
    ) -> RuleSets:
        """Rules for each of several rows; see `local` for the settings.

        Parameters
        ----------
        rows : table, list of dicts, or array (n, n_columns)
        target : object
            Of every row, as in `local`.
        answers : (n,) array, optional
            What the rows have now, as in `local`.
        progress : bool, optional
            Whether to show a bar; by default on a terminal.
        **settings
            See `local`.

        Returns
        -------
        RuleSets
            One for each row, in order; after Ctrl-C those of the rows that are finished.
        """
        table = self._rows(rows)
        complete_rows(self.space, table)  # refuses a row before others are worked on
        own = [None] * len(table) if answers is None else self._known(answers, len(table))
        return _ask_each_row(
            len(table), lambda k: self.local(table.iloc[[k]], target, answer=own[k], **settings), progress
        )

    def regional(self, region: Subgroup | Mapping[str, Any], target: Any = None, **settings: Any) -> RuleSet:
        """Rules for all rows of a region.

        Parameters
        ----------
        region : Subgroup or mapping
            Of `regions` or `region_of`, or by feature ``(lowest, highest)`` with None for open ends, dates where it
            holds such, or a list of levels. The features that it does not name are not held.
        target : object
            As in `local`; it must be named.
        **settings
            See `local`.
        """
        begin = time.perf_counter()
        search = self._search(**settings)
        wanted = self._wanted(target, None)
        query = self._regional_query(region, wanted)
        blank = RuleSet(None, "regional", None, wanted.words, conditions_of(self.forest, self.space, query.held))
        return self._solve(query, blank, begin, search)

    def lacks(self, rows: pd.DataFrame | ArrayLike, target: Any, answers: ArrayLike | None = None) -> BoolArray:
        """Which rows the model does not give the target, (n,); all of them without a model.

        Parameters
        ----------
        rows : table, list of dicts, or array (n, n_columns)
        target : object
            As in `local`.
        answers : (n,) array, optional
            What the rows have now, as in `local`.
        """
        coded = self.space.from_frame(self._rows(rows))
        if answers is not None:
            own = pd.Series(self._known(answers, len(coded))).to_numpy()
            return ~self._wanted(target, None).holds(own)
        if self.model is None:
            return np.ones(len(coded), bool)
        return ~self._wanted(target, None).holds(self._answering.predicted(coded))

    def regions(
        self,
        target: Any,
        X: pd.DataFrame | ArrayLike | None = None,
        *,
        most: int | None = 10,
        share: float = 0.9,
        kind: str = "leaves",
        rows: int = SUFFICIENT_ROWS,
    ) -> list[Subgroup]:
        """Regions of rows that lack the target, chosen greedily to cover most of them.

        Parameters
        ----------
        target : object
        X : table, list of dicts, or array (n, n_columns), optional
            Rows to cover, of which those that have the target are left out; by default the training rows.
        most : int or None
            Regions at most; None for all that hold a row.
        share : float
            Least share of a region's training rows that lack the target.
        kind : {"leaves", "sufficient"}
            Leaves of the forest, or maximal sufficient rules: boxes on few features in which the target lacks with
            probability `share`, as the authors' experiments take them.
        rows : int
            Of sufficient rules: how many training rows they are made of, drawn at random.
        """
        check_most(most)
        groups, cells = self._proposed(target, X, kind, share, rows)
        holds = [self.forest.holds(group.region, cells) for group in groups]
        return [groups[k] for k in cover(holds, [group.support for group in groups], lambda _: True, most)]

    def _proposed(
        self,
        target: Any,
        X: pd.DataFrame | ArrayLike | None,
        kind: str,
        share: float,
        rows: int,
        answers: ArrayLike | None = None,
    ) -> tuple[list[Subgroup], IntArray]:
        """Regions to choose from, and the cells of the rows that they are to cover."""
        wish = RegionWish(kind, share, rows, self.n_candidates)
        lacking, cells = self._lacking(target), None
        if X is not None:
            table = self._rows(X)
            cells = self.forest.partition.locate(complete_rows(self.space, table))[self.lacks(table, target, answers)]
        with within(memory=memory_of(self.memory_limit)):
            groups = proposed_regions(self.forest, self.space, lacking, cells, wish, self.seed)
        return groups, self.forest.cells[lacking] if cells is None else cells

    def _lacking(self, target: Any) -> BoolArray:
        """Which training rows lack the target."""
        return ~self._wanted(target, None).holds(self.forest.answers)

    def region_of(self, x: pd.DataFrame | pd.Series[Any] | ArrayLike, target: Any, *, share: float = 0.9) -> Subgroup:
        """The largest leaf around a row whose training rows lack the target, up to a share of the others.

        Where no leaf around the row has that share, the one with the largest share is given.

        Parameters
        ----------
        x : one row
        target : object
            As in `local`.
        share : float
            Of a leaf's training rows, from which on only the number of rows counts.
        """
        check_region_share(share)
        return max(self._subgroups_around(x, target), key=lambda g: (min(g.share, share), g.support))

    def _subgroups_around(self, x: pd.DataFrame | pd.Series[Any] | ArrayLike, target: Any) -> list[Subgroup]:
        """The leaves around a row."""
        part, lacking = self.forest.partition, self._lacking(target)
        leaves = part.leaves_at(part.locate(self._row(x)[1])[0])
        return [subgroup_of(self.forest, self.space, self.forest.leaf(int(k)), lacking) for k in leaves]

    def regional_of(
        self,
        x: pd.DataFrame | pd.Series[Any] | ArrayLike,
        target: Any,
        *,
        share: float = 0.9,
        **settings: Any,
    ) -> RuleSet:
        """The rules of that leaf around a row whose rule is the most probable; of equals, the leaf with most rows.

        Where no leaf has a rule, the answer for `region_of` is given, without one.

        Parameters
        ----------
        x : one row
        target : object
            As in `local`.
        share : float
            Least share of a leaf's training rows that lack the target; where none has it, the leaf with the largest
            share is asked.
        **settings
            See `regional`.
        """
        return self._best_around(x, target, share, lambda group: self.regional(group, target, **settings))

    def _best_around(
        self,
        x: pd.DataFrame | pd.Series[Any] | ArrayLike,
        target: Any,
        share: float,
        ask: Callable[[Subgroup], RuleSet],
    ) -> RuleSet:
        """The answer of the leaf around a row whose rule is the most probable."""
        check_region_share(share)
        fit = [group for group in self._subgroups_around(x, target) if group.share >= share]
        best, *others = sorted(fit or [self.region_of(x, target, share=share)], key=lambda group: -group.support)
        found = ask(best)
        for group in others:
            if _precision(found) >= 1:
                break
            found = max(found, ask(group), key=_precision)
        return found

    def regional_many(
        self,
        X: pd.DataFrame | ArrayLike,
        target: Any,
        *,
        share: float = 0.9,
        answers: ArrayLike | None = None,
        progress: bool | None = None,
        **settings: Any,
    ) -> RuleSets:
        """The rules of `regional_of` for the rows that lack the target, each region once.

        Parameters
        ----------
        X : table, list of dicts, or array (n, n_columns)
        target : object
            As in `local`.
        share : float
            As in `regional_of`.
        answers : (n,) array, optional
            What the rows have now, as in `local`.
        progress : bool, optional
            Whether to show a bar; by default on a terminal.
        **settings
            See `regional`.

        Returns
        -------
        RuleSets
            In the order of the first row of each region; after Ctrl-C those of the rows that are finished.
        """
        table, known = self._rows(X), dict[CellBox, RuleSet]()
        lacking = table[self.lacks(table, target, answers)]

        def ask(group: Subgroup) -> RuleSet:
            if group.region not in known:
                known[group.region] = self.regional(group, target, **settings)
            return known[group.region]

        found = _ask_each_row(
            len(lacking), lambda k: self._best_around(lacking.iloc[[k]], target, share, ask), progress
        )
        return RuleSets({id(own): own for own in found}.values(), interrupted=found.interrupted)

    def regional_set(
        self,
        X: pd.DataFrame | ArrayLike,
        target: Any,
        *,
        most: int | None = 10,
        share: float = 0.9,
        kind: str = "leaves",
        rows: int = SUFFICIENT_ROWS,
        answers: ArrayLike | None = None,
        **settings: Any,
    ) -> RegionalSet:
        """A few regions with a rule each that together hold the rows that lack the target, and which row has which.

        The regions are chosen greedily to cover most of these rows; one without a rule is passed over. A row is given
        that one of the regions around it whose rule is most probable.

        Parameters
        ----------
        X : table, list of dicts, or array (n, n_columns)
            Rows to cover; those that have the target already are left out.
        target : object
            As in `regional`.
        most, share, kind, rows
            As in `regions`.
        answers : (n,) array, optional
            What the rows of `X` have now, as in `local`.
        **settings
            See `regional`.
        """
        check_most(most)
        groups, cells = self._proposed(target, X, kind, share, rows, answers)
        regions, rules = chosen_regions(
            self.forest, cells, groups, lambda group: self.regional(group, target, **settings), most
        )
        given = assigned(self.forest, cells, regions, rules)
        covered = given[given >= 0]
        precision = float(np.mean([rules[k][0].precision for k in covered])) if len(covered) else np.nan
        coverage = len(covered) / max(len(given), 1)
        return RegionalSet(regions, rules, coverage, precision, self.space, self.forest)

    def sample(
        self,
        rule: Rule | RuleSet,
        x: pd.DataFrame | pd.Series[Any] | ArrayLike,
        target: Any = None,
        *,
        prefer: str = "large",
        method: str = "annealing",
        norm: str | Mapping[str, float] = "l1",
        iterations: int = 500,
        seed: int | None = None,
        solver: str = "highs",
        time_limit: float | None = 10.0,
    ) -> RulePoint:
        """A point inside a rule, as a change of one row.

        Parameters
        ----------
        rule : Rule or RuleSet
            Of a set, its first rule.
        x : one row
        target : object
            To say whether the model gives it; by default nothing is said.
        prefer : {"large", "probable"}
            Whether any point of the rule will do, or the point is looked for in the part of the rule that is most
            probable for this row; the target must be known then.
        method : {"annealing", "milp", "cheapest"}
            The most plausible point by the paper's simulated annealing or, proven, by a mathematical model over the
            isolation forest; or the cheapest point, in closed form.
        norm : str or mapping
            Of ``"cheapest"``.
        iterations, seed : int
            Of the annealing.
        solver, time_limit
            Of ``"milp"``.
        """
        check_choice("method", method, POINT_METHODS)
        check_choice("prefer", prefer, PREFERENCES)
        for name, value in (("iterations", iterations), ("seed", 0 if seed is None else seed)):
            if not is_whole(value, 0):
                raise ProblemError(f"{name} is a whole number of at least 0, not {value!r}")
        table, coded = self._row(x)
        origin = coded[0]
        if isinstance(rule, RuleSet):
            if not rule.rules:
                raise ProblemError("the set has no rule, so there is no point to look for")
            rule = rule[0]
        if not isinstance(rule, Rule):
            raise ProblemError(f"a point is looked for in a rule, or in the first of a set of rules, not in {rule!r}")
        if prefer == "probable":
            rule = self._most_probable_part(rule, coded, target)
        if method == "cheapest":
            point = cheapest_point(self.space, origin, rule.intervals, Cost.parse(norm))
            found = FoundPoint(point, float(self.isolation.depth(point)[0]))
        elif method == "annealing":
            own = self.seed if seed is None else seed
            found = annealed_point(self.isolation, origin, rule.intervals, iterations=iterations, seed=own)
        else:
            found = most_plausible_point(
                self.isolation, origin, rule.intervals, solver=solver, options=SolverOptions(time_limit=time_limit)
            )
        frame = self._answering.table(found.point)
        frame.index = table.index
        decided = self._answering.first(found.point[None, :])
        wanted = None if target is None or decided is None else self._wanted(target, None)
        return RulePoint(
            frames_of(x, self._frames).native(frame),
            decided,
            None if wanted is None else bool(wanted.holds(np.array([decided]))[0]),
            tuple(n for n, a, b in zip(self.space.names, origin, found.point, strict=True) if a != b),
            Cost(l1=1.0).total(self.space, origin, found.point),
            float(self.isolation.scores(found.point)[0]),
            bool(self.isolation.inliers(found.point)[0]),
            found.depth,
            found.bound,
        )

    def trade_off(
        self,
        x: pd.DataFrame | pd.Series[Any] | ArrayLike,
        target: Any = None,
        *,
        levels: Iterable[float] = LEVELS,
        norm: str | Mapping[str, float] = "l1",
        n_rules: int = 5,
        method: str = "greedy",
        **settings: Any,
    ) -> pd.DataFrame:
        """What safety costs: for each probability the cheapest point in a rule that reaches it.

        Parameters
        ----------
        x : one row
        target : object
            As in `local`.
        levels : iterable of float
            Probabilities that the rule has to reach.
        norm : str or mapping
            The cost, as in `ocf.Explainer.explain`; separable.
        n_rules : int
            Disjoint rules of each level of which the cheapest point is taken.
        method : {"greedy", "search", "milp"}
        **settings
            See `local`.

        Returns
        -------
        table, of the kind of the row, or else of the data
            One row for each level that some rule reaches, ascending: its `level`, the rule's `probability`, the `cost`,
            whether the model gives the target there (`reached`, None without a model), the `rule` in words, and the
            point's columns. Those names get the prefix ``ocf_`` where the data have one of them.
        """
        asked, cost = checked_levels(levels), Cost.parse(norm)
        if "rule_level" in settings:
            raise ProblemError("trade_off goes through several probabilities: give them as levels, not rule_level")
        coded = self._row(x)[1]
        settings |= {"n_rules": n_rules, "method": method}
        rules = [(level, rule) for level in asked for rule in self.local(x, target, rule_level=level, **settings)]
        found = safe_points(self.space, coded[0], rules, asked, cost)
        points = np.array([own.point for own in found]).reshape(len(found), len(self.space))
        reached: list[bool | None] = [None] * len(found)
        if self.model is not None and found:
            own = settings.get("answer")
            predicted = self._answering.first(coded) if own is None else self._known([own])[0]
            reached = self._wanted(target, predicted).holds(self._answering.predicted(points)).tolist()
        told = pd.DataFrame(
            {
                "level": np.array([own.level for own in found], float),
                "probability": np.array([own.rule.precision for own in found], float),
                "cost": np.array([own.cost for own in found], float),
                "reached": pd.Series(reached, dtype=object if self.model is None else bool),
                "rule": pd.Series([str(own.rule) for own in found], dtype=str),
            }
        )
        values = self._answering.table(points)
        while set(told.columns) & set(values.columns):
            told = told.add_prefix("ocf_")
        table = pd.concat([told, values], axis=1)
        return frames_of(x, self._frames).native(table)

    def _most_probable_part(self, rule: Rule, coded: FloatArray, target: Any) -> Rule:
        """The largest box within a rule that is as probable for a row as any leaf there; the rule where none is."""
        assert rule.region is not None
        predicted = self._answering.first(coded)
        features = tuple(interval.feature for interval in rule.intervals)
        query = self._local_query(coded, self._wanted(target, predicted)).with_free(rule.region)
        level = min(max(query.crp(features, rule.region), LEAST_LEVEL), 1.0)
        boxes = find_boxes(query, features, RuleSearch(rule_level=level, prefer="probable", method="greedy"))
        return self.rule(query, features, boxes[0], "greedy") if boxes else rule

    @cached_property
    def isolation(self) -> IsolationTrees:
        """Isolation forest of the training rows, with scikit-learn's defaults."""
        return IsolationTrees.fit(self.space, self.rows, seed=self.seed)

    # -- answers -------------------------------------------------------------------------------------------

    def _search(self, level: float | None = None, rule_level: float | None = None, **settings: Any) -> RuleSearch:
        """What is asked for, at the levels of the class where the call says none."""
        check_names(settings, [f.name for f in fields(RuleSearch)])
        own = self.level if level is None else level
        return RuleSearch(own, self.rule_level if rule_level is None else rule_level, **settings)

    def _solve(self, query: ProbabilityQuery, blank: RuleSet, begin: float, search: RuleSearch) -> RuleSet:
        with within(memory=memory_of(self.memory_limit)):
            (features, *others), divergent = find_features(query, self.candidates, self._changeable, search)
            found = find_boxes(query, features, search)
        rules = tuple(self.rule(query, features, box, search.method) for box in found)
        return replace(
            blank,
            features=tuple(self.space.names[i] for i in features),
            probability=query.cdp(features),
            divergent=divergent,
            status="found" if rules else "none",
            rules=rules,
            seconds=time.perf_counter() - begin,
            others=tuple(ChangeSet(tuple(self.space.names[i] for i in s), query.cdp(s)) for s in others),
        )

    def rule(self, query: ProbabilityQuery, features: Sequence[int], box: FoundBox, method: str = "search") -> Rule:
        """Rule in the user's units and words from a box that a search has found.

        Parameters
        ----------
        query : ProbabilityQuery
        features : sequence of int
            S.
        box : FoundBox
        method : str
            By which it was found.

        Raises
        ------
        ProblemError
            Nothing was found.
        """
        if box.region is None:
            raise ProblemError("no box reaches the level, so there is no rule")
        own = self.space.features
        intervals = tuple(t.permitted_by(own[t.feature]) for t in intervals_of(self.forest, box.region, features))
        support = np.logical_and.reduce([t.holds(self.rows[:, t.feature]) for t in intervals])
        return Rule(
            tuple(Condition.of(own[t.feature], t) for t in intervals),
            query.crp(features, box.region),
            box.weight,
            int(support.sum()),
            box.status.value,
            box.bound,
            method,
            intervals,
            box.region,
        )

    # -- from the user's words to cells --------------------------------------------------------------------

    def _rows(self, rows: Any) -> pd.DataFrame:
        """Rows as a table in the user's columns."""
        table = rows_of(self.space, rows, self._frames)
        if not len(table):
            raise DataError(NO_ROWS)
        return table

    def _row(self, x: pd.DataFrame | pd.Series[Any] | ArrayLike) -> tuple[pd.DataFrame, FloatArray]:
        """One row as a table, and coded, (1, n_features)."""
        table = self._rows(x)
        if len(table) != 1:
            raise DataError(f"one row is asked for, not {len(table)}: use local_many, or table.iloc[[k]]")
        return table, complete_rows(self.space, table)

    def _known(self, answers: ArrayLike, n_rows: int = 1) -> list[Any]:
        """What rows are said to have, one for each."""
        given = [plain_answer(own) for own in pd.Series(answers).tolist()]
        if len(given) != n_rows:
            raise DataError(f"{counted(len(given), 'answer')} for {counted(n_rows, 'row')}: give one for each")
        strange = [v for v in given if (math.isnan(real_number(v)) if self.regression else v not in self.classes)]
        if strange:
            known = "numbers" if self.regression else listed([*map(str, self.classes)])
            raise DataError(f"a row's answer is {strange[0]!r}, and answers are {known}: mend it, or leave out the row")
        return given if self.regression else [self.classes[list(self.classes).index(own)] for own in given]

    def _wanted(self, target: Any, predicted: Any) -> Wanted:
        if self.regression:
            return Wanted.interval(target)
        if target is None:
            if len(self.classes) != 2 or predicted is None:
                raise ProblemError(f"name the target: one of {', '.join(map(str, self.classes))}")
            return Wanted(next(c for c in self.classes if c != predicted))
        current = None if predicted is None else next((k for k, c in enumerate(self.classes) if c == predicted), None)
        return Wanted(self.classes[wanted_class(target, self.classes, current)])


def _ask_each_row(n_rows: int, ask: Callable[[int], RuleSet], progress: bool | None) -> RuleSets:
    """What is asked of each row, in order; after Ctrl-C of those that are finished."""
    found: list[RuleSet] = []
    with ProgressBar(n_rows, progress) as bar, Interruption() as interruption:
        try:
            while len(found) < n_rows and not interruption.asked:
                found.append(ask(len(found)))
                bar.advance(found[-1].status)
        except (KeyboardInterrupt, SystemError) as error:
            if not is_interruption(error):
                raise
    if len(found) < n_rows:
        logger.warning("interrupted: %d of %d rows are finished and kept", len(found), n_rows)
    return RuleSets(found, interrupted=len(found) < n_rows)


def _precision(own: RuleSet) -> float:
    """Of the first rule; 0 without one."""
    return own[0].precision if own.rules else 0.0
