"""Print copies into double buffers in shared memory as asynchronous ones, from sm_80 on.

    for k {
      wait  barrier                         # the copies for k have arrived, and all threads know it
      T[(k + 1) % 2, ...] = A[...]          # begins to copy, without registers
      use T[k % 2, ...]
    }

A thread waits for its own copies before each barrier of a kernel that has any. **Invariant**: from
the beginning of a copy to the next barrier, its thread neither reads nor writes the copied
elements. No thread writes the source. Other threads cannot touch the elements before they passed a
barrier after the copy, since kernels have no data races. So such a copy has the meaning of a load
and a store.

The invariant is proved by following the statements of a kernel with the copies that may not have
arrived. Two accesses are apart if they touch different slots of the double buffer, or different
ranges of one slot. A buffer is filled by loads and stores in these cases:

- One of its accesses is not proved to be apart from a copy.
- Something else than a copy of a buffer that the kernel does not write fills it.

So is a vector that has not 4, 8 or 16 bytes, or that may not begin at a multiple of its size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from refcomp.arith import Facts, interval, simplify
from refcomp.codegen.c_family.function import CFunction, StatementPrinters
from refcomp.codegen.c_family.memory import alignment_of, element, print_store
from refcomp.foundation.compute_capability import archs_of, capability_of
from refcomp.ir.buffer import GLOBAL, SHARED, Buffer, Load
from refcomp.ir.constants import as_int, as_ints
from refcomp.ir.expr import Add, Expr, FloorMod, IntImm, Let, Mul, Ramp, Sub, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.rewrite import children, substitute, variables_in, walk
from refcomp.ir.stmt import (
    THREAD_TAGS,
    AtomicUpdate,
    Barrier,
    Block,
    For,
    IfThenElse,
    LetStmt,
    Stmt,
    Store,
)

_LEAST_CAPABILITY = (8, 0)
_WIDTHS = (4, 8, 16)  # bytes of one copy
_SLOTS = 2
_MAX_TERMS = 64  # of an index
_MAX_COPIES = 64  # that may not have arrived, in the text


def copy_printers(kernels: Sequence[PrimFunc], arch: str) -> StatementPrinters:
    """Return printers of the statements of `kernels` that copies and their waits change."""
    if min(map(capability_of, archs_of(arch))) < _LEAST_CAPABILITY:
        return {}
    copied: set[Buffer] = set()
    refused: set[Buffer] = set()
    barriers: set[int] = set()
    for kernel in kernels:
        candidates = _candidates(kernel)
        accepted = {b for b in candidates if _Proof(kernel, b).holds()}
        copied |= accepted
        refused |= candidates - accepted
        if accepted:
            nodes = walk(kernel.body)
            barriers |= {id(node) for node in nodes if isinstance(node, Barrier)}
    copied -= refused
    if not copied:
        return {}

    def store(out: CFunction, stmt: Store) -> None:
        if stmt.buffer in copied and _width(out, stmt):
            _print_copy(out, stmt)
        else:
            print_store(out, stmt)

    def barrier(out: CFunction, stmt: Barrier) -> None:
        if id(stmt) in barriers:
            out.emit(out.say.wait_for_copies())
        out.emit(out.say.barrier())

    return {Store: store, Barrier: barrier}


def _print_copy(out: CFunction, store: Store) -> None:
    load = store.value
    assert isinstance(load, Load)
    text = out.say.copy_async(
        target=element(out, store.buffer, _first(store.index)),
        source=element(out, load.buffer, _first(load.index)),
        width=_width(out, store),
    )
    out.emit(text)


def _width(out: CFunction, store: Store) -> int:
    """Return the bytes of an asynchronous copy; 0 if the copy cannot be one."""
    load = store.value
    assert isinstance(load, Load)
    width = store.buffer.dtype.bytes * store.index.dtype.lanes
    known = min(
        alignment_of(out, store.buffer, store.index),
        alignment_of(out, load.buffer, load.index),
    )
    return width if width in _WIDTHS and known == width else 0


def _first(index: Expr) -> Expr:
    return index.base if isinstance(index, Ramp) else index


def _candidates(kernel: PrimFunc) -> set[Buffer]:
    """Return the shared buffers of two slots that only copies of unwritten buffers write."""
    found: set[Buffer] = set()
    others: set[Buffer] = set()
    for node in walk(kernel.body):
        if isinstance(node, AtomicUpdate):
            others.add(node.buffer)
        if isinstance(node, Store):
            (found if _is_copy(kernel, node) else others).add(node.buffer)
    return {
        buffer
        for buffer in found - others
        if buffer.scope == SHARED
        and as_ints(buffer.shape) is not None
        and len(buffer.shape) > 1
        and as_int(buffer.shape[0]) == _SLOTS
    }


def _is_copy(kernel: PrimFunc, store: Store) -> bool:
    load = store.value
    return (
        isinstance(load, Load)
        and load.predicate is None
        and store.predicate is None
        and load.buffer.scope == GLOBAL
        and load.buffer.name not in kernel.outputs
        and _is_contiguous(store.index)
        and _is_contiguous(load.index)
    )


def _is_contiguous(index: Expr) -> bool:
    if isinstance(index, Ramp):
        return as_int(index.stride) == 1
    return index.dtype.lanes == 1


@dataclass(frozen=True, slots=True)
class _SlotRange:
    """Elements `rest`, ..., `rest` + `lanes` - 1 of the slot `slot` modulo 2."""

    slot: Expr
    rest: Expr
    lanes: int
    store: Store | None = None  # the copy into the place
    # False if the copy was begun before a barrier that it may have passed by.
    is_of_this_filling: bool = True

    def renamed(self, names: dict[Var, Var], is_of_this_filling: bool) -> _SlotRange:
        """Return the place in another iteration of the loops whose variables have `names`."""
        return replace(
            self,
            slot=substitute(self.slot, names),
            rest=substitute(self.rest, names),
            is_of_this_filling=self.is_of_this_filling and is_of_this_filling,
        )


class _Unproved(Exception):
    """An access may touch elements that are being copied."""


@dataclass
class _Proof:
    """The proof of the invariant for one buffer of a kernel."""

    kernel: PrimFunc
    buffer: Buffer
    facts: Facts = field(default_factory=Facts)
    lets: dict[Var, Expr] = field(default_factory=dict)
    loops: list[For] = field(default_factory=list)  # around the present statement
    # Variables of loops, which have one value in an iteration; others may stand for memory.
    indices: set[Var] = field(default_factory=set)
    # (id of a slot, id of another) -> the slots, and their distance
    distances: dict[tuple[int, int], tuple[Expr, Expr, int | None]] = field(
        default_factory=dict
    )

    def holds(self) -> bool:
        """Return True if the invariant is proved."""
        try:
            self._follow(self.kernel.body, ())
        except _Unproved:
            return False
        return True

    def _follow(
        self, stmt: Stmt, copies: tuple[_SlotRange, ...]
    ) -> tuple[_SlotRange, ...]:
        """Return the copies that may not have arrived behind `stmt`."""
        match stmt:
            case Barrier():
                return ()
            case Block(stmts=stmts):
                for part in stmts:
                    copies = self._follow(part, copies)
                return copies
            case For():
                return self._follow_loop(stmt, copies)
            case LetStmt(var=var, value=value):
                self._check(value, copies)
                if var.dtype.is_int:
                    self.lets[var] = substitute(value, self.lets)
                return self._follow(stmt.body, copies)
            case IfThenElse(condition=condition, then_case=yes, else_case=no):
                self._check(condition, copies)
                after = self._follow(yes, copies)
                return _union(after, copies if no is None else self._follow(no, copies))
            case Store(buffer=buffer) if buffer is self.buffer:
                return self._follow_copy(stmt, copies)
        for child in children(stmt):
            if isinstance(child, Stmt):
                copies = self._follow(child, copies)
            else:
                self._check(child, copies)
        return copies

    def _follow_loop(
        self, loop: For, copies: tuple[_SlotRange, ...]
    ) -> tuple[_SlotRange, ...]:
        self._bind(loop, loop.var)
        if loop.kind in THREAD_TAGS:  # each thread has one iteration
            return self._follow(loop.body, copies)
        self.loops.append(loop)
        after = self._follow(loop.body, copies)
        nodes = list(walk(loop.body))
        if any(isinstance(n, Store) and n.buffer is self.buffer for n in nodes):
            # The copies of an earlier iteration.
            names: dict[Var, Var] = {}
            for inner in (loop, *(n for n in nodes if isinstance(n, For))):
                names[inner.var] = Var(inner.var.name, inner.var.dtype)
                self._bind(inner, names[inner.var])
            is_open = not any(isinstance(node, Barrier) for node in nodes)
            earlier = tuple(copy.renamed(names, is_open) for copy in after)
            after = self._follow(loop.body, _union(copies, earlier))
        self.loops.pop()
        is_run = (as_int(loop.extent) or 0) > 0
        return after if is_run else _union(copies, after)

    def _bind(self, loop: For, var: Var) -> None:
        """Bind a variable that has the range of a loop's."""
        minimum = substitute(loop.minimum, self.lets)
        extent = substitute(loop.extent, self.lets)
        self.facts = self.facts.bind(var, minimum, extent)
        self.indices.add(var)

    def _follow_copy(
        self, store: Store, copies: tuple[_SlotRange, ...]
    ) -> tuple[_SlotRange, ...]:
        place = self._place(store.index)
        is_injective = place is not None and self._is_injective(store)
        if place is None or not is_injective or len(copies) > _MAX_COPIES:
            raise _Unproved
        for copy in copies:
            is_same = copy.store is store and copy.is_of_this_filling
            if not is_same and not self._are_apart(place, copy):
                raise _Unproved
        return _union(copies, (replace(place, store=store),))

    def _check(self, node: Node, copies: tuple[_SlotRange, ...]) -> None:
        """Raise _Unproved if an expression may read what is being copied."""
        if not copies:
            return
        for item in walk(node):
            if isinstance(item, Let) and any(
                isinstance(n, Load) and n.buffer is self.buffer for n in walk(item)
            ):
                raise _Unproved  # its variable may be part of an index
            if isinstance(item, Load) and item.buffer is self.buffer:
                place = self._place(item.index)
                if place is None:
                    raise _Unproved
                if not all(self._are_apart(place, copy) for copy in copies):
                    raise _Unproved

    def _place(self, index: Expr) -> _SlotRange | None:
        """Return the place of an access; None if it is not known to be inside of one slot."""
        if not _is_contiguous(index):
            return None
        lanes = index.dtype.lanes
        first = substitute(_first(index), self.lets)
        is_known = self.indices.issuperset(variables_in(first))
        if not is_known or any(isinstance(node, Load) for node in walk(first)):
            return None
        terms = list(_terms(first))
        size = prod(as_ints(self.buffer.shape) or ()) // _SLOTS
        slots = [
            slot for is_added, term in terms if is_added for slot in _slot(term, size)
        ]
        if len(terms) > _MAX_TERMS or len(slots) > 1:
            return None
        zero = IntImm(0, first.dtype)
        rest: Expr = zero
        for is_added, term in terms:
            if not (is_added and list(_slot(term, size))):
                rest = Add(rest, term) if is_added else Sub(rest, term)
        slot = slots[0] if slots else zero
        bounds = interval(rest, self.facts)
        if bounds.low is None or bounds.high is None:
            return None
        if not slots and bounds.low >= size:
            slot = IntImm(1, first.dtype)
            bounds = replace(bounds, low=bounds.low - size, high=bounds.high - size)
        assert bounds.low is not None and bounds.high is not None
        if bounds.low < 0 or bounds.high + lanes > size:
            return None
        return _SlotRange(slot, rest, lanes)

    def _are_apart(self, a: _SlotRange, b: _SlotRange) -> bool:
        distance = self._distance(a.slot, b.slot)
        if distance is None:
            return False
        if distance % _SLOTS:
            return True
        if a.rest.dtype != b.rest.dtype:
            return False
        between = interval(simplify(Sub(a.rest, b.rest), self.facts), self.facts)
        is_behind = between.low is not None and between.low >= b.lanes
        return is_behind or (between.high is not None and between.high <= -a.lanes)

    def _distance(self, a: Expr, b: Expr) -> int | None:
        """Return by how much two slots differ, if that is a constant."""
        key = (id(a), id(b))
        if key not in self.distances:
            distance = None
            if a.dtype == b.dtype:
                distance = as_int(simplify(Sub(a, b), self.facts))
            self.distances[key] = (a, b, distance)
        return self.distances[key][-1]

    def _is_injective(self, store: Store) -> bool:
        """Return True if the iterations between two barriers copy to different elements."""
        first = substitute(_first(store.index), self.lets)
        steps: list[tuple[int, int]] = []
        for loop in reversed(self.loops):
            if any(isinstance(node, Barrier) for node in walk(loop.body)):
                break
            following = Add(loop.var, IntImm(1, loop.var.dtype))
            moved = substitute(first, {loop.var: following})
            step = as_int(simplify(Sub(moved, first), self.facts))
            count = as_int(loop.extent)
            if step is None or count is None:
                return False
            steps.append((abs(step), count))
        span = store.index.dtype.lanes
        for step, count in sorted(steps):
            if count > 1 and step < span:
                return False
            span += step * max(0, count - 1)
        return True


def _union(
    a: tuple[_SlotRange, ...], b: tuple[_SlotRange, ...]
) -> tuple[_SlotRange, ...]:
    return (*a, *(place for place in b if not any(place is other for other in a)))


def _terms(expr: Expr, is_added: bool = True) -> Iterator[tuple[bool, Expr]]:
    """Yield the terms of a sum, each with True if it is added, and False if subtracted."""
    if isinstance(expr, Add | Sub):
        yield from _terms(expr.a, is_added)
        yield from _terms(expr.b, is_added == isinstance(expr, Add))
    else:
        yield is_added, expr


def _slot(term: Expr, size: int) -> Iterator[Expr]:
    """Yield e if `term` is e % 2 times the size of a slot."""
    if isinstance(term, Mul) and as_int(term.b) == size:
        slot = term.a
        if isinstance(slot, FloorMod) and as_int(slot.b) == _SLOTS:
            yield slot.a
