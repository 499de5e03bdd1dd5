r"""Bounds of boxes by a cost that couples features: a form over changes, and a rest that cells have each.

The form is a sum of squares (`ocf.solvers.box.quadratic`) or of absolute values (`ocf.solvers.box.sums`), or it is
what the changes cost, or they and their squares, whose sums, totals that have cells themselves, lie in their ranges.

What `ocf.solvers.box.propagation` does with the costs of cells is done here with the tangent at the least point of the
box, which is a sum over features, and with the form itself where that tells more:

* *ends*: a side moves in while the least value of the form beyond it reaches the limit;
* *leaves*: a leaf dies when the least value in its part of the box reaches the limit;
* *votes*: the bound is the least cost at which the leaves that are no dearer can meet the target.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.solvers.box.branching import restrict
from ocf.solvers.box.instance import Domain, Instance, assign, cheapest_between, cheapest_open
from ocf.solvers.box.propagation import MOST_ROUNDS, Multipliers, Workspace, propagate
from ocf.solvers.box.quadratic import EPS, ActiveSet, Quadratic, least_between, minimise
from ocf.solvers.box.squares import DualTable, least_squares
from ocf.solvers.box.sums import SimplexTable, Slopes, SumCosts, least_sum, sum_within
from ocf.support.loops import copy_to, fill
from ocf.support.numba_cache import helper, kernel

#: Times that a box is bounded anew after it has shrunk.
ROUNDS = 3

#: Halvings in the search for the bound by votes.
HALVINGS = 12

#: Part of the scores' size by which votes may miss a need, as sums in another order do.
ROUNDING = 1e-12


class Coupling(NamedTuple):
    """How the features of an instance are coupled, and where its cells lie.

    Attributes
    ----------
    quadratic : Quadratic
        Without forms where there are sums, and then with squares of all changes or of none.
    sums : SumCosts
        Sums that cost what they lie off their ranges: absolute values, whose range is 0, or totals.
    feature : (m + n_sums,) int64
        Of the instance, of each change and sum that has cells of its own; -1 for others.
    slot : (n_features,) int64
        Number among the changes and sums, -1 for other features.
    levels : (n_features,) int64
        Of features each cell of which is a change from 0 to 1: the number of the first, -1 for other features.
    low, high : (n_open,) float64
        Least and largest change, or sum, in each cell of a coupled feature; they grow with the rank.
    n_trees : int
        Trees that are looked at leaf by leaf; those after them have leaves for cells.
    """

    quadratic: Quadratic
    sums: SumCosts
    feature: IntArray
    slot: IntArray
    levels: IntArray
    low: FloatArray
    high: FloatArray
    n_trees: int


class Box(NamedTuple):
    """A box in numbers, and scratch arrays for those that are a part of it.

    Attributes
    ----------
    t : (m + n_sums,) float64
        Its least point.
    low, high : (m + n_sums,) float64
        Ends.
    slope : (m + n_sums,) float64
        Of the bound at the least point.
    rest : (n_features,) float64
        Least rest of each feature.
    price : (n_live,) float64
        Least cost in each leaf's part.
    inner_t, inner_low, inner_high : (m + n_sums,) float64
        Least point and ends of a part of it.
    slopes, inner_slopes : Slopes
        Of the bounds of sums: of the box, and of a part, whose multipliers start at those of the box.
    scratch : ActiveSet
    table : SimplexTable
    dual : DualTable
    """

    t: FloatArray
    low: FloatArray
    high: FloatArray
    slope: FloatArray
    rest: FloatArray
    price: FloatArray
    inner_t: FloatArray
    inner_low: FloatArray
    inner_high: FloatArray
    slopes: Slopes
    inner_slopes: Slopes
    scratch: ActiveSet
    table: SimplexTable
    dual: DualTable


@kernel
def bound_box(
    coupling: Coupling,
    instance: Instance,
    priced: Instance,
    domain: Domain,
    nothing: Multipliers,
    limit: float,
    work: Workspace,
    box: Box,
    with_leaves: bool,
) -> float:
    """Shrink a box to what may cost less than a limit; returns what no point of it is below, inf when none is of use.

    Parameters
    ----------
    coupling : Coupling
    instance : Instance
        Its costs are the rests of the cells.
    priced : Instance
        The same with costs and range minima of its own, which are overwritten.
    domain : Domain
        Overwritten.
    nothing : Multipliers
        That say nothing.
    limit : float
    work : Workspace
        Overwritten.
    box : Box
        Its least point is where the search for the new one starts; overwritten.
    with_leaves : bool
        Whether the rules of leaves and votes are applied, which take most of the time.
    """
    bound = -np.inf
    for _ in range(ROUNDS):
        base = least_in(coupling, instance, domain, box)
        if base >= limit:
            return np.inf
        constant = price_cells(coupling, instance, priced, domain, box)
        bound = max(bound, base, propagate(priced, domain, nothing, limit - constant, work, MOST_ROUNDS) + constant)
        if bound >= limit:
            return np.inf
        base = least_in(coupling, instance, domain, box)
        if not (limit < np.inf and _move_ends(coupling, instance, domain, limit, box)):
            break
        base = least_in(coupling, instance, domain, box)
    if base >= limit:
        return np.inf
    if with_leaves:
        _price_leaves(coupling, instance, domain, base, limit, box)
        bound = max(bound, base, _cost_of_votes(coupling, instance, domain, base, limit, box))
    return np.inf if bound >= limit else max(bound, base)


@helper
def least_in(coupling: Coupling, instance: Instance, domain: Domain, box: Box) -> float:
    """Least cost in a box; writes its least point, its ends and its rests. inf when a feature has no cell.

    Parameters
    ----------
    coupling : Coupling
    instance : Instance
    domain : Domain
    box : Box
        Overwritten.
    """
    rest = 0.0
    for f in range(len(box.rest)):
        j = cheapest_open(instance, domain, f)
        if j < 0:
            return np.inf
        box.rest[f] = instance.cost[j]
        rest += box.rest[f]
        if coupling.levels[f] >= 0:
            _open_levels(coupling, instance, domain, f, box.low, box.high)
    for i in range(len(box.t)):
        f = coupling.feature[i]
        if f >= 0:
            box.low[i] = coupling.low[instance.offsets[f] + domain.lo[f]]
            box.high[i] = coupling.high[instance.offsets[f] + domain.hi[f]]
    least = rest + _least_form(coupling, box.low, box.high, box.t, box.slopes, box)
    sum_within(coupling.sums, box.low, box.high, box.t)
    return least


@helper
def _open_levels(
    coupling: Coupling, instance: Instance, domain: Domain, f: int, low: FloatArray, high: FloatArray
) -> None:
    """Write the ends of the changes of a feature whose cells are changes."""
    first, opened, last = instance.offsets[f], 0, -1
    for j in range(first, instance.offsets[f + 1]):
        i, rank = coupling.levels[f] + j - first, j - first
        inside = domain.lo[f] <= rank <= domain.hi[f] if instance.ordered[f] else domain.level[j]
        low[i], high[i] = 0.0, 1.0 if inside else 0.0
        if inside:
            opened, last = opened + 1, i
    if opened == 1:
        low[last] = 1.0


@helper
def _least_form(
    coupling: Coupling,
    low: FloatArray,
    high: FloatArray,
    t: FloatArray,
    slopes: Slopes,
    box: Box,
) -> float:
    """Least value of the form between two ends; writes where it is, and its slopes there."""
    if len(coupling.sums.price) == 0:
        return max(minimise(coupling.quadratic, low, high, t, box.scratch), 0.0)
    if len(coupling.quadratic.diagonal) > 0 and coupling.quadratic.diagonal[0] > 0:
        return max(least_squares(coupling.sums, coupling.quadratic.diagonal, low, high, t, slopes, box.dual), 0.0)
    return max(least_sum(coupling.sums, low, high, t, slopes, box.table), 0.0)


@kernel
def price_cells(coupling: Coupling, instance: Instance, priced: Instance, domain: Domain, box: Box) -> float:
    """Write what the tangent at the least point, just found, costs in each cell; returns what is to be added.

    No point of the box costs less than its cells and that together.

    Parameters
    ----------
    coupling : Coupling
    instance, priced
        As in `bound_box`.
    domain : Domain
    box : Box
        Of `least_in`.
    """
    quadratic, scratch, m = coupling.quadratic, box.scratch, len(coupling.quadratic.up)
    constant = _beside_cells(coupling, box)
    size = abs(constant)
    for f in range(len(coupling.slot)):
        i, level, largest = coupling.slot[f], coupling.levels[f], 0.0
        first, last = instance.offsets[f], instance.offsets[f + 1] - 1
        if i >= 0 or (level >= 0 and instance.ordered[f]):
            first, last = first + domain.lo[f], instance.offsets[f] + domain.hi[f]
        for j in range(first, last + 1):
            price = 0.0
            if i >= 0:
                price = _tangent_between(quadratic, i, box.slope[i], box.t[i], coupling.low[j], coupling.high[j])
            elif level >= 0:
                k = level + j - instance.offsets[f]
                price = _tangent_of_level(quadratic, k, box.slope[k], box.t[k])
            largest = max(largest, abs(price))
            priced.cost[j] = price + instance.cost[j]
        size += largest
        _find_minima(priced, first, last)
    weight = 0.0
    for i in range(m):
        far = max(abs(box.low[i]), abs(box.high[i]))
        for k in range(len(scratch.sums)):
            weight += abs(quadratic.forms[k, i] * scratch.sums[k]) * far
        for k in range(len(box.slopes.sign)):
            weight += abs(coupling.sums.forms[k, i] * box.slopes.sign[k]) * far
    size += 2.0 * weight
    return constant - (len(scratch.sums) + len(box.slopes.sign) + len(box.t) + 16) * EPS * size


@helper
def _beside_cells(coupling: Coupling, box: Box) -> float:
    """What the tangent at the least point is at least, besides what it costs in cells."""
    out, m = 0.0, len(coupling.quadratic.up)
    for k in range(len(box.scratch.sums)):
        out -= box.scratch.sums[k] * box.scratch.sums[k]
    for i in range(m):
        if coupling.feature[i] >= 0:
            out -= coupling.quadratic.diagonal[i] * box.t[i] * box.t[i]
    for i in range(m, len(box.t)):
        if coupling.feature[i] < 0:
            out += least_between(0.0, 0.0, box.slope[i], box.low[i], box.high[i])
    return out


@helper
def _tangent_between(quadratic: Quadratic, i: int, slope: float, t: float, low: float, high: float) -> float:
    """What the tangent at the least point, and a change besides, cost at least between two ends of a change or sum."""
    if i >= len(quadratic.up):
        return least_between(0.0, 0.0, slope, low, high)
    beyond = max(low - t, t - high, 0.0)
    price = least_between(quadratic.up[i], quadratic.down[i], slope, low, high)
    return price + quadratic.diagonal[i] * beyond * beyond


@helper
def _tangent_of_level(quadratic: Quadratic, i: int, slope: float, t: float) -> float:
    """What the tangent at the least point, and a change besides, cost where a change is 1 and its neighbours are 0."""
    return slope + quadratic.up[i] + quadratic.diagonal[i] * (1.0 - 2.0 * t)


@helper
def _find_minima(priced: Instance, first: int, last: int) -> None:
    """Range minima of the new costs of some neighbouring cells, in whose ranges there is nothing else."""
    p, half = 1, 1
    while p < len(priced.table) and 2 * half <= last - first + 1:
        for j in range(first, last - 2 * half + 2):
            one, other = priced.table[p - 1, j], priced.table[p - 1, j + half]
            priced.table[p, j] = other if priced.cost[other] < priced.cost[one] else one
        half *= 2
        p += 1


@helper
def _least_part(coupling: Coupling, box: Box) -> float:
    """Least value of the form between the inner ends."""
    copy_to(box.inner_t, box.t)
    copy_to(box.inner_slopes.sign, box.slopes.sign)
    return _least_form(coupling, box.inner_low, box.inner_high, box.inner_t, box.inner_slopes, box)


@helper
def _move_ends(coupling: Coupling, instance: Instance, domain: Domain, limit: float, box: Box) -> bool:
    """Rule of the ends, by halving: the farther a side lies, the dearer is what lies beyond it."""
    rest, moved = 0.0, False
    for f in range(len(box.rest)):
        rest += box.rest[f]
    copy_to(box.inner_low, box.low)
    copy_to(box.inner_high, box.high)
    for i in range(len(box.t)):
        f = coupling.feature[i]
        if f < 0:
            continue
        offset = instance.offsets[f]
        kept, gone = domain.lo[f] - 1, domain.hi[f] + 1
        while coupling.low[offset + min(kept + 1, domain.hi[f])] <= box.t[i] and kept + 1 <= domain.hi[f]:
            kept += 1
        end, tried = kept, domain.hi[f]
        while end + 1 < gone:
            box.inner_low[i] = coupling.low[offset + tried]
            if rest + _least_part(coupling, box) >= limit:
                gone = tried
            else:
                end = tried
            tried = (end + gone) // 2
        moved = moved or gone <= domain.hi[f]
        domain.hi[f] = max(gone - 1, domain.lo[f])
        box.inner_low[i], box.inner_high[i] = box.low[i], coupling.high[offset + domain.hi[f]]
        end, gone, tried = max(min(kept, domain.hi[f]), domain.lo[f]), domain.lo[f] - 1, domain.lo[f]
        while end - 1 > gone:
            box.inner_high[i] = coupling.high[offset + tried]
            if rest + _least_part(coupling, box) >= limit:
                gone = tried
            else:
                end = tried
            tried = (end + gone + 1) // 2
        moved = moved or gone >= domain.lo[f]
        domain.lo[f] = max(domain.lo[f], gone + 1)
        box.inner_low[i], box.inner_high[i] = (
            coupling.low[offset + domain.lo[f]],
            coupling.high[offset + domain.hi[f]],
        )
    return moved


@helper
def _price_leaves(coupling: Coupling, instance: Instance, domain: Domain, base: float, limit: float, box: Box) -> None:
    """Rule of the leaves; writes the least cost in each one that lives."""
    rest = 0.0
    for f in range(len(box.rest)):
        rest += box.rest[f]
    for leaf in range(instance.trees[coupling.n_trees]):
        if not domain.live[leaf]:
            continue
        more, inside = _meet(coupling, instance, domain, leaf, box)
        price = base + more
        if not inside and price < limit:
            price = max(price, rest + more + _least_part(coupling, box))
        box.price[leaf] = price
        if price >= limit:
            domain.live[leaf] = False


@helper
def _meet(coupling: Coupling, instance: Instance, domain: Domain, leaf: int, box: Box) -> tuple[float, bool]:
    """Write the ends of a leaf's part of a box; by how much its rest is dearer, whether the least point is in it."""
    copy_to(box.inner_low, box.low)
    copy_to(box.inner_high, box.high)
    more, inside = 0.0, True
    for k in range(instance.start[leaf], instance.start[leaf + 1]):
        f = instance.feature[k]
        if coupling.levels[f] >= 0:
            kept, within = _keep_levels(coupling, instance, leaf, k, box)
            if kept == 0:
                return np.inf, True
            inside = inside and within
            continue
        if not instance.ordered[f]:
            least = np.inf
            for j in range(instance.offsets[f], instance.offsets[f + 1]):
                if domain.level[j] and instance.member[leaf, j]:
                    least = min(least, instance.cost[j])
            more += least - box.rest[f]
            continue
        low, high = max(instance.low[k], domain.lo[f]), min(instance.high[k], domain.hi[f])
        if low > high:
            return np.inf, True
        more += instance.cost[cheapest_between(instance, f, low, high)] - box.rest[f]
        i = coupling.slot[f]
        if i >= 0:
            box.inner_low[i] = coupling.low[instance.offsets[f] + low]
            box.inner_high[i] = coupling.high[instance.offsets[f] + high]
            inside = inside and box.inner_low[i] <= box.t[i] <= box.inner_high[i]
    return more, inside


