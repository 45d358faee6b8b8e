"""Python's operators on tensors: defined for tensors of one element, refused for others.

`A + B` on tensors would hide the memory and the loops of another operation.
"""

from __future__ import annotations

from typing import NoReturn

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
    Div,
    Expr,
    FloorDiv,
    Mod,
    Mul,
    Operators,
    ShiftLeft,
    ShiftRight,
    Sub,
)
from refcomp.ir.not_numbers import NotANumber

_IN_TOPI = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}


class TensorOperators(NotANumber):
    """The operators of a tensor, which has the properties `ndim` and `name`."""

    __slots__ = ()

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
    ) -> Expr:
        if self.ndim == 0:
            return Operators.build_binary(node, left, right)
        tensors = [x for x in (left, right) if isinstance(x, TensorOperators)]
        texts = [
            x._element() if isinstance(x, TensorOperators) else repr(x)
            for x in (left, right)
        ]
        remedy = self._advise(f"{texts[0]} {symbol} {texts[1]}")
        if len(tensors) == 2 and symbol in _IN_TOPI:
            names = f"{tensors[0].name}, {tensors[1].name}"
            remedy += f"; or refcomp.topi.{_IN_TOPI[symbol]}({names})"
        raise self._refusal(symbol, remedy)

    def _refusal(self, symbol: str, remedy: str) -> UserError:
        return UserError(
            f"`{symbol}` cannot be applied to tensor {self.name}",
            why="operators are for elements; an operation on whole tensors is a compute of its own",
            remedy=remedy,
        )

    def __neg__(self) -> Expr:
        if self.ndim == 0:
            return Operators.negate(self)
        raise self._refusal("-", self._advise(f"-{self._element()}"))

    def __invert__(self) -> Expr:
        if self.ndim == 0:
            return Operators.invert(self)
        raise self._refusal("~", self._advise(f"~{self._element()}"))

    def __setitem__(self, index: object, value: object) -> NoReturn:
        raise UserError(
            f"tensor {self.name} cannot be written to",
            why="its elements are what a compute gives them",
            remedy="use refcomp.compute; refcomp.hybrid.script and refcomp.extern write elements",
        )

    def __add__(self, other: object) -> Expr:
        return self._binary("+", Add, self, other)

    def __radd__(self, other: object) -> Expr:
        return self._binary("+", Add, other, self)

    def __sub__(self, other: object) -> Expr:
        return self._binary("-", Sub, self, other)

    def __rsub__(self, other: object) -> Expr:
        return self._binary("-", Sub, other, self)

    def __mul__(self, other: object) -> Expr:
        return self._binary("*", Mul, self, other)

    def __rmul__(self, other: object) -> Expr:
        return self._binary("*", Mul, other, self)

    def __truediv__(self, other: object) -> Expr:
        return self._binary("/", Div, self, other)

    def __rtruediv__(self, other: object) -> Expr:
        return self._binary("/", Div, other, self)

    def __floordiv__(self, other: object) -> Expr:
        return self._binary("//", FloorDiv, self, other)

    def __rfloordiv__(self, other: object) -> Expr:
        return self._binary("//", FloorDiv, other, self)

    def __mod__(self, other: object) -> Expr:
        return self._binary("%", Mod, self, other)

    def __rmod__(self, other: object) -> Expr:
        return self._binary("%", Mod, other, self)

    def __and__(self, other: object) -> Expr:
        return self._binary("&", BitAnd, self, other)

    def __rand__(self, other: object) -> Expr:
        return self._binary("&", BitAnd, other, self)

    def __or__(self, other: object) -> Expr:
        return self._binary("|", BitOr, self, other)

    def __ror__(self, other: object) -> Expr:
        return self._binary("|", BitOr, other, self)

    def __xor__(self, other: object) -> Expr:
        return self._binary("^", BitXor, self, other)

    def __rxor__(self, other: object) -> Expr:
        return self._binary("^", BitXor, other, self)

    def __lshift__(self, other: object) -> Expr:
        return self._binary("<<", ShiftLeft, self, other)

    def __rlshift__(self, other: object) -> Expr:
        return self._binary("<<", ShiftLeft, other, self)

    def __rshift__(self, other: object) -> Expr:
        return self._binary(">>", ShiftRight, self, other)

    def __rrshift__(self, other: object) -> Expr:
        return self._binary(">>", ShiftRight, other, self)

    def __lt__(self, other: object) -> Expr:
        return self._binary("<", LT, self, other)

    def __le__(self, other: object) -> Expr:
        return self._binary("<=", LE, self, other)

    def __gt__(self, other: object) -> Expr:
        return self._binary(">", GT, self, other)

    def __ge__(self, other: object) -> Expr:
        return self._binary(">=", GE, self, other)
