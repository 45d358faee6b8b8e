"""Products that are summed: matrix products."""