@helper
def _keep_levels(coupling: Coupling, instance: Instance, leaf: int, k: int, box: Box) -> tuple[int, bool]:
    """Close the changes that are cells beyond a leaf's restriction; how many are left, and whether it moves nothing."""
    f, inside, opened, last = instance.feature[k], True, 0, -1
    first = instance.offsets[f]
    for j in range(first, instance.offsets[f + 1]):
        i = coupling.levels[f] + j - first
        kept = instance.low[k] <= j - first <= instance.high[k] if instance.ordered[f] else instance.member[leaf, j]
        if not kept:
            box.inner_low[i], box.inner_high[i] = 0.0, 0.0
            inside = inside and box.t[i] <= 0.0
        elif box.inner_high[i] > 0.0:
            opened, last = opened + 1, i
    if opened == 1:
        box.inner_low[last] = 1.0
        inside = inside and box.t[last] >= 1.0
    return opened, inside


@helper
def _cost_of_votes(
    coupling: Coupling, instance: Instance, domain: Domain, base: float, limit: float, box: Box
) -> float:
    """Rule of the votes: a cost below which the leaves that are as cheap miss the target; the limit when all do."""
    most = base
    for leaf in range(instance.trees[coupling.n_trees]):
        if domain.live[leaf]:
            most = max(most, box.price[leaf])
    if not _votes_suffice(instance, domain.live, box.price, coupling.n_trees, most):
        return limit
    if _votes_suffice(instance, domain.live, box.price, coupling.n_trees, base):
        return base
    missed, met = base, most
    for _ in range(HALVINGS):
        middle = 0.5 * (missed + met)
        if _votes_suffice(instance, domain.live, box.price, coupling.n_trees, middle):
            met = middle
        else:
            missed = middle
    return missed


