"""Counterfactual rules: ranges of values that turn an answer with high probability."""
