"""Random instances of a library, each by every method against brute force."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, Phase, given, seed, settings
from oracle.harness import check_case, prepare
from oracle.instances import Spec, specs


def bounded(examples: int) -> settings:
    """The same examples every time; no shrinking, for a smaller seed is no smaller instance."""
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def play(library: str, examples: int, part: int | None = None) -> None:
    """Check random instances of a library, of which not all may be infeasible or trivial."""
    seen: Counter[str] = Counter()
    drawn = (lambda test: test) if part is None else seed(part)

    @drawn
    @bounded(examples)
    @given(spec=specs(library))
    def run(spec: Spec) -> None:
        seen[check_case(prepare(spec))] += 1

    run()
    # samples are small
    assert seen["optimal"] > seen["infeasible"] / 5
