"""Comparisons of methods on the same instances: suites, runs in processes of their own, statistics and reports.

>>> from ocf.compare import load_suite, run_suite
>>> results = run_suite(load_suite("smoke"), "results")                                 # doctest: +SKIP
"""

from ocf.compare.results import Results, read
from ocf.compare.runner import run_suite
from ocf.compare.suite import Suite, built_in, load_suite, parse_suite

__all__ = ["Results", "Suite", "built_in", "load_suite", "parse_suite", "read", "run_suite"]
