"""Operators: each as a te compute, with its meaning in numpy beside it in the same file.

A float operator's numpy meaning is evaluated in f64 and rounded once: the value that compiled code,
which rounds at every step, is held against. Integers wrap in both.
"""
