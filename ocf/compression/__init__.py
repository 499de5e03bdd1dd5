"""Features compressed to the thresholds where a model decides (FCCA)."""
