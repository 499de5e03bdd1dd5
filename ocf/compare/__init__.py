"""Comparisons of methods on the same instances: suites, runs in processes of their own, statistics and reports.

>>> from pathlib import Path
>>> from ocf.compare import compare, load_suite, run_suite, write_report
>>> comparison = compare(run_suite(load_suite("smoke"), "results"))                     # doctest: +SKIP
>>> write_report(comparison, Path("results"))                                           # doctest: +SKIP
"""

from ocf.compare.diff import Difference, difference
from ocf.compare.frame import Comparison, compare
from ocf.compare.report import write_report
from ocf.compare.results import Results, read
from ocf.compare.runner import run_suite
from ocf.compare.suite import Suite, built_in, load_suite, parse_suite

__all__ = [
    "Comparison",
    "Difference",
    "Results",
    "Suite",
    "built_in",
    "compare",
    "difference",
    "load_suite",
    "parse_suite",
    "read",
    "run_suite",
    "write_report",
]
