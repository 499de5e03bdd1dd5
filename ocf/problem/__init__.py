"""A problem: target, cost, constraints, plausibility, and the file that describes it."""
