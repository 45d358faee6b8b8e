"""Puts functions that nobody knows in the place of those that a program calls.

    packed f(read(A), write(C), 3)  becomes
    packed refcomp.oracle.stand_in(NAME, 3, read(A), 5, write(C), 0, 3)

What a stand-in writes depends on every bit that it reads, on the numbers it is given, and on which
function it stands for: a program that gives another one, or at another time, shows it. So what is
right with stand-ins is right whatever the functions do, and nothing outside of the program is run.
Integers that it writes are 0 or 1, as they may be indices.
Refuses (Unsupported) calls with the address of an element: which part they touch is not known.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from refcomp.foundation.dtype import I32, I64
from refcomp.foundation.errors import Unsupported
from refcomp.foundation.registry import register_func
from refcomp.ir.buffer import READ, UPDATE, WRITE, AddressOf
from refcomp.ir.expr import Expr, IntImm
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.rewrite import Rewrite, map_children, rewriter, walk
from refcomp.ir.stmt import CALLS, CallExtern, CallPacked
from refcomp.oracle.exact.field import P
from refcomp.oracle.exact.rebuilt_operations import RebuiltOperations
from refcomp.te.tensor import Tensor

STAND_IN = "refcomp.oracle.stand_in"
# What stands before each argument: 0 for a number, for memory 2, 4 or 6, and 1 more if of floats.
_NUMBER, _ACCESSES = 0, (READ, WRITE, UPDATE)


def with_stand_ins(func: PrimFunc) -> PrimFunc:
    """`func`, which calls nothing but stand-ins; itself if it calls nothing."""
    is_calling = any(isinstance(node, CALLS) for node in walk(func.body))
    return func.with_body(rewriter(_replaced)(func.body)) if is_calling else func


def tensors_with_stand_ins(
    outputs: Sequence[Tensor],
) -> tuple[list[Tensor], dict[Tensor, Tensor]]:
    """`outputs` as computations whose extern operations call nothing but stand-ins, and for each
    tensor that they are made of the one that takes its place."""
    rebuilt = _Calls()
    return rebuilt.rebuild(outputs), rebuilt.tensors


class _Calls(RebuiltOperations):
    def visit_node(self, recurse: Rewrite, node: Node) -> Node:
        return (
            _instead(node)
            if isinstance(node, CALLS)
            else super().visit_node(recurse, node)
        )


def _replaced(recurse: Rewrite, node: Node) -> Node:
    if isinstance(node, Expr):
        return node
    return _instead(node) if isinstance(node, CALLS) else map_children(node, recurse)


def _instead(call: CallPacked | CallExtern) -> CallPacked:
    args: list[Expr] = [IntImm(zlib.crc32(call.name.encode()), I64)]
    for arg in call.args:
        args += [IntImm(_kind_of(call, arg), I32), arg]
    return CallPacked(STAND_IN, tuple(args), call.origin)


def _kind_of(call: CallPacked | CallExtern, arg: Expr) -> int:
    if not isinstance(arg, AddressOf):
        return _NUMBER
    if arg.indices:
        raise Unsupported(
            f"{call.name} is given the address of an element, and cannot be stood in for",
            where=str(call.origin) if call.origin else None,
            why="which part of the memory it reads and writes is not known",
            remedy="give it the whole tensor",
        )
    return 2 + 2 * _ACCESSES.index(arg.access) + arg.element.is_float


def _stand_in(name: int, *args: Any) -> None:
    """Makes what is written out of all that is read. Floats in memory of i64 are field elements."""
    pairs = list(zip(args[::2], args[1::2], strict=True))
    read = hashlib.blake2b(name.to_bytes(8))
    for kind, arg in pairs:
        if kind == _NUMBER or _access(kind) != WRITE:
            read.update(
                np.ascontiguousarray(_without_nan_bits(np.asarray(arg))).tobytes()
            )
    for place, (kind, arg) in enumerate(pairs):
        if kind != _NUMBER and _access(kind) != READ:
            rng = np.random.default_rng([place, *read.digest()])
            arg[...] = _drawn(rng, arg, bool(kind % 2))


def _access(kind: int) -> str:
    return _ACCESSES[kind // 2 - 1]


def _without_nan_bits(array: Any) -> Any:
    """Which NaN it is is not told by the loop IR."""
    return (
        np.where(np.isnan(array), np.nan, array) if array.dtype.kind in "fV" else array
    )


def _drawn(rng: np.random.Generator, like: Any, is_float: bool) -> Any:
    if not is_float:
        return rng.integers(0, 2, like.shape).astype(like.dtype)
    if like.dtype == np.int64:
        return rng.integers(0, P, like.shape)
    return rng.standard_normal(like.shape).astype(like.dtype)


register_func(STAND_IN, _stand_in, override=True)
