"""A template of problem.toml, written from a feature space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ocf.features.feature import Feature
from ocf.features.space import FeatureSpace
from ocf.support.amounts import plain_value
from ocf.support.toml_text import is_scalar, toml_key, toml_value

#: Columns at which lists of levels are wrapped.
WIDTH = 100

# -- writing -----------------------------------------------------------------------------------------------

_CONSTRAINTS = """\
# What every answer must respect, one section for each; FEATURE and LEVEL stand for names of yours.
#   [[constraints]]
#   name = "solvent"
#   kind = "linear"
#   terms = { FEATURE = 1, OTHER = -2, THIRD = { LEVEL = 500 } }
#   sense = ">="  # or "<=", "="
#   bound = 1000
#   relative = false  # true: the terms are changes
#
#   [[constraints]]
#   kind = "implication"
#   when = { FEATURE = ["LEVEL"] }
#   then = { OTHER = { max = 1000 } }
#
#   [[constraints]]
#   name = "months"
#   kind = "budget"
#   limit = 24
#   costs = { FEATURE = { LEVEL = 12 }, OTHER = [0, 0.01] }  # by level; or per unit down, up
#
#   [[constraints]]
#   kind = "max_changes"
#   most = 3
"""

_HEADER = """\
# A problem file of ocf. Edit what should be otherwise, delete what may be inferred from the data, and solve:
#   ocf solve MODEL DATA --problem FILE
# Lines that begin with # are comments; options among them show what else can be said.
"""


def write_problem_file(space: FeatureSpace, classes: Sequence[Any] = ()) -> str:
    """Write a problem file that describes a space, as text to be edited.

    Parameters
    ----------
    space : FeatureSpace
    classes : sequence, optional
        Labels of the model's classes, named in a comment.

    Returns
    -------
    str
        TOML. With the same data, `read_problem_file` and `ocf.features.inference.infer_space` make the same space of
        it.
    """
    sections = [_HEADER + "\n" + _solve_section(classes)]
    return "\n".join([*sections, *map(_feature_section, space.features), _CONSTRAINTS])


def _solve_section(classes: Sequence[Any]) -> str:
    labels = [toml_value(label) for label in map(plain_value, classes) if is_scalar(label)]
    if not classes:
        target = "# at_least = 0  # the least value that the model should predict\n# at_most = 0  # and the greatest"
    elif len(labels) > 2:
        target = f"# target = {labels[0]}  # one of {', '.join(labels)}, or a list of them"
    else:
        target = '# target = "opposite"' + (f"  # or one of {', '.join(labels)}" if labels else "")
    if classes:
        target += "\n# probability = 0.5  # least probability of the target; left out: the model's decision"
    return f"""\
[solve]
{target}
# norm = "l1"  # "l0", "l1", "l2", "mahalanobis", "mahalanobis_l1", or a mix: {{ l0 = 0.1, l1 = 1 }}
# features_to_vary = "all"  # or a list of names; the others are fixed
# round_to = "data"  # new values on the grid of the data; 2: 2 digits of the range; by feature: {{ NAME = 2 }}
# margin = 0.01  # how far new values stand from the thresholds that they pass, in scales; or by feature
# formulation = "interval"
# solver = "auto"
# time_limit = 60  # seconds a row; inf for no limit
# memory_limit = "4 GB"  # by default what is held, and three quarters of what the machine has free
# mip_gap = 0  # 0 asks for a proof
# threads = 1
# seed = 0
# cuts = "none"  # "root": cuts between trees before HiGHS or SCIP gets the model
# reduce = true
# break_ties = true  # of answers that cost the same the least by l1, then that with the fewest changes
# n_optimal = 1  # how many optimal answers to list where several cost the same
# cross_check = false  # true: solve twice, by independent ways
# box = false  # true: the largest box around each answer in which it holds
# n_jobs = 1
# imputations = "draws.csv"  # completions of missing values, one row for each; a column row tells whose
# share = 1.0  # of the completions, by which the target is wanted
# n_explanations = 1  # more: the next best ones
# diversity = "features"  # how they differ: "features", "region" or "distance"
# min_distance = 0.1  # of "distance"
# diagnose = false  # true: name what conflicts where a row is infeasible
# options = {{}}  # the solver's own options

