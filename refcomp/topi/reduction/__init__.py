"""Reductions of a tensor along axes."""