@helper
def _votes_suffice(instance: Instance, live: BoolArray, price: FloatArray, n_trees: int, most: float) -> bool:
    """Whether the leaves that cost no more, and what is not priced leaf by leaf, may meet all requirements."""
    for r in range(len(instance.need)):
        total, size = 0.0, abs(instance.need[r])
        for tree in range(len(instance.trees) - 1):
            best = -np.inf
            for leaf in range(instance.trees[tree], instance.trees[tree + 1]):
                if live[leaf] and (tree >= n_trees or price[leaf] <= most):
                    best = max(best, instance.gain[leaf, r])
            total += best
            size += abs(best)
        if total < instance.need[r] - ROUNDING * size:
            return False
    return True


@kernel
def choose_cut(
    coupling: Coupling, instance: Instance, domain: Domain, bound: float, limit: float, half: Domain, box: Box
) -> tuple[int, int, float, float, bool]:
    """Feature and cell at which to split a box, beside its least point or half way from it, and what the halves cost.

    The cut is taken whose halves both cost more or have fewer votes to spare. See `ocf.solvers.box.branching.restrict`
    for what a cut is.

    Parameters
    ----------
    coupling : Coupling
    instance : Instance
    domain : Domain
        May shrink.
    bound, limit : float
        Of the box.
    half : Domain
        Overwritten.
    box : Box
        Of `bound_box`; its scratch is overwritten.

    Returns
    -------
    (feature, cell, before, beyond, shrank) : (int, int, float, float, bool)
        The feature is -1 where nothing is left to split, and the bounds are inf where nothing in the box is of use.
        Last, whether the box shrank, by halves in which nothing is of use.
    """
    best_f, best_j, best_score, best_before, best_beyond, shrank = -1, -1, -1.0, bound, bound, False
    least_in(coupling, instance, domain, box)
    room = limit - bound if limit < np.inf else 1.0 + abs(bound)
    spare = max(_slack(instance, domain, coupling.n_trees, 0), 1e-12)
    for f in range(len(coupling.slot)):
        first, last = _ends(instance, domain, f)
        here, tried = least_cell(coupling, instance, domain, f, box), -1
        for number in range(4 if instance.ordered[f] else 1):
            j = _cut(first, here, last, number) if instance.ordered[f] else here
            if instance.ordered[f] and (not first < j <= last or j == tried):
                continue
            tried = j
            before, spare_before = _try_half(coupling, instance, domain, f, j, False, half, box)
            beyond, spare_beyond = _try_half(coupling, instance, domain, f, j, True, half, box)
            if not instance.ordered[f] and np.isinf(before):
                continue  # the only level
            before = np.inf if spare_before < -ROUNDING or before >= limit else max(before, bound)
            beyond = np.inf if spare_beyond < -ROUNDING or beyond >= limit else max(beyond, bound)
            if np.isinf(before) and np.isinf(beyond):
                return -1, j, np.inf, np.inf, True
            if np.isinf(before) or np.isinf(beyond):
                restrict(instance, domain, f, j, np.isinf(before))
                first, last = _ends(instance, domain, f)
                shrank = True
                continue
            score = _gain(before - bound, room, spare_before, spare) * _gain(beyond - bound, room, spare_beyond, spare)
            if score > best_score:
                best_f, best_j, best_score, best_before, best_beyond = f, j, score, before, beyond
    return best_f, best_j, best_before, best_beyond, shrank


