"""Expressions of the loop IR: pure values of one dtype, scalar or vector.

Grammar (ASDL; every node also has `dtype`, derived where it is not listed)::

    expr = Var(str name, dtype dtype)
         | IntImm(int value, dtype dtype)
         | FloatImm(float value, dtype dtype)
         | Cast(dtype dtype, expr value)
         | Add(expr a, expr b) | Sub(expr a, expr b) | Mul(expr a, expr b)
         | Div(expr a, expr b) | Mod(expr a, expr b)
         | FloorDiv(expr a, expr b) | FloorMod(expr a, expr b)
         | Min(expr a, expr b) | Max(expr a, expr b)
         | BitAnd(expr a, expr b) | BitOr(expr a, expr b) | BitXor(expr a, expr b)
         | ShiftLeft(expr a, expr b) | ShiftRight(expr a, expr b)
         | EQ(expr a, expr b) | NE(expr a, expr b) | LT(expr a, expr b)
         | LE(expr a, expr b) | GT(expr a, expr b) | GE(expr a, expr b)
         | And(expr a, expr b) | Or(expr a, expr b) | Not(expr a)
         | Select(expr condition, expr true_value, expr false_value)
         | IfThenElseExpr(expr condition, expr true_value, expr false_value)
         | Ramp(expr base, expr stride, int lanes)
         | Broadcast(expr value, int lanes)
         | Let(var var, expr value, expr body)
         | Call(str name, expr* args, dtype dtype)
         | PureExtern(str name, expr* args, dtype dtype, callee callee)
         | TextImm(str value)

Reads of memory are in `refcomp.ir.buffer`. Both operands of a binary node have the same dtype; the
Python operators insert the promotions (`refcomp.ir.promotion`). Vector nodes work lane by lane.
Integer arithmetic wraps modulo 2^bits. Float arithmetic is IEEE and rounds to nearest even after
every node: nothing is contracted or re-associated.
"""

from __future__ import annotations

# house: allow-long (one class per node; the grammar is read in one place)
import math
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, NoReturn

import numpy as np

from refcomp.foundation.choices import Choice
from refcomp.foundation.dtype import BOOL, HANDLE, DType, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.foundation.integers import wrap
from refcomp.ir.node import Bindable, Node, node
from refcomp.ir.not_numbers import NotANumber
from refcomp.ir.structure import structurally_equal


