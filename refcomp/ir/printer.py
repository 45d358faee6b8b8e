"""Printer of the loop IR as text, for people and for `refcomp.ir.parser`.

Ensures that a function which is legal at some level (`refcomp.ir.verify`) prints to text that
parses to a structurally equal function. Names become identifiers that are unique in their scope.
`origin` is left out. Other nodes, such as expressions with free variables or nodes of other rooms,
print readably, but may not parse. No function recurses, so trees of any depth print.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.foundation.names import UniqueNames, to_identifier
from refcomp.ir import expr as nodes
from refcomp.ir.buffer import GLOBAL, AddressOf, Buffer, BufferLoad, Load
from refcomp.ir.constants import as_int
from refcomp.ir.expr import BinaryExpr, Comparison, Expr, IntImm, Var
from refcomp.ir.func import PrimFunc, Program, Requirement
from refcomp.ir.node import Bindable, Node, bound_by, data_fields
from refcomp.ir.rewrite import buffers_in, children, variables_in, walk
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
    CALL_WORDS,
    LOOSEST,
    NOT,
    OPERATORS,
    float_to_text,
    int_to_text,
    is_reserved,
)

# Node class -> operator, precedence
_SPELLING = {cls: (text, level) for text, (cls, level) in OPERATORS.items()}
_FUNCTION_NAMES = {cls: name for name, cls in BINARY_FUNCTIONS.items()}
_INDENT = "  "
_MAX_DESCRIBED = 3000  # pieces of text, a few characters each


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
    """Return the texts of several functions, with an empty line between them."""
    return "\n".join(map(print_func, funcs))


def print_program(program: Program) -> str:
    """Return the text of the host's function, then those of the kernels."""
    return print_funcs([program.host, *program.kernels])


def print_func_with_lines(func: PrimFunc) -> tuple[str, dict[int, Stmt]]:
    """Return the text of `func`, and the statements by the line on which they begin (from 1)."""
    writer = _Writer(func)
    writer.write([partial(writer.func, func)])
    return writer.text() + "\n", writer.begins


def print_stmt(stmt: Stmt) -> str:
    """Return the text of a statement. Free names print as they are."""
    writer = _Writer(stmt)
    writer.write([partial(writer.stmt, 0, stmt)])
    return writer.text()


def print_expr(expr: Expr) -> str:
    """Return the text of an expression. Free names print as they are."""
    writer = _Writer(expr)
    writer.write([writer.expr(expr)])
    return writer.text()


def print_requirement(requirement: Requirement) -> str:
    """Return the text of a requirement, with its axes."""
    writer = _Writer(requirement)
    writer.write(writer.requirement(requirement))
    return writer.text()


def _describe(node: Node) -> str:
    """Return the text of any node, for `repr`. Of a large node, it is only the beginning."""
    writer = _Writer(node)
    if isinstance(node, PrimFunc):
        part = partial(writer.func, node)
    elif isinstance(node, Stmt):
        part = partial(writer.stmt, 0, node)
    elif isinstance(node, Buffer):
        part = partial(writer.buffer, node)
    else:
        part = partial(writer.any_expr, node)
    writer.write([part], limit=_MAX_DESCRIBED)
    return writer.text()


# A text, or a step that returns the parts which replace it.
_Part = str | Callable[[], "Sequence[_Part] | None"]