# What may happen to missing values; without this they stay:
# [missing]
# cost_of_supplying = 1.0  # or by feature: {{ NAME = 1.0 }}
# may_become_missing = []  # features, or true for all; say then cost_of_becoming_missing = 1.0
# special_values = []  # codes such as -9 that are no numbers, of all number columns

# How the table is read:
# [table]
# groups = false  # indicator columns of one category are not recognised

# Answers that an isolation forest does not take for outliers of the wanted class:
# [plausibility]
# quantile = 0.1  # share of the data's rows of that class that are taken for outliers
# trees = 100
# seed = 0
# by = "prediction"  # "label": by the column of true classes, label = "COLUMN"

# Your word on functions in the Pipeline that ocf does not know goes in a section [monotone], with
# "increasing" or "decreasing" for each step.
"""


def _feature_section(feature: Feature) -> str:
    lines = [f"[features.{toml_key(feature.name)}]", f"kind = {toml_value(feature.kind)}"]
    if len(feature.columns) > 1 or feature.base:
        lines += _group(feature)
    elif feature.discrete:
        lines += _levels(feature)
    else:
        lines.append(f"bounds = {toml_value([_without_point(feature.lower), _without_point(feature.upper)])}")
        if feature.kind == "numeric":
            lines.append(_line("step", feature.step, None, "0.01  # values are multiples of it"))
    # a change of category is one change, whatever the scale
    if feature.kind not in ("binary", "categorical") or feature.scale != max(len(feature.levels) - 1, 1):
        lines.append(f"scale = {toml_value(_without_point(feature.scale))}")
    choices = "fixed" if feature.kind == "categorical" else "fixed, increasing or decreasing"
    lines.append(_line("actionability", feature.action, "free", f'"free"  # {choices}'))
    if feature.kind == "categorical":
        weights: Any = feature.weight_up
        if feature.weight_down != feature.weight_up:  # the first has no meaning here, but it is part of the space
            weights = [feature.weight_down, feature.weight_up]
        lines.append(_line("weight", weights, 1.0, "1.0"))
    else:
        lines.append(_line("weight", [feature.weight_down, feature.weight_up], [1.0, 1.0], "[1.0, 1.0]  # down, up"))
    if feature.cost is not None:
        cost = feature.cost.to_plain()
        lines.append(f"cost = {toml_value(cost)}")
    if feature.special is not None and feature.special.codes:
        lines.append(f"special_values = {toml_value(list(feature.special.codes))}")
    lines.append(_permitted_range(feature))
    return "\n".join(lines) + "\n"


def _permitted_range(feature: Feature) -> str:
    if feature.permitted is not None:
        return f"permitted_range = {toml_value(feature.permitted)}"
    if feature.discrete:
        return "# permitted_range = []  # the levels that the answer may have"
    bounds = toml_value([_without_point(feature.lower), _without_point(feature.upper)])
    return f"# permitted_range = {bounds}  # where the answer must lie, even if the row itself does not"


def _line(key: str, value: Any, default: Any, example: str) -> str:
    """An assignment, or as a comment how to make one."""
    return f"# {key} = {example}" if value == default else f"{key} = {toml_value(value)}"


def _group(feature: Feature) -> list[str]:
    levels = list(feature.levels[1:] if feature.base else feature.levels)
    pairs = ", ".join(f"{toml_key(str(v))} = {toml_value(c)}" for v, c in zip(levels, feature.columns, strict=True))
    lines = [f"columns = {{ {pairs} }}"]
    if feature.base:
        lines.append(f"base = {toml_value(feature.levels[0])}")
    return lines


def _levels(feature: Feature) -> list[str]:
    if not all(is_scalar(plain_value(v)) for v in feature.levels):
        return [f"# its {len(feature.levels)} levels are of a type that TOML lacks; they are taken from the data"]
    if len(line := f"levels = {toml_value(list(feature.levels))}") <= WIDTH:
        return [line]
    lines, current = ["levels = ["], "   "
    for level in feature.levels:
        item = f" {toml_value(level)},"
        if len(current) + len(item) > WIDTH and current.strip():
            lines.append(current)
            current = "   "
        current += item
    return [*lines, current, "]"]


def _without_point(value: float) -> float | int:
    """Whole numbers of a readable size without a decimal point; they read back as the same float64."""
    return int(value) if math.isfinite(value) and value == int(value) and abs(value) < 2**53 else value
