"""What results of one file say of each other: two answers to the same row cannot both be the cheapest at two costs.

Part of `ocf.verify.check`, which holds each result against the model and itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ocf.support import json_records as records
from ocf.verify.changes import close

#: What of a record says which question it answers, beside completions, constraints and what its method tells.
_QUESTION = ("target", "probability", "features", "norm", "margins")

#: How further answers differ, and the kind of constraint that says so.
APART_BY = {"features": "keeps", "distance": "apart"}


def contradicted(results: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, str]]:
    """Number of a result, and what another one says against it.

    Parameters
    ----------
    results : sequence of mappings
        Records of rows.
    """
    rows: dict[str, list[int]] = {}
    for k, record in enumerate(results):
        rows.setdefault(json.dumps(record["original"]["values"], sort_keys=True), []).append(k)
    for numbers in rows.values():
        for j in numbers:
            others = [results[k] for k in numbers if k != j and _narrows(results[j], results[k])]
            yield from ((j, problem) for problem in _against(results[j], others))
        yield from _misranked({k: results[k] for k in numbers})


def asked_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """What was asked that no other part of a record tells, as its method says."""
    asked = (record.get("method") or {}).get("asked")
    return asked if isinstance(asked, Mapping) else {}


def _misranked(results: Mapping[int, Mapping[str, Any]]) -> Iterator[tuple[int, str]]:
    """Results of a row that stand apart from more or fewer others than come before them, where constraints tell."""
    first: dict[str, int] = {}
    for k, record in results.items():
        asked = asked_of(record)
        kind = APART_BY.get(str(asked.get("diversity")))
        if kind is None:
            continue
        apart = sum(constraint.get("kind") == kind for constraint in record.get("constraints") or ())
        # those of the user's own are in all of them
        own = first.setdefault(json.dumps([asked, record.get("target")], sort_keys=True), apart - _rank(record) + 1)
        if apart - own != _rank(record) - 1:
            yield k, f"It is called explanation {_rank(record)}, and stands not apart from as many as come before it."


def _narrows(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether what answers the second question answers the first one as well: the same, or that of a later rank."""
    asked = [(record.get("method") or {}).get("asked") for record in (first, second)]
    if asked[0] is None or asked[0] != asked[1] or _rank(second) < _rank(first):
        return False
    if any(first.get(part) != second.get(part) for part in _QUESTION) or _completions(first) != _completions(second):
        return False
    wanted, there = (record.get("constraints") or () for record in (first, second))
    return all(constraint in there for constraint in wanted)


def _rank(record: Mapping[str, Any]) -> int:
    return int(record.get("rank", 1))


def _completions(record: Mapping[str, Any]) -> Any:
    asked = record.get("imputations")
    return None if asked is None else (asked.get("values"), asked.get("least"))


def _against(record: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What answers to the same question, or to a later rank of it, say against a record."""
    cost, answer = records.number(record["cost"]), record["counterfactual"]
    for other in others:
        own = records.number(other["cost"])
        if other["counterfactual"] is None or own is None:
            continue
        which = f"explanation {_rank(other)} of row {other['row']!r}"
        if record["status"] == "infeasible":
            yield f"It is called infeasible, and {which} costs {own!r}."
        elif record["status"] == "optimal" and cost is not None and own < cost and not close(own, cost):
            yield f"It is called the cheapest at {cost!r}, and {which} costs {own!r}."
        repeats = answer is not None and other["counterfactual"]["values"] == answer["values"]
        if repeats and _rank(other) > _rank(record):
            yield f"It says the same as {which}, which should be another."
