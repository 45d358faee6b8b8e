"""Attention: weighted means of values, and rotations by position."""
