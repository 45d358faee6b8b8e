"""The loop IR as text, for readers and for `refcomp.ir.parser`, which reads it back.

Every function that passes `refcomp.ir.verify` at some level prints to text that parses to a
structurally equal function. Names are made harmless and unique among those in scope; `origin` is
left out. Anything else, such as an expression with free variables or a node of another room,
prints readably without that promise. Nothing recurses, so that any depth prints.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.foundation.names import UniqueNames, to_identifier
from refcomp.ir import expr as nodes
from refcomp.ir.buffer import AddressOf, Buffer, BufferLoad, Load
from refcomp.ir.constants import as_int
from refcomp.ir.expr import BinaryExpr, Comparison, Expr, IntImm, Var
from refcomp.ir.func import PrimFunc, Program
from refcomp.ir.node import Node, bound_by, child_fields, data_fields
from refcomp.ir.rewrite import buffers_in, variables_in, walk
from refcomp.ir.stmt import (
    SERIAL,
    Allocate,
    AtomicUpdate,
    Barrier,
    Block,
    BufferStore,
    CallExtern,
    CallPacked,
    For,
    IfThenElse,
    LaunchKernel,
    LetStmt,
    ParallelRegion,
    Pragma,
    Prefetch,
    Stmt,
    Store,
)
from refcomp.ir.syntax import (
    BINARY_FUNCTIONS,
    LOOSEST,
    NOT,
    OPERATORS,
    float_to_text,
    int_to_text,
    is_reserved,
)

_SPELLING = {cls: (text, level) for text, (cls, level) in OPERATORS.items()}
_FUNCTION_NAMES = {cls: name for name, cls in BINARY_FUNCTIONS.items()}
_INDENT = "  "
_MOST_DESCRIBED = 3000


def print_func(func: PrimFunc) -> str:
    """Return the text of a function of the loop IR, which ends with a line break.

    `parse_func` reads it back. `print(func)` shows the text too, but only its beginning if it is
    long.

    Args:
        func: what `lower` or `parse_func` returned.

    Raises:
        UserError: `func` is not a function of the loop IR.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
        >>> func = rc.lower(rc.create_schedule(B), [A, B], "increment")
        >>> print(rc.print_func(func), end="")
        func increment(A: f32[4], B: f32[4] out) {
          for i in range(4) {
            B[i] = A[i] + 1.0f32
          }
        }
    """
    if not isinstance(func, PrimFunc):
        raise UserError(
            f"a {type(func).__name__} is not a function of the loop IR",
            remedy="pass refcomp.lower(schedule, [A, B, C])",
        )
    return print_func_with_lines(func)[0]


def print_funcs(funcs: Iterable[PrimFunc]) -> str:
    """The text of several functions, an empty line between them."""
    return "\n".join(map(print_func, funcs))


def print_program(program: Program) -> str:
    """The text of the host's function, then of the kernels."""
    return print_funcs([program.host, *program.kernels])


def print_func_with_lines(func: PrimFunc) -> tuple[str, dict[int, Stmt]]:
    """The text of `func`, and which statement begins on which of its lines (from 1)."""
    writer = _Writer(func)
    writer.write([partial(writer.func, func)])
    return writer.text() + "\n", writer.begins


def print_stmt(stmt: Stmt) -> str:
    """The text of one statement; names that are free in it stand for themselves."""
    writer = _Writer(stmt)
    writer.write([partial(writer.stmt, 0, stmt)])
    return writer.text()


def print_expr(expr: Expr) -> str:
    """The text of an expression; names that are free in it stand for themselves."""
    writer = _Writer(expr)
    writer.write([writer.expr(expr)])
    return writer.text()


def _describe(node: Node) -> str:
    """What `repr` shows: the text, of which a large node shows the beginning only."""
    writer = _Writer(node)
    if isinstance(node, PrimFunc):
        parts = [partial(writer.func, node)]
    elif isinstance(node, Stmt):
        parts = [partial(writer.stmt, 0, node)]
    else:
        parts = [partial(writer.any_expr, node)]
    writer.write(parts, most=_MOST_DESCRIBED)
    return writer.text()


