"""Which stages of a lowered schedule for a GPU the host would have to compute."""

from __future__ import annotations

from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import kernels_in
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import BufferStore


def stages_outside(func: PrimFunc) -> list[str]:
    """Those that a store outside of all kernels belongs to."""
    stores = [node for node in walk(func.body) if isinstance(node, BufferStore)]
    inside = {id(node) for start in kernels_in(func.body) for node in walk(start)}
    return [store.origin.stage for store in stores if store.origin and id(store) not in inside]
