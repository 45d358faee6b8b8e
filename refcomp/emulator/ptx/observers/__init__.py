"""Observers of launches: they find data races, and count what runs."""
