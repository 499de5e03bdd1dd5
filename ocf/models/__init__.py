"""The user's model: its encoding, its splits on features, plausibility, tables."""
