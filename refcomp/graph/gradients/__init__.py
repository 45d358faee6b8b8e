"""Gradients of graphs, as graphs: reverse accumulation over nodes.

Reading order::

    vjp.py             the operator that differentiates any te compute; `stop_gradient`
    pullback.py        what a rule is given: a node, and the adjoints of its outputs
    rules/             rules of the common operators, written in operators of graphs
    table.py           for each operator: by a rule, by `vjp`, zero, or refused and why
    gradient.py        `gradient`, which walks a graph backwards
    inventory.py       the page GRADIENTS.md

Reference: A. Griewank and A. Walther, "Evaluating Derivatives", 2nd edition, 2008, chapter 3.
"""
