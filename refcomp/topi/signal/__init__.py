"""Signals: Fourier transforms, windows, and frames of signals."""
