"""Launches of kernels: instructions bound to arrays, and the order in which threads run."""