@helper
def _ends(instance: Instance, domain: Domain, f: int) -> tuple[int, int]:
    """First and last cell of a feature in a box, as indices of all open cells; of an unordered one all cells."""
    if instance.ordered[f]:
        return instance.offsets[f] + domain.lo[f], instance.offsets[f] + domain.hi[f]
    return instance.offsets[f], instance.offsets[f + 1] - 1


@helper
def least_cell(coupling: Coupling, instance: Instance, domain: Domain, f: int, box: Box) -> int:
    """Cell of a box, as an index of all open cells, in which its least point lies.

    Parameters
    ----------
    coupling : Coupling
    instance : Instance
    domain : Domain
    f : int
    box : Box
    """
    i = coupling.slot[f]
    if coupling.levels[f] >= 0:
        return _largest_level(coupling, instance, domain, f, box)
    if i < 0:
        return cheapest_open(instance, domain, f)
    j, last = _ends(instance, domain, f)
    while j < last and coupling.high[j] < box.t[i]:
        j += 1
    return j


@helper
def _largest_level(coupling: Coupling, instance: Instance, domain: Domain, f: int, box: Box) -> int:
    """Open cell of a feature whose cells are changes, of which most is in the least point."""
    first, last = _ends(instance, domain, f)
    found, most = -1, -1.0
    for j in range(first, last + 1):
        part = box.t[coupling.levels[f] + j - instance.offsets[f]]
        if part > most and (instance.ordered[f] or domain.level[j]):
            found, most = j, part
    return found


