"""Parser of expressions of the loop IR's text; `refcomp.ir.parser` reads the statements.

Operators are parsed by precedence, with a stack of operands and a stack of pending operators
(Dijkstra's shunting-yard algorithm). So only parentheses and arguments recurse, and their depth is
limited. `refcomp.ir.type_rules` checks each node as it is made, so an error shows the place of the
operator.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeVar

from refcomp.foundation.dtype import BOOL, I64, SCALAR_DTYPES, DType, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise, did_you_mean
from refcomp.ir.buffer import AddressOf, Buffer, BufferAccess, BufferLoad, Load
from refcomp.ir.expr import (
    Broadcast,
    Call,
    Cast,
    Expr,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Let,
    Not,
    PureExtern,
    Ramp,
    Select,
    TextImm,
    Var,
)
from refcomp.ir.intrinsics import INTRINSICS, SUBGROUP_INTRINSICS, find_intrinsic
from refcomp.ir.node import Node
from refcomp.ir.syntax import (
    BINARY_FUNCTIONS,
    CALL_WORDS,
    COMPARISON,
    FLOAT_WORDS,
    NOT,
    OPERATORS,
    WORDS,
    is_reserved,
    word_to_dtype,
)
from refcomp.ir.tokens import Token, TokenStream
from refcomp.ir.type_rules import type_fault

MAX_NESTING = 100  # parentheses and arguments; keeps Python's stack small
_MAX_LISTED = 20  # known names that an error lists
_MAX_DIGITS = 9  # of a number of lanes, and of an alignment

_N = TypeVar("_N", bound=Node)
_CALLEES = {word: callee for callee, word in CALL_WORDS.items()}
_NUMBER = re.compile(r"([0-9.]+(?:[eE][+-]?[0-9]+)?)(.*)")
_FUNCTIONS = (
    *("select", "if_then_else", "ramp", "broadcast", *BufferAccess),
    *BINARY_FUNCTIONS,
    *INTRINSICS,
    *SUBGROUP_INTRINSICS,
)


class ExprParser:
    """A parser of expressions that knows the names in scope."""

    def __init__(self, stream: TokenStream) -> None:
        self.stream = stream
        self.names: dict[str, Var | Buffer] = {}
        # In the header of a function, an unknown name in a shape declares a symbol.
        self.declares_symbols = False
        # The names bound so far, each with the value that it had before.
        self._shadowed: list[tuple[str, Var | Buffer | None]] = []
        self._depth = 0
        self._functions: dict[str, Callable[[Token], Expr]] = {
            "select": lambda name: self._choice(name, Select),
            "if_then_else": lambda name: self._choice(name, IfThenElseExpr),
            "ramp": self._ramp,
            "broadcast": self._broadcast,
            **dict.fromkeys(BufferAccess, self._address_of),
        }

    # Names and errors.

    def check(self, token: Token, node: _N) -> _N:
        """Return `node`. Raises UserError at `token` if its operands have wrong dtypes."""
        fault = type_fault(node)
        if fault is not None:
            self.stream.fail(token, fault)
        return node

    def fresh_name(self, what: str) -> Token:
        """Take a name that a variable or a buffer may have; errors call it `what`."""
        token = self.stream.expect_name(what)
        if is_reserved(token.text):
            self.stream.fail(
                token, f"expected {what}, but {token} means something else"
            )
        return token

    def bind(self, token: Token, value: Var | Buffer) -> None:
        """Give `value` the name `token`, until `unbind_to` restores an earlier state."""
        self._shadowed.append((token.text, self.names.get(token.text)))
        self.names[token.text] = value

    def bound_count(self) -> int:
        """Return the present state, for `unbind_to`."""
        return len(self._shadowed)

    def unbind_to(self, count: int) -> None:
        """Restore the names that were bound when `bound_count` returned `count`."""
        while len(self._shadowed) > count:
            name, old = self._shadowed.pop()
            if old is None:
                del self.names[name]
            else:
                self.names[name] = old

    def _unknown(self, token: Token, what: str, known: list[str]) -> NoReturn:
        listed = " ".join(known[:_MAX_LISTED]) or "-"
        remedy = did_you_mean(token.text, known) or f"known here: {listed}"
        self.stream.fail(token, f"unknown {what} {token}", remedy)

    @contextmanager
    def _deeper(self, token: Token) -> Iterator[None]:
        if self._depth == MAX_NESTING:
            self.stream.fail(
                token,
                f"parentheses and arguments are nested deeper than {MAX_NESTING} levels",
                "name a part of the expression: let x: f32 = ... { ... }",
            )
        self._depth += 1
        yield
        self._depth -= 1

    # Operators.

    def expression(self) -> Expr:
        """Parse the longest expression that begins here."""
        operands: list[Expr] = []
        pending: list[tuple[Token, int]] = []  # operators with their precedence
        while True:
            while self.stream.is_next("not"):
                pending.append((self.stream.take(), NOT))
            operands.append(self._operand())
            token = self.stream.peek()
            if token.kind == "number" or token.text not in OPERATORS:
                break
            precedence = OPERATORS[token.text][1]
            self._apply_pending(operands, pending, precedence + 1)
            if precedence == COMPARISON and pending and pending[-1][1] == COMPARISON:
                self.stream.fail(
                    token, "comparisons do not chain", "write `a < b and b < c`"
                )
            self._apply_pending(operands, pending, precedence)
            pending.append((self.stream.take(), precedence))
        self._apply_pending(operands, pending, 0)
        return operands.pop()

    def _apply_pending(
        self, operands: list[Expr], pending: list[tuple[Token, int]], least: int
    ) -> None:
        """Apply the pending operators whose precedence is at least `least`."""
        while pending and pending[-1][1] >= least:
            token, _ = pending.pop()
            b = operands.pop()
            if token.text == "not":
                operands.append(self.check(token, Not(b)))
            else:
                operands.append(self._binary(token, operands.pop(), b))

    def _binary(self, token: Token, a: Expr, b: Expr) -> Expr:
        if token.text == "/" and not a.dtype.is_float:
            self.stream.fail(
                token, f"`/` divides floats, not {a.dtype}", "use // or truncdiv(a, b)"
            )
        if token.text == "%" and a.dtype.is_float:
            self.stream.fail(
                token, f"`%` takes integers, not {a.dtype}", "use truncmod(a, b)"
            )
        self._check_dtypes(token, a, b)
        node_class = OPERATORS[token.text][0]
        return self.check(token, node_class(a, b))

    def _check_dtypes(self, token: Token, a: Expr, b: Expr) -> None:
        if a.dtype != b.dtype:
            self.stream.fail(
                token,
                f"the operands of {token} have dtypes {a.dtype} and {b.dtype}",
                f"convert one, as in {a.dtype}(x); a constant has its dtype behind it, as in 2u8",
            )

    # Operands.

    def _operand(self) -> Expr:
        token = self.stream.take()
        if token.kind == "number":
            return self._number(token, token, 1)
        if token.text == "-" and token.kind == "symbol":
            return self._negative(token)
        if token.text == "(":
            with self._deeper(token):
                return self._parentheses()
        if token.kind == "name":
            return self._word(token)
        if token.kind == "text":
            return self._text(token)
        return self._no_expression(token)

    def _text(self, token: Token) -> Expr:
        try:
            text = TextImm(str(json.loads(token.text)))
        except ValueError:
            self.stream.fail(token, f"{token} is not a text as in JSON")
        return self.check(token, text)

    def _no_expression(self, token: Token) -> NoReturn:
        self.stream.fail(token, f"expected an expression, found {token}")

    def _negative(self, sign: Token) -> Expr:
        token = self.stream.take()
        if token.kind == "number":
            return self._number(sign, token, -1)
        if token.text in FLOAT_WORDS:
            return _float_word(token.text, -1)
        self.stream.fail(
            sign, "only a constant can have a sign", "write 0 - x, or x * -1.0f32"
        )

    def _number(self, place: Token, token: Token, sign: int) -> Expr:
        """Return the constant `token`; an error that concerns its sign, too, shows `place`."""
        match = _NUMBER.fullmatch(token.text)
        digits, suffix = (match[1], match[2]) if match else ("", token.text)
        dtype = word_to_dtype(suffix) if suffix else I64
        if dtype is None or dtype.lanes != 1 or dtype.is_bool or not digits:
            self.stream.fail(token, f"{token} is not a number", "write 7, 7u8, 1.5f32")
        misfit = f"the constant does not fit {dtype}"
        if dtype.is_float:
            constant = FloatImm(sign * float(digits), dtype)
            if math.isinf(constant.value):
                self.stream.fail(place, misfit, f"write {dtype}.inf")
            return constant
        if not digits.isdigit():
            self.stream.fail(
                token, f"{token} needs the dtype of a float", f"write {digits}f32"
            )
        # No integer has 40 digits; int() of a very long text takes quadratic time.
        value = sign * int(digits[:40])
        if not dtype.min_value <= value <= dtype.max_value:
            limits = f"values lie in {dtype.min_value} .. {dtype.max_value}"
            self.stream.fail(place, misfit, limits)
        return IntImm(value, dtype)

    def _parentheses(self) -> Expr:
        if not self.stream.is_next("let"):
            inner = self.expression()
            self.stream.expect(")", "after the expression")
            return inner
        let = self.stream.take()
        name, var = self.declared_var("the name of a variable")
        self.stream.expect("=", "before the value of the variable")
        value = self.expression()
        self.stream.expect("in", "after the value of the variable")
        mark = self.bound_count()
        self.bind(name, var)
        body = self.expression()
        self.unbind_to(mark)
        self.stream.expect(")", "after the expression")
        return self.check(let, Let(var, value, body))

    def declared_var(self, what: str) -> tuple[Token, Var]:
        """Parse `name: dtype`. Return the name and a variable, which is not bound yet."""
        name = self.fresh_name(what)
        self.stream.expect(":", f"and a dtype after {what}")
        return name, self.check(name, Var(name.text, self.dtype()))

    def dtype(self) -> DType:
        """Parse the name of a dtype."""
        token = self.stream.expect_name("a dtype")
        dtype = word_to_dtype(token.text)
        if dtype is None:
            listed = "one of f32 i64 u8 bool bf16 f32x8 ..."
            remedy = advise(token.text, map(str, SCALAR_DTYPES), listed)
            self.stream.fail(token, f"unknown dtype {token}", remedy)
        return dtype

    def _word(self, token: Token) -> Expr:
        if token.text in FLOAT_WORDS:
            return _float_word(token.text, 1)
        if token.text in ("true", "false"):
            return IntImm(token.text == "true", BOOL)
        if token.text in _CALLEES:
            callee = _CALLEES[token.text]
            return self.check(token, PureExtern(*self.extern_call(), callee))
        if token.text in WORDS:
            self._no_expression(token)
        if self.stream.is_next("("):
            with self._deeper(token):
                return self._called(token)
        if self.stream.is_next("[", "@"):
            return self._read(token)
        return self._var(token)

    def _var(self, token: Token) -> Expr:
        value = self.names.get(token.text)
        if value is None and self.declares_symbols and not is_reserved(token.text):
            value = Var(token.text, I64)
            self.bind(token, value)
        if value is None:
            self._unknown(token, "variable", list(self.names))
        if isinstance(value, Buffer):
            self.stream.fail(
                token, f"{token} is a buffer", f"read an element: {token.text}[i]"
            )
        return value

    def named(self, token: Token) -> Var | Buffer:
        """Return the variable or buffer that `token` names."""
        value = self.names.get(token.text)
        if value is None:
            self._unknown(token, "name", list(self.names))
        return value

    # Memory.

    def buffer(self, token: Token) -> Buffer:
        """Return the buffer that `token` names."""
        value = self.names.get(token.text)
        if value is None:
            known = [
                name for name, held in self.names.items() if isinstance(held, Buffer)
            ]
            self._unknown(token, "buffer", known)
        if isinstance(value, Var):
            self.stream.fail(token, f"{token} is a variable, not a buffer")
        return value

    def _read(self, token: Token) -> Expr:
        buffer = self.buffer(token)
        with self._deeper(token):
            if not self.stream.take_if("@"):
                return self.check(token, BufferLoad(buffer, self.indices("[", "]")))
            self.stream.expect("[", "after `@`")
            index = self.expression()
            predicate = self.expression() if self.stream.take_if("if") else None
            self.stream.expect("]", "after the index")
            return self.check(token, Load(buffer, index, predicate))

    def indices(self, begin: str, end: str) -> tuple[Expr, ...]:
        """Parse expressions between brackets, separated by commas."""
        self.stream.expect(begin, "before the list")
        found: list[Expr] = []
        while not self.stream.take_if(end):
            if found:
                self.stream.expect(",", f"or `{end}` in the list")
            found.append(self.expression())
        return tuple(found)

    def _address_of(self, access: Token) -> Expr:
        """Parse an address after its access: `(A)`, `(A[i, j])` or `(A as f16)`."""
        self.stream.expect("(", f"after {access}")
        token = self.stream.expect_name("a buffer")
        buffer = self.buffer(token)
        indices = self.indices("[", "]") if self.stream.is_next("[") else ()
        element = self.dtype() if self.stream.take_if("as") else buffer.dtype
        self.stream.expect(")", "after the buffer")
        return self.check(
            token, AddressOf(buffer, indices, BufferAccess(access.text), element)
        )

    def extern_call(self) -> tuple[str, tuple[Expr, ...], DType]:
        """Parse `f32 name(args)` after `extern`. Return name, arguments and result dtype."""
        dtype = self.dtype()
        name, args = self.callee()
        return name, args, dtype

    def callee(self) -> tuple[str, tuple[Expr, ...]]:
        """Parse the call `name(args)` of a function outside the loop IR."""
        token = self.stream.expect_name("the name of a function")
        with self._deeper(token):
            return token.text, self.indices("(", ")")

    # Calls.

    def _called(self, name: Token) -> Expr:
        dtype = word_to_dtype(name.text)
        if name.text in self._functions:
            return self._functions[name.text](name)
        if dtype is None and name.text not in _FUNCTIONS:
            self._unknown(name, "function", list(_FUNCTIONS))
        args = self.indices("(", ")")
        if dtype is not None:
            self._check_count(name, args, 1)
            return self.check(name, Cast(dtype, args[0]))
        if name.text in BINARY_FUNCTIONS:
            return self._binary_function(name, args)
        return self._intrinsic(name, args)

    def _check_count(self, name: Token, args: tuple[Expr, ...], count: int) -> None:
        if len(args) != count:
            self.stream.fail(name, f"{name} takes {count} operands, {len(args)} given")

    def _binary_function(self, name: Token, args: tuple[Expr, ...]) -> Expr:
        self._check_count(name, args, 2)
        a, b = args
        self._check_dtypes(name, a, b)
        if name.text == "truncdiv" and a.dtype.is_float:
            self.stream.fail(
                name, f"truncdiv takes integers, not {a.dtype}", "use a / b"
            )
        node_class = BINARY_FUNCTIONS[name.text]
        return self.check(name, node_class(a, b))

    def _intrinsic(self, name: Token, args: tuple[Expr, ...]) -> Expr:
        operand = args[0].dtype if args else BOOL
        try:
            dtype = find_intrinsic(name.text, operand, len(args)).result_dtype(operand)
        except UserError as error:
            self.stream.fail(name, error.what, error.remedy)
        return self.check(name, Call(name.text, args, dtype))

    def _choice(self, name: Token, cls: type[Select] | type[IfThenElseExpr]) -> Expr:
        args = self.indices("(", ")")
        self._check_count(name, args, 3)
        return self.check(name, cls(*args))

    def _ramp(self, name: Token) -> Expr:
        self.stream.expect("(", "after ramp")
        base = self.expression()
        self.stream.expect(",", "before the stride")
        stride = self.expression()
        return self.check(name, Ramp(base, stride, self._lanes()))

    def _broadcast(self, name: Token) -> Expr:
        self.stream.expect("(", "after broadcast")
        value = self.expression()
        return self.check(name, Broadcast(value, self._lanes()))

    def _lanes(self) -> int:
        self.stream.expect(",", "before the number of lanes")
        lanes = self.natural("the number of lanes, a constant")
        self.stream.expect(")", "after the number of lanes")
        return lanes

    def natural(self, what: str) -> int:
        """Parse a small number without a dtype; errors call it `what`."""
        token = self.stream.take()
        if not token.text.isdigit() or len(token.text) > _MAX_DIGITS:
            self.stream.fail(token, f"expected {what}, found {token}")
        return int(token.text)


def _float_word(word: str, sign: int) -> Expr:
    dtype, _, value = word.partition(".")
    return FloatImm(math.copysign(float(value), sign), as_dtype(dtype))
