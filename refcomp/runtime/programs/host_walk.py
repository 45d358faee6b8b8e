"""Compiles the host function of a Program to Python closures: what stands around its kernels.

Needs a function of the `launch` level. A closure takes the list of values of one call: a Memory for
each buffer, an integer for each variable. So a function compiled once can run in several threads,
and a workspace belongs to the call that asked for it: its memory is let go when the Allocate's body
ends, also by an error. A launch with an empty grid or block is skipped.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from refcomp.foundation.dtype import DType, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.foundation.python_limits import deep_recursion
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr
from refcomp.ir.func import PrimFunc
from refcomp.ir.stmt import (
    Allocate,
    Block,
    For,
    IfThenElse,
    LaunchKernel,
    LetStmt,
    Stmt,
)
from refcomp.runtime.device import DeviceMemory
from refcomp.runtime.launch import Extents, KernelSignature
from refcomp.runtime.programs.host_integers import (
    Evaluate,
    Slots,
    Values,
    compile_integer,
)

Step = Callable[[Values], None]

# Nested statements that Python's stack has room for, whatever else lies on it; each is one call.
_SHALLOW = 200


class HostActions(Protocol):
    """What a host function does to its device."""

    def allocate(self, size: int) -> DeviceMemory:
        """Memory of `size` bytes, for a workspace."""

    def launch(
        self,
        kernel: KernelSignature,
        values: list[Any],
        grid: Extents,
        block: Extents,
        shared_bytes: tuple[int, ...],
    ) -> None:
        """As `Launcher.launch`."""


@dataclass(frozen=True, slots=True)
class HostWalk:
    """A compiled host function."""

    step: Step
    length: int
    depth: int

    def run(self, values: Values) -> None:
        """Run on the values of the parameters, then of the symbols, in order."""
        full = [*values, *[None] * (self.length - len(values))]
        if self.depth <= _SHALLOW:
            self.step(full)
        else:
            with deep_recursion():
                self.step(full)


def compile_host(
    host: PrimFunc, kernels: Mapping[str, KernelSignature], actions: HostActions
) -> HostWalk:
    """`host` as a HostWalk that does `actions`.

    Unsupported for expressions that `compile_integer` refuses; UserError for a launch that names
    no kernel of `kernels` or does not fit it.
    """
    compiler = _Compiler(kernels, actions)
    for item in (*host.params, *host.symbols):
        compiler.slots.place(item)
    with deep_recursion():
        step = compiler.compile(host.body)
    return HostWalk(step, len(compiler.slots), compiler.most_depth)


class _Compiler:
    def __init__(
        self, kernels: Mapping[str, KernelSignature], actions: HostActions
    ) -> None:
        self.slots = Slots()
        self._kernels, self._actions = kernels, actions
        self._depth = self.most_depth = 0

    def compile(self, stmt: Stmt) -> Step:
        """What runs `stmt`."""
        self._depth += 1
        self.most_depth = max(self.most_depth, self._depth)
        step = self._compile(stmt)
        self._depth -= 1
        return step

    def _compile(self, stmt: Stmt) -> Step:
        case = _CASES.get(type(stmt))
        if case is None:
            raise UserError(
                f"the host cannot run a {type(stmt).__name__}",
                where=repr(stmt),
                remedy="between kernels stand loops, conditions, lets and workspaces only",
            )
        return case(self, stmt)

    def _integer(self, expr: Expr) -> Evaluate:
        return compile_integer(expr, self.slots)

    def _integers(self, exprs: tuple[Expr, ...]) -> Callable[[Values], tuple[int, ...]]:
        parts = tuple(map(self._integer, exprs))
        return lambda values: tuple(part(values) for part in parts)

    def _loop(self, stmt: For) -> Step:
        minimum, extent = self._integer(stmt.minimum), self._integer(stmt.extent)
        place, body = self.slots.place(stmt.var), self.compile(stmt.body)

        def run(values: Values) -> None:
            start = minimum(values)
            for value in range(start, start + extent(values)):
                values[place] = value
                body(values)

        return run

    def _let(self, stmt: LetStmt) -> Step:
        value, place = self._integer(stmt.value), self.slots.place(stmt.var)
        body = self.compile(stmt.body)

        def run(values: Values) -> None:
            values[place] = value(values)
            body(values)

        return run

    def _condition(self, stmt: IfThenElse) -> Step:
        condition, then_case = (
            self._integer(stmt.condition),
            self.compile(stmt.then_case),
        )
        else_case = self.compile(stmt.else_case or Block(()))
        return lambda values: (then_case if condition(values) else else_case)(values)

    def _block(self, stmt: Block) -> Step:
        steps = tuple(map(self.compile, stmt.stmts))

        def run(values: Values) -> None:
            for step in steps:
                step(values)

        return run

    def _allocate(self, stmt: Allocate) -> Step:
        shape, place = self._integers(stmt.buffer.shape), self.slots.place(stmt.buffer)
        body, allocate, width = (
            self.compile(stmt.body),
            self._actions.allocate,
            _bytes_of(stmt),
        )

        def run(values: Values) -> None:
            size = width
            for extent in shape(values):
                size *= max(extent, 0)
            values[place] = allocate(size)
            try:
                body(values)
            finally:
                values[place] = None

        return run

    def _launch(self, stmt: LaunchKernel) -> Step:
        kernel, launch = self._kernel_of(stmt), self._actions.launch
        extents_of = self._integers((*stmt.grid, *stmt.block))
        shared_bytes_of = self._integers(stmt.shared_bytes)
        readers = tuple(
            _reader(self.slots.place(arg), dtype)
            for arg, dtype in zip(stmt.arguments, kernel.params, strict=True)
        )

        def run(values: Values) -> None:
            gx, gy, gz, bx, by, bz = extents = extents_of(values)
            if min(extents) <= 0:
                return
            taken = [read(values) for read in readers]
            launch(kernel, taken, (gx, gy, gz), (bx, by, bz), shared_bytes_of(values))

        return run

    def _kernel_of(self, stmt: LaunchKernel) -> KernelSignature:
        kernel = self._kernels.get(stmt.kernel)
        if kernel is None:
            raise UserError(
                f"there is no kernel {stmt.kernel} to launch",
                where=repr(stmt),
                remedy=f"the kernels are {', '.join(self._kernels) or 'none'}",
            )
        given = [
            None if isinstance(arg, Buffer) else arg.dtype for arg in stmt.arguments
        ]
        if given != list(kernel.params):
            raise UserError(
                f"the kernel {kernel.name} is launched with other arguments than it takes",
                where=repr(stmt),
                why=f"it takes {_told(kernel.params)}, and is given {_told(given)}",
                remedy="build the module again",
            )
        return kernel


def _bytes_of(stmt: Allocate) -> int:
    return stmt.buffer.dtype.bytes


def _told(params: "list[DType | None] | tuple[DType | None, ...]") -> str:
    return (
        f"({', '.join('buffer' if dtype is None else str(dtype) for dtype in params)})"
    )


def _reader(place: int, dtype: DType | None) -> Callable[[Values], Any]:
    """What gives a kernel's argument: the Memory as it is, a number as a numpy scalar."""
    if dtype is None:
        return lambda values: values[place]
    number: Any = to_numpy(dtype).type
    if dtype.bits == 16 and dtype.is_float:  # the value of a call is its 16 bits
        return lambda values: np.uint16(values[place]).view(number)
    return lambda values: number(values[place])


_CASES: dict[type[Any], Callable[[_Compiler, Any], Step]] = {
    For: _Compiler._loop,
    LetStmt: _Compiler._let,
    IfThenElse: _Compiler._condition,
    Block: _Compiler._block,
    Allocate: _Compiler._allocate,
    LaunchKernel: _Compiler._launch,
}