@kernel
def least_choice(coupling: Coupling, instance: Instance, domain: Domain, box: Box, x: IntArray) -> None:
    """Write the cells in which the least point of a box lies.

    Parameters
    ----------
    coupling : Coupling
    instance : Instance
    domain : Domain
    box : Box
    x : (n_features,) int64
        Overwritten: cells, counted within the features.
    """
    for f in range(len(x)):
        x[f] = instance.cell[least_cell(coupling, instance, domain, f, box)]


@kernel
def least_around(
    coupling: Coupling, instance: Instance, leaves: IntArray, domain: Domain, box: Box, x: IntArray
) -> float:
    """Least cost where some leaves meet, inf where they do not; writes the cells in which it is.

    Parameters
    ----------
    coupling : Coupling
    instance : Instance
    leaves : (n,) int64
        Numbers of live leaves, -1 for others: of all trees, of which those that have leaves for cells are passed over.
    domain, box : Domain, Box
        Overwritten: with where the leaves meet, and the least point.
    x : (n_features,) int64
        Overwritten: cells, counted within the features.
    """
    for f in range(len(x)):
        domain.lo[f], domain.hi[f] = 0, instance.offsets[f + 1] - instance.offsets[f] - 1
    fill(domain.level, True)
    for leaf in leaves[: coupling.n_trees]:
        if leaf < 0:
            return np.inf
        for k in range(instance.start[leaf], instance.start[leaf + 1]):
            f = instance.feature[k]
            if instance.ordered[f]:
                domain.lo[f] = max(domain.lo[f], instance.low[k])
                domain.hi[f] = min(domain.hi[f], instance.high[k])
            else:
                for j in range(instance.offsets[f], instance.offsets[f + 1]):
                    domain.level[j] = domain.level[j] and instance.member[leaf, j]
    cost = least_in(coupling, instance, domain, box)
    if cost < np.inf:
        least_choice(coupling, instance, domain, box, x)
    return cost


