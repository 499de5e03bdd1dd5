"""From a problem to an outcome: engines, method choice, ties, cross-check."""
