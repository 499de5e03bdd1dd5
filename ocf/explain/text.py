"""Explanations as text: headlines, notes and tables of changes, of which pages take their words, too."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ocf.explain.table_notes import table_notes
from ocf.features.number_dtypes import as_read
from ocf.models.plausibility import ROWS_BY
from ocf.support.messages import counted
from ocf.support.wording import interval, number, word

if TYPE_CHECKING:
    import pandas as pd

    from ocf.explain.answer import Answer


#: Rows that the text of a batch lists before it only counts the rest.
MOST_ROWS = 20


def headline(e: Answer) -> str:
    """The answer in one sentence."""
    return f"row {e.row}{f', no. {e.rank}' if e.rank > 1 else ''}: {answer(e)}"


def answer(e: Answer) -> str:
    """The answer, without the row's label."""
    if e.status == "error":
        return "failed"
    if e.status == "interrupted":
        return "interrupted before it was finished"
    if e.status == "infeasible":
        return f"no admissible change gives {wanted(e)}{_by(e)}"
    if e.status == "unknown":
        return f"no change to {wanted(e)} was found within the limit; whether there is one is open"
    if e.cost is None:
        return f"{e.status}, without a cost"
    if e.own_changes.empty:
        return f"already {wanted(e)}, nothing has to change"
    decided = word(e.decided, e.predicted)
    if e.probability is not None:
        decided += _likely(e) if e.decided in _labels(e) else f", but {wanted(e)},"
    return f"{word(e.predicted, e.decided)} → {decided} for a cost of {number(e.cost)} ({_proof(e)})"


def wanted(e: Answer) -> str:
    """The target in words."""
    if isinstance(e.target, tuple) and not e.classes:
        return interval(*e.target)
    words = " or ".join(str(label) for label in _labels(e))
    return words + _likely(e)


def _likely(e: Answer) -> str:
    return "" if e.probability is None else f" with a probability of at least {e.probability!r}"


def _labels(e: Answer) -> tuple[Any, ...]:
    return e.target if isinstance(e.target, tuple) else (e.target,)


def _by(e: Answer) -> str:
    return f" (proven by {e.proved_by})" if e.proved_by else ""


def _proof(e: Answer) -> str:
    if e.checks:  # nothing is proven of a result that contradicts its own claims
        return f"{e.status} as claimed, but NOT VERIFIED"
    if e.status == "optimal":
        by = f"proven by {e.proved_by}" if e.proved_by else "proven"
        if e.rank > 1:
            return f"optimal, {by}: no smaller change differs from no. {', '.join(map(str, range(1, e.rank)))}"
        if prices := e.method.get("asked", {}).get("class_costs"):
            own = number(prices.get(str(e.decided), 0.0))
            return f"optimal, {by}: change and class, which costs {own}, cost least together"
        return f"optimal, {by}: no smaller change does it"
    if e.method.get("formulation") == "instances":
        return "the cheapest of the instances; a point that is none of them may be cheaper"
    if math.isfinite(e.bound) and e.bound > 0:
        return f"not proven optimal: at least {number(e.bound)} is needed, gap {100 * e.gap:.3g} %"
    return "not proven optimal: no bound is known"


def remarks(e: Answer) -> list[str]:
    """What a reader must not miss."""
    found = [e.message] if e.message else []
    return found + [f"NOT VERIFIED: {problem}" for problem in e.checks]


def notes(e: Answer) -> list[str]:
    """What is to be known of an answer, a sentence each."""
    return [*prediction(e), *table_notes(e), *plausibility(e), *data_used(e), *supplied(e), *completions(e)]


def prediction(e: Answer) -> list[str]:
    """The probability of the class that was wanted before and after, as a sentence; a value is in the headline."""
    if e.before is None or not e.classes:
        return []
    return [f"probability of {e.likely}: {' → '.join(chance(p) for p in (e.before, e.after) if p is not None)}"]


def chance(probability: float) -> str:
    """A probability with three digits; of one that they make one half it is said on which side it lies."""
    short = number(probability, 3)
    if float(short) == 0.5 != probability:
        return f"just {'over' if probability > 0.5 else 'under'} 0.5"
    return short