@helper
def _cut(first: int, here: int, last: int, number: int) -> int:
    """Where to split a range: before or after a cell, or half way from it to an end."""
    if number == 0:
        return here
    if number == 1:
        return here + 1
    return (first + here + 1) // 2 if number == 2 else (here + last + 2) // 2


@helper
def _gain(more: float, room: float, spare_half: float, spare: float) -> float:
    """How far a half is from one of no use: 1 is there."""
    kept = (1.0 - min(more / room, 1.0)) * min(spare_half / spare, 1.0)
    return max(1.0 - kept, 1e-4)


@helper
def _try_half(
    coupling: Coupling,
    instance: Instance,
    domain: Domain,
    f: int,
    j: int,
    beyond: bool,
    half: Domain,
    box: Box,
) -> tuple[float, float]:
    """Least cost in a half of a box, inf where it is empty, and by how much its votes exceed the needs."""
    assign(half, domain)
    rank = j - instance.offsets[f]
    if instance.ordered[f]:
        if beyond:
            half.lo[f] = rank
        else:
            half.hi[f] = rank - 1
    else:
        for other in range(instance.offsets[f], instance.offsets[f + 1]):
            half.level[other] = half.level[other] and (other == j) == beyond
    k = cheapest_open(instance, half, f)
    if k < 0:
        return np.inf, -1.0
    cost = instance.cost[k] - box.rest[f]
    for g in range(len(box.rest)):
        cost += box.rest[g]
    copy_to(box.inner_low, box.low)
    copy_to(box.inner_high, box.high)
    i = coupling.slot[f]
    if i >= 0:
        box.inner_low[i] = coupling.low[instance.offsets[f] + half.lo[f]]
        box.inner_high[i] = coupling.high[instance.offsets[f] + half.hi[f]]
    elif coupling.levels[f] >= 0:
        _open_levels(coupling, instance, half, f, box.inner_low, box.inner_high)
    return cost + _least_part(coupling, box), _slack(instance, half, coupling.n_trees, f)


