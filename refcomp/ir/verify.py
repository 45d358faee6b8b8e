"""Verifier: checks that a function obeys the rules of its level. It catches bugs of passes.

The levels, and what is legal on each:

- `nested`: BufferLoad and BufferStore with one scalar index per dimension; scalars only; loops of
  all kinds.
- `flat`: Load and Store by element offset; vectors (Ramp, Broadcast, predicates); loops of all
  kinds; ParallelRegion, but not inside of another.
- `host`: like flat, but all loops are serial. No bfloat16, and no kernels.
- `device`: a kernel of a Program. Like flat, but all loops are serial or bound. No bfloat16, no
  ParallelRegion, no calls of the host's functions, and no symbols.
- `launch`: the host's function of a Program. Serial loops, lets, conditions, global allocations and
  LaunchKernel.

The rules of all levels:

- Operands have the dtypes of `refcomp.ir.type_rules`.
- Each name is bound before it is used. Each variable or buffer is bound once on each path.
- A ParallelRegion uses its captures only.
- Only outputs and allocations are written.
- From `flat` on, local buffers have a constant shape.
- Kernels are in canonical form (Note [Kernels] of `refcomp.ir.stmt`). A Barrier lies in a kernel,
  and no condition or extent around it depends on a thread.

`verify` raises CompilerBug with the printed function, because a pass must be wrong. For a text of a
user, call `find_fault` and raise a UserError. Neither function recurses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from refcomp.foundation.choices import Choice
from refcomp.foundation.errors import CompilerBug
from refcomp.ir import expr as nodes
from refcomp.ir.buffer import GLOBAL, LOCAL, READ, AddressOf, Buffer, BufferLoad, Load
from refcomp.ir.constants import as_ints
from refcomp.ir.expr import Expr, Var
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
    UNROLLABLE,
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
from refcomp.ir.type_rules import TypeRule, type_fault, type_rule

_Access = BufferLoad | Load | BufferStore | Store | AtomicUpdate | AddressOf | Prefetch


class Level(Choice):
    """The levels of the loop IR (see the module docstring)."""

    NESTED = "nested"
    FLAT = "flat"
    HOST = "host"
    DEVICE = "device"
    LAUNCH = "launch"


_NESTED_ONLY = (BufferLoad, BufferStore)
_FLAT_ONLY = (Load, Store, nodes.Ramp, nodes.Broadcast)
_FORBIDDEN: dict[Level, tuple[type[Node], ...]] = {
    Level.NESTED: (*_FLAT_ONLY, ParallelRegion, LaunchKernel),
    Level.FLAT: (*_NESTED_ONLY, LaunchKernel),
    Level.HOST: (*_NESTED_ONLY, LaunchKernel, Barrier, AtomicUpdate, Pragma),
    Level.DEVICE: (*_NESTED_ONLY, LaunchKernel, Pragma, ParallelRegion, *CALLS),
    Level.LAUNCH: (
        *(*_NESTED_ONLY, *_FLAT_ONLY, ParallelRegion, Barrier, AtomicUpdate, *CALLS),
        *(Pragma, Prefetch),
    ),
}
# The kinds of loops that are allowed, if not all are.
_KINDS = {
    Level.HOST: (SERIAL, UNROLLABLE),
    Level.LAUNCH: (SERIAL,),
    Level.DEVICE: (SERIAL, UNROLLABLE, *THREAD_TAGS),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken rule."""

    what: str
    # The innermost statement around it. None: the header of the function.
    stmt: Stmt | None


class _FaultFound(Exception):
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.what)
        self.fault = fault


def verify(
    func: PrimFunc,
    level: str,
    *,
    after: str = "",
    remedy: str = "this is a bug of refcomp; please report it with this text",
) -> None:
    """Raise CompilerBug with the printed function if `func` is not legal at `level`.

    `after` names the step that made `func`, for the message.
    """
    fault = find_fault(func, level)
    if fault is None:
        return
    text, begins = print_func_with_lines(func)
    guilty = {line for line, stmt in begins.items() if stmt is fault.stmt} or {1}
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        mark = ">" if number in guilty else " "
        lines.append(f"{mark} {line}")
    made = f"the loop IR of {func.name}" + (f" after {after}" if after else "")
    raise CompilerBug(
        f"{made} is not legal at level {level}: {fault.what}",
        where="\n".join([f"line {min(guilty)} of", *lines]),
        remedy=remedy,
    )


def find_fault(func: PrimFunc, level: str) -> Fault | None:
    """Return the first rule that `func` breaks at `level`; None if it keeps all.

    Raises UserError if the level does not exist.
    """
    try:
        _Check(Level.parse(level, "level")).run(func)
    except _FaultFound as found:
        return found.fault
    broken = kernel_fault(func.body)
    return None if broken is None else Fault(*broken)


