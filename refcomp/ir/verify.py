"""Checks that a function obeys the rules of its level; the compiler's own safety net.

Levels (what is legal on each):

- `nested`: BufferLoad and BufferStore with one scalar index per dimension; scalars only; loops of
  all kinds.
- `flat`: Load and Store by element offset; vectors (Ramp, Broadcast, predicates); loops of all
  kinds; ParallelRegion, but none in another.
- `host`: flat, but all loops are serial, and there is no bfloat16, and no kernel.
- `device`: a kernel of a Program: flat, but all loops are serial or bound, and there is no
  bfloat16, no ParallelRegion and no call of a host's function. It has no symbols: what it needs
  are parameters.
- `launch`: the host's function of a Program: serial loops, lets, conditions, global allocations and
  LaunchKernel.

On each level: operands have the dtypes of `refcomp.ir.type_rules`; each name is bound before it is
used, and each variable or buffer once on each path; a ParallelRegion uses its captures only; only
outputs and allocations are written; from `flat` on, local buffers have a constant shape. Kernels
are in canonical form (Note [Kernels] of `refcomp.ir.stmt`), Barrier lies in a kernel, and no
condition or extent around it depends on a thread.

`verify` raises CompilerBug with the printed function, as passes are to blame; who checks a text
that a user wrote asks `find_fault` and raises a UserError. Neither recurses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from refcomp.errors import CompilerBug, UserError
from refcomp.ir import expr as nodes
from refcomp.ir.buffer import READ, AddressOf, Buffer, BufferLoad, Load
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.intrinsics import is_subgroup_call
from refcomp.ir.kernels import kernel_fault
from refcomp.ir.node import Node, bound_by, child_fields
from refcomp.ir.printer import print_func_with_lines
from refcomp.ir.stmt import (
    CALLS,
    SERIAL,
    THREAD_TAGS,
    Allocate,
    AtomicUpdate,
    Barrier,
    BufferStore,
    For,
    LaunchKernel,
    ParallelRegion,
    Pragma,
    Prefetch,
    Stmt,
    Store,
)
from refcomp.ir.type_rules import type_fault

_NESTED_ONLY = (BufferLoad, BufferStore)
_FLAT_ONLY = (Load, Store, nodes.Ramp, nodes.Broadcast)
_FORBIDDEN: dict[str, tuple[type[Any], ...]] = {
    "nested": (*_FLAT_ONLY, ParallelRegion, LaunchKernel),
    "flat": (*_NESTED_ONLY, LaunchKernel),
    "host": (*_NESTED_ONLY, LaunchKernel, Barrier, AtomicUpdate, Pragma),
    "device": (*_NESTED_ONLY, LaunchKernel, Pragma, ParallelRegion, *CALLS, nodes.PureExtern),
    "launch": (
        *(*_NESTED_ONLY, *_FLAT_ONLY, ParallelRegion, Barrier, AtomicUpdate, *CALLS),
        *(Pragma, Prefetch),
    ),
}
_KINDS = {"host": (SERIAL,), "launch": (SERIAL,), "device": (SERIAL, *THREAD_TAGS)}
LEVELS = tuple(_FORBIDDEN)


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken rule, and the innermost statement around it (None: the function's header)."""

    what: str
    stmt: Stmt | None


class _FaultFound(Exception):
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.what)
        self.fault = fault


def verify(func: PrimFunc, level: str) -> None:
    """Raises CompilerBug, which holds the printed function, when `func` is not legal at `level`."""
    fault = find_fault(func, level)
    if fault is None:
        return
    text, begins = print_func_with_lines(func)
    guilty = {line for line, stmt in begins.items() if stmt is fault.stmt} or {1}
    lines = [
        f"{'>' if number in guilty else ' '} {line}"
        for number, line in enumerate(text.splitlines(), 1)
    ]
    raise CompilerBug(
        f"the loop IR of {func.name} is not legal at level {level}: {fault.what}",
        where="\n".join([f"line {min(guilty)} of", *lines]),
        remedy="this is a bug of refcomp; please report it with this text",
    )


