"""Rewrites programs so that floats become elements of a prime field, which never round.

Whatever a schedule may do to a sum, its value in the field of the integers modulo P = 2^31 - 1
stays the same, to the bit: so a lost, doubled or misplaced term cannot hide behind a tolerance.
The same rewriting is applied to tensor expressions and to loop IR, and what comes out of both is
an ordinary program on i64.

    A[i] * 0.5f32 + 1.0f32   becomes   (A[i] * 1073741824 % P + 1) % P

Sums, differences, products, quotients by any divisor and fma are those of the field (x / 0 is 0);
a constant m / 2^k is that quotient. The least float and -inf are 0 and the greatest ones P - 1, so
that they stay neutral for Max and Min, which compare residues. Every other function is some fixed
polynomial of its operands (a stand-in): the same function of the same operands gives the same
value, and any other most probably not. Conversions between floats keep the residue. Two programs
that differ give equal values for random inputs with a probability of about 1 in 2^31 an element.
Refuses what looks at the bits of a float, which only late passes do (Unsupported).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from refcomp.foundation.dtype import BOOL, I64, DType
from refcomp.foundation.errors import Unsupported
from refcomp.ir import expr as ir
from refcomp.ir.buffer import AddressOf, Buffer, BufferLoad, Load
from refcomp.ir.expr import Broadcast, Call, Cast, Expr, FloorMod, IntImm, Let, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.rewrite import Rewrite, map_children, with_fields
from refcomp.ir.stmt import (
    Allocate,
    AtomicUpdate,
    BufferStore,
    LetStmt,
    ParallelRegion,
    Prefetch,
    Store,
)
from refcomp.oracle.exact.rebuilt_operations import RebuiltOperations
from refcomp.te.tensor import Tensor, TensorRead

P = 2**31 - 1

_MEMORY = (BufferLoad, Load, BufferStore, Store, AtomicUpdate, Prefetch, Allocate)
_PREDICATES = {"isnan": 0, "isinf": 0, "isfinite": 1}
_COMPARES = (ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE, ir.Min, ir.Max)


def to_field(func: PrimFunc) -> PrimFunc:
    """`func` on field elements: each float parameter, buffer and variable is an i64 in [0, P)."""
    rewriting = _Rewriting()
    params = tuple(
        rewriting.buffer(p) if isinstance(p, Buffer) else rewriting.var(p)
        for p in func.params
    )
    return with_fields(func, params=params, body=rewriting.visit(func.body))


def tensors_to_field(
    outputs: Sequence[Tensor], scalars: Mapping[Var, Var] | None = None
) -> tuple[list[Tensor], dict[Tensor, Tensor]]:
    """`outputs` as computations on field elements, and for each tensor that they are made of the
    one that takes its place. `scalars` says which variables take the place of floats given."""
    rewriting = _Rewriting(scalars)
    return rewriting.rebuild(outputs), rewriting.tensors


def field_dtype(dtype: DType) -> DType:
    """The dtype that holds what a value of `dtype` becomes."""
    return I64.with_lanes(dtype.lanes) if dtype.is_float else dtype


def _residue(value: float) -> int:
    """The field element that a float constant is."""
    if math.isnan(value):
        return zlib.crc32(b"nan") % P
    greatest = float(np.finfo(np.float16).max)
    if abs(value) > greatest * 2 or math.isinf(value):
        return _extreme(value)
    fraction = Fraction(value)
    return fraction.numerator * pow(fraction.denominator, P - 2, P) % P


def _extreme(value: float) -> int:
    """Of numbers beyond f16: the least and greatest of each type bound Max and Min."""
    limits = [float(np.finfo(t).max) for t in (np.float32, np.float64)]
    limits.append(3.3895313892515355e38)  # the greatest bfloat16
    if math.isinf(value) or abs(value) in limits:
        return P - 1 if value > 0 else 0
    fraction = Fraction(value)
    return fraction.numerator * pow(fraction.denominator, P - 2, P) % P


class _Rewriting(RebuiltOperations):
    """What has been rewritten: variables and buffers keep one counterpart each, as tensors do."""

    def __init__(self, scalars: Mapping[Var, Var] | None = None) -> None:
        super().__init__()
        self._vars = dict(scalars or {})
        self._buffers: dict[Buffer, Buffer] = {}

    def dtype(self, dtype: DType) -> DType:
        """That of field elements in the place of floats."""
        return field_dtype(dtype)

    def var(self, var: Var) -> Var:
        """The variable in the place of `var`; itself unless it is a float."""
        if not var.dtype.is_float:
            return var
        return self._vars.setdefault(var, Var(var.name, field_dtype(var.dtype)))

    def buffer(self, buffer: Buffer) -> Buffer:
        """The buffer in the place of `buffer`; itself unless it holds floats."""
        if not buffer.dtype.is_float:
            return buffer
        return self._buffers.setdefault(
            buffer, with_fields(buffer, dtype=I64, alignment=0)
        )

    def visit_node(self, recurse: Rewrite, node: Node) -> Node:
        """What becomes of `node`: memory and variables of floats hold field elements."""
        if isinstance(node, Var):
            return self.var(node)
        if isinstance(node, _MEMORY):
            # Rebuilt, as the dtype of a load follows from its buffer's.
            return with_fields(
                map_children(node, recurse), buffer=self.buffer(node.buffer)
            )
        if isinstance(node, AddressOf):
            fields = {
                "buffer": self.buffer(node.buffer),
                "element": field_dtype(node.element),
            }
            return with_fields(map_children(node, recurse), **fields)
        if isinstance(node, TensorRead):
            return super().visit_node(recurse, node)
        if isinstance(node, ParallelRegion):
            captures = tuple(
                self.buffer(c) if isinstance(c, Buffer) else self.var(c)
                for c in node.captures
            )
            return with_fields(map_children(node, recurse), captures=captures)
        if isinstance(node, Let | LetStmt):
            value, body = recurse(node.value), recurse(node.body)
            return with_fields(node, var=self.var(node.var), value=value, body=body)
        rule = _RULES.get(type(node))
        was_float = isinstance(node, Expr) and _touches_floats(node)
        if rule is None or not was_float:
            return map_children(node, recurse)
        return rule(node, recurse)


def _touches_floats(node: Expr) -> bool:
    operand = node.a if isinstance(node, ir.BinaryExpr) else node
    if isinstance(node, Cast):
        return node.dtype.is_float or node.value.dtype.is_float
    if isinstance(node, ir.PureExtern):
        return node.dtype.is_float or any(arg.dtype.is_float for arg in node.args)
    if isinstance(node, Call) and node.args:
        return node.dtype.is_float or node.args[0].dtype.is_float
    return operand.dtype.is_float


def _number(value: int, like: Expr) -> Expr:
    scalar = IntImm(value, I64)
    return scalar if like.dtype.lanes == 1 else Broadcast(scalar, like.dtype.lanes)


def _reduced(value: Expr) -> Expr:
    return FloorMod(value, _number(P, value))


def _times(a: Expr, b: Expr) -> Expr:
    return _reduced(ir.Mul(a, b))


def _ring(node: Any, recurse: Rewrite) -> Expr:
    return _reduced(type(node)(recurse(node.a), recurse(node.b)))


def _compared(node: Any, recurse: Rewrite) -> Expr:
    compared: Expr = type(node)(recurse(node.a), recurse(node.b))
    return compared


def _float_imm(node: ir.FloatImm, _recurse: Rewrite) -> Expr:
    return IntImm(_residue(node.value), I64)


def _divided(node: ir.Div, recurse: Rewrite) -> Expr:
    a, b = recurse(node.a), recurse(node.b)
    if isinstance(b, IntImm):
        return _times(a, IntImm(pow(b.value, P - 2, P), I64))
    return _times(a, _inverse(b))


def _inverse(value: Expr) -> Expr:
    """value^(P - 2), by squaring; P - 2 is thirty ones and a zero in binary but for one bit."""
    base = Var("base", value.dtype)
    power: Expr = base
    lets: list[tuple[Var, Expr]] = []
    for bit in bin(P - 2)[3:]:
        squared = _times(power, power)
        step = Var("power", value.dtype)
        lets.append((step, _times(squared, base) if bit == "1" else squared))
        power = step
    for var, bound in reversed(lets):
        power = Let(var, bound, power)
    return Let(base, value, power)


def _cast(node: Cast, recurse: Rewrite) -> Expr:
    value, source, target = recurse(node.value), node.value.dtype, node.dtype
    if not target.is_float:
        return (
            ir.NE(value, _number(0, value)) if target.is_bool else Cast(target, value)
        )
    return (
        value
        if source.is_float
        else _reduced(Cast(I64.with_lanes(target.lanes), value))
    )


def _call(node: Call, recurse: Rewrite) -> Expr:
    args = [recurse(arg) for arg in node.args]
    if node.name == "fma":
        return _reduced(ir.Add(_times(args[0], args[1]), args[2]))
    if node.name in _PREDICATES:
        truth = IntImm(_PREDICATES[node.name], BOOL)
        return truth if node.dtype.lanes == 1 else Broadcast(truth, node.dtype.lanes)
    if not node.dtype.is_float or not node.args[0].dtype.is_float:
        raise Unsupported(
            f"{node.name} looks at the bits of a float, which a field element has not",
            remedy="certify what stands before the passes that lower intrinsics and bfloat16",
        )
    return _stand_in(node.name, args)


def _pure_extern(node: ir.PureExtern, recurse: Rewrite) -> Expr:
    if not node.dtype.is_float:
        raise Unsupported(
            f"{node.name} makes an integer of floats, which has no meaning on field elements",
            remedy="certify the computes around it",
        )
    args = [recurse(arg) for arg in node.args]
    elements = [arg if arg.dtype == I64 else _reduced(Cast(I64, arg)) for arg in args]
    return _stand_in(f"extern {node.name}", elements)


def _stand_in(name: str, args: Sequence[Expr]) -> Expr:
    """A polynomial that only the function `name` of these operands has."""
    seed = zlib.crc32(name.encode())
    result: Expr = _number(seed % P, args[0]) if args else IntImm(seed % P, I64)
    for k, arg in enumerate(args):
        factor = _number((seed * (2 * k + 3) + 0x9E3779B1 * (k + 1)) % P, arg)
        mixed = _reduced(ir.Add(_times(arg, factor), result))
        result = _reduced(ir.Add(_times(mixed, mixed), mixed))
    return result


def _mod(node: ir.Mod, recurse: Rewrite) -> Expr:
    return _stand_in("fmod", [recurse(node.a), recurse(node.b)])


_RULES: dict[type[Node], Callable[[Any, Rewrite], Expr]] = {
    **dict.fromkeys((ir.Add, ir.Sub, ir.Mul), _ring),
    **dict.fromkeys(_COMPARES, _compared),
    ir.FloatImm: _float_imm,
    ir.Div: _divided,
    ir.Mod: _mod,
    Cast: _cast,
    Call: _call,
    ir.PureExtern: _pure_extern,
}
