"""Operands of instructions, and the form of calls.

Source: "Parallel Thread Execution ISA", sections "Instruction Operands" and "Control Flow
Instructions: call".
"""

from __future__ import annotations

from collections.abc import Callable

from refcomp.emulator.ptx.text.constants import read_constant
from refcomp.emulator.ptx.text.declarations import read_offset
from refcomp.emulator.ptx.text.module import (
    Address,
    LabelName,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    SymbolAddress,
    Vector,
)
from refcomp.emulator.ptx.text.scopes import Scopes
from refcomp.emulator.ptx.text.tokens import Tokens

# Instructions with labels or functions among their operands.
_BRANCHES = ("bra", "brx")
_SINK = Sink()
_NUMBER_SIGNS = ("-", "+", "~", "(")


class OperandReader:
    """Reads operands within a function.

    Args:
        tokens: the tokens.
        scopes: the names of the function.
        use: called with each name that the function does not declare.
    """

    def __init__(
        self, tokens: Tokens, scopes: Scopes, use: Callable[[str], None]
    ) -> None:
        self._tokens = tokens
        self._scopes = scopes
        self._use = use

    def read_all(self, opcode: str, number: int) -> tuple[Operand | None, ...]:
        """Read the operands of instruction `number`, up to its semicolon."""
        tokens = self._tokens
        if opcode == "call":
            return self._call(number)
        if opcode in _BRANCHES:
            return self._branch(number)
        if tokens.text == ";":
            return ()
        operands = [self._operand()]
        while tokens.accept(","):
            operands.append(self._operand())
        return tuple(operands)

    def read_predicate(self) -> Register:
        """Read the register after @ or !."""
        tokens = self._tokens
        shown = tokens.shown
        found = self._word(tokens.name("a predicate"))
        if not isinstance(found, Register):
            tokens.fail(f"{shown} is used as a predicate and is not a register")
        if self._scopes.registers.get(found.name, "pred") != "pred":
            tokens.fail(f"{shown} is used as a predicate and is not declared as one")
        return found

    def _operand(self) -> Operand:
        tokens = self._tokens
        text = tokens.text
        if tokens.kind == "word":
            first = self._word(tokens.advance())
            if tokens.kind == "mark" and tokens.text not in (",", ";"):
                return self._continued(first)
            return first
        if tokens.kind == "number" or text in _NUMBER_SIGNS:
            return read_constant(tokens)
        if text == "[":
            return self._address()
        if text == "{":
            return self._vector()
        if text == "!":
            tokens.advance()
            if tokens.kind == "number":
                tokens.refuse("! in front of a number", "write the result")
            return Negated(self.read_predicate())
        tokens.fail(f"expected an operand, not {tokens.shown}")

    def _continued(self, first: Operand) -> Operand:
        """Read the rest of an operand after a name: an offset, or the second of two results."""
        tokens = self._tokens
        if tokens.accept("|"):
            second = self._word(tokens.name("a second result"))
            if not isinstance(first, Register | Sink) or not isinstance(
                second, Register | Sink
            ):
                tokens.fail("only registers can stand on the sides of |")
            return Pair(first, second)
        if tokens.text in ("+", "-") and isinstance(first, SymbolAddress):
            return SymbolAddress(first.symbol, read_offset(tokens))
        if tokens.text == "[":
            tokens.refuse("elements of arrays", "write the place in bytes, [array+4]")
        return first

    def _word(self, name: str) -> Operand:
        """Return the operand that a name stands for."""
        if name == "_":
            return _SINK
        found = self._scopes.find(name)
        if found is not None:
            return found
        whole, _, selector = name.partition(".")
        if selector[:1] in ("b", "h") and self._scopes.find(whole) is not None:
            self._tokens.refuse("parts of registers", "use bfe, prmt or mov")
        if name[0] == "%":
            self._tokens.fail(f"the register {name} is not declared")
        self._use(name)
        return SymbolAddress(name)

    def _vector(self) -> Vector:
        tokens = self._tokens
        tokens.advance()
        parts = [self._part()]
        while tokens.accept(","):
            parts.append(self._part())
        tokens.expect("}", "behind the parts of a vector")
        return Vector(tuple(parts))

    def _part(self) -> Operand:
        if self._tokens.text == "{":
            self._tokens.fail("a vector lies within a vector")
        return self._operand()

    def _address(self) -> Address | Vector:
        """Read an address. If coordinates of a tensor follow, it is the first part of a vector."""
        tokens = self._tokens
        tokens.advance()
        base = None
        offset = 0
        if tokens.kind == "word":
            found = self._word(tokens.advance())
            if isinstance(found, Register | SymbolAddress):
                base = found
            else:
                tokens.fail("an address begins with a register or a variable")
            if tokens.text in ("+", "-"):
                offset = read_offset(tokens)
        elif tokens.kind == "number" or tokens.text in _NUMBER_SIGNS:
            offset = read_offset(tokens)
        else:
            tokens.fail(f"expected an address, not {tokens.shown}")
        parts: list[Operand] = [Address(base, offset)]
        while tokens.text == ",":
            tokens.advance()
            parts.append(self._operand())
        tokens.expect("]", "behind an address")
        return Address(base, offset) if len(parts) == 1 else Vector(tuple(parts))

    def _branch(self, number: int) -> tuple[Operand, ...]:
        """Read a label, or an index and the name of a list of labels."""
        tokens = self._tokens
        operands: list[Operand] = []
        while True:
            name = tokens.name("a label or a register")
            found = self._scopes.find(name)
            if not isinstance(found, Register):
                self._scopes.use_label(number, name)
                found = LabelName(name)
            operands.append(found)
            if not tokens.accept(","):
                return tuple(operands)

    def _call(self, number: int) -> tuple[Operand | None, ...]:
        """Read `(results), callee, (arguments), prototype`. Only the callee is required."""
        tokens = self._tokens
        results = None
        arguments = None
        prototype = None
        if tokens.text == "(":
            results = self._list()
            tokens.expect(",", "behind the results of a call")
        callee = self._word(tokens.name("a function"))
        if not isinstance(callee, Register | SymbolAddress):
            tokens.fail("a call names neither a function nor a register")
        if tokens.accept(","):
            if tokens.text == "(":
                arguments = self._list()
                has_more = tokens.accept(",")
            else:
                has_more = True
            if has_more:
                name = tokens.name("a prototype or a list of functions")
                self._scopes.use_label(number, name)
                prototype = LabelName(name)
        return (results, callee, arguments, prototype)

    def _list(self) -> Vector:
        tokens = self._tokens
        tokens.advance()
        parts: list[Operand] = []
        while tokens.text != ")":
            parts.append(self._operand())
            if not tokens.accept(","):
                break
        tokens.expect(")", "behind the parameters of a call")
        return Vector(tuple(parts))