def find_fault(func: PrimFunc, level: str) -> Fault | None:
    """The first rule that `func` breaks at `level`, None when it breaks none.

    Raises UserError when there is no such level.
    """
    if level not in LEVELS:
        raise UserError(f"unknown level {level!r}", remedy=f"levels are {', '.join(LEVELS)}")
    try:
        _Check(level).run(func)
    except _FaultFound as found:
        return found.fault
    broken = kernel_fault(func.body)
    return None if broken is None else Fault(*broken)


class _Check:
    """A walk with an explicit stack of steps, which knows the names in scope."""

    def __init__(self, level: str) -> None:
        self._level = level
        self._stmt: Stmt | None = None
        self._steps: list[tuple[Callable[[Any], None], Any, Stmt | None]] = []
        self._visible: set[Node] = set()
        self._on_path: set[Node] = set()
        self._inputs: set[Node] = set()
        # What has been checked, and what of it was added in each open scope.
        self._checked: set[int] = set()
        self._trail: list[list[int]] = [[]]
        self._outside: list[tuple[set[Node], set[int]]] = []

    def run(self, func: PrimFunc) -> None:
        self._inputs = {buffer for buffer in func.buffers if buffer.name not in func.outputs}
        if self._level == "device":
            symbols = ", ".join(symbol.name for symbol in func.symbols)
            self._require(not symbols, f"a kernel has no symbols, but {symbols}")
        self._push(self._visit, func)
        while self._steps:
            step, argument, self._stmt = self._steps.pop()
            step(argument)

    def _push(self, step: Callable[[Any], None], argument: Any) -> None:
        self._steps.append((step, argument, self._stmt))

    def _require(self, condition: bool, what: str) -> None:
        if not condition:
            raise _FaultFound(Fault(what, self._stmt))

    def _visit(self, node: Node) -> None:
        if isinstance(node, Stmt):
            self._stmt = node
        if isinstance(node, Var):
            self._require(node in self._visible, f"the variable {node.name} is not bound here")
        if id(node) in self._checked:
            return
        self._checked.add(id(node))
        self._trail[-1].append(id(node))
        self._check_node(node)
        self._push_children(node)

    def _push_children(self, node: Node) -> None:
        binds = type(node).binds
        if binds:
            self._push(self._leave, node)
        inner = type(node).binds_in if binds else ()
        self._push_fields(node, inner)
        if binds:
            self._push(self._enter, node)
        self._push_fields(node, tuple(f for f in child_fields(type(node)) if f not in inner))

    def _push_fields(self, node: Node, names: tuple[str, ...]) -> None:
        for name in reversed(names):
            value = getattr(node, name)
            for child in reversed(value if isinstance(value, tuple) else (value,)):
                if child is not None:
                    self._push(self._visit, child)

    # Scopes.

    def _enter(self, node: Node) -> None:
        self._trail.append([])
        if isinstance(node, ParallelRegion):
            self._enter_region(node)
        for bound in bound_by(node):
            self._require(bound not in self._on_path, f"{bound.name} is bound twice on one path")
            self._on_path.add(bound)
            self._visible.add(bound)
        for bound in bound_by(node):
            if isinstance(bound, Buffer):
                self._check_buffer(bound)

    def _leave(self, node: Node) -> None:
        self._on_path.difference_update(bound_by(node))
        self._visible.difference_update(bound_by(node))
        self._checked.difference_update(self._trail.pop())
        if isinstance(node, ParallelRegion):
            self._visible, self._checked = self._outside.pop()

    def _enter_region(self, region: ParallelRegion) -> None:
        self._require(not self._outside, "a ParallelRegion lies in another")
        for captured in region.captures:
            self._require(captured in self._visible, f"{captured.name} is captured, but not bound")
        self._outside.append((self._visible, self._checked))
        self._visible, self._checked = set(region.captures), set()

    # Rules.

    def _check_node(self, node: Node) -> None:
        name = type(node).__name__
        fault = type_fault(node)
        self._require(fault is None, fault or "")
        self._require(not isinstance(node, _FORBIDDEN[self._level]), f"{name} is not allowed")
        if isinstance(node, Expr):
            self._check_dtype(node, name)
        if isinstance(
            node, BufferLoad | Load | BufferStore | Store | AtomicUpdate | AddressOf | Prefetch
        ):
            bound = node.buffer in self._visible
            self._require(bound, f"the buffer {node.buffer.name} is not bound here")
        if isinstance(node, BufferStore | Store | AtomicUpdate):
            self._check_writable(node.buffer)
        if isinstance(node, AddressOf):
            self._check_address(node)
        rule = _RULES.get(type(node))
        if rule is not None:
            rule(self, node)

    def _check_indices(self, node: AtomicUpdate | Prefetch) -> None:
        rank = len(node.buffer.shape) if self._level == "nested" else 1
        what = "an update" if isinstance(node, AtomicUpdate) else "a prefetch"
        given = f"{what} of {node.buffer.name} has {len(node.indices)} indices"
        self._require(len(node.indices) == rank, f"{given}, where {rank} belong")

    def _check_address(self, node: AddressOf) -> None:
        rank = len(node.buffer.shape) if self._level == "nested" else 1
        given = f"an address in {node.buffer.name} has {len(node.indices)} indices"
        self._require(len(node.indices) in (0, rank), f"{given}, where {rank} belong")
        if node.access != READ:
            self._check_writable(node.buffer)

    def _check_call(self, node: nodes.Call) -> None:
        is_allowed = self._level == "device" or not is_subgroup_call(node)
        self._require(is_allowed, f"{node.name} is not allowed")

    def _check_launch(self, node: LaunchKernel) -> None:
        for arg in node.arguments:
            self._require(arg in self._visible, f"{arg.name} is an argument, but not bound here")

    def _check_loop(self, node: For) -> None:
        is_allowed = node.kind in _KINDS.get(self._level, (node.kind,))
        self._require(is_allowed, f"a loop that is {node.kind} is not allowed")

    def _check_allocation(self, node: Allocate) -> None:
        is_allowed = self._level != "launch" or node.buffer.scope == "global"
        self._require(is_allowed, f"{node.buffer.name} is {node.buffer.scope}, not global")

    def _check_dtype(self, node: Expr, name: str) -> None:
        if self._level == "nested":
            self._require(node.dtype.lanes == 1, f"{name} has dtype {node.dtype}, not a scalar")
        if self._level in ("host", "device"):
            self._require(node.dtype.kind != "bfloat", f"{name} has dtype {node.dtype}")

    def _check_writable(self, buffer: Buffer) -> None:
        self._require(buffer not in self._inputs, f"{buffer.name} is written, but is no output")

    def _check_buffer(self, buffer: Buffer) -> None:
        fault = type_fault(buffer)
        self._require(fault is None, fault or "")
        if self._level in ("host", "device"):
            self._require(buffer.dtype.kind != "bfloat", f"{buffer.name} holds {buffer.dtype}")
        if self._level != "nested" and buffer.scope == "local":
            constant = all(isinstance(dim, IntImm) for dim in buffer.shape)
            self._require(constant, f"{buffer.name} is local, but its shape is not constant")
        for dim in buffer.shape:
            self._push(self._visit, dim)


_RULES: dict[type[Any], Callable[[_Check, Any], None]] = {
    AtomicUpdate: _Check._check_indices,
    Prefetch: _Check._check_indices,
    nodes.Call: _Check._check_call,
    LaunchKernel: _Check._check_launch,
    For: _Check._check_loop,
    Allocate: _Check._check_allocation,
}