class _Writer:
    """A printer of one node. A stack of parts still to be written takes the place of recursion."""

    def __init__(self, root: Node) -> None:
        self.begins: dict[
            int, Stmt
        ] = {}  # number of a line -> the statement that begins on it
        self._lines: list[list[str]] = [[]]
        self._taken = UniqueNames()
        # For each variable and buffer, its names from the outermost scope to the innermost.
        self._names: dict[Bindable, list[str]] = {}
        # Free names first: they keep their names, and bound ones are renamed if they clash.
        bound = {name for node in walk(root) for name in bound_by(node)}
        for name in (*variables_in(root), *buffers_in(root)):
            if name not in bound:
                self._bind(name)

    def write(self, parts: Sequence[_Part], limit: int | None = None) -> None:
        """Write the parts, but at most `limit` pieces of text."""
        stack = list(reversed(parts))
        written = 0
        while stack:
            if limit is not None and written > limit:
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

    def _bind(self, node: Bindable) -> str:
        wish = to_identifier(node.name)
        name = self._taken.take(f"{wish}_" if is_reserved(wish) else wish)
        self._names.setdefault(node, []).append(name)
        return name

    def _unbind(self, nodes: Iterable[Bindable]) -> None:
        for node in nodes:
            self._taken.release(self._names[node].pop())

    def _name(self, node: Bindable) -> str:
        known = self._names.get(node)
        return known[-1] if known else self._bind(node)

    def _begin_line(self, depth: int) -> None:
        self._lines.append([_INDENT * depth])

    def _scope(self, depth: int, owner: Node, body: Stmt) -> list[_Part]:
        """Return the parts of `{ body }`, after which what `owner` binds is out of scope."""
        return [*self._braces(depth, body), partial(self._unbind, bound_by(owner))]

    def _braces(self, depth: int, body: Stmt) -> list[_Part]:
        # The parser reads one statement in braces as itself, and several as a Block. So a Block of
        # one statement needs the word `block`.
        if isinstance(body, Block) and len(body.stmts) != 1:
            return self._listing(depth, body.stmts)
        return self._listing(depth, (body,))

    def _listing(self, depth: int, stmts: tuple[Stmt, ...]) -> list[_Part]:
        parts: list[_Part] = ["{"]
        for stmt in stmts:
            parts.append(partial(self._begin_line, depth + 1))
            parts.append(partial(self.stmt, depth + 1, stmt))
        return [*parts, partial(self._begin_line, depth), "}"]

    # Functions and statements.

    def func(self, func: PrimFunc) -> list[_Part]:
        for bound in bound_by(func):
            self._bind(bound)
        parts: list[_Part] = [f"func {to_identifier(func.name)}("]
        for k, param in enumerate(func.params):
            if k:
                parts.append(", ")
            if isinstance(param, Var):
                parts.append(f"{self._name(param)}: {param.dtype}")
            else:
                parts += self.buffer(param)
                parts.append(" out" if param.name in func.outputs else "")
        parts.append(")")
        parts += [f" import {json.dumps(text)}" for text in func.imports]
        if func.requires:
            parts.append(" requires (")
            for k, requirement in enumerate(func.requires):
                parts += [", "] if k else []
                parts += self.requirement(requirement)
            parts.append(")")
        for text in func.checks:
            parts += [partial(self._begin_line, 1), f"check {json.dumps(text)}"]
        return [*parts, " ", *self._scope(0, func, func.body)]

    def requirement(self, requirement: Requirement) -> list[_Part]:
        """Return the parts of `for i in range(m) CONDITION`, or of a condition without axes."""
        axes = requirement.axes
        parts: list[_Part] = []
        for axis, *bounds in zip(
            axes, requirement.minima, requirement.extents, strict=True
        ):
            parts += [partial(self._range, axis, *bounds), " "]
        parts.append(self.expr(requirement.condition))
        return [*parts, partial(self._unbind, axes)] if axes else parts

    def buffer(self, buffer: Buffer) -> list[_Part]:
        """Return the parts of a declaration."""
        scope = "" if buffer.scope == GLOBAL else f" {to_identifier(buffer.scope)}"
        alignment = f" align {buffer.alignment}" if buffer.alignment else ""
        head = f"{self._name(buffer)}: {buffer.dtype}["
        return [head, *self._listed(buffer.shape), f"]{scope}{alignment}"]

    def stmt(self, depth: int, stmt: Stmt) -> list[_Part]:
        self.begins[len(self._lines)] = stmt
        match stmt:
            case For():
                return self._for(depth, stmt)
            case BufferStore():
                target = self._element(stmt.buffer, stmt.indices)
                return [*target, " = ", self.expr(stmt.value)]
            case Store():
                head = f"{self._name(stmt.buffer)}@["
                value = [self.expr(stmt.value), *self._predicate(stmt.predicate)]
                return [head, self.expr(stmt.index), "] = ", *value]
            case Allocate():
                self._bind(stmt.buffer)
                scope = self._scope(depth, stmt, stmt.body)
                return ["alloc ", *self.buffer(stmt.buffer), " ", *scope]
            case IfThenElse():
                return self._if_then_else(depth, stmt)
            case Block():
                return ["block ", *self._listing(depth, stmt.stmts)]
            case LetStmt():
                head = f"let {self._bind(stmt.var)}: {stmt.var.dtype} = "
                scope = self._scope(depth, stmt, stmt.body)
                return [head, self.expr(stmt.value), " ", *scope]
            case ParallelRegion():
                captures = ", ".join(map(self._name, stmt.captures))
                tasks = f"task {self._bind(stmt.task)} of {self._bind(stmt.num_tasks)}"
                head = f"region {to_identifier(stmt.name)} ({captures}) {tasks} "
                return [head, *self._scope(depth, stmt, stmt.body)]
            case Barrier():
                return ["barrier"]
            case AtomicUpdate():
                target = self._element(stmt.buffer, stmt.indices)
                head = f"atomic {stmt.operator} "
                return [head, *target, " with ", self.expr(stmt.value)]
            case Prefetch():
                return ["prefetch ", *self._element(stmt.buffer, stmt.indices)]
            case Pragma():
                head = f"pragma {to_identifier(stmt.key)} "
                braces = self._braces(depth, stmt.body)
                return [head, self.expr(stmt.value), " ", *braces]
            case LaunchKernel():
                return self._launch(stmt)
            case CallPacked():
                return ["packed ", *self._call(to_identifier(stmt.name), *stmt.args)]
            case CallExtern():
                call = self._call(to_identifier(stmt.name), *stmt.args)
                return [f"extern {stmt.result} ", *call]
        return self._unknown(stmt)

    def _for(self, depth: int, loop: For) -> list[_Part]:
        parts = self._range(loop.var, loop.minimum, loop.extent)
        kind = "" if loop.kind == SERIAL else f" {loop.kind}"
        return [*parts, f"{kind} ", *self._scope(depth, loop, loop.body)]

    def _range(self, var: Var, minimum: Expr, extent: Expr) -> list[_Part]:
        """Return the parts of `for i in range(m)`."""
        dtype = "" if var.dtype == I64 else f": {var.dtype}"
        parts: list[_Part] = [f"for {self._bind(var)}{dtype} in range("]
        if as_int(minimum) != 0:
            parts += [self.expr(minimum), ", extent="]
        return [*parts, self.expr(extent), ")"]

    def _if_then_else(self, depth: int, stmt: IfThenElse) -> list[_Part]:
        then = self._braces(depth, stmt.then_case)
        parts: list[_Part] = ["if (", self.expr(stmt.condition), ") ", *then]
        if stmt.else_case is None:
            return parts
        if isinstance(stmt.else_case, IfThenElse):
            return [*parts, " else ", partial(self.stmt, depth, stmt.else_case)]
        return [*parts, " else ", *self._braces(depth, stmt.else_case)]

    def _launch(self, stmt: LaunchKernel) -> list[_Part]:
        arguments = ", ".join(map(self._name, stmt.arguments))
        parts: list[_Part] = [f"launch {to_identifier(stmt.kernel)} ({arguments})"]
        parts += [" grid (", *self._listed(stmt.grid), ")"]
        parts += [" block (", *self._listed(stmt.block), ")"]
        if stmt.shared_bytes:
            parts += [" shared_bytes (", *self._listed(stmt.shared_bytes), ")"]
        return parts

    # Expressions.

    def expr(self, expr: Expr, least: int = LOOSEST) -> _Part:
        """Return `expr` as a part, in parentheses if its precedence is below `least`."""
        return partial(self.any_expr, expr, least)

    def any_expr(self, expr: Node, least: int = LOOSEST) -> list[_Part]:
        """Return the parts of an expression, or of a node of another room."""
        match expr:
            case Var():
                return [self._name(expr)]
            case IntImm():
                return [int_to_text(expr.value, expr.dtype)]
            case BinaryExpr():
                return self._binary(expr, least)
            case BufferLoad():
                return self._element(expr.buffer, expr.indices)
            case Load():
                head = f"{self._name(expr.buffer)}@["
                predicate = self._predicate(expr.predicate)
                return [head, self.expr(expr.index), *predicate, "]"]
            case nodes.FloatImm():
                return [float_to_text(expr.value, expr.dtype)]
            case nodes.Cast():
                return self._call(str(expr.dtype), expr.value)
            case nodes.Not():
                parts: list[_Part] = ["not ", self.expr(expr.a, NOT)]
                return ["(", *parts, ")"] if least > NOT else parts
            case nodes.Select() | nodes.IfThenElseExpr():
                name = "select" if isinstance(expr, nodes.Select) else "if_then_else"
                values = (expr.true_value, expr.false_value)
                return self._call(name, expr.condition, *values)
            case nodes.Ramp():
                operands = self._listed([expr.base, expr.stride])
                return ["ramp(", *operands, f", {expr.lanes})"]
            case nodes.Broadcast():
                return ["broadcast(", self.expr(expr.value), f", {expr.lanes})"]
            case nodes.Let():
                head = f"(let {self._bind(expr.var)}: {expr.var.dtype} = "
                value = self.expr(expr.value)
                end = partial(self._unbind, (expr.var,))
                return [head, value, " in ", self.expr(expr.body), ")", end]
            case nodes.Call():
                return self._call(to_identifier(expr.name), *expr.args)
            case nodes.PureExtern():
                call = self._call(to_identifier(expr.name), *expr.args)
                return [f"{CALL_WORDS[expr.callee]} {expr.dtype} ", *call]
            case nodes.TextImm():
                return [json.dumps(expr.value)]
            case AddressOf():
                return self._address_of(expr)
        return self._unknown(expr)

    def _binary(self, expr: BinaryExpr, least: int) -> list[_Part]:
        cls = type(expr)
        is_integer_division = cls is nodes.Div and not expr.dtype.is_float
        if cls in _SPELLING and not is_integer_division:
            text, level = _SPELLING[cls]
            # Comparisons do not chain; the others are left-associative.
            left = level + 1 if isinstance(expr, Comparison) else level
            parts = [self.expr(expr.a, left), f" {text} ", self.expr(expr.b, level + 1)]
            return ["(", *parts, ")"] if least > level else parts
        if cls in _FUNCTION_NAMES:
            return self._call(_FUNCTION_NAMES[cls], expr.a, expr.b)
        return self._unknown(expr)

    def _address_of(self, expr: AddressOf) -> list[_Part]:
        parts: list[_Part] = [f"{expr.access}({self._name(expr.buffer)}"]
        if expr.indices:
            parts += ["[", *self._listed(expr.indices), "]"]
        if expr.element != expr.buffer.dtype:
            parts.append(f" as {expr.element}")
        return [*parts, ")"]

    def _listed(self, exprs: Iterable[Expr]) -> list[_Part]:
        parts: list[_Part] = []
        for expr in exprs:
            parts += [", ", self.expr(expr)]
        return parts[1:]

    def _call(self, name: str, *args: Expr) -> list[_Part]:
        return [f"{name}(", *self._listed(args), ")"]

    def _element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> list[_Part]:
        return [f"{self._name(buffer)}[", *self._listed(indices), "]"]

    def _predicate(self, predicate: Expr | None) -> list[_Part]:
        return [] if predicate is None else [" if ", self.expr(predicate)]

    def _unknown(self, node: Node) -> list[_Part]:
        """Return the parts of a node of another room: its class, data and child expressions."""
        data = [getattr(node, name) for name in data_fields(type(node))]
        names = ", ".join(str(getattr(value, "name", value)) for value in data)
        parts: list[_Part] = [f"{type(node).__name__}(", names]
        for child in children(node):
            if isinstance(child, Expr):
                parts += [", ", self.expr(child)]
        return [*parts, ")"]


Node.describe = staticmethod(_describe)
