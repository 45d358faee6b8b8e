"""Operators that search by values: sort, argsort, topk, unique, nonzero, searchsorted."""
