"""Losses: distances of predictions from targets, for each element or reduced to one number."""
