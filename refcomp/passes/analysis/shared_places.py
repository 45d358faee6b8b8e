"""Allocations of shared memory in a kernel, with the number of places at which each stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from refcomp.ir.buffer import SHARED
from refcomp.ir.func import PrimFunc
from refcomp.ir.rewrite import children, memoised
from refcomp.ir.stmt import Allocate, Stmt


def shared_places(kernel: PrimFunc) -> Counter[Allocate]:
    """Return the shared allocations of `kernel`, with the number of places of each.

    A subtree of statements may stand at several places. The printed text then has it as often, and
    each place gets memory of its own.
    """
    count: Callable[[Stmt], Counter[Allocate]] = memoised(_places_in)
    return count(kernel.body)


def _places_in(
    recurse: Callable[[Stmt], Counter[Allocate]], node: Stmt
) -> Counter[Allocate]:
    places: Counter[Allocate] = Counter()
    if isinstance(node, Allocate) and node.buffer.scope == SHARED:
        places[node] = 1
    for child in children(node):
        if isinstance(child, Stmt):
            places.update(recurse(child))
    return places
