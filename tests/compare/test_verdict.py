"""What a comparison comes to, worked out by hand."""

from __future__ import annotations

from pathlib import Path

from ocf.compare.tables import tables
from ocf.compare.verdict import verdict

from .synthetic import TIMES_OF, comparison, line, standard, write


def test_the_fastest_is_named_with_its_distance_to_the_others(tmp_path: Path) -> None:
    times = TIMES_OF | {"close": (0.6, 1.1, 2.1, 4.4)}
    assert verdict(comparison(standard(tmp_path, times))) == [
        # the instances are those of two models
        "box is the fastest, or within 5 % of it, on 2 of 2 sets, and solves 4 of 4 instances.",
        # (0.6 / 0.5 · 1.1 · 1.05 · 1.1) ** (1 / 4)
        "Within 1.2× of its time: close 1.1×.",
        # (2 · 2 · 2 · 25) ** (1 / 4) and (4 · 8 · 50 · 25) ** (1 / 4)
        "Slower: interval/highs 3.8×, ocean/highs 14×.",
        "No disagreements: the user's own model confirmed 16 solutions, and all claims agree.",
    ]


def test_sets_that_another_method_wins_are_not_counted(tmp_path: Path) -> None:
    quick = [line("a", k, 0.1 * (k + 1), model=f"m{k}") for k in range(3)] + [line("a", 3, 5.0, model="m3")]
    slow = [line("b", k, 1.0, model=f"m{k}") for k in range(4)]
    first = verdict(comparison(write(tmp_path, quick + slow, ["b", "a"])))[0]
    assert first == "a is the fastest, or within 5 % of it, on 3 of 4 sets, and solves 4 of 4 instances."


def test_one_set_is_counted_by_instances_and_disagreements_are_said(tmp_path: Path) -> None:
    lines = [line(m, k, t, model="m") for m, t in (("a", 1.0), ("b", 2.0)) for k in range(3)]
    lines.append(line("b", 3, 1.0, model="m", cost=1.5, bound=1.5))
    lines.append(line("a", 3, 1.0, model="m"))
    said = verdict(comparison(write(tmp_path, lines, ["a", "b"])))
    assert said[0] == "a is the fastest, or within 5 % of it, on 4 of 4 instances, and solves 4 of 4 instances."
    assert said[-1] == "1 DISAGREEMENTS: see below."


def test_a_long_list_is_cut(tmp_path: Path) -> None:
    lines = [line(f"m{k}", 0, 1.0 + k) for k in range(8)]
    said = verdict(comparison(write(tmp_path, lines, [f"m{k}" for k in range(8)])))
    assert said[1] == "Slower: m1 2×, m2 3×, m3 4×, m4 5× and 3 more."


def test_who_solves_more_and_who_is_faster_in_the_mean_is_said_too(tmp_path: Path) -> None:
    quick = [line("quick", k, 0.1, model=f"m{k}") for k in range(3)] + [line("quick", 3, 99.0, model="m3")]
    sure = [line("sure", k, 0.5, model=f"m{k}") for k in range(3)] + [line("sure", 3, 1.0, model="m3")]
    said = verdict(comparison(write(tmp_path, quick + sure, ["quick", "sure"])))
    assert said[:3] == [
        "quick is the fastest, or within 5 % of it, on 3 of 4 sets, and solves 3 of 4 instances.",
        "sure solves 4 of 4 instances.",
        # (5 · 5 · 5 / 100) ** (1 / 4)
        "Within 1.2× of its time: sure 1.1×.",
    ]
    sure = [line("sure", k, 0.2, model=f"m{k}") for k in range(3)] + [line("sure", 3, 1.0, model="m3")]
    said = verdict(comparison(write(tmp_path / "b", quick + sure, ["quick", "sure"])))
    assert said[2] == "Faster in the mean: sure 0.53×."  # (2 · 2 · 2 / 100) ** (1 / 4)


def test_methods_without_proofs_are_told_by_what_their_points_cost(tmp_path: Path) -> None:
    lines = [line("sure", k, 1.0, model="m") for k in range(3)]
    costs = {"dear": (2.0, 4.0, 3.0), "near": (1.0, 1.0, 1.5)}
    for method, own in costs.items():
        for k, cost in enumerate(own):
            about = {"status": "unproved", "answer": "feasible", "cost": cost, "bound": "-inf", "gap": "inf"}
            lines.append(line(method, k, 0.1, model="m", **about))
    lines.append(line("lost", 0, 0.1, model="m", status="unproved", answer="unknown", cost=None, found=False))
    c = comparison(write(tmp_path, lines, ["sure", "dear", "near", "lost"]))
    assert verdict(c)[1:-1] == ["Without proofs, at so many times the lowest cost: near 1×, dear 3×."]
    methods = tables(c)[0].frame.set_index("method")
    assert methods["cost ratio"].drop("lost").to_dict() == {"sure": 1.0, "dear": 3.0, "near": 1.0}
    assert methods["unproved"].to_dict() == {"sure": 0, "dear": 3, "near": 3, "lost": 1}
