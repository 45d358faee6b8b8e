"""Simplification of expressions: rules as data, and the engine that applies them.

Reading order: rules, pattern, matching, comparisons, products, engine.
"""
