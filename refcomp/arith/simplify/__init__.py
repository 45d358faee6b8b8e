"""Simplification of expressions: rules as data, what they mean, and the engine that applies them.

Reading order: rules, pattern, matching, comparisons, engine.
"""