# A check of a node of one class, which raises _FaultFound.
_Rule = Callable[["_Check", Any], None]
# A function to call with a node, between visits.
_Step = tuple[Callable[["_Check", Any], None], Node]


@dataclass(frozen=True, slots=True)
class _ClassRules:
    """The checks of the nodes of a class, at one level."""

    of_types: TypeRule
    further: tuple[_Rule, ...]
    is_statement: bool


class _Check:
    """A walk over a function, with an explicit stack, that knows the names in scope."""

    def __init__(self, level: Level) -> None:
        self._level = level
        # The innermost statement around the present node. In all statements, the expressions come
        # before the statements.
        self._stmt: Stmt | None = None
        # By class of node, since most nodes share few classes.
        self._rules: dict[type[Node], _ClassRules] = {}
        # Nodes to visit, and steps between the visits. The last one is taken first.
        self._stack: list[Node | _Step] = []
        self._visible: set[Node] = set()  # names in scope
        self._on_path: set[Node] = set()  # names bound around, even outside of a region
        self._inputs: set[Node] = set()  # buffer parameters that are not outputs
        # A shared subtree is checked once in each scope: the ids of checked nodes, and for each
        # open scope those that were added in it.
        self._checked: set[int] = set()
        self._checked_in: list[list[int]] = [[]]
        # `_visible` and `_checked` outside of the ParallelRegion around the present step, if any.
        self._outside: list[tuple[set[Node], set[int]]] = []

    def run(self, func: PrimFunc) -> None:
        outputs = set(func.outputs)
        self._inputs = {buffer for buffer in func.buffers if buffer.name not in outputs}
        if self._level == Level.DEVICE:
            symbols = ", ".join(symbol.name for symbol in func.symbols)
            self._require(not symbols, f"a kernel has no symbols, but {symbols}")
        stack = self._stack
        stack.append(func)
        while stack:
            top = stack.pop()
            if isinstance(top, tuple):
                step, node = top
                step(self, node)
            else:
                self._visit(top)

    def _require(self, condition: bool, what: str) -> None:
        if not condition:
            raise self._fault(what)

    def _fault(self, what: str) -> _FaultFound:
        return _FaultFound(Fault(what, self._stmt))

    def _visit(self, node: Node) -> None:
        if isinstance(node, Var) and node not in self._visible:
            raise self._fault(f"the variable {node.name} is not bound here")
        if id(node) in self._checked:
            return
        self._checked.add(id(node))
        self._checked_in[-1].append(id(node))
        self._apply_rules(node)
        if not node.binds:
            below = children(node)
            if below:
                self._stack += below[::-1]
            return
        inner = node.binds_in
        outer = [name for name in child_fields(type(node)) if name not in inner]
        self._stack.append((_Check._leave, node))
        self._push_fields(node, inner)
        self._stack.append((_Check._enter, node))
        self._push_fields(node, outer)

    def _apply_rules(self, node: Node) -> None:
        cls = type(node)
        rules = self._rules.get(cls)
        if rules is None:
            rules = self._rules[cls] = _rules_for(cls, self._level)
        if rules.is_statement:
            self._stmt = cast(Stmt, node)
        fault = rules.of_types(node)
        if fault is not None:
            raise self._fault(fault)
        for rule in rules.further:
            rule(self, node)

    def _push_fields(self, node: Node, names: Sequence[str]) -> None:
        for name in reversed(names):
            value = getattr(node, name)
            if isinstance(value, tuple):
                self._stack += value[::-1]
            elif value is not None:
                self._stack.append(value)

    # Scopes.

    def _enter(self, node: Node) -> None:
        self._checked_in.append([])
        if isinstance(node, ParallelRegion):
            self._require(not self._outside, "a ParallelRegion lies in another")
            self._require_visible(node.captures, "captured")
            self._outside.append((self._visible, self._checked))
            # What was checked outside may use names that are not captured.
            self._visible = set(node.captures)
            self._checked = set()
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
        self._checked.difference_update(self._checked_in.pop())
        if isinstance(node, ParallelRegion):
            self._visible, self._checked = self._outside.pop()

    def _require_visible(self, names: Iterable[Var | Buffer], role: str) -> None:
        for name in names:
            if name not in self._visible:
                raise self._fault(f"{name.name} is {role}, but not bound here")

    # Rules.

    def _refuse(self, node: Node) -> None:
        raise self._fault(f"{type(node).__name__} is not allowed")

    def _check_is_scalar(self, node: Expr) -> None:
        if node.dtype.lanes != 1:
            raise self._fault(
                f"{type(node).__name__} has dtype {node.dtype}, not a scalar"
            )

    def _check_is_not_bfloat(self, node: Expr) -> None:
        if node.dtype.kind == "bfloat":
            raise self._fault(f"{type(node).__name__} has dtype {node.dtype}")

    def _check_access(self, node: _Access) -> None:
        if node.buffer not in self._visible:
            raise self._fault(f"the buffer {node.buffer.name} is not bound here")

    def _check_store(self, node: BufferStore | Store | AtomicUpdate) -> None:
        self._check_writable(node.buffer)

    def _check_indices(self, node: AtomicUpdate | Prefetch | AddressOf) -> None:
        # Below the nested level, the one index is an offset in elements.
        rank = len(node.buffer.shape) if self._level == Level.NESTED else 1
        count = len(node.indices)
        is_whole_buffer = isinstance(node, AddressOf) and count == 0
        if count != rank and not is_whole_buffer:
            what = _WITH_INDICES[type(node)]
            given = f"{what} {node.buffer.name} has {count} indices"
            raise self._fault(f"{given}, where {rank} belong")

    def _check_address(self, node: AddressOf) -> None:
        if node.access != READ:
            self._check_writable(node.buffer)

    def _check_pure_extern(self, node: nodes.PureExtern) -> None:
        is_for_gpus = is_gpu_intrinsic(node.name)
        if self._level == Level.DEVICE and not is_for_gpus:
            raise self._fault(
                f"a call of the host's function {node.name} is not allowed"
            )
        # On the nested and the flat level, host code and kernels are still in one function.
        if self._level in (Level.HOST, Level.LAUNCH) and is_for_gpus:
            raise self._fault(f"the GPU's instruction {node.name} is not allowed")

    def _check_call(self, node: nodes.Call) -> None:
        if self._level != Level.DEVICE and is_subgroup_call(node):
            raise self._fault(f"{node.name} is not allowed")

    def _check_launch(self, node: LaunchKernel) -> None:
        self._require_visible(node.arguments, "an argument")

    def _check_loop(self, node: For) -> None:
        if node.kind not in _KINDS.get(self._level, (node.kind,)):
            raise self._fault(f"a loop that is {node.kind} is not allowed")

    def _check_allocation(self, node: Allocate) -> None:
        buffer = node.buffer
        if self._level == Level.LAUNCH and buffer.scope != GLOBAL:
            raise self._fault(f"{buffer.name} is {buffer.scope}, not global")

    def _check_writable(self, buffer: Buffer) -> None:
        if buffer in self._inputs:
            raise self._fault(f"{buffer.name} is written, but is not an output")

    def _check_buffer(self, buffer: Buffer) -> None:
        fault = type_fault(buffer)
        if fault is not None:
            raise self._fault(fault)
        if self._level in (Level.HOST, Level.DEVICE) and buffer.dtype.kind == "bfloat":
            raise self._fault(f"{buffer.name} holds {buffer.dtype}")
        is_constant = as_ints(buffer.shape) is not None
        if self._level != Level.NESTED and buffer.scope == LOCAL and not is_constant:
            raise self._fault(f"{buffer.name} is local, but its shape is not constant")
        self._stack += buffer.shape[::-1]


