"""Replaces bfloat16 values by f32 values and integer operations, and its memory by u16.

Before::

    func f(A: bf16[n], B: bf16[n] out) {
      B@[0] = abs(A@[0])
    }

After::

    func f(A: u16[n], B: u16[n] out) {
      B@[0] = u16(float_to_bits(abs(bits_to_float(u32(A@[0]) << 16u32))) >> 16u32)
    }

A bf16 value becomes the f32 value that it equals. Each operation is done in f32, and then
rounded to bf16 by integer operations. The result is the same as with one rounding.
Conversions from wider types round to odd first, which also has the effect of a single
rounding. Only instructions of GPUs take bf16 operands, as bits.

Requires: intrinsics of bf16 are lowered (`lower_intrinsics`), except exact ones. Ensures:
no bf16 is left in values, buffers, parameters or captures. A scalar parameter is passed as
its bits. Level: flat to host, or to device. It refuses nothing.
"""

from refcomp.foundation.dtype import F32, F64, DType
from refcomp.ir import expr as ir
from refcomp.ir.buffer import AddressOf, Buffer, Load
from refcomp.ir.expr import Call, Cast, Expr, Let, Select, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import is_bound
from refcomp.ir.node import Node
from refcomp.ir.promotion import const
from refcomp.ir.rewrite import (
    Rewrite,
    map_children,
    rewriter,
    variables_in,
    with_changes,
    with_fields,
)
from refcomp.ir.stmt import (
    Allocate,
    For,
    LaunchKernel,
    LetStmt,
    ParallelRegion,
    Prefetch,
    Stmt,
    Store,
)
from refcomp.passes.analysis.contents import dtypes_in

_U16 = DType("uint", 16)
_U32 = DType("uint", 32)
_U64 = DType("uint", 64)

# Nodes whose result is one of their operands, or exact in bf16 if the operands are.
_EXACT_NODES = (ir.Mod, ir.Min, ir.Max, Select, ir.IfThenElseExpr, Let, ir.Broadcast)
_EXACT_CALLS = ("abs", "copysign", "floor", "ceil", "trunc", "round")


def lower_bfloat16(func: PrimFunc) -> PrimFunc:
    """Return `func` without bfloat16."""
    if not any(map(_is_bfloat, dtypes_in(func))):
        return func
    lowering = _Lowering()
    params = tuple(lowering.param(param) for param in func.params)
    body = lowering.lower(func.body)
    for param, passed in zip(func.params, params, strict=True):
        if passed is param:
            continue
        if isinstance(param, Var) and isinstance(passed, Var):
            var = lowering.var(param)
            value = _from_bits(passed)
            body = _named_within(body, var, value)
    return with_changes(func, params=params, body=body)


def _named_within(body: Stmt, var: Var, value: Expr) -> Stmt:
    """Return `body` with a let of `var`, inside the bound loops of a kernel."""
    if isinstance(body, For) and is_bound(body):
        inner = _named_within(body.body, var, value)
        return with_fields(body, body=inner)
    # The host of a Program only passes the bits on.
    if var not in variables_in(body):
        return body
    return LetStmt(var, value, body)


def _is_bfloat(dtype: DType) -> bool:
    return dtype.kind == "bfloat"