class Operators(NotANumber):
    """Python's operators. They build nodes, with the promotions of `refcomp.ir.promotion`."""

    __slots__ = ()

    # Set by refcomp.ir.promotion, which needs the node classes below and so cannot stand above.
    build_binary: ClassVar[Callable[[type[BinaryExpr], object, object], Expr]]
    build_cast: ClassVar[Callable[[object, object], Expr]]
    negate: ClassVar[Callable[[object], Expr]]
    invert: ClassVar[Callable[[object], Expr]]

    def equal(self, other: object) -> Expr:
        """Return the condition self == other, under its name in the classic API."""
        return Operators.build_binary(EQ, self, other)

    def astype(self, dtype: object) -> Expr:
        """Return this value converted to `dtype` (see Cast)."""
        return Operators.build_cast(dtype, self)

    def __add__(self, other: object) -> Expr:
        return Operators.build_binary(Add, self, other)

    def __radd__(self, other: object) -> Expr:
        return Operators.build_binary(Add, other, self)

    def __sub__(self, other: object) -> Expr:
        return Operators.build_binary(Sub, self, other)

    def __rsub__(self, other: object) -> Expr:
        return Operators.build_binary(Sub, other, self)

    def __mul__(self, other: object) -> Expr:
        return Operators.build_binary(Mul, self, other)

    def __rmul__(self, other: object) -> Expr:
        return Operators.build_binary(Mul, other, self)

    def __truediv__(self, other: object) -> Expr:
        return Operators.build_binary(Div, self, other)

    def __rtruediv__(self, other: object) -> Expr:
        return Operators.build_binary(Div, other, self)

    def __floordiv__(self, other: object) -> Expr:
        return Operators.build_binary(FloorDiv, self, other)

    def __rfloordiv__(self, other: object) -> Expr:
        return Operators.build_binary(FloorDiv, other, self)

    def __mod__(self, other: object) -> Expr:
        return Operators.build_binary(Mod, self, other)

    def __rmod__(self, other: object) -> Expr:
        return Operators.build_binary(Mod, other, self)

    def __and__(self, other: object) -> Expr:
        return Operators.build_binary(BitAnd, self, other)

    def __rand__(self, other: object) -> Expr:
        return Operators.build_binary(BitAnd, other, self)

    def __or__(self, other: object) -> Expr:
        return Operators.build_binary(BitOr, self, other)

    def __ror__(self, other: object) -> Expr:
        return Operators.build_binary(BitOr, other, self)

    def __xor__(self, other: object) -> Expr:
        return Operators.build_binary(BitXor, self, other)

    def __rxor__(self, other: object) -> Expr:
        return Operators.build_binary(BitXor, other, self)

    def __lshift__(self, other: object) -> Expr:
        return Operators.build_binary(ShiftLeft, self, other)

    def __rlshift__(self, other: object) -> Expr:
        return Operators.build_binary(ShiftLeft, other, self)

    def __rshift__(self, other: object) -> Expr:
        return Operators.build_binary(ShiftRight, self, other)

    def __rrshift__(self, other: object) -> Expr:
        return Operators.build_binary(ShiftRight, other, self)

    def __invert__(self) -> Expr:
        return Operators.invert(self)

    def __neg__(self) -> Expr:
        return Operators.negate(self)

    def __lt__(self, other: object) -> Expr:
        return Operators.build_binary(LT, self, other)

    def __le__(self, other: object) -> Expr:
        return Operators.build_binary(LE, self, other)

    def __gt__(self, other: object) -> Expr:
        return Operators.build_binary(GT, self, other)

    def __ge__(self, other: object) -> Expr:
        return Operators.build_binary(GE, self, other)

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return Operators.build_binary(EQ, self, other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return Operators.build_binary(NE, self, other)

    # Defining __eq__ removes the inherited hash; nodes are keys by identity.
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise UserError(
            "an expression has no truth value while the program is being built",
            why="`and`, `or`, `not`, `if` and chained comparisons such as `0 <= i < n` ask for one",
            remedy="use refcomp.all(a, b), refcomp.any(a, b), refcomp.select(c, x, y), `~c`",
        )

    def __iter__(self) -> NoReturn:
        raise UserError("an expression is a single value and cannot be iterated over")

    def __getitem__(self, index: object) -> NoReturn:
        raise UserError(
            "an expression is a single value and has no elements",
            remedy="give a tensor as many indices as it has dimensions",
        )


class Expr(Operators, Node):
    """A pure value of some dtype."""

    __slots__ = ()
    dtype: DType


class Derived(Expr):
    """An expression whose dtype follows from its parts.

    The dtype is stored: deriving it on demand would recurse through deep trees.
    """

    __slots__ = ("dtype",)
    dtype: DType

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self._derive_dtype())

    def _derive_dtype(self) -> DType:
        raise NotImplementedError


@node
class Var(Expr, Bindable):
    """A named value, bound by a For, Let or LetStmt, or a parameter."""

    name: str
    dtype: DType


@node
class IntImm(Expr):
    """An integer or bool constant."""

    value: int  # wrapped into the range of `dtype`
    dtype: DType

    def __post_init__(self) -> None:
        value = wrap(int(self.value), self.dtype)
        if value is not self.value:
            object.__setattr__(self, "value", value)

    # Python takes a constant for a number: an extent can be given to numpy as that of an array.
    def __int__(self) -> int:
        return self.value

    __index__ = __int__

    def __float__(self) -> float:
        return float(self.value)


@node
class FloatImm(Expr):
    """A float constant."""

    value: float  # rounded to `dtype`, so exactly representable
    dtype: DType

    def __post_init__(self) -> None:
        value = round_to_dtype(float(self.value), self.dtype)
        if value is not self.value:
            object.__setattr__(self, "value", value)

    def __float__(self) -> float:
        return self.value


@node
class Cast(Expr):
    """A conversion to `dtype`.

    - int to int wraps.
    - float to int truncates toward zero and saturates; NaN gives 0.
    - To float rounds to nearest even.
    - To bool is true where the value is not 0; from bool gives 0 or 1.
    """

    dtype: DType
    value: Expr


