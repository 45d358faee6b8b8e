"""Questions about calls of functions outside the loop IR, and their two forms."""

from __future__ import annotations

from refcomp.ir.expr import C_FUNCTION, REGISTERED, PureExtern
from refcomp.ir.node import Node
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import CallPacked


def as_statement(item: object) -> object:
    """Return a call of a registered function as a statement; anything else as it is."""
    if isinstance(item, PureExtern) and item.callee == REGISTERED:
        return CallPacked(item.name, item.args)
    return item


def calls_python(root: Node) -> bool:
    """Return True if registered Python functions are called in `root`.

    A parallel loop with such a call runs in order. The function need not be safe for threads, and
    what it prints or records does not depend on the number of threads.
    """
    return any(
        isinstance(node, CallPacked)
        or (isinstance(node, PureExtern) and node.callee != C_FUNCTION)
        for node in walk(root)
    )
