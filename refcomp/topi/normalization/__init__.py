"""Operators that scale by statistics of the data: batch norm, softmax."""