class BinaryExpr(Derived):
    """Two operands of one dtype, which is also the dtype of the result."""

    __slots__ = ()
    a: Expr
    b: Expr

    if TYPE_CHECKING:
        # Each subclass gets this constructor from `node`.
        def __init__(self, a: Expr, b: Expr) -> None: ...

    def _derive_dtype(self) -> DType:
        return self.a.dtype


class Comparison(BinaryExpr):
    """Two operands of one dtype; the result is bool with as many lanes.

    With a NaN operand only NE holds.
    """

    __slots__ = ()

    def _derive_dtype(self) -> DType:
        return BOOL.with_lanes(self.a.dtype.lanes)


@node
class Add(BinaryExpr):
    """a + b; integers wrap."""

    a: Expr
    b: Expr


@node
class Sub(BinaryExpr):
    """a - b; integers wrap."""

    a: Expr
    b: Expr


@node
class Mul(BinaryExpr):
    """a * b; integers wrap."""

    a: Expr
    b: Expr


@node
class Div(BinaryExpr):
    """Floats: IEEE division. Integers: truncates toward zero; x / 0 is 0; MIN / -1 is MIN."""

    a: Expr
    b: Expr


@node
class Mod(BinaryExpr):
    """Integers: remainder of Div, sign of a; x % 0 is 0. Floats: C's fmod."""

    a: Expr
    b: Expr


@node
class FloorDiv(BinaryExpr):
    """Integers only: rounds toward minus infinity; x // 0 is 0; MIN // -1 is MIN."""

    a: Expr
    b: Expr


@node
class FloorMod(BinaryExpr):
    """Integers only: remainder of FloorDiv, sign of b; x mod 0 is 0."""

    a: Expr
    b: Expr


@node
class Min(BinaryExpr):
    """The lesser operand; for floats `b < a or b is NaN ? b : a`, so NaN propagates."""

    a: Expr
    b: Expr


@node
class Max(BinaryExpr):
    """The greater operand; for floats `b > a or b is NaN ? b : a`, so NaN propagates."""

    a: Expr
    b: Expr


@node
class BitAnd(BinaryExpr):
    """Bitwise and of integers."""

    a: Expr
    b: Expr


@node
class BitOr(BinaryExpr):
    """Bitwise or of integers."""

    a: Expr
    b: Expr


@node
class BitXor(BinaryExpr):
    """Bitwise exclusive or of integers."""

    a: Expr
    b: Expr


@node
class ShiftLeft(BinaryExpr):
    """a shifted left by b bits. b is read as unsigned; b >= bits gives 0."""

    a: Expr
    b: Expr


@node
class ShiftRight(BinaryExpr):
    """a shifted right by b bits. b is read as unsigned; b >= bits gives 0, or -1 for a < 0.

    Signed a is filled with its sign bit (an arithmetic shift).
    """

    a: Expr
    b: Expr


@node
class EQ(Comparison):
    """a equals b."""

    a: Expr
    b: Expr

    def __bool__(self) -> bool:
        # In the classic API, `if e1 == e2` in Python code compares structure.
        return structurally_equal(self.a, self.b)


@node
class NE(Comparison):
    """a differs from b."""

    a: Expr
    b: Expr

    def __bool__(self) -> bool:
        return not structurally_equal(self.a, self.b)


@node
class LT(Comparison):
    """a is less than b."""

    a: Expr
    b: Expr


@node
class LE(Comparison):
    """a is at most b."""

    a: Expr
    b: Expr


@node
class GT(Comparison):
    """a is greater than b."""

    a: Expr
    b: Expr


@node
class GE(Comparison):
    """a is at least b."""

    a: Expr
    b: Expr


@node
class And(BinaryExpr):
    """True if both bools are true; both operands are always evaluated."""

    a: Expr
    b: Expr


@node
class Or(BinaryExpr):
    """True if one of two bools is true; both operands are always evaluated."""

    a: Expr
    b: Expr


@node
class Not(Derived):
    """The opposite of a bool."""

    a: Expr

    def _derive_dtype(self) -> DType:
        return self.a.dtype


