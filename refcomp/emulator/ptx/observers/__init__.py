"""Observers of launches: they find data races."""
