r"""The loop IR: nodes, their text form, traversals, comparison and verification.

Reading order: node.py, expr.py, buffer.py, stmt.py, func.py (the nodes and their grammar),
promotion.py (Python's numbers and operators), type_rules.py and verify.py (legal nodes and
functions), printer.py, parser.py, rewrite.py (traversals), structure.py (comparison), builder.py.

Example::

    >>> text = "func clear(B: f32[4] out) {\n  for i in range(4) {\n    B[i] = 0.0f32\n  }\n}\n"
    >>> func = rc.parse_func(text)
    >>> from refcomp.ir.verify import find_fault
    >>> find_fault(func, "nested") is None
    True
    >>> loop = func.body
    >>> loop.var.name, loop.extent, loop.body
    ('i', 4, B[i] = 0.0f32)
"""

from refcomp.ir import printer as printer  # gives nodes their repr

# Gives expressions their Python operators.
from refcomp.ir import (
    promotion as promotion,
)
