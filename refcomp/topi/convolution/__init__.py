"""Convolutions in several layouts."""
