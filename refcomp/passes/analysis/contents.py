"""The kinds of nodes that a function holds.

Most passes concern few functions. So a pass first asks here, and returns a function that holds
nothing for it. A function is walked once for all passes, until one changes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from refcomp.foundation.dtype import DType
from refcomp.ir.expr import Expr
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Allocate, For, LoopKind


def holds(func: PrimFunc, *kinds: type[Node] | LoopKind) -> bool:
    """Return True if the body of `func` holds a node of one of these classes or kinds of loops."""
    return not _contents_of(func).kinds.isdisjoint(kinds)


def dtypes_in(func: PrimFunc) -> frozenset[DType]:
    """Return the dtypes of all values, parameters and buffers of `func`."""
    return _contents_of(func).dtypes


@dataclass(frozen=True, slots=True)
class _Contents:
    kinds: frozenset[type[Node] | LoopKind]  # classes of nodes, and kinds of loops
    dtypes: frozenset[DType]


# For as long as the function lives.
_KNOWN: WeakKeyDictionary[PrimFunc, _Contents] = WeakKeyDictionary()


def _contents_of(func: PrimFunc) -> _Contents:
    known = _KNOWN.get(func)
    if known is None:
        known = _KNOWN[func] = _collect(func)
    return known


def _collect(func: PrimFunc) -> _Contents:
    kinds: set[type[Node] | LoopKind] = set()
    dtypes = {param.dtype for param in func.params}
    for node in walk(func.body):
        kinds.add(type(node))
        if isinstance(node, Expr):
            dtypes.add(node.dtype)
        elif isinstance(node, For):
            kinds.add(node.kind)
        elif isinstance(node, Allocate):
            dtypes.add(node.buffer.dtype)
    return _Contents(frozenset(kinds), frozenset(dtypes))