def level(e: Answer, given: float) -> str:
    """What the model gives, a probability or a value, in words.

    Parameters
    ----------
    e : Answer
    given : float
    """
    return chance(given) if e.classes else number(given)


def moved(old: float, new: float) -> str:
    """By how much something goes up or down, with its sign.

    Parameters
    ----------
    old, new : float
    """
    by = new - old
    return f"{'+' if by > 0 else '−' if by < 0 else '±'}{number(abs(by), 3)}"


def plausibility(e: Answer) -> list[str]:
    """How deep the counterfactual lies in the isolation forest, as a sentence; empty where nobody asked."""
    if e.plausibility is None:
        return []
    p = e.plausibility
    least = f", wanted at least {number(p['least'], 5)}" if p["least"] is not None else ""
    lacking = p["weight"] * (p["deepest"] - p["depth"])
    price = f"; what it lacks of the deepest, {number(p['deepest'], 5)}, costs {number(lacking)}" if p["weight"] else ""
    score = f"score {number(p['score'], 5)} of {p['library']}"
    rows = f"; by {p['rows']} rows of the data that have the target {ROWS_BY[p['by']]}" if "by" in p else ""
    return [f"average depth {number(p['depth'], 5)} in {p['trees']} isolation trees{least}{price}; {score}{rows}"]


def data_used(e: Answer) -> list[str]:
    """How many rows of the data were of use, as a sentence; empty where none has missing values."""
    used = e.method.get("data")
    if not used:
        return []
    said = [f"{used['incomplete']} of {used['rows']} rows of the data have missing values"]
    refused = used["rows"] - used["answered"]
    if refused:
        said.append(f"for {refused} of them the model has no rule, and they were left out")
    if "covariance" in used:
        said.append(f"the covariance is that of {used['covariance']} rows")
    return ["; ".join(said)]


def counts_by_status(explanations: Iterable[Answer]) -> str:
    """Number of rows, or of answers where rows have several, by status."""
    answers = list(explanations)
    counts = Counter(e.status for e in answers)
    parts = ", ".join(f"{n} {status}" for status, n in counts.most_common())
    firsts = sum(k == 0 or e.rank == 1 for k, e in enumerate(answers))
    rows = counted(firsts, "row")
    said = rows if firsts == len(answers) else f"{len(answers)} answers to {rows}"
    return said + (f" ({parts})" if parts else "")


def change_rows(e: Answer, changes: pd.DataFrame | None = None) -> list[tuple[str, str, str, str]]:
    """Name, value before, value after and cost of each change, as text.

    Parameters
    ----------
    e : Answer
    changes : DataFrame, optional
        With the columns of `Answer.changes`, which is the default.
    """
    return [
        (str(name), _said(e, name, old, new), _said(e, name, new, old, new=True), number(cost))
        for name, old, new, cost in (e.own_changes if changes is None else changes)[
            ["feature", "from", "to", "cost"]
        ].itertuples(index=False)
    ]


def brief(e: Answer, changes: pd.DataFrame | None = None) -> str:
    """What changes, in one line: ``"income 3200 → 4100, term 36 → 24"``.

    Parameters
    ----------
    e : Answer
    changes : DataFrame, optional
        As in `change_rows`.
    """
    return ", ".join(f"{name} {old} → {new}" for name, old, new, _ in change_rows(e, changes))


def _said(e: Answer, name: str, value: Any, other: Any, *, new: bool = False) -> str:
    """A value in words, beside the one it changes from or to; a code is told from a number."""
    if e.space is None:
        return word(value, other, new=new)
    feature = e.space.features[e.space.index(name)]
    ends = value, other
    if feature.step is not None:  # in a narrow column as they read there
        value, other = (as_read(v, feature.dtype) if isinstance(v, float) else v for v in ends)
    text = word(value, other, new=new)
    return f"{text} (a code)" if feature.special is not None and ends[0] in feature.special.codes else text


def supplied(e: Answer) -> list[str]:
    """What the row lacks and the answer supplies, and what goes missing, as sentences."""
    found = []
    for name, old, new in e.own_changes[["feature", "from", "to"]].itertuples(index=False):
        special = None if e.space is None else e.space.features[e.space.index(name)].special
        codes = () if special is None else special.codes
        if old is None or old in codes:
            lacked = "which is missing" if old is None else f"where {word(old)} stands, a code"
            found.append(f"supply {name}, {lacked}")
        elif new is None or new in codes:
            found.append(f"{name} goes missing" + ("" if new is None else f": {word(new)} stands for that"))
    return found


