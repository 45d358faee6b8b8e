"""Rewrites programs so that floats become elements of a prime field, where nothing rounds.

The field is that of the integers modulo P = 2^31 - 1. No reordering of a sum changes its value
there. So programs can be compared for equality, and no tolerance hides a lost, doubled or misplaced
term. Tensor expressions and loop IR are rewritten by the same rules, to ordinary programs on i64.

    A[i] * 0.5f32 + 1.0f32   becomes   (A[i] * 1073741824 % P + 1) % P

- Sums, differences, products, quotients and fma are those of the field; x / 0 is 0.
- A constant m / 2^k is the quotient of m and 2^k.
- Comparisons, Min and Max compare the residues as integers.
- The least float and -inf become 0, the greatest float and inf P - 1. So they stay the identities
  of Max and Min.
- Conversions between floats keep the residue.
- Every other function becomes a fixed polynomial of its operands, a stand-in. The same function of
  the same operands gives the same value, and another one most probably another value.

Two different polynomials of low degree agree at a random point with a probability of about 2^-31
for each element (the lemma of Schwartz and Zippel). Refuses operations on the bits of a float,
which only late passes introduce (Unsupported).
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
from refcomp.oracle.tensors.rebuilt_operations import RebuiltOperations
from refcomp.te.tensor import Tensor

P = 2**31 - 1

_MEMORY = (BufferLoad, Load, BufferStore, Store, AtomicUpdate, Prefetch, Allocate)
_PREDICATES = {"isnan": 0, "isinf": 0, "isfinite": 1}
_COMPARES = (
    ir.EQ,
    ir.NE,
    ir.LT,
    ir.LE,
    ir.GT,
    ir.GE,
    ir.Min,
    ir.Max,
)
_GREATEST = (
    float(np.finfo(np.float32).max),
    float(np.finfo(np.float64).max),
    3.3895313892515355e38,  # bfloat16
)


def to_field(func: PrimFunc) -> PrimFunc:
    """Return `func` on field elements.

    Each parameter, buffer and variable of floats becomes one of i64 in [0, P).
    """
    rewriting = _FieldRewriter()
    params = tuple(map(rewriting.param, func.params))
    return with_fields(func, params=params, body=rewriting.visit(func.body))


def tensors_to_field(
    outputs: Sequence[Tensor], scalars: Mapping[Var, Var] | None = None
) -> tuple[list[Tensor], dict[Tensor, Tensor]]:
    """Return `outputs` as computations on field elements, and the new tensor of each old one.

    `scalars` maps variables of floats to the variables that replace them.
    """
    rewriting = _FieldRewriter(scalars)
    return rewriting.rebuild(outputs), rewriting.tensors


def field_dtype(dtype: DType) -> DType:
    """Return the dtype of the field elements that replace values of `dtype`."""
    return I64.with_lanes(dtype.lanes) if dtype.is_float else dtype


class _FieldRewriter(RebuiltOperations):
    """The rewriting of one program: variables and buffers get one replacement each."""

    def __init__(self, scalars: Mapping[Var, Var] | None = None) -> None:
        super().__init__()
        self._vars = dict(scalars or {})
        self._buffers: dict[Buffer, Buffer] = {}

    def dtype(self, dtype: DType) -> DType:
        return field_dtype(dtype)

    def var(self, var: Var) -> Var:
        if not var.dtype.is_float:
            return var
        replacement = Var(var.name, field_dtype(var.dtype))
        return self._vars.setdefault(var, replacement)

    def buffer(self, buffer: Buffer) -> Buffer:
        if not buffer.dtype.is_float:
            return buffer
        replacement = with_fields(buffer, dtype=I64, alignment=0)
        return self._buffers.setdefault(buffer, replacement)

    def param(self, param: Var | Buffer) -> Var | Buffer:
        """Return the replacement of a parameter or of what a parallel region captures."""
        if isinstance(param, Buffer):
            return self.buffer(param)
        return self.var(param)

    def visit_node(self, recurse: Rewrite, node: Node) -> Node:
        rule = _RULES.get(type(node))
        if rule is not None and isinstance(node, Expr) and _has_floats(node):
            return rule(node, recurse)
        match node:
            case Var():
                return self.var(node)
            case Let() | LetStmt():
                value = recurse(node.value)
                body = recurse(node.body)
                var = self.var(node.var)
                return with_fields(node, var=var, value=value, body=body)
        result = super().visit_node(recurse, node)
        match result:
            case AddressOf():
                buffer = self.buffer(result.buffer)
                element = field_dtype(result.element)
                return with_fields(result, buffer=buffer, element=element)
            case ParallelRegion():
                captures = tuple(map(self.param, result.captures))
                return with_fields(result, captures=captures)
        if isinstance(result, _MEMORY):
            # Rebuilt even without floats: the dtype of a load follows from its buffer.
            return with_fields(result, buffer=self.buffer(result.buffer))
        return result


def _has_floats(node: Expr) -> bool:
    """Return True if `node` computes with floats or converts them."""
    match node:
        case ir.BinaryExpr():
            return node.a.dtype.is_float
        case Cast():
            values: Sequence[Expr] = (node, node.value)
        case ir.PureExtern():
            values = (node, *node.args)
        case Call():
            values = (node, *node.args[:1])
        case _:
            values = (node,)
    return any(value.dtype.is_float for value in values)


def _number(value: int, like: Expr, dtype: DType = I64) -> Expr:
    """Return a constant with as many lanes as `like`."""
    scalar = IntImm(value, dtype)
    return scalar if like.dtype.lanes == 1 else Broadcast(scalar, like.dtype.lanes)


def _reduced(value: Expr) -> Expr:
    return FloorMod(value, _number(P, value))


def _times(a: Expr, b: Expr) -> Expr:
    return _reduced(ir.Mul(a, b))


def _arithmetic(node: ir.BinaryExpr, recurse: Rewrite) -> Expr:
    return _reduced(map_children(node, recurse))


def _compare(node: ir.BinaryExpr, recurse: Rewrite) -> Expr:
    return map_children(node, recurse)


def _constant(node: ir.FloatImm, _recurse: Rewrite) -> Expr:
    value = node.value
    if math.isnan(value):
        return IntImm(zlib.crc32(b"nan") % P, I64)
    if math.isinf(value) or abs(value) in _GREATEST:
        return IntImm(P - 1 if value > 0 else 0, I64)
    fraction = Fraction(value)
    residue = fraction.numerator * pow(fraction.denominator, P - 2, P) % P
    return IntImm(residue, I64)


def _divide(node: ir.Div, recurse: Rewrite) -> Expr:
    a = recurse(node.a)
    b = recurse(node.b)
    if isinstance(b, IntImm):
        inverse = pow(b.value, P - 2, P)
        return _times(a, IntImm(inverse, I64))
    return _times(a, _inverse(b))


def _inverse(value: Expr) -> Expr:
    """Return value^(P - 2), which is the inverse (Fermat), by squaring and multiplying."""
    base = Var("base", value.dtype)
    power: Expr = base
    lets: list[tuple[Var, Expr]] = []
    for bit in bin(P - 2)[3:]:
        squared = _times(power, power)
        step = Var("power", value.dtype)
        if bit == "1":
            squared = _times(squared, base)
        lets.append((step, squared))
        power = step
    for var, bound in reversed(lets):
        power = Let(var, bound, power)
    return Let(base, value, power)


def _cast(node: Cast, recurse: Rewrite) -> Expr:
    value = recurse(node.value)
    if node.dtype.is_bool:
        return ir.NE(value, _number(0, value))
    if not node.dtype.is_float:
        return Cast(node.dtype, value)
    if node.value.dtype.is_float:
        return value
    return _reduced(Cast(I64.with_lanes(node.dtype.lanes), value))


def _call(node: Call, recurse: Rewrite) -> Expr:
    args = [recurse(arg) for arg in node.args]
    if node.name == "fma":
        a, b, c = args
        return _reduced(ir.Add(_times(a, b), c))
    if node.name in _PREDICATES:
        return _number(_PREDICATES[node.name], node, BOOL)
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
    args = [recurse(arg) for arg in node.numbers]
    elements = [arg if arg.dtype == I64 else _reduced(Cast(I64, arg)) for arg in args]
    texts = [arg.value for arg in node.args if isinstance(arg, ir.TextImm)]
    return _stand_in(" ".join(["extern", node.name, *texts]), elements)


def _mod(node: ir.Mod, recurse: Rewrite) -> Expr:
    return _stand_in("fmod", [recurse(node.a), recurse(node.b)])


def _stand_in(name: str, args: Sequence[Expr]) -> Expr:
    """Return a polynomial of `args` that belongs to the function `name` alone."""
    seed = zlib.crc32(name.encode())
    result: Expr = IntImm(seed % P, I64)
    if args:
        result = _number(seed % P, args[0])
    for k, arg in enumerate(args):
        factor = seed * (2 * k + 3) + 0x9E3779B1 * (k + 1)
        scaled = _times(arg, _number(factor % P, arg))
        mixed = _reduced(ir.Add(scaled, result))
        # Not linear, so that exchanged operands give another value.
        result = _reduced(ir.Add(_times(mixed, mixed), mixed))
    return result


_RULES: dict[type[Node], Callable[[Any, Rewrite], Expr]] = {
    ir.Add: _arithmetic,
    ir.Sub: _arithmetic,
    ir.Mul: _arithmetic,
    **dict.fromkeys(_COMPARES, _compare),
    ir.FloatImm: _constant,
    ir.Div: _divide,
    ir.Mod: _mod,
    Cast: _cast,
    Call: _call,
    ir.PureExtern: _pure_extern,
}