# How a message names the nodes whose indices depend on the level.
_WITH_INDICES: dict[type[Node], str] = {
    AtomicUpdate: "an update of",
    Prefetch: "a prefetch of",
    AddressOf: "an address in",
}
_RULES: dict[type[Node], tuple[_Rule, ...]] = {
    **dict.fromkeys((BufferLoad, Load), (_Check._check_access,)),
    **dict.fromkeys((BufferStore, Store), (_Check._check_access, _Check._check_store)),
    AtomicUpdate: (_Check._check_access, _Check._check_store, _Check._check_indices),
    AddressOf: (_Check._check_access, _Check._check_indices, _Check._check_address),
    Prefetch: (_Check._check_access, _Check._check_indices),
    nodes.Call: (_Check._check_call,),
    nodes.PureExtern: (_Check._check_pure_extern,),
    LaunchKernel: (_Check._check_launch,),
    For: (_Check._check_loop,),
    Allocate: (_Check._check_allocation,),
}
_RULES_OF_VALUES: dict[Level, tuple[_Rule, ...]] = {
    Level.NESTED: (_Check._check_is_scalar,),
    **dict.fromkeys((Level.HOST, Level.DEVICE), (_Check._check_is_not_bfloat,)),
}


def _rules_for(cls: type[Node], level: Level) -> _ClassRules:
    refusal = (_Check._refuse,) if issubclass(cls, _FORBIDDEN[level]) else ()
    of_values = _RULES_OF_VALUES.get(level, ()) if issubclass(cls, Expr) else ()
    further = (*refusal, *of_values, *_RULES.get(cls, ()))
    return _ClassRules(type_rule(cls), further, issubclass(cls, Stmt))
