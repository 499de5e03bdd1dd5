"""Features of the user's table: kinds, bounds, costs, and how they are read from data."""