@node
class Select(Derived):
    """true_value where the condition holds, else false_value; both are always evaluated."""

    condition: Expr  # bool, with as many lanes as the values
    true_value: Expr
    false_value: Expr

    def _derive_dtype(self) -> DType:
        return self.true_value.dtype


@node
class IfThenElseExpr(Derived):
    """true_value if the condition holds, else false_value; only the chosen one is evaluated."""

    condition: Expr  # a scalar bool
    true_value: Expr
    false_value: Expr

    def _derive_dtype(self) -> DType:
        return self.true_value.dtype


@node
class Ramp(Derived):
    """The vector of integers base, base + stride, ..., base + (lanes - 1) * stride."""

    base: Expr  # a scalar
    stride: Expr  # a scalar
    lanes: int

    def _derive_dtype(self) -> DType:
        return self.base.dtype.with_lanes(self.lanes)


@node
class Broadcast(Derived):
    """The vector that holds the scalar `value` in each of `lanes` lanes."""

    value: Expr
    lanes: int

    def _derive_dtype(self) -> DType:
        return self.value.dtype.with_lanes(self.lanes)


@node
class Let(Derived):
    """`body` with `var` bound to `value`, which is evaluated once, before the body."""

    binds = ("var",)
    var: Var
    value: Expr
    body: Expr

    def _derive_dtype(self) -> DType:
        return self.body.dtype


@node
class Call(Expr):
    """A call of an intrinsic (`exp`, `sqrt`, ...; see refcomp.ir.intrinsics), lane by lane."""

    name: str
    args: tuple[Expr, ...]
    dtype: DType


class Callee(Choice):
    """The kind of function that a PureExtern calls."""

    C_FUNCTION = (
        "c_function"  # of the host, or an LLVM intrinsic, or an instruction of a GPU
    )
    REGISTERED = "registered"  # in Python, by `register_func`
    TRACE = "trace"  # a registered function; None as its result means the last argument


C_FUNCTION = Callee.C_FUNCTION
REGISTERED = Callee.REGISTERED
TRACE = Callee.TRACE


@node
class PureExtern(Expr):
    """A call of a function outside the loop IR, with scalar arguments, whose value is used.

    By default, `name` is a C function of the host or an LLVM intrinsic. Such a call is pure: the
    value depends on the arguments only, and the call may be left out or repeated.

    A registered Python function is called once each time the expression is evaluated, in the order
    of a serial program. It may print or record its arguments. If it raises, the program ends with
    this exception. The call may be left out if nothing needs the value.
    """

    name: str  # of an LLVM intrinsic: begins with `llvm.`
    args: tuple[Expr, ...]  # scalars; for a registered function also TextImm
    dtype: DType
    callee: Callee = C_FUNCTION

    @property
    def is_llvm_intrinsic(self) -> bool:
        """Return True if LLVM itself defines the function."""
        return self.callee is C_FUNCTION and self.name.startswith("llvm.")

    @property
    def numbers(self) -> tuple[Expr, ...]:
        """Return the arguments that are not texts."""
        return tuple(arg for arg in self.args if not isinstance(arg, TextImm))


@node
class TextImm(Derived):
    """A text, as an argument of a registered function."""

    value: str

    def _derive_dtype(self) -> DType:
        return HANDLE


def round_to_dtype(value: float, dtype: DType) -> float:
    """Return `value` rounded to nearest even in the float type `dtype`."""
    if dtype.bits == 64 or math.isinf(value) or math.isnan(value):
        return value
    # Most constants are small integers, which every float type holds: bf16 has 8 bits.
    if -256 <= value <= 256 and value.is_integer():
        return value
    if dtype.kind == "bfloat":
        # numpy converts by way of f32, which would round twice. bf16 has 8 bits of significand, and
        # its smallest normal number is 2^-126.
        step = math.ldexp(1.0, max(math.frexp(value)[1], -125) - 8)
        value = math.copysign(round(abs(value) / step) * step, value)
        with np.errstate(over="ignore", under="ignore"):
            return float(np.asarray(value, np.float64).astype(to_numpy(dtype.element)))
    layout = "<e" if dtype.bits == 16 else "<f"
    try:
        rounded: float = struct.unpack(layout, struct.pack(layout, value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded
