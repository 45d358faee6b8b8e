"""Kernels of the device level whose values go round through other threads before they are stored.

    C[i] = v    becomes    C[i] = shuffle_xor(shuffle_xor(v, 2, 4), 2, 4)

which means the same. Done to the first stores of a kernel that all threads of a group reach
together, where the group's number of threads is known and even.

Never made: exchanges that leave something changed, of vectors, within a condition or a loop that
threads differ in.
"""

from __future__ import annotations

from math import prod

from refcomp.foundation.dtype import I32
from refcomp.ir.expr import Call, Expr, IntImm
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import kernel_nest, kernels_in
from refcomp.ir.node import Node
from refcomp.ir.rewrite import map_children, walk, with_fields
from refcomp.ir.stmt import Store
from refcomp.ir.verify import find_fault

_NAME = "subgroup_shuffle_xor"
_WIDEST = 32


def with_shuffles(kernel: PrimFunc, most: int = 3) -> tuple[PrimFunc, int]:
    """The kernel with up to `most` stores changed, and how many were."""
    width, count = _width(kernel), 0
    for store in _stores(kernel) if width > 1 else ():
        changed = _replaced(kernel, store, _there_and_back(store.value, width, count))
        if count < most and find_fault(changed, "device") is None:
            kernel, count = changed, count + 1
    return kernel, count


def _width(kernel: PrimFunc) -> int:
    """The widest subgroups that divide the threads of a group."""
    block = kernel_nest(next(kernels_in(kernel.body))).block
    if not all(isinstance(extent, IntImm) for extent in block):
        return 1
    threads = prod(extent.value for extent in block if isinstance(extent, IntImm))
    return min(threads & -threads, _WIDEST)


def _stores(kernel: PrimFunc) -> list[Store]:
    found = [node for node in walk(kernel.body) if isinstance(node, Store)]
    return [s for s in found if s.value.dtype.lanes == 1 and not s.value.dtype.is_bool]


def _there_and_back(value: Expr, width: int, number: int) -> Expr:
    mask = IntImm(1 + number % (width - 1), I32)
    there = Call(_NAME, (value, mask, IntImm(width, I32)), value.dtype)
    return Call(_NAME, (there, mask, IntImm(width, I32)), value.dtype)


def _replaced(kernel: PrimFunc, store: Store, value: Expr) -> PrimFunc:
    def change(node: Node) -> Node:
        return with_fields(node, value=value) if node is store else map_children(node, change)

    return with_fields(kernel, body=change(kernel.body))
