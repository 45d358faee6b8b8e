"""A compiler from the host function of a Program to Python closures.

Needs a function of the `launch` level. A closure takes the list of values of one call: DeviceMemory
for each buffer, an integer for each variable. So several threads can run the same closures. A
workspace belongs to one call, and is released at the end of the Allocate's body, also after an
error. A launch with an empty grid or block is skipped.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

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
from refcomp.runtime.launch import Argument, Extents, KernelSignature
from refcomp.runtime.programs.host_integers import (
    Evaluate,
    Slots,
    Values,
    compile_integer,
)

Step = Callable[[Values], None]

# Nested statements, each a Python call, that need no deeper recursion limit.
_MAX_SHALLOW = 200


class HostActions(Protocol):
    """The effects of a host function on its device."""

    def allocate(self, size: int) -> DeviceMemory:
        """Return memory of `size` bytes for a workspace."""

    def launch(
        self,
        kernel: KernelSignature,
        values: list[Argument],
        grid: Extents,
        block: Extents,
        shared_bytes: tuple[int, ...],
    ) -> None:
        """Launch a kernel as `Launcher.launch` does."""


@dataclass(frozen=True, slots=True)
class HostWalk:
    """A compiled host function."""

    step: Step
    length: int  # of the list of values
    depth: int  # nested statements

    def run(self, values: Values) -> None:
        """Run the function on the values of the parameters and then of the symbols."""
        # A call has values of its own, so that several threads can run the function.
        full = [*values, *[None] * (self.length - len(values))]
        if self.depth <= _MAX_SHALLOW:
            self.step(full)
        else:
            with deep_recursion():
                self.step(full)


def compile_host(
    host: PrimFunc, kernels: Mapping[str, KernelSignature], actions: HostActions
) -> HostWalk:
    """Compile `host` to a HostWalk that performs `actions`.

    Raises Unsupported for expressions that `compile_integer` refuses, and UserError for a launch of
    an unknown kernel or with wrong arguments.
    """
    compiler = _Compiler(kernels, actions)
    for item in (*host.params, *host.symbols):
        compiler.slots.place(item)
    with deep_recursion():
        step = compiler.compile(host.body)
    return HostWalk(step, len(compiler.slots), compiler.max_depth)


class _Compiler:
    def __init__(
        self, kernels: Mapping[str, KernelSignature], actions: HostActions
    ) -> None:
        self.slots = Slots()
        self._kernels = kernels
        self._actions = actions
        self._depth = 0
        self.max_depth = 0

    def compile(self, stmt: Stmt) -> Step:
        """Return a closure that runs `stmt`."""
        self._depth += 1
        self.max_depth = max(self.max_depth, self._depth)
        step = self._compile(stmt)
        self._depth -= 1
        return step

    def _compile(self, stmt: Stmt) -> Step:
        match stmt:
            case For():
                return self._loop(stmt)
            case LetStmt():
                return self._let(stmt)
            case IfThenElse():
                condition = self._integer(stmt.condition)
                then_case = self.compile(stmt.then_case)
                else_case = self.compile(stmt.else_case or Block(()))
                return lambda v: then_case(v) if condition(v) else else_case(v)
            case Block():
                return self._block(stmt)
            case Allocate():
                return self._allocate(stmt)
            case LaunchKernel():
                return self._launch(stmt)
        raise UserError(
            f"the host cannot run a {type(stmt).__name__}",
            where=repr(stmt),
            remedy="use only loops, conditions, lets and workspaces between kernels",
        )

    def _integer(self, expr: Expr) -> Evaluate:
        return compile_integer(expr, self.slots)

    def _integers(self, exprs: tuple[Expr, ...]) -> Callable[[Values], tuple[int, ...]]:
        parts = tuple(map(self._integer, exprs))
        return lambda values: tuple(part(values) for part in parts)

    def _loop(self, stmt: For) -> Step:
        minimum = self._integer(stmt.minimum)
        extent = self._integer(stmt.extent)
        place = self.slots.place(stmt.var)
        body = self.compile(stmt.body)

        def run(values: Values) -> None:
            start = minimum(values)
            for value in range(start, start + extent(values)):
                values[place] = value
                body(values)

        return run

    def _let(self, stmt: LetStmt) -> Step:
        value = self._integer(stmt.value)
        place = self.slots.place(stmt.var)
        body = self.compile(stmt.body)

        def run(values: Values) -> None:
            values[place] = value(values)
            body(values)

        return run

    def _block(self, stmt: Block) -> Step:
        steps = tuple(map(self.compile, stmt.stmts))

        def run(values: Values) -> None:
            for step in steps:
                step(values)

        return run

    def _allocate(self, stmt: Allocate) -> Step:
        shape = self._integers(stmt.buffer.shape)
        place = self.slots.place(stmt.buffer)
        body = self.compile(stmt.body)
        allocate = self._actions.allocate
        width = stmt.buffer.dtype.bytes

        def run(values: Values) -> None:
            size = width
            for extent in shape(values):
                size *= max(extent, 0)
            values[place] = allocate(size)
            try:
                body(values)
            finally:
                # The last reference: the device may use the memory for the next workspace.
                values[place] = None

        return run

    def _launch(self, stmt: LaunchKernel) -> Step:
        kernel = self._kernel_of(stmt)
        launch = self._actions.launch
        extents_of = self._integers((*stmt.grid, *stmt.block))
        shared_bytes_of = self._integers(stmt.shared_bytes)
        readers = tuple(
            _reader(self.slots.place(arg), dtype)
            for arg, dtype in zip(stmt.arguments, kernel.params, strict=True)
        )

        def run(values: Values) -> None:
            extents = extents_of(values)
            gx, gy, gz, bx, by, bz = extents
            if min(extents) <= 0:
                return
            taken = [read(values) for read in readers]
            launch(kernel, taken, (gx, gy, gz), (bx, by, bz), shared_bytes_of(values))

        return run

    def _kernel_of(self, stmt: LaunchKernel) -> KernelSignature:
        kernel = self._kernels.get(stmt.kernel)
        if kernel is None:
            raise UserError(
                f"unknown kernel {stmt.kernel}",
                where=repr(stmt),
                remedy=f"launch one of: {', '.join(self._kernels) or 'none'}",
            )
        given = [
            None if isinstance(arg, Buffer) else arg.dtype for arg in stmt.arguments
        ]
        if given != list(kernel.params):
            raise UserError(
                f"the kernel {kernel.name} is launched with wrong arguments",
                where=repr(stmt),
                why=f"it takes {_describe(kernel.params)}, not {_describe(given)}",
                remedy="build the module again",
            )
        return kernel


def _describe(params: Iterable[DType | None]) -> str:
    names = ["buffer" if dtype is None else str(dtype) for dtype in params]
    return f"({', '.join(names)})"


def _reader(place: int, dtype: DType | None) -> Callable[[Values], Argument]:
    """Return a closure that reads a kernel's argument from the values of a call."""
    if dtype is None:
        return lambda values: values[place]
    number: Callable[[int | float], np.generic] = to_numpy(dtype).type
    # The machine value of f16 and bf16 is their 16 bits.
    if dtype.bits == 16 and dtype.is_float:
        element = to_numpy(dtype)
        return lambda values: np.uint16(values[place]).view(element)
    return lambda values: number(values[place])
