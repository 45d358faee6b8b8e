"""Python's operators on tensors, which work element by element, with numpy's broadcasting.

`A + B` is a compute of its own, with the dtype that `A[i] + B[i]` has. In `(n + 1) * A`, all
elements share the value of the scalar expression. An operator on tensors of rank 0 and numbers
alone is an expression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, NoReturn

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import (
    GE,
    GT,
    LE,
    LT,
    Add,
    BinaryExpr,
    BitAnd,
    BitOr,
    BitXor,
    Call,
    Cast,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    IfThenElseExpr,
    IntImm,
    Mod,
    Mul,
    Not,
    Operators,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
    Var,
)
from refcomp.ir.not_numbers import NotANumber
from refcomp.ir.promotion import as_expr, binary
from refcomp.ir.rewrite import walk

# The names of the computes.
_NAMES = {Add: "add", Sub: "subtract", Mul: "multiply", Div: "divide"}


class TensorOperators(NotANumber):
    """The operators of a tensor, which has the properties `ndim` and `name`."""

    __slots__ = ()

    # Set by refcomp.te.operation, which needs tensors and so cannot stand above.
    broadcast: ClassVar[Callable[..., Any]]

    @property
    def name(self) -> str:
        """Return the tensor's name."""
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        raise NotImplementedError

    def _in_words(self) -> str:
        return f"tensor {self.name}"

    def _element(self) -> str:
        return f"{self.name}[{', '.join('ijklmnop'[: self.ndim])}]"

    def _advise(self, call: str) -> str:
        """Return the compute that applies `call` to each element."""
        indices = ", ".join("ijklmnop"[: self.ndim])
        return (
            f"compute it element by element: refcomp.compute({self.name}.shape, lambda {indices}: "
            + call.replace("(x", f"({self._element()}").replace(
                "x * x", f"{self._element()} * ..."
            )
            + ")"
        )

    def _binary(
        self, symbol: str, node: type[BinaryExpr], left: object, right: object
    ) -> Any:
        if not any(isinstance(x, TensorOperators) and x.ndim for x in (left, right)):
            return binary(node, left, right)
        if not all(map(_is_whole, (left, right))):
            raise self._refusal(symbol, left, right)
        name = _NAMES.get(node, node.__name__.lower())
        return _elements((left, right), partial(binary, node), name)

    def _refusal(self, symbol: str, left: object, right: object) -> UserError:
        """Return the error for an operand that is known inside of one compute only."""
        texts = [
            x._element() if isinstance(x, TensorOperators) else _as_operand(as_expr(x))
            for x in (left, right)
        ]
        return UserError(
            f"`{symbol}` cannot be applied to tensor {self.name} and an expression",
            why="with a tensor, the result is a tensor, whose elements are computed elsewhere",
            remedy=f"read an element: {texts[0]} {symbol} {texts[1]}",
        )

    def __neg__(self) -> Any:
        if self.ndim == 0:
            return Operators.negate(self)
        return _elements((self,), Operators.negate, "negative")

    def __invert__(self) -> Any:
        if self.ndim == 0:
            return Operators.invert(self)
        return _elements((self,), Operators.invert, "invert")

    def __setitem__(self, index: object, value: object) -> NoReturn:
        raise UserError(
            f"tensor {self.name} cannot be written to",
            why="its elements are what a compute gives them",
            remedy="use refcomp.compute; refcomp.hybrid.script and refcomp.extern write elements",
        )

    def __add__(self, other: object) -> Any:
        return self._binary("+", Add, self, other)

    def __radd__(self, other: object) -> Any:
        return self._binary("+", Add, other, self)

    def __sub__(self, other: object) -> Any:
        return self._binary("-", Sub, self, other)

    def __rsub__(self, other: object) -> Any:
        return self._binary("-", Sub, other, self)

    def __mul__(self, other: object) -> Any:
        return self._binary("*", Mul, self, other)

    def __rmul__(self, other: object) -> Any:
        return self._binary("*", Mul, other, self)

    def __truediv__(self, other: object) -> Any:
        return self._binary("/", Div, self, other)

    def __rtruediv__(self, other: object) -> Any:
        return self._binary("/", Div, other, self)

    def __floordiv__(self, other: object) -> Any:
        return self._binary("//", FloorDiv, self, other)

    def __rfloordiv__(self, other: object) -> Any:
        return self._binary("//", FloorDiv, other, self)

    def __mod__(self, other: object) -> Any:
        return self._binary("%", Mod, self, other)

    def __rmod__(self, other: object) -> Any:
        return self._binary("%", Mod, other, self)

    def __and__(self, other: object) -> Any:
        return self._binary("&", BitAnd, self, other)

    def __rand__(self, other: object) -> Any:
        return self._binary("&", BitAnd, other, self)

    def __or__(self, other: object) -> Any:
        return self._binary("|", BitOr, self, other)

    def __ror__(self, other: object) -> Any:
        return self._binary("|", BitOr, other, self)

    def __xor__(self, other: object) -> Any:
        return self._binary("^", BitXor, self, other)

    def __rxor__(self, other: object) -> Any:
        return self._binary("^", BitXor, other, self)

    def __lshift__(self, other: object) -> Any:
        return self._binary("<<", ShiftLeft, self, other)

    def __rlshift__(self, other: object) -> Any:
        return self._binary("<<", ShiftLeft, other, self)

    def __rshift__(self, other: object) -> Any:
        return self._binary(">>", ShiftRight, self, other)

    def __rrshift__(self, other: object) -> Any:
        return self._binary(">>", ShiftRight, other, self)

    def __lt__(self, other: object) -> Any:
        return self._binary("<", LT, self, other)

    def __le__(self, other: object) -> Any:
        return self._binary("<=", LE, self, other)

    def __gt__(self, other: object) -> Any:
        return self._binary(">", GT, self, other)

    def __ge__(self, other: object) -> Any:
        return self._binary(">=", GE, self, other)


def _as_operand(expr: Expr) -> str:
    """Return the text of an expression as it stands beside an operator."""
    return f"({expr})" if isinstance(expr, BinaryExpr) else str(expr)


def _is_whole(operand: object) -> bool:
    """Return True for tensors, and for values that all elements share.

    These are numbers, scalar arguments and arithmetic on them.
    """
    if isinstance(operand, Expr):
        return all(isinstance(node, _SHARED) for node in walk(operand))
    # A number, or refused as anything else.
    return isinstance(operand, TensorOperators) or not isinstance(operand, NotANumber)


# The nodes of arithmetic on scalars. None of them reads a tensor.
_SHARED = (
    Var | IntImm | FloatImm | BinaryExpr | Cast | Not | Select | IfThenElseExpr | Call
)


def _elements(
    operands: Sequence[object], function: Callable[..., Expr], name: str
) -> Any:
    """Return the tensor of function(*elements); other operands stand for themselves."""
    # Any: this is the base class of tensors, and they have no other.
    tensors: list[Any] = [x for x in operands if isinstance(x, TensorOperators)]

    def element(*reads: Expr) -> Expr:
        left = iter(reads)
        return function(
            *(next(left) if isinstance(x, TensorOperators) else x for x in operands)
        )

    return TensorOperators.broadcast(tensors, element, name)
