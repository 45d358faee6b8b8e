"""Statements of hybrid functions, written into an ir_builder.

A local name that is assigned once is its value; one that is assigned again has memory of its own
from its first assignment to the end of that block. Loops over `const_range`, and branches on what
is known while compiling, are decided at once.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from refcomp.foundation.dtype import I64, as_dtype
from refcomp.hybrid.expressions import Cell, Evaluator
from refcomp.hybrid.plain import LOOP_WORDS
from refcomp.hybrid.source import PythonSource
from refcomp.ir.buffer import READ
from refcomp.ir.builder import BufferPointer, IRBuilder
from refcomp.ir.expr import Expr, FloorDiv, IntImm
from refcomp.ir.promotion import as_expr, cast
from refcomp.ir.rewrite import buffers_in
from refcomp.ir.stmt import PARALLEL, Origin
from refcomp.ir.view import BufferView
from refcomp.te.declare import decl_buffer
from refcomp.te.tensor import thread_axis

MOST_COPIES = 1024  # of the body of a loop over const_range


class Writer:
    """Writes the body of a function; `outputs` are the views that `output_tensor` made, and
    `returned` those among them that the function returns."""

    def __init__(self, source: PythonSource) -> None:
        self.source, self.builder = source, IRBuilder()
        self.evaluator = Evaluator(source)
        self.outputs: list[BufferView] = []
        self.returned: list[BufferView] | None = None
        self.is_tuple = False
        self._assigned = _assignments(source.definition)
        self._depth = self._concurrent = 0

    def write(self, stmts: Sequence[ast.stmt]) -> None:
        """Writes `stmts` in order."""
        for stmt in stmts:
            if self.returned is not None:
                self.source.refuse(stmt, "nothing may follow the return")
            rule = _RULES.get(type(stmt))
            if rule is None:
                what = type(stmt).__name__
                self.source.refuse(stmt, f"{what} is no part of hybrid functions")
            self.builder.origin = Origin(self.source.name, line=self.source.place(stmt))
            rule(self, stmt)

    @contextmanager
    def _block(self) -> Iterator[None]:
        """A block of its own: names that are assigned inside are unknown behind it."""
        names, self._depth = dict(self.evaluator.names), self._depth + 1
        yield
        self.evaluator.names, self._depth = names, self._depth - 1

    # Assignments.

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) > 1:
            self.source.refuse(node, "one name is assigned at a time")
        target = node.targets[0]
        if isinstance(target, ast.Subscript):
            self._store(target, self.evaluator.number(node.value))
        elif isinstance(target, ast.Name):
            self._assign_name(target, node.value)
        else:
            self.source.refuse(node, "only names and elements can be assigned")

    def _assign_name(self, target: ast.Name, value: ast.expr) -> None:
        memory = self._memory(target.id, value)
        held = self.evaluator.names.get(target.id)
        if memory is not None:
            if isinstance(held, BufferPointer):
                self.source.refuse(target, f"{target.id} is an array already")
            self.evaluator.names[target.id] = memory
        elif isinstance(held, Cell):
            self._set(target, held, self.evaluator.value(value))
        elif self._assigned.get(target.id, 0) > 1:
            self.evaluator.names[target.id] = self._cell(
                target, self.evaluator.number(value)
            )
        else:
            self.evaluator.names[target.id] = self._named(
                target, self.evaluator.value(value)
            )

    def _named(self, target: ast.Name, value: Any) -> Any:
        """A name that is assigned once: a variable, unless the value is known or an array."""
        if not isinstance(value, Expr) or isinstance(value, IntImm):
            return value
        return (
            value
            if self._depth == 0 and _is_shape(value)
            else self.builder.let(target.id, value)
        )

    def _cell(self, target: ast.Name, value: Expr) -> Cell:
        pointer = self.builder.allocate(value.dtype, 1, name=target.id, scope="local")
        pointer[0] = value
        return Cell(pointer, self._concurrent)

    def _set(self, target: ast.expr, cell: Cell, value: Any) -> None:
        name = ast.unparse(target)
        if cell.concurrent < self._concurrent:
            self.source.refuse(
                target,
                f"{name} is assigned by iterations that run at once",
                "assign it first within the loop, or make the loop a range",
            )
        dtype, is_number = cell.pointer.dtype, isinstance(value, int | float)
        given = as_expr(value).dtype
        fits = given == dtype or (
            is_number and (dtype.is_float or isinstance(value, int))
        )
        if not fits:
            self.source.refuse(
                target,
                f"{name} holds {dtype} and is assigned {given}",
                f"convert what is assigned first, as in {name} = float32(0)",
            )
        cell.pointer[0] = value

    def _memory(self, name: str, node: ast.expr) -> BufferPointer | None:
        """What `output_tensor` or `allocate` makes; None for any other value."""
        word = (
            node.func.id
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            else ""
        )
        if word not in ("output_tensor", "allocate") or not isinstance(node, ast.Call):
            return None
        given = {"dtype": "float32", "scope": "global"}
        given |= zip(
            ("shape", "dtype", "scope"),
            map(self.evaluator.value, node.args),
            strict=False,
        )
        given |= {str(k.arg): self.evaluator.value(k.value) for k in node.keywords}
        if given.keys() != {"shape", "dtype", "scope"}:
            self.source.refuse(node, f"{word} takes a shape, a dtype and a scope")
        shape, dtype = given["shape"], as_dtype(given["dtype"])
        if word == "allocate":
            return self.builder.allocate(dtype, shape, name=name, scope=given["scope"])
        if self._depth:
            self.source.refuse(
                node, "an output is made outside of all loops and branches"
            )
        view = decl_buffer(shape, dtype, name)
        self.outputs.append(view)
        return self.builder.buffer_ptr(view)

    def _store(self, target: ast.Subscript, value: Expr) -> None:
        pointer = self.evaluator.value(target.value)
        if not isinstance(pointer, BufferPointer):
            self.source.refuse(
                target, f"{ast.unparse(target.value)} has no elements to assign"
            )
        if pointer.view.access == READ:
            self.source.refuse(
                target,
                f"the input {pointer.view.name} cannot be written",
                "write an output_tensor, or an allocate of your own",
            )
        index = self.evaluator.value(target.slice)
        pointer[self.evaluator.element(target, pointer, index)] = value

    def _augmented(self, node: ast.AugAssign) -> None:
        target, op = node.target, type(node.op)
        old = self.evaluator.value(target)
        value = self.evaluator.combine(node, op, old, self.evaluator.value(node.value))
        if isinstance(target, ast.Subscript):
            self._store(target, as_expr(value))
            return
        held = (
            self.evaluator.names.get(target.id)
            if isinstance(target, ast.Name)
            else None
        )
        if not isinstance(held, Cell):
            self.source.refuse(node, f"{ast.unparse(target)} is no local number")
        self._set(target, held, value)

    # Control.

    def _for(self, node: ast.For) -> None:
        call = node.iter
        if (
            not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name))
            or node.orelse
        ):
            self._refuse_loop(node)
        if not isinstance(node.target, ast.Name):
            self.source.refuse(node, "a loop has one variable")
        word = call.func.id
        if word == "const_range":
            self._copies(node, call)
        elif word == "bind":
            self._bind(node, call)
        elif word in LOOP_WORDS:
            self._loop(node, call, LOOP_WORDS[word])
        else:
            self._refuse_loop(node)

    def _refuse_loop(self, node: ast.For) -> NoReturn:
        words = ", ".join([*LOOP_WORDS, "const_range", "bind"])
        self.source.refuse(
            node, "a loop runs over one of its words", f"use one of {words}"
        )

    def _range(self, call: ast.Call) -> tuple[Any, Any, int]:
        values = [self.evaluator.value(arg) for arg in call.args]
        if not 1 <= len(values) <= 3 or call.keywords:
            self.source.refuse(
                call, "a range has an end, or a begin and an end, and a step"
            )
        begin, end = (0, values[0]) if len(values) == 1 else values[:2]
        step = values[2] if len(values) == 3 else 1
        if not isinstance(step, int) or step < 1:
            self.source.refuse(call, "the step of a range is a constant of at least 1")
        return begin, end, step

    def _loop(self, node: ast.For, call: ast.Call, kind: str) -> None:
        assert isinstance(node.target, ast.Name)
        begin, end, step = self._range(call)
        self._concurrent += kind == PARALLEL
        if step == 1:
            with (
                self._block(),
                self.builder.for_range(begin, end, node.target.id, kind) as var,
            ):
                self._body(node, var)
        else:
            count = _steps(begin, end, step)
            with (
                self._block(),
                self.builder.for_range(0, count, node.target.id, kind) as var,
            ):
                self._body(node, var * step + begin)
        self._concurrent -= kind == PARALLEL

    def _body(self, node: ast.For, value: Any) -> None:
        assert isinstance(node.target, ast.Name)
        self.evaluator.names[node.target.id] = value
        self.write(node.body)

    def _copies(self, node: ast.For, call: ast.Call) -> None:
        begin, end, step = self._range(call)
        if not isinstance(begin, int) or not isinstance(end, int):
            self.source.refuse(call, "the ends of const_range are constants")
        values = range(begin, end, step)
        if len(values) > MOST_COPIES:
            self.source.refuse(
                call, f"const_range has at most {MOST_COPIES} values", "use unroll"
            )
        for value in values:
            with self._block():
                self._body(node, value)

    def _bind(self, node: ast.For, call: ast.Call) -> None:
        if len(call.args) != 2:
            self.source.refuse(
                call, 'bind has a tag and an extent: bind("threadIdx.x", 64)'
            )
        axis = thread_axis(self.evaluator.value(call.args[0]))
        extent = self.evaluator.value(call.args[1])
        with self._block(), self.builder.scope():
            self.builder.scope_attr(axis, "thread_extent", extent)
            self._concurrent += 1
            self._body(node, axis.var)
            self._concurrent -= 1

    def _if(self, node: ast.If) -> None:
        condition = self.evaluator.value(node.test)
        if not isinstance(condition, Expr):
            with self._block():
                self.write(node.body if condition else node.orelse)
            return
        with self._block(), self.builder.if_scope(condition):
            self.write(node.body)
        if node.orelse:
            with self._block(), self.builder.else_scope():
                self.write(node.orelse)

    def _return(self, node: ast.Return) -> None:
        if self._depth:
            self.source.refuse(node, "a hybrid function returns at its end only")
        self.is_tuple = isinstance(node.value, ast.Tuple)
        items = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        self.returned = []
        for item in items:
            held = None if item is None else self.evaluator.value(item)
            if not isinstance(held, BufferPointer) or held.view not in self.outputs:
                self.source.refuse(node, "what is returned was made by output_tensor")
            self.returned.append(held.view)

    def _expression(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.source.refuse(node, "an expression by itself does nothing")

    def _pass(self, _node: ast.Pass) -> None:
        """Nothing."""


def _steps(begin: Any, end: Any, step: int) -> Any:
    if isinstance(begin, int) and isinstance(end, int):
        return len(range(begin, end, step))
    return FloorDiv(cast(I64, as_expr(end) - begin) + (step - 1), IntImm(step, I64))


def _is_shape(value: Expr) -> bool:
    """Whether `value` is made of shape variables and constants: it may name a shape, too."""
    return value.dtype == I64 and not buffers_in(value)


def _assignments(definition: ast.FunctionDef) -> dict[str, int]:
    """How often each name is assigned; what is assigned in place, twice."""
    counts: dict[str, int] = {}
    for node in ast.walk(definition):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    counts[target.id] = counts.get(target.id, 0) + 1
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            counts[node.target.id] = counts.get(node.target.id, 0) + 2
    return counts


_RULES: dict[type[ast.AST], Callable[[Writer, Any], None]] = {
    ast.Assign: Writer._assign,
    ast.AugAssign: Writer._augmented,
    ast.For: Writer._for,
    ast.If: Writer._if,
    ast.Return: Writer._return,
    ast.Expr: Writer._expression,
    ast.Pass: Writer._pass,
}