def completions(e: Answer) -> list[str]:
    """How many completions of the row's missing values get the target, as a sentence; empty where there are none."""
    said = e.imputations
    if said is None or said.get("met") is None:
        return []
    count = len(next(iter(said["values"].values())))
    names = ", ".join(said["values"])
    return [f"{said['met']} of {count} completions of {names} get it, at least {said['least']} were wanted"]


def ties(e: Answer) -> list[str]:
    """Other answers of the same cost, a sentence each; empty where nobody asked or there are none."""
    found = [f"for the same cost: {said}" for said in (_ranges(e, own) for own in e.ranges[:1]) if said]
    for k, table in enumerate(e.ties, 1):
        said = _ranges(e, e.ranges[k]) if k < len(e.ranges) else ""
        found.append(f"or for the same cost: {brief(e, e.changes_to(table))}" + (f" ({said})" if said else ""))
    return found if e.ties_complete is not False else [*found, "there may be more answers of the same cost"]


def box(e: Answer) -> list[str]:
    """The largest box around the answer, as a sentence; empty where nobody asked."""
    if e.box is None:
        return []
    free = e.box["free"]
    held = {n: own for n, own in e.box["ranges"].items() if own is not None and n not in free}
    rest = f"; {', '.join(free)} {'does' if len(free) == 1 else 'do'} not matter" if free else ""
    proof = "no such box is wider" if e.box["proven"] else "not proven the widest"
    return [f"the answer holds, all at once, for {_ranges(e, held) or 'all values'}{rest} ({proof})"]


def _ranges(e: Answer, ranges: Mapping[str, Any]) -> str:
    """Values that cost the same, in words."""
    times = {} if e.space is None else {f.name: f for f in e.space.features if f.is_time}

    def end(name: str, value: float) -> str:
        return word(times[name].label(value)) if name in times and math.isfinite(value) else number(value)

    return ", ".join(
        f"any {name} from {end(name, said['lowest'])} to {end(name, said['highest'])}"
        if isinstance(said, Mapping)
        else f"{name} any of {', '.join(map(str, said))}"
        for name, said in ranges.items()
    )


# -- text ------------------------------------------------------------------------------------------------------


def to_text(e: Answer, say: Callable[[str], str] = str) -> str:
    """Headline, what must not be missed, and the table of changes.

    Parameters
    ----------
    e : Answer
    say : callable
        Says a remark in the words of who shows it.
    """
    lines = [
        headline(e),
        *(f"  {say(remark)}" for remark in [*notes(e), *remarks(e)]),
    ]
    rows = change_rows(e)
    if rows:
        lines += _columns([("feature", "from", "to", "cost"), *rows], right=(3,))
    lines += [f"  {other}" for other in [*ties(e), *box(e)]]
    return "\n".join(lines)


def table_read(explanations: Iterable[Answer]) -> list[str]:
    """How the table of the rows was read, in a few lines; empty where that is not known."""
    spaces = (e.space for e in explanations if e.space is not None and e.space.reading is not None)
    return next((str(space).splitlines() for space in spaces), [])


def batch_to_text(explanations: Sequence[Answer]) -> str:
    """Counts, how the table was read, and each row's answer and changes."""
    lines = [counts_by_status(explanations), *(f"  {said}" for said in table_read(explanations))]
    for e in explanations[:MOST_ROWS]:
        changes = [brief(e)] if len(e.own_changes) else []
        lines += [f"  {headline(e)}", *(f"    {said}" for said in [*changes, *remarks(e)])]
    if len(explanations) > MOST_ROWS:
        lines.append(f"  … and {len(explanations) - MOST_ROWS} more")
    return "\n".join(lines)


def _columns(rows: Sequence[Sequence[str]], right: tuple[int, ...]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  " + "  ".join(row[k].rjust(w) if k in right else row[k].ljust(w) for k, w in enumerate(widths))
        for row in rows
    ]
