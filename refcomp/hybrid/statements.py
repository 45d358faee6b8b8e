"""Translation of statements of hybrid functions, which writes into an ir_builder.

A local name that is assigned once stands for its value. A name that is assigned again has memory
of its own, from its first assignment to the end of that block. Loops over `const_range`, and
branches on values that are known while compiling, are decided at once.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from refcomp.foundation.dtype import I64, as_dtype
from refcomp.hybrid.asserts import requirement_of
from refcomp.hybrid.expressions import Cell, Evaluator, Value
from refcomp.hybrid.plain import LOOP_WORDS
from refcomp.hybrid.source import PythonSource
from refcomp.ir.buffer import GLOBAL, LOCAL, READ
from refcomp.ir.builder import BufferPointer, IRBuilder
from refcomp.ir.expr import Expr, FloorDiv, IntImm
from refcomp.ir.func import Requirement
from refcomp.ir.promotion import as_expr, cast
from refcomp.ir.rewrite import buffers_in
from refcomp.ir.stmt import PARALLEL, Origin
from refcomp.ir.view import BufferView
from refcomp.te.declare import decl_buffer
from refcomp.te.tensor import as_shape, thread_axis

MAX_COPIES = 1024  # of the body of a loop over const_range


class Writer:
    """The translation of one function's body."""

    def __init__(self, source: PythonSource) -> None:
        self.source = source
        self.builder = IRBuilder()
        self.evaluator = Evaluator(source)
        self.outputs: list[BufferView] = []  # made by `output_tensor`
        self.returned: list[BufferView] | None = None  # None before the return
        self.is_tuple = False  # the function returns a tuple
        self.requires: list[Requirement] = []  # made by asserts
        self._assigned = _assignments(source.definition)
        self._depth = 0  # of loops and branches around the current statement
        self._concurrent = 0  # loops around it whose iterations run at once

    def write(self, stmts: Sequence[ast.stmt]) -> None:
        """Write `stmts` in order. Raises UserError that names the line of an illegal one."""
        for stmt in stmts:
            if self.returned is not None:
                self.source.refuse(stmt, "nothing may follow the return")
            self.builder.origin = Origin(self.source.name, line=self.source.place(stmt))
            match stmt:
                case ast.Assign([ast.Subscript() as target], value):
                    self._store(target, self.evaluator.number(value))
                case ast.Assign([ast.Name() as target], value):
                    self._assign(target, value)
                case ast.Assign([_]):
                    self.source.refuse(stmt, "only names and elements can be assigned")
                case ast.Assign():
                    self.source.refuse(stmt, "one name is assigned at a time")
                case ast.AugAssign():
                    self._assign_in_place(stmt)
                case ast.For():
                    self._write_loop(stmt)
                case ast.If():
                    self._write_branch(stmt)
                case ast.Assert():
                    self._assert(stmt)
                case ast.Return():
                    self._return(stmt)
                case ast.Expr(ast.Constant()) | ast.Pass():
                    pass
                case ast.Expr():
                    self.source.refuse(
                        stmt, "an expression that is not stored has no effect"
                    )
                case _:
                    what = type(stmt).__name__
                    self.source.refuse(stmt, f"{what} is not part of hybrid functions")

    @contextmanager
    def _block(self) -> Iterator[None]:
        """Open a block: names that are assigned inside are unknown after it."""
        names = dict(self.evaluator.names)
        self._depth += 1
        yield
        self._depth -= 1
        self.evaluator.names = names

    # Assignments.

    def _assign(self, target: ast.Name, node: ast.expr) -> None:
        names = self.evaluator.names
        name = target.id
        memory = self._memory(name, node)
        held = names.get(name)
        if memory is not None:
            if isinstance(held, BufferPointer):
                self.source.refuse(target, f"{name} is an array already")
            names[name] = memory
        elif isinstance(held, Cell):
            self._set(target, held, self.evaluator.value(node))
        elif self._assigned[name] > 1:
            # It has memory from here on, since the loop IR has no assignment of names.
            number = self.evaluator.number(node)
            pointer = self.builder.allocate(number.dtype, 1, name=name, scope=LOCAL)
            pointer[0] = number
            names[name] = Cell(pointer, self._concurrent)
        else:
            value = self.evaluator.value(node)
            is_known = not isinstance(value, Expr) or isinstance(value, IntImm)
            # Outside of loops it may be an extent, which must be made of shape variables.
            may_be_extent = (
                self._depth == 0
                and isinstance(value, Expr)
                and value.dtype == I64
                and not buffers_in(value)
            )
            if not is_known and not may_be_extent:
                value = self.builder.let(name, value)
            names[name] = value

    def _assign_in_place(self, node: ast.AugAssign) -> None:
        target = node.target
        old = self.evaluator.value(target)
        operand = self.evaluator.value(node.value)
        value = self.evaluator.combine(node, type(node.op), old, operand)
        if isinstance(target, ast.Subscript):
            self._store(target, as_expr(value))
            return
        held: Value = None
        if isinstance(target, ast.Name):
            held = self.evaluator.names.get(target.id)
        if not isinstance(held, Cell):
            self.source.refuse(node, f"{ast.unparse(target)} is not a local number")
        self._set(target, held, value)

    def _set(self, target: ast.expr, cell: Cell, value: Value) -> None:
        name = ast.unparse(target)
        # All these iterations would write one element: a data race.
        if cell.concurrent < self._concurrent:
            self.source.refuse(
                target,
                f"{name} is assigned by iterations that run at once",
                "assign it first within the loop, or make the loop a range",
            )
        dtype = cell.pointer.dtype
        given = as_expr(value).dtype
        # A Python number takes the dtype of the memory.
        fits = isinstance(value, int) or (isinstance(value, float) and dtype.is_float)
        if given != dtype and not fits:
            self.source.refuse(
                target,
                f"{name} holds {dtype} and is assigned {given}",
                f"convert what is assigned first, as in {name} = float32(0)",
            )
        cell.pointer[0] = value

    def _memory(self, name: str, node: ast.expr) -> BufferPointer | None:
        """Return the memory that `output_tensor` or `allocate` makes; None for another value."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            return None
        word = node.func.id
        if word not in ("output_tensor", "allocate"):
            return None
        given: dict[str, Value] = {"dtype": "float32", "scope": GLOBAL}
        for key, arg in zip(("shape", "dtype", "scope"), node.args, strict=False):
            given[key] = self.evaluator.value(arg)
        for keyword in node.keywords:
            given[str(keyword.arg)] = self.evaluator.value(keyword.value)
        if given.keys() != {"shape", "dtype", "scope"}:
            self.source.refuse(node, f"{word} takes a shape, a dtype and a scope")
        shape = given["shape"]
        dtype = as_dtype(given["dtype"])
        if word == "allocate":
            scope = str(given["scope"])
            return self.builder.allocate(dtype, shape, name=name, scope=scope)
        if self._depth:
            self.source.refuse(
                node, "an output is made outside of all loops and branches"
            )
        view = decl_buffer(as_shape(shape), dtype, name)
        self.outputs.append(view)
        return self.builder.buffer_ptr(view)

    def _store(self, target: ast.Subscript, value: Expr) -> None:
        pointer, slices = self.evaluator.owner(target)
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
        pointer[self.evaluator.element(target, pointer, slices)] = value

    # Control.

    def _write_loop(self, node: ast.For) -> None:
        call = node.iter
        if (
            not isinstance(call, ast.Call)
            or not isinstance(call.func, ast.Name)
            or node.orelse
        ):
            self._refuse_loop(node)
        if not isinstance(node.target, ast.Name):
            self.source.refuse(node, "a loop has one variable")
        word = call.func.id
        name = node.target.id
        if word == "const_range":
            for number in self._constant_range(call):
                with self._block():
                    self._write_body(node, name, number)
        elif word == "bind":
            self._write_threads(node, name, call)
        elif word in LOOP_WORDS:
            kind = LOOP_WORDS[word]
            begin, end, step = self._range(call)
            self._concurrent += kind == PARALLEL
            first = begin
            if step > 1:  # the loop counts steps
                first = 0
                end = _trips(begin, end, step)
            with self._block(), self.builder.for_range(first, end, name, kind) as var:
                value: Value = var * step + begin if step > 1 else var
                self._write_body(node, name, value)
            self._concurrent -= kind == PARALLEL
        else:
            self._refuse_loop(node)

    def _refuse_loop(self, node: ast.For) -> NoReturn:
        words = ", ".join([*LOOP_WORDS, "const_range", "bind"])
        self.source.refuse(
            node, "a loop runs over one of its words", f"use one of {words}"
        )

    def _write_body(self, node: ast.For, name: str, value: Value) -> None:
        self.evaluator.names[name] = value
        self.write(node.body)

    def _range(self, call: ast.Call) -> tuple[Value, Value, int]:
        """Return the begin, the end and the step of a range."""
        values = [self.evaluator.value(arg) for arg in call.args]
        if not 1 <= len(values) <= 3 or call.keywords:
            self.source.refuse(
                call, "a range has an end, or a begin and an end, and a step"
            )
        begin, end = values[:2] if len(values) > 1 else (0, values[0])
        step = values[2] if len(values) == 3 else 1
        if not isinstance(step, int) or step < 1:
            self.source.refuse(call, "the step of a range is a constant of at least 1")
        return begin, end, step

    def _constant_range(self, call: ast.Call) -> range:
        begin, end, step = self._range(call)
        if not isinstance(begin, int) or not isinstance(end, int):
            self.source.refuse(call, "the ends of const_range are constants")
        values = range(begin, end, step)
        if len(values) > MAX_COPIES:
            self.source.refuse(
                call, f"const_range has at most {MAX_COPIES} values", "use unroll"
            )
        return values

    def _write_threads(self, node: ast.For, name: str, call: ast.Call) -> None:
        if len(call.args) != 2:
            self.source.refuse(
                call, 'bind has a tag and an extent: bind("threadIdx.x", 64)'
            )
        axis = thread_axis(self.evaluator.value(call.args[0]))
        extent = self.evaluator.value(call.args[1])
        # The threads exist to the end of the block, as an attribute of the scope.
        with self._block(), self.builder.scope():
            self.builder.scope_attr(axis, "thread_extent", extent)
            self._concurrent += 1
            self._write_body(node, name, axis.var)
            self._concurrent -= 1

    def _write_branch(self, node: ast.If) -> None:
        condition = self.evaluator.value(node.test)
        if not isinstance(condition, Expr):  # known: only one branch is compiled
            with self._block():
                self.write(node.body if condition else node.orelse)
            return
        with self._block(), self.builder.if_scope(condition):
            self.write(node.body)
        if node.orelse:
            with self._block(), self.builder.else_scope():
                self.write(node.orelse)

    def _assert(self, node: ast.Assert) -> None:
        found = requirement_of(
            self.source, self.evaluator, node, is_outermost=not self._depth
        )
        if found is not None:
            self.requires.append(found)

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


def _trips(begin: Value, end: Value, step: int) -> int | Expr:
    if isinstance(begin, int) and isinstance(end, int):
        return len(range(begin, end, step))
    extent = cast(I64, as_expr(end) - begin)
    return FloorDiv(extent + (step - 1), IntImm(step, I64))


def _assignments(definition: ast.FunctionDef) -> Counter[str]:
    """Return how often each name is assigned; an assignment in place counts twice."""
    counts: Counter[str] = Counter()
    for node in ast.walk(definition):
        match node:
            case ast.Assign(targets):
                counts.update(t.id for t in targets if isinstance(t, ast.Name))
            case ast.AugAssign(ast.Name(name)):
                counts[name] += 2
    return counts