class _Lowering:
    """The replacements of bf16 variables and buffers, and the rewrite that applies them."""

    def __init__(self) -> None:
        self._vars: dict[Var, Var] = {}  # bf16 -> f32
        self._buffers: dict[Buffer, Buffer] = {}  # bf16 -> u16
        self._passed: dict[Var, Var] = {}  # scalar parameter -> its bits as u16
        self.lower = rewriter(self._visit)

    def param(self, param: Var | Buffer) -> Var | Buffer:
        """Return the replacement of a parameter: the bits of a scalar."""
        if isinstance(param, Buffer):
            return self.buffer(param)
        if not _is_bfloat(param.dtype):
            return param
        return self._passed.setdefault(param, Var(param.name, _U16))

    def var(self, var: Var) -> Var:
        if not _is_bfloat(var.dtype):
            return var
        wide = F32.with_lanes(var.dtype.lanes)
        return self._vars.setdefault(var, Var(var.name, wide))

    def buffer(self, buffer: Buffer) -> Buffer:
        if not _is_bfloat(buffer.dtype):
            return buffer
        return self._buffers.setdefault(buffer, with_fields(buffer, dtype=_U16))

    def _visit(self, recurse: Rewrite, node: Node) -> Node:
        if isinstance(node, Stmt):
            return self._stmt(map_children(node, recurse), node)
        assert isinstance(node, Expr)
        if isinstance(node, Var):
            return self.var(node)
        if isinstance(node, Cast):
            value = recurse(node.value)
            return _cast(value, source=node.value.dtype, target=node.dtype)
        if isinstance(node, AddressOf):
            address = map_children(node, recurse)
            return with_fields(address, buffer=self.buffer(node.buffer))
        if isinstance(node, ir.FloatImm) and _is_bfloat(node.dtype):
            return ir.FloatImm(node.value, F32)
        if isinstance(node, Load) and _is_bfloat(node.dtype):
            load = map_children(node, recurse)
            load = with_fields(load, buffer=self.buffer(node.buffer))
            return _from_bits(load)
        if isinstance(node, ir.PureExtern):
            lowered = map_children(node, recurse)
            args = list(lowered.args)
            for position, original in enumerate(node.args):
                # Instructions of GPUs take bf16 operands as bits.
                if _is_bfloat(original.dtype):
                    args[position] = _to_bits(args[position])
            lowered = with_changes(lowered, args=tuple(args))
            if not _is_bfloat(node.dtype):
                return lowered
            # An instruction that moves elements returns their bits.
            bits = _U16.with_lanes(node.dtype.lanes)
            return _from_bits(with_fields(lowered, dtype=bits))
        return self._operation(map_children(node, recurse), node)

    def _operation(self, lowered: Expr, node: Expr) -> Expr:
        """Return the lowered form of `node`; the children of `lowered` are lowered."""
        if isinstance(lowered, Let):
            lowered = with_fields(lowered, var=self.var(lowered.var))
        if not _is_bfloat(node.dtype):
            return lowered
        if isinstance(lowered, Call):
            # A call states its dtype; other nodes derive it from their operands.
            lowered = with_fields(lowered, dtype=F32.with_lanes(node.dtype.lanes))
        if isinstance(node, _EXACT_NODES):
            return lowered
        if isinstance(node, Call) and node.name in _EXACT_CALLS:
            return lowered
        return _round(lowered)

    def _stmt(self, lowered: Stmt, node: Stmt) -> Stmt:
        """Return the lowered form of `node`; the children of `lowered` are lowered."""
        if isinstance(node, LetStmt) and _is_bfloat(node.var.dtype):
            return with_fields(lowered, var=self.var(node.var))
        if isinstance(lowered, Store) and _is_bfloat(lowered.buffer.dtype):
            bits = _to_bits(lowered.value)
            return with_fields(lowered, buffer=self.buffer(lowered.buffer), value=bits)
        if isinstance(node, Allocate | Prefetch) and _is_bfloat(node.buffer.dtype):
            return with_fields(lowered, buffer=self.buffer(node.buffer))
        if isinstance(node, ParallelRegion):
            captures: list[Var | Buffer] = []
            for item in node.captures:
                if isinstance(item, Buffer):
                    captures.append(self.buffer(item))
                else:
                    captures.append(self.var(item))
            return with_changes(lowered, captures=tuple(captures))
        if isinstance(node, LaunchKernel):
            # Kernels have scalar parameters, as functions do: they take bits.
            arguments = tuple(map(self.param, node.arguments))
            return with_changes(lowered, arguments=arguments)
        return lowered


# Bits and values. `x` is an f32 expression, scalar or vector.


def _like(dtype: DType, expr: Expr) -> DType:
    return dtype.with_lanes(expr.dtype.lanes)


def _number(value: int, expr: Expr) -> Expr:
    return const(value, expr.dtype)


def _bits_of(x: Expr) -> Expr:
    return Call("float_to_bits", (x,), _like(_U32, x))


def _float_of(bits: Expr) -> Expr:
    return Call("bits_to_float", (bits,), _like(F32, bits))


def _from_bits(bits: Expr) -> Expr:
    wide = Cast(_like(_U32, bits), bits)
    return _float_of(ir.ShiftLeft(wide, _number(16, wide)))


