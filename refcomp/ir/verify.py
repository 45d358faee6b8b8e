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
from typing import Any, cast

from refcomp.foundation.errors import CompilerBug, UserError
from refcomp.ir import expr as nodes
from refcomp.ir.buffer import READ, AddressOf, Buffer, BufferLoad, Load
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.gpu_intrinsics import is_gpu_intrinsic
from refcomp.ir.intrinsics import is_subgroup_call
from refcomp.ir.kernels import kernel_fault
from refcomp.ir.node import Node, bound_by, child_fields
from refcomp.ir.printer import print_func_with_lines
from refcomp.ir.rewrite import children
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
from refcomp.ir.type_rules import type_fault, type_rule

_NESTED_ONLY = (BufferLoad, BufferStore)
_FLAT_ONLY = (Load, Store, nodes.Ramp, nodes.Broadcast)
_FORBIDDEN: dict[str, tuple[type[Any], ...]] = {
    "nested": (*_FLAT_ONLY, ParallelRegion, LaunchKernel),
    "flat": (*_NESTED_ONLY, LaunchKernel),
    "host": (*_NESTED_ONLY, LaunchKernel, Barrier, AtomicUpdate, Pragma),
    "device": (*_NESTED_ONLY, LaunchKernel, Pragma, ParallelRegion, *CALLS),
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
        raise UserError(
            f"unknown level {level!r}", remedy=f"levels are {', '.join(LEVELS)}"
        )
    try:
        _Check(level).run(func)
    except _FaultFound as found:
        return found.fault
    broken = kernel_fault(func.body)
    return None if broken is None else Fault(*broken)


_Rule = Callable[["_Check", Any], None]
_TypeRule = Callable[[Any], str | None]


class _Check:
    """A walk with an explicit stack of steps, which knows the names in scope."""

    def __init__(self, level: str) -> None:
        self._level = level
        self._stmt: Stmt | None = None
        self._rules: dict[type[Any], tuple[_TypeRule, tuple[_Rule, ...]]] = {}
        self._steps: list[tuple[_Rule, Any, Stmt | None]] = []
        self._visible: set[Node] = set()
        self._on_path: set[Node] = set()
        self._inputs: set[Node] = set()
        # What has been checked, and what of it was added in each open scope.
        self._checked: set[int] = set()
        self._trail: list[list[int]] = [[]]
        self._outside: list[tuple[set[Node], set[int]]] = []

    def run(self, func: PrimFunc) -> None:
        outputs = set(func.outputs)
        self._inputs = {buffer for buffer in func.buffers if buffer.name not in outputs}
        if self._level == "device":
            symbols = ", ".join(symbol.name for symbol in func.symbols)
            self._require(not symbols, f"a kernel has no symbols, but {symbols}")
        self._push(_Check._visit, func)
        while self._steps:
            step, argument, self._stmt = self._steps.pop()
            step(self, argument)

    def _push(self, step: _Rule, argument: Any) -> None:
        self._steps.append((step, argument, self._stmt))

    def _require(self, condition: bool, what: str) -> None:
        if not condition:
            raise self._fault(what)

    def _fault(self, what: str) -> _FaultFound:
        return _FaultFound(Fault(what, self._stmt))

    def _visit(self, node: Node) -> None:
        cls = type(node)
        if cls is Var and node not in self._visible:
            raise self._fault(f"the variable {cast(Var, node).name} is not bound here")
        if id(node) in self._checked:
            return
        self._checked.add(id(node))
        self._trail[-1].append(id(node))
        if isinstance(node, Stmt):
            self._stmt = node
        self._check_node(cls, node)
        if cls.binds:
            self._push_binding(node)
        else:
            self._push_all(children(node))

    def _check_node(self, cls: type[Node], node: Node) -> None:
        found = self._rules.get(cls)
        if found is None:
            found = self._rules[cls] = (type_rule(cls), _rules_for(cls, self._level))
        rule_of_types, rules = found
        fault = rule_of_types(node)
        if fault is not None:
            raise self._fault(fault)
        for rule in rules:
            rule(self, node)

    def _push_binding(self, node: Node) -> None:
        inner = type(node).binds_in
        self._push(_Check._leave, node)
        self._push_fields(node, inner)
        self._push(_Check._enter, node)
        self._push_fields(
            node, tuple(f for f in child_fields(type(node)) if f not in inner)
        )

    def _push_fields(self, node: Node, names: tuple[str, ...]) -> None:
        for name in reversed(names):
            value = getattr(node, name)
            self._push_all(value if isinstance(value, tuple) else (value,))

    def _push_all(self, nodes: tuple[Any, ...]) -> None:
        for node in reversed(nodes):
            if node is not None:
                self._steps.append((_Check._visit, node, self._stmt))

    # Scopes.

    def _enter(self, node: Node) -> None:
        self._trail.append([])
        if isinstance(node, ParallelRegion):
            self._enter_region(node)
        for bound in bound_by(node):
            if bound in self._on_path:
                raise self._fault(f"{bound.name} is bound twice on one path")
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
            self._require(
                captured in self._visible, f"{captured.name} is captured, but not bound"
            )
        self._outside.append((self._visible, self._checked))
        self._visible = set(region.captures)
        self._checked = set()

    # Rules.

    def _refuse(self, node: Node) -> None:
        raise self._fault(f"{type(node).__name__} is not allowed")

    def _check_is_scalar(self, node: Expr) -> None:
        if node.dtype.lanes != 1:
            raise self._fault(
                f"{type(node).__name__} has dtype {node.dtype}, not a scalar"
            )

    def _check_is_no_bfloat(self, node: Expr) -> None:
        if node.dtype.kind == "bfloat":
            raise self._fault(f"{type(node).__name__} has dtype {node.dtype}")

    def _check_access(self, node: Any) -> None:
        if node.buffer not in self._visible:
            raise self._fault(f"the buffer {node.buffer.name} is not bound here")

    def _check_store(self, node: Any) -> None:
        self._check_writable(node.buffer)

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

    def _check_pure_extern(self, node: nodes.PureExtern) -> None:
        if self._level == "device" and not is_gpu_intrinsic(node.name):
            raise self._fault(
                f"a call of the host's function {node.name} is not allowed"
            )
        if self._level in ("host", "launch") and is_gpu_intrinsic(node.name):
            raise self._fault(f"the GPU's instruction {node.name} is not allowed")

    def _check_call(self, node: nodes.Call) -> None:
        if self._level != "device" and is_subgroup_call(node):
            raise self._fault(f"{node.name} is not allowed")

    def _check_launch(self, node: LaunchKernel) -> None:
        for arg in node.arguments:
            self._require(
                arg in self._visible, f"{arg.name} is an argument, but not bound here"
            )

    def _check_loop(self, node: For) -> None:
        if node.kind not in _KINDS.get(self._level, (node.kind,)):
            raise self._fault(f"a loop that is {node.kind} is not allowed")

    def _check_allocation(self, node: Allocate) -> None:
        is_allowed = self._level != "launch" or node.buffer.scope == "global"
        self._require(
            is_allowed, f"{node.buffer.name} is {node.buffer.scope}, not global"
        )

    def _check_writable(self, buffer: Buffer) -> None:
        if buffer in self._inputs:
            raise self._fault(f"{buffer.name} is written, but is no output")

    def _check_buffer(self, buffer: Buffer) -> None:
        fault = type_fault(buffer)
        self._require(fault is None, fault or "")
        if self._level in ("host", "device"):
            self._require(
                buffer.dtype.kind != "bfloat", f"{buffer.name} holds {buffer.dtype}"
            )
        if self._level != "nested" and buffer.scope == "local":
            constant = all(isinstance(dim, IntImm) for dim in buffer.shape)
            self._require(
                constant, f"{buffer.name} is local, but its shape is not constant"
            )
        for dim in buffer.shape:
            self._push(_Check._visit, dim)


_RULES: dict[type[Any], tuple[_Rule, ...]] = {
    **dict.fromkeys((BufferLoad, Load), (_Check._check_access,)),
    **dict.fromkeys((BufferStore, Store), (_Check._check_access, _Check._check_store)),
    AtomicUpdate: (_Check._check_access, _Check._check_store, _Check._check_indices),
    AddressOf: (_Check._check_access, _Check._check_address),
    Prefetch: (_Check._check_access, _Check._check_indices),
    nodes.Call: (_Check._check_call,),
    nodes.PureExtern: (_Check._check_pure_extern,),
    LaunchKernel: (_Check._check_launch,),
    For: (_Check._check_loop,),
    Allocate: (_Check._check_allocation,),
}
_RULES_OF_VALUES: dict[str, tuple[_Rule, ...]] = {
    "nested": (_Check._check_is_scalar,),
    **dict.fromkeys(("host", "device"), (_Check._check_is_no_bfloat,)),
}


def _rules_for(cls: type[Any], level: str) -> tuple[_Rule, ...]:
    """What is to be checked of a node of that class beside its types, in order."""
    refusal = (_Check._refuse,) if issubclass(cls, _FORBIDDEN[level]) else ()
    of_values = _RULES_OF_VALUES.get(level, ()) if issubclass(cls, Expr) else ()
    return (*refusal, *of_values, *_RULES.get(cls, ()))
