"""Operators on images: resizing, sampling at positions, windows as columns."""