# What is still to be written: text, or a step that gives the parts it stands for.
_Part = str | Callable[[], Any]


class _Writer:
    """Turns parts into text, with a stack of parts still to write in place of recursion."""

    def __init__(self, root: Node) -> None:
        self.begins: dict[int, Stmt] = {}
        self._lines: list[list[str]] = [[]]
        self._taken = UniqueNames()
        self._names: dict[Node, list[str]] = {}
        # Before all others, so that what is free keeps its name.
        bound = {name for node in walk(root) for name in bound_by(node)}
        for name in (*variables_in(root), *buffers_in(root)):
            if name not in bound:
                self._bind(name)

    def write(self, parts: Sequence[_Part], most: float = math.inf) -> None:
        """Writes the parts, but no more than `most` pieces of text."""
        stack = list(reversed(parts))
        written = 0
        while stack:
            if written > most:
                self._lines[-1].append(" ...")
                return
            part = stack.pop()
            if isinstance(part, str):
                self._lines[-1].append(part)
                written += 1
            else:
                stack.extend(reversed(part() or ()))

    def text(self) -> str:
        return "\n".join(map("".join, self._lines))

    # Names and lines.

    def _bind(self, node: Any) -> str:
        wish = to_identifier(node.name)
        name = self._taken.take(f"{wish}_" if is_reserved(wish) else wish)
        self._names.setdefault(node, []).append(name)
        return name

    def _unbind(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self._taken.release(self._names[node].pop())

    def _name(self, node: Any) -> str:
        known = self._names.get(node)
        return known[-1] if known else self._bind(node)

    def _begin_line(self, depth: int) -> None:
        self._lines.append([_INDENT * depth])

    def _scope(self, depth: int, owner: Node, body: Stmt) -> list[_Part]:
        """`{`, the body, `}`; then what `owner` binds is forgotten."""
        return [*self._braces(depth, body), partial(self._unbind, bound_by(owner))]

    def _braces(self, depth: int, body: Stmt) -> list[_Part]:
        """Braces around a single statement mean that statement, around others their Block."""
        if isinstance(body, Block) and len(body.stmts) != 1:
            return self._listing(depth, body.stmts)
        return self._listing(depth, (body,))

    def _listing(self, depth: int, stmts: tuple[Stmt, ...]) -> list[_Part]:
        parts: list[_Part] = ["{"]
        for stmt in stmts:
            parts += [
                partial(self._begin_line, depth + 1),
                partial(self.stmt, depth + 1, stmt),
            ]
        return [*parts, partial(self._begin_line, depth), "}"]

    # Functions and statements.

    def func(self, func: PrimFunc) -> list[_Part]:
        for bound in bound_by(func):
            self._bind(bound)
        parts: list[_Part] = [f"func {to_identifier(func.name)}("]
        outputs = set(func.outputs)
        for k, param in enumerate(func.params):
            parts += [", "] if k else []
            parts += [partial(self._param, param, param.name in outputs)]
        parts += [")", *(f" import {json.dumps(text)}" for text in func.imports)]
        parts += self._requires(func)
        for text in func.checks:
            parts += [partial(self._begin_line, 1), f"check {json.dumps(text)}"]
        return [*parts, " ", *self._scope(0, func, func.body)]

    def _requires(self, func: PrimFunc) -> list[_Part]:
        conditions = [requirement.condition for requirement in func.requires]
        return [" requires (", *self._listed(conditions), ")"] if conditions else []

    def _param(self, param: Var | Buffer, is_output: bool) -> list[_Part]:
        if isinstance(param, Var):
            return [f"{self._name(param)}: {param.dtype}"]
        return [*self._buffer(param), " out" if is_output else ""]

    def _buffer(self, buffer: Buffer) -> list[_Part]:
        scope = "" if buffer.scope == "global" else f" {to_identifier(buffer.scope)}"
        alignment = f" align {buffer.alignment}" if buffer.alignment else ""
        shape = self._listed(buffer.shape)
        return [
            f"{self._name(buffer)}: {buffer.dtype}[",
            *shape,
            f"]{scope}{alignment}",
        ]

    def stmt(self, depth: int, stmt: Stmt) -> list[_Part]:
        self.begins[len(self._lines)] = stmt
        rule = _STMTS.get(type(stmt))
        return self._unknown(stmt) if rule is None else rule(self, depth, stmt)

    def _for(self, depth: int, loop: For) -> list[_Part]:
        dtype = "" if loop.var.dtype == I64 else f": {loop.var.dtype}"
        head: list[_Part] = [f"for {self._bind(loop.var)}{dtype} in range("]
        if as_int(loop.minimum) != 0:
            head += [self.expr(loop.minimum), ", extent="]
        kind = "" if loop.kind == SERIAL else f" {loop.kind}"
        return [
            *head,
            self.expr(loop.extent),
            f"){kind} ",
            *self._scope(depth, loop, loop.body),
        ]

    def _buffer_store(self, _depth: int, store: BufferStore) -> list[_Part]:
        target = [f"{self._name(store.buffer)}[", *self._listed(store.indices), "] = "]
        return [*target, self.expr(store.value)]

    def _store(self, _depth: int, store: Store) -> list[_Part]:
        target = [f"{self._name(store.buffer)}@[", self.expr(store.index), "] = "]
        return [*target, self.expr(store.value), *self._predicate(store.predicate)]

    def _predicate(self, predicate: Expr | None) -> list[_Part]:
        return [] if predicate is None else [" if ", self.expr(predicate)]

    def _allocate(self, depth: int, stmt: Allocate) -> list[_Part]:
        self._bind(stmt.buffer)
        head = ["alloc ", *self._buffer(stmt.buffer), " "]
        return [*head, *self._scope(depth, stmt, stmt.body)]

    def _if_then_else(self, depth: int, stmt: IfThenElse) -> list[_Part]:
        head = [
            "if (",
            self.expr(stmt.condition),
            ") ",
            *self._braces(depth, stmt.then_case),
        ]
        if stmt.else_case is None:
            return head
        if isinstance(stmt.else_case, IfThenElse):
            return [*head, " else ", partial(self.stmt, depth, stmt.else_case)]
        return [*head, " else ", *self._braces(depth, stmt.else_case)]

    def _block(self, depth: int, stmt: Block) -> list[_Part]:
        return ["block ", *self._listing(depth, stmt.stmts)]

    def _let_stmt(self, depth: int, stmt: LetStmt) -> list[_Part]:
        head = [
            f"let {self._bind(stmt.var)}: {stmt.var.dtype} = ",
            self.expr(stmt.value),
            " ",
        ]
        return [*head, *self._scope(depth, stmt, stmt.body)]

    def _region(self, depth: int, stmt: ParallelRegion) -> list[_Part]:
        captures = ", ".join(map(self._name, stmt.captures))
        task = self._bind(stmt.task)
        num_tasks = self._bind(stmt.num_tasks)
        head = f"region {to_identifier(stmt.name)} ({captures}) task {task} of {num_tasks} "
        return [head, *self._scope(depth, stmt, stmt.body)]

    def _barrier(self, _depth: int, _stmt: Barrier) -> list[_Part]:
        return ["barrier"]

    def _atomic_update(self, _depth: int, stmt: AtomicUpdate) -> list[_Part]:
        target = [
            f"atomic {stmt.operator} {self._name(stmt.buffer)}[",
            *self._listed(stmt.indices),
        ]
        return [*target, "] with ", self.expr(stmt.value)]

    def _prefetch(self, _depth: int, stmt: Prefetch) -> list[_Part]:
        return [
            f"prefetch {self._name(stmt.buffer)}[",
            *self._listed(stmt.indices),
            "]",
        ]

    def _pragma(self, depth: int, stmt: Pragma) -> list[_Part]:
        head = [f"pragma {to_identifier(stmt.key)} ", self.expr(stmt.value), " "]
        return [*head, *self._braces(depth, stmt.body)]

    def _launch(self, _depth: int, stmt: LaunchKernel) -> list[_Part]:
        arguments = ", ".join(map(self._name, stmt.arguments))
        parts: list[_Part] = [f"launch {to_identifier(stmt.kernel)} ({arguments})"]
        for word in ("grid", "block", "shared_bytes"):
            extents = getattr(stmt, word)
            if extents or word != "shared_bytes":
                parts += [f" {word} (", *self._listed(extents), ")"]
        return parts

    def _call_packed(self, _depth: int, stmt: CallPacked) -> list[_Part]:
        return ["packed ", *self._called(to_identifier(stmt.name), *stmt.args)]

    def _call_extern(self, _depth: int, stmt: CallExtern) -> list[_Part]:
        return [
            f"extern {stmt.result} ",
            *self._called(to_identifier(stmt.name), *stmt.args),
        ]

    # Expressions.

    def any_expr(self, node: Node) -> list[_Part]:
        """An expression or a buffer or a node of another room."""
        return (
            self._buffer(node)
            if isinstance(node, Buffer)
            else self._expr(node, LOOSEST)
        )

    def expr(self, expr: Expr, least: int = LOOSEST) -> _Part:
        """`expr`, in parentheses where it binds less tightly than `least`."""
        return partial(self._expr, expr, least)

    def _listed(self, exprs: Iterable[Expr]) -> list[_Part]:
        parts: list[_Part] = []
        for expr in exprs:
            parts += [", ", self.expr(expr)]
        return parts[1:]

    def _expr(self, expr: Node, least: int) -> list[_Part]:
        if isinstance(expr, BinaryExpr) and not _is_function(expr):
            return self._binary(expr, least)
        rule = _EXPRS.get(type(expr))
        parts: list[_Part] = self._unknown(expr) if rule is None else rule(self, expr)
        return (
            ["(", *parts, ")"] if isinstance(expr, nodes.Not) and least > NOT else parts
        )

    def _binary(self, expr: BinaryExpr, least: int) -> list[_Part]:
        text, level = _SPELLING[type(expr)]
        left = level + 1 if isinstance(expr, Comparison) else level
        parts = [self.expr(expr.a, left), f" {text} ", self.expr(expr.b, level + 1)]
        return ["(", *parts, ")"] if least > level else parts

    def _called(self, name: str, *args: Expr) -> list[_Part]:
        return [f"{name}(", *self._listed(args), ")"]

    def _var(self, expr: Var) -> list[_Part]:
        return [self._name(expr)]

    def _not(self, expr: nodes.Not) -> list[_Part]:
        return ["not ", self.expr(expr.a, NOT)]

    def _ramp(self, expr: nodes.Ramp) -> list[_Part]:
        return [*self._called("ramp", expr.base, expr.stride)[:-1], f", {expr.lanes})"]

    def _broadcast(self, expr: nodes.Broadcast) -> list[_Part]:
        return [*self._called("broadcast", expr.value)[:-1], f", {expr.lanes})"]

    def _let(self, expr: nodes.Let) -> list[_Part]:
        head = [
            f"(let {self._bind(expr.var)}: {expr.var.dtype} = ",
            self.expr(expr.value),
        ]
        return [
            *head,
            " in ",
            self.expr(expr.body),
            ")",
            partial(self._unbind, (expr.var,)),
        ]

    def _choice(
        self, name: str, expr: nodes.Select | nodes.IfThenElseExpr
    ) -> list[_Part]:
        return self._called(name, expr.condition, expr.true_value, expr.false_value)

    def _buffer_load(self, expr: BufferLoad) -> list[_Part]:
        return [f"{self._name(expr.buffer)}[", *self._listed(expr.indices), "]"]

    def _load(self, expr: Load) -> list[_Part]:
        index = [f"{self._name(expr.buffer)}@[", self.expr(expr.index)]
        return [*index, *self._predicate(expr.predicate), "]"]

    def _address_of(self, expr: AddressOf) -> list[_Part]:
        at = ["[", *self._listed(expr.indices), "]"] if expr.indices else []
        seen_as = "" if expr.element == expr.buffer.dtype else f" as {expr.element}"
        return [f"{expr.access}({self._name(expr.buffer)}", *at, f"{seen_as})"]

    def _pure_extern(self, expr: nodes.PureExtern) -> list[_Part]:
        return [
            f"extern {expr.dtype} ",
            *self._called(to_identifier(expr.name), *expr.args),
        ]

    def _unknown(self, node: Node) -> list[_Part]:
        """A node of another room: its class, the names in its data, and its children."""
        data = [getattr(node, name) for name in data_fields(type(node))]
        parts: list[_Part] = [
            ", ".join(str(getattr(value, "name", value)) for value in data)
        ]
        for name in child_fields(type(node)):
            value = getattr(node, name)
            for child in value if isinstance(value, tuple) else (value,):
                parts += [", ", self.expr(child)] if isinstance(child, Expr) else []
        return [f"{type(node).__name__}(", *parts, ")"]


def _is_function(expr: BinaryExpr) -> bool:
    """Whether a binary node is written as a call: those without an operator, integer Div."""
    if isinstance(expr, nodes.Div):
        return not expr.dtype.is_float
    return type(expr) not in _SPELLING


_STMTS: dict[type[Any], Callable[[_Writer, int, Any], list[_Part]]] = {
    For: _Writer._for,
    BufferStore: _Writer._buffer_store,
    Store: _Writer._store,
    Allocate: _Writer._allocate,
    IfThenElse: _Writer._if_then_else,
    Block: _Writer._block,
    LetStmt: _Writer._let_stmt,
    ParallelRegion: _Writer._region,
    Barrier: _Writer._barrier,
    AtomicUpdate: _Writer._atomic_update,
    Prefetch: _Writer._prefetch,
    Pragma: _Writer._pragma,
    LaunchKernel: _Writer._launch,
    CallPacked: _Writer._call_packed,
    CallExtern: _Writer._call_extern,
}


def _function(name: str) -> Callable[[_Writer, BinaryExpr], list[_Part]]:
    return lambda writer, expr: writer._called(name, expr.a, expr.b)


_EXPRS: dict[type[Any], Callable[[_Writer, Any], list[_Part]]] = {
    **{cls: _function(name) for name, cls in BINARY_FUNCTIONS.items()},
    Var: _Writer._var,
    IntImm: lambda _writer, expr: [int_to_text(expr.value, expr.dtype)],
    nodes.FloatImm: lambda _writer, expr: [float_to_text(expr.value, expr.dtype)],
    nodes.Cast: lambda writer, expr: writer._called(str(expr.dtype), expr.value),
    nodes.Not: _Writer._not,
    nodes.Select: lambda writer, expr: writer._choice("select", expr),
    nodes.IfThenElseExpr: lambda writer, expr: writer._choice("if_then_else", expr),
    nodes.Ramp: _Writer._ramp,
    nodes.Broadcast: _Writer._broadcast,
    nodes.Let: _Writer._let,
    nodes.Call: lambda writer, expr: writer._called(
        to_identifier(expr.name), *expr.args
    ),
    BufferLoad: _Writer._buffer_load,
    Load: _Writer._load,
    AddressOf: _Writer._address_of,
    nodes.PureExtern: _Writer._pure_extern,
}

Node.describe = staticmethod(_describe)