@helper
def _slack(instance: Instance, half: Domain, n_trees: int, f: int) -> float:
    """By how much the best live leaves that meet a half on feature f exceed the needs, in parts of the scores' size."""
    out = np.inf
    for r in range(len(instance.need)):
        total, size = 0.0, 1e-300
        for tree in range(n_trees):
            best = -np.inf
            for leaf in range(instance.trees[tree], instance.trees[tree + 1]):
                if half.live[leaf] and instance.gain[leaf, r] > best and _meets(instance, half, leaf, f):
                    best = instance.gain[leaf, r]
            total += best
            size += abs(best)
        for tree in range(n_trees, len(instance.trees) - 1):
            best = -np.inf
            for leaf in range(instance.trees[tree], instance.trees[tree + 1]):
                if half.live[leaf]:
                    best = max(best, instance.gain[leaf, r])
            total += best
        out = min(out, (total - instance.need[r]) / size)
    return out


@helper
def _meets(instance: Instance, half: Domain, leaf: int, f: int) -> bool:
    """Whether a leaf and a box have a cell of feature f in common."""
    for k in range(instance.start[leaf], instance.start[leaf + 1]):
        if instance.feature[k] == f:
            if instance.ordered[f]:
                return instance.low[k] <= half.hi[f] and instance.high[k] >= half.lo[f]
            for j in range(instance.offsets[f], instance.offsets[f + 1]):
                if half.level[j] and instance.member[leaf, j]:
                    return True
            return False
    return True