def _to_bits(x: Expr) -> Expr:
    match x:
        case Call("bits_to_float", (ir.ShiftLeft(Cast(value=stored)),), _):
            if stored.dtype.bits == 16:
                return stored  # copied from memory to memory
    bits = _bits_of(x)
    high = ir.ShiftRight(bits, _number(16, bits))
    return Cast(_like(_U16, x), high)


def _round(x: Expr) -> Expr:
    """Return the nearest bf16 number, ties to even; NaN stays NaN."""
    value = Var("x", x.dtype)
    bits = Var("bits", _like(_U32, x))
    high = ir.ShiftRight(bits, _number(16, bits))
    last = ir.BitAnd(high, _number(1, bits))
    # A tie carries into the bits that are kept only if the last of these is 1.
    half = ir.Add(_number(0x7FFF, bits), last)
    carried = ir.Add(bits, half)
    kept = ir.BitAnd(carried, _number(0xFFFF0000, bits))
    nan = const(float("nan"), x.dtype)
    # The bits of a NaN must not be rounded: the carry could make them an infinity.
    is_nan = ir.NE(value, value)
    rounded = Select(is_nan, nan, _float_of(kept))
    inner = Let(bits, _bits_of(value), rounded)
    return Let(value, x, inner)


def _cast(value: Expr, source: DType, target: DType) -> Expr:
    """Return `value` as dtype `target`; before it was lowered, it was of dtype `source`."""
    wide = F32.with_lanes(target.lanes)
    if not _is_bfloat(target):
        return value if value.dtype == target else Cast(target, value)
    if _is_bfloat(source):
        return value
    if source.is_bool or (source.is_int and source.bits == 8):
        return Cast(wide, value)  # bf16 has eight binary digits
    # f64 holds each 32-bit integer, f32 each 16-bit one; wider values round to odd first.
    if source.bits == 64 and source.is_int:
        return _round(_odd_f32(_odd_f64(value)))
    if source.bits == 64 or (source.is_int and source.bits == 32):
        f64_value = Cast(_like(F64, value), value)
        return _round(_odd_f32(f64_value))
    f32_value = value if value.dtype == wide else Cast(wide, value)
    return _round(f32_value)


def _odd_f32(x: Expr) -> Expr:
    """Return an f64 value as f32, rounded to odd.

    Of its two neighbours, this is the one whose last bit is 1.
    """
    value = Var("x", x.dtype)
    near = Var("near", _like(F32, x))
    bits = _bits_of(near)
    back = Cast(x.dtype, near)
    is_exact = ir.EQ(back, value)
    # Floats are sign and magnitude, so one less in the bits is one step toward zero.
    is_beyond = ir.GT(_magnitude(back), _magnitude(value))
    toward_zero = ir.Sub(bits, Cast(bits.dtype, is_beyond))
    odd_bits = ir.BitOr(toward_zero, _number(1, bits))
    chosen = Select(is_exact, near, _float_of(odd_bits))
    inner = Let(near, Cast(near.dtype, value), chosen)
    return Let(value, x, inner)


def _odd_f64(x: Expr) -> Expr:
    """Return a 64-bit integer as f64, rounded to odd.

    If f64 cannot hold the integer, its last twelve bits are first merged into one.
    """
    value = Var("x", x.dtype)
    dropped = ir.BitAnd(value, _number(0xFFF, x))
    kept = ir.Sub(value, dropped)
    is_inexact = ir.NE(dropped, _number(0, x))
    sticky = Cast(x.dtype, is_inexact)
    merged = ir.BitOr(kept, ir.ShiftLeft(sticky, _number(12, x)))
    # Integers of 54 digits and more may need more digits than the 53 of f64.
    is_exact: Expr = ir.LE(value, _number(1 << 53, x))
    if x.dtype.kind == "int":
        is_above = ir.GE(value, _number(-(1 << 53), x))
        is_exact = ir.And(is_exact, is_above)
    chosen = Select(is_exact, value, merged)
    return Let(value, x, Cast(_like(F64, x), chosen))


def _magnitude(x: Expr) -> Expr:
    return Call("abs", (x,), x.dtype)
