"""Replaces the external functions that a program calls by deterministic stand-ins.

    packed f(read(A), write(C), 3)   becomes
    packed refcomp.oracle.stand_in(NAME, 3, read(A), 5, write(C), 0, 3)

A stand-in writes numbers that depend on every bit it reads, on its arguments, and on the name of
the function. So a program with another call, or with a call at another time, gives another result.
What is right with stand-ins is right whatever the functions compute, and no outside code runs.
Integers that a stand-in writes are 0 or 1, as they may be used as indices.

Refuses calls with the address of an element (Unsupported): the part of the memory that they access
is not known.
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
from refcomp.ir.expr import Expr, IntImm, TextImm
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.rewrite import Rewrite, map_children, rewriter, walk
from refcomp.ir.stmt import CALLS, CallExtern, CallPacked
from refcomp.oracle.exact.field import P
from refcomp.oracle.tensors.arrays import Array
from refcomp.oracle.tensors.rebuilt_operations import RebuiltOperations
from refcomp.te.tensor import Tensor

STAND_IN = "refcomp.oracle.stand_in"
# The kind before each argument is 0 for a number; for memory 2, 4 or 6, plus 1 if it holds floats.
_NUMBER = 0
_ACCESSES = (READ, WRITE, UPDATE)


def with_stand_ins(func: PrimFunc) -> PrimFunc:
    """Return `func` with stand-ins for all calls; `func` itself if it calls nothing."""
    calls = any(isinstance(node, CALLS) for node in walk(func.body))
    if not calls:
        return func
    return func.with_body(rewriter(_replaced)(func.body))


def tensors_with_stand_ins(
    outputs: Sequence[Tensor],
) -> tuple[list[Tensor], dict[Tensor, Tensor]]:
    """Return `outputs` with stand-ins for the calls of their extern operations.

    The second result maps each tensor that they need to the tensor that replaces it.
    """
    rebuilt = _CallRewriter()
    return rebuilt.rebuild(outputs), rebuilt.tensors


class _CallRewriter(RebuiltOperations):
    def visit_node(self, recurse: Rewrite, node: Node) -> Node:
        if isinstance(node, CALLS):
            return _stand_in_call(node)
        return super().visit_node(recurse, node)


def _replaced(recurse: Rewrite, node: Node) -> Node:
    if isinstance(node, CALLS):
        return _stand_in_call(node)
    # Calls are statements, so expressions stay as they are.
    return node if isinstance(node, Expr) else map_children(node, recurse)


def _stand_in_call(call: CallPacked | CallExtern) -> CallPacked:
    texts = [arg.value for arg in call.args if isinstance(arg, TextImm)]
    name = zlib.crc32(" ".join([call.name, *texts]).encode())
    args: list[Expr] = [IntImm(name, I64)]
    for arg in call.args:
        kind = _NUMBER
        if isinstance(arg, TextImm):
            continue
        if isinstance(arg, AddressOf):
            kind = 2 + 2 * _ACCESSES.index(arg.access) + arg.element.is_float
            if arg.indices:
                raise Unsupported(
                    f"{call.name} is given the address of an element, and cannot be stood in for",
                    where=str(call.origin) if call.origin else None,
                    why="which part of the memory it reads and writes is not known",
                    remedy="give it the whole tensor",
                )
        args += [IntImm(kind, I32), arg]
    return CallPacked(STAND_IN, tuple(args), call.origin)


def _stand_in(name: int, *args: Any) -> None:
    """Write numbers that depend on everything that is read.

    Args:
        name: checksum of the name of the function.
        args: pairs of a kind and an argument. Floats in memory of i64 are field elements.
    """
    pairs = list(zip(args[::2], args[1::2], strict=True))
    digest = hashlib.blake2b(name.to_bytes(8))
    for kind, arg in pairs:
        if kind == _NUMBER or _access(kind) != WRITE:
            digest.update(_bytes_of(np.asarray(arg)))
    for place, (kind, arg) in enumerate(pairs):
        if kind == _NUMBER or _access(kind) == READ:
            continue
        rng = np.random.default_rng([place, *digest.digest()])
        if kind % 2 == 0:
            arg[...] = rng.integers(0, 2, arg.shape)
        elif np.asarray(arg).dtype == np.int64:
            arg[...] = rng.integers(0, P, arg.shape)
        else:
            arg[...] = rng.standard_normal(arg.shape)


def _access(kind: int) -> str:
    return _ACCESSES[kind // 2 - 1]


def _bytes_of(array: Array) -> bytes:
    if array.dtype.kind in "fV":
        # The loop IR does not say which NaN an operation returns.
        array = np.where(np.isnan(array), np.nan, array)
    return array.tobytes()


register_func(STAND_IN, _stand_in, override=True)
