"""Operators of one tensor that work element by element."""
