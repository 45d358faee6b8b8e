"""Statements that few passes look at: calls of functions of the host, prefetches and pragmas.

Made by `tests.strategies.funcs` where it is asked for them, outside of what runs at once. Never
made: calls in regions and parallel loops; prefetches that a target could trip over; C functions
other than memmove, abs and llabs.
"""

from __future__ import annotations

from typing import Any

from refcomp.foundation.dtype import BOOL, F32, I32, I64
from refcomp.foundation.registry import register_func
from refcomp.ir import expr as ir
from refcomp.ir.buffer import READ, UPDATE, AddressOf, Buffer
from refcomp.ir.expr import Expr, IntImm
from refcomp.ir.stmt import Block, CallExtern, CallPacked, Pragma, Prefetch, Stmt

MIX = "tests.strategies.mix"
VALUE = "tests.strategies.value"


def _mix(_text: str, target: Any, *rest: Any) -> None:
    """What random functions call: reverses an array, and may take an element of another."""
    elements = target.numpy()
    elements[...] = elements.reshape(-1)[::-1].reshape(elements.shape)
    if len(rest) > 1 and hasattr(rest[0], "numpy") and rest[0].dtype == target.dtype:
        source = rest[0].numpy()
        if source.size and elements.size:
            elements.flat[int(rest[-1] > 0) % elements.size] = source.flat[0]


def _value(text: str, number: int) -> int | None:
    """What random functions use the value of: a number near the given one, or None."""
    return number ^ len(text) if number & 1 else None


register_func(MIX, _mix, override=True)
register_func(VALUE, _value, override=True)


def offset_in(buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
    offset: Expr | None = None
    for dim, index in zip(buffer.shape, indices, strict=True):
        wide = index if index.dtype == I64 else ir.Cast(I64, index)
        offset = wide if offset is None else ir.Add(ir.Mul(offset, dim), wide)
    return IntImm(0, I64) if offset is None else offset


class RareStatements:
    """The makers of these statements; `_Maker` of `tests.strategies.funcs` has the rest."""

    def _call_packed(self, scope: Any, _depth: int) -> Stmt:
        if not scope.writable:
            return Block(())
        target, source = self._pick(scope.writable).buffer, self._pick(scope.readable).buffer
        number = self._expr(self._pick((BOOL, I32, I64, F32)), scope)
        places = [AddressOf(target, (), UPDATE, target.dtype)]
        if source is not target:
            places.append(AddressOf(source, (), READ, source.dtype))
        return CallPacked(MIX, (self._text(), *places, number))

    def _text(self) -> Expr:
        return ir.TextImm(self._pick(("text", "", 'a|b "')))

    def _call_extern(self, scope: Any, _depth: int) -> Stmt:
        """A copy of an element's bytes within one buffer or to another of its dtype."""
        targets = [m for m in scope.writable if self._is_accessible(m, scope)]
        if not targets:
            return Block(())
        target = self._pick(targets)
        dtype = target.buffer.dtype
        sources = [m for m in scope.readable if self._is_accessible(m, scope)]
        source = self._pick([m for m in sources if m.buffer.dtype == dtype])
        to, of = (self._address(*pair, scope) for pair in ((target, UPDATE), (source, READ)))
        return CallExtern("memmove", I64, (to, of, IntImm(dtype.bytes, I64)))

    def _prefetch(self, scope: Any, _depth: int) -> Stmt:
        memory = self._pick(scope.readable)
        indices = tuple(self._expr(I64, scope, depth=1) for _ in memory.buffer.shape)
        if self._level != "nested":
            indices = (self._expr(I64, scope, depth=1),)
        return Prefetch(memory.buffer, indices)

    def _pragma(self, scope: Any, depth: int) -> Stmt:
        key = self._pick(("auto_unroll_max_step", "unroll_explicit", "of.mine"))
        return Pragma(key, IntImm(self._int(0, 8), I32), self._stmt(scope, depth))

    def _address(self, memory: Any, access: str, scope: Any) -> Expr:
        indices = self._indices(memory, scope)
        if self._level != "nested":
            indices = (offset_in(memory.buffer, indices),)
        return AddressOf(memory.buffer, indices, access, memory.buffer.dtype)

    def _pure_extern(self, scope: Any, _depth: int) -> Stmt:
        targets = [m for m in scope.writable if m.buffer.dtype in (I32, I64)]
        targets = [m for m in targets if self._is_accessible(m, scope)]
        if not targets:
            return Block(())
        memory = self._pick(targets)
        dtype = memory.buffer.dtype
        name = {32: "abs", 64: "llabs"}[dtype.bits]
        inner = ir.BitAnd(self._expr(dtype, scope), IntImm(0xFFFF, dtype))
        value: Expr = ir.PureExtern(name, (inner,), dtype)
        if self._pick((True, False)):
            value = ir.PureExtern(VALUE, (self._text(), inner), dtype, ir.TRACE)
        return self._write(memory, self._indices(memory, scope), value)
