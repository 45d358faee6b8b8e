"""A tensor intrinsic's statements in the place of the loops that they do the work of.

    for io { for jo { for ko { for i < 8 { for j < 8 { for k < 8 { C[..] = C[..] + A[..] * .. }}}}}}

    for io { for jo { RESET(C[io * 8, jo * 8]); for ko { UPDATE(A[io * 8, ko * 8], .., C[..]) }}}

The buffers that the intrinsic was declared with become blocks of those that are here: an index
counts from the block's origin, and variables for strides and offsets get their values. Needs loops
that match (`refcomp.lowering.match_intrin`) and run all their points. Refuses guards that are left
inside, an intrinsic without the statement that is needed, and memory that is not as declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from refcomp.arith import Facts, prove, simplify
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.ir.buffer import AddressOf, Buffer, BufferLoad
from refcomp.ir.constants import as_int
from refcomp.ir.expr import EQ, LE, Expr, FloorMod, IntImm, Not, Var
from refcomp.ir.fresh_names import with_fresh_names
from refcomp.ir.node import Node
from refcomp.ir.rewrite import (
    Rewrite,
    map_children,
    rewriter,
    substitute,
    variables_in,
    walk,
    with_fields,
)
from refcomp.ir.stmt import (
    AtomicUpdate,
    BufferStore,
    CallPacked,
    Origin,
    Prefetch,
    Stmt,
)
from refcomp.ir.view import BufferView
from refcomp.lowering.bounds.regions import StageBounds
from refcomp.lowering.extern import with_origin
from refcomp.lowering.match_intrin import MatchedBlock, match_intrin, uncovered
from refcomp.schedule.axes import AxisGuard
from refcomp.schedule.placement import place_text
from refcomp.schedule.primitives.tensorize import check_block
from refcomp.schedule.stage import Tensorized
from refcomp.te.tensor import REDUCTION, IterVar, Tensor, TensorRead

_ACCESSES = (BufferLoad, AddressOf, BufferStore, AtomicUpdate, Prefetch)
Element = Callable[[Tensor, Sequence[Expr]], tuple[Expr, ...]]


@dataclass(frozen=True, slots=True)
class Replacement:
    """What stands in the place of the loops from `axis` inwards: `whole` where all of the
    computation is there, else `update`, after `reset` (None: the identity is stored as ever).
    `guards` are those that are left, of the loops outside."""

    axis: IterVar
    guards: Sequence[AxisGuard]
    whole: Stmt | None
    reset: Stmt | None
    update: Stmt | None


def lower_intrin(
    bounds: StageBounds,
    guards: Sequence[AxisGuard],
    buffers: Mapping[Tensor, Buffer],
    element: Element,
) -> Replacement:
    """The statements for the tensorized loops of a stage; `element` tells where in its buffer an
    element of a tensor lies."""
    wish = bounds.stage.loops.tensorized
    assert wish is not None
    placing = _IntrinsicPlacement(bounds, wish, buffers, element)
    placing.check_loops()
    guards = [placing.outside(guard) for guard in guards]
    intrin, outside = wish.intrin, _leaves_outside(bounds, wish)
    blocks = placing.blocks()
    reduced = [leaf.name for leaf in outside if leaf.kind == REDUCTION]
    reduced += [
        g.axis.name for g in guards if g.axis is not None and g.axis.kind == REDUCTION
    ]
    if intrin.body is not None and not reduced:
        return Replacement(
            wish.axis, guards, placing.placed(intrin.body, blocks), None, None
        )
    if intrin.update is None:
        placing.refuse(
            f"reduction axis {reduced[0]} stands outside, and {wish.intrin} has no update",
            "return (body, reset, update) from its function, or reorder: the reduction inside",
        )
    reset = None if intrin.reset is None else placing.placed(intrin.reset, blocks)
    return Replacement(
        wish.axis, guards, None, reset, placing.placed(intrin.update, blocks)
    )


def _leaves_outside(bounds: StageBounds, wish: Tensorized) -> list[IterVar]:
    return bounds.stage.loops.leaves[: bounds.stage.loops.position(wish.axis)]


@dataclass(frozen=True, slots=True)
class _Block:
    """The part of `buffer` that a view stands for; see `MatchedBlock`."""

    view: BufferView
    buffer: Buffer
    dims: tuple[int, ...]
    origin: tuple[Expr, ...]

    def strides(self) -> list[Expr]:
        """How many elements lie between neighbours, for each dimension of the buffer."""
        strides: list[Expr] = [IntImm(1, I64)]
        for extent in reversed(self.buffer.shape[1:]):
            strides.insert(0, simplify(strides[0] * extent))
        return strides[: len(self.buffer.shape)]

    def own_strides(self) -> list[Expr]:
        """Those of the view's dimensions."""
        strides = self.strides()
        return [strides[dim] for dim in self.dims]

    def offset(self, facts: Facts) -> Expr:
        """How many elements lie before the block's first one."""
        total: Expr = IntImm(0, I64)
        for index, stride in zip(self.origin, self.strides(), strict=True):
            total = total + index * stride
        return simplify(total, facts)

    def at(self, indices: Sequence[Expr], facts: Facts) -> tuple[Expr, ...]:
        """The buffer's element that is the view's one at `indices`; none: the first."""
        moved = list(self.origin)
        for dim, index in zip(self.dims, indices, strict=False):
            moved[dim] = simplify(moved[dim] + index, facts)
        return tuple(moved)

    def is_whole(self, facts: Facts) -> bool:
        """Whether the block is all of the buffer."""
        pairs = [*zip(self.view.shape, self.buffer.shape, strict=False)]
        pairs += [(IntImm(0, I64), first) for first in self.origin]
        return len(self.view.shape) == len(self.buffer.shape) and all(
            _is_equal(a, b, facts) for a, b in pairs
        )


class _IntrinsicPlacement:
    """Puts the statements of one intrinsic on the memory of one stage."""

    def __init__(
        self,
        bounds: StageBounds,
        wish: Tensorized,
        buffers: Mapping[Tensor, Buffer],
        element: Element,
    ) -> None:
        self.bounds, self.wish, self.buffers, self.element = (
            bounds,
            wish,
            buffers,
            element,
        )
        self.facts = bounds.facts

    def refuse(self, why: str, remedy: str) -> NoReturn:
        """Raises the UserError that the loops cannot be tensorized."""
        raise UserError(
            f"cannot tensorize axis {self.wish.axis.name} of stage {self.bounds.stage.name}",
            where=f"{place_text(self.bounds.stage)}, tensorized at {self.wish.line}",
            why=why,
            remedy=remedy,
        )

    def check_loops(self) -> None:
        """Refuses what has become of the loops since they were tensorized."""
        stage = self.bounds.stage
        if not any(leaf is self.wish.axis for leaf in stage.loops.leaves):
            self.refuse("it is a loop of this stage no more", "tensorize last")
        try:
            check_block(stage, self.wish, True, self.bounds.extents)
        except UserError as error:
            error.where = f"{error.where}, tensorized at {self.wish.line}"
            raise

    def outside(self, guard: AxisGuard) -> AxisGuard:
        """The guard as one of the loops outside: it must hold for all points of a block or none."""
        condition = guard.condition
        leaves = self.bounds.stage.loops.leaves[
            len(_leaves_outside(self.bounds, self.wish)) :
        ]
        first = {self.bounds.variables[leaf]: leaf.minimum for leaf in leaves}
        if not set(first).intersection(variables_in(condition)):
            return guard
        moved = simplify(substitute(condition, first), self.facts)
        is_kept = prove(condition, self.facts.assume(moved))
        if not (is_kept and prove(Not(condition), self.facts.assume(Not(moved)))):
            self.refuse(
                f"the loops inside run only where {condition}, and an intrinsic does all of "
                "its block",
                "split by factors that divide the extents: constants, or shapes such as "
                "(n * 8,), whose multiple is known",
            )
        return AxisGuard(guard.axis, moved)

    # Blocks.

    def blocks(self) -> dict[Buffer, _Block]:
        """The block that each of the intrinsic's buffers stands for."""
        places = match_intrin(self.bounds, self.wish)
        intrin = self.wish.intrin
        blocks: dict[Buffer, _Block] = {}
        for tensor, view in intrin.buffers.items():
            block = self._block(view, places[tensor])
            self._check_memory(block)
            if tensor in intrin.inputs and uncovered(intrin.op, tensor):
                self._check_inside(block, tensor)
            blocks[view.buffer] = block
        return blocks

    def _block(self, view: BufferView, place: MatchedBlock) -> _Block:
        origin = self.element(place.tensor, place.origin)
        loaded = tuple(self._loaded(index) for index in origin)
        return _Block(view, self.buffers[place.tensor], place.dims, loaded)

    def _loaded(self, index: Expr) -> Expr:
        """An origin that is read from memory itself, in terms of buffers."""

        def visit(recurse: Rewrite, node: Node) -> Node:
            node = map_children(node, recurse)
            if isinstance(node, TensorRead):
                at = self.element(node.tensor, node.indices)
                return BufferLoad(self.buffers[node.tensor], at)
            return node

        return rewriter(visit)(index)

    def _check_memory(self, block: _Block) -> None:
        view, name = block.view, block.buffer.name
        if view.scope not in ("global", block.buffer.scope):
            self.refuse(
                f"{view.name} is declared in {view.scope} memory, and {name} is "
                f"{block.buffer.scope}",
                f'copy it: cache_read or cache_write with scope "{view.scope}"',
            )
        offset, factor = block.offset(self.facts), view.offset_factor
        if factor > 1 and not prove(
            EQ(FloorMod(offset, _int(factor)), _int(0)), self.facts
        ):
            self.refuse(
                f"{view.name} is declared with offset_factor {factor}, and its block begins at "
                f"element {offset} of {name}",
                "split by multiples of the factor, or copy the block first: cache_read",
            )
        wanted, has = view.data_alignment, block.buffer.alignment or view.dtype.bytes
        place = FloorMod(offset * view.dtype.bytes, _int(max(wanted, 1)))
        if wanted and (has % wanted or not prove(EQ(place, _int(0)), self.facts)):
            self.refuse(
                f"{view.name} is declared with data_alignment {wanted}, and its block begins "
                f"{offset} elements into {name}, known to be aligned to {has} bytes",
                "copy the block first (cache_read, cache_write), or declare less",
            )

    def _check_inside(self, block: _Block, tensor: Tensor) -> None:
        """What the operation does not read of a block may lie outside of the buffer."""
        for size, dim in zip(block.view.shape, block.dims, strict=True):
            first, extent = block.origin[dim], block.buffer.shape[dim]
            inside = (LE(IntImm(0, I64), first), LE(first + size, extent))
            if not all(prove(condition, self.facts) for condition in inside):
                self.refuse(
                    f"{tensor.name} of {self.wish.intrin} is not read from end to end, and what "
                    f"its statements may touch is not known to lie inside of {block.buffer.name}",
                    "declare it with the shape that its operation reads",
                )

    # Statements.

    def placed(self, stmt: Stmt, blocks: Mapping[Buffer, _Block]) -> Stmt:
        """A copy of `stmt` that works on the blocks."""
        values = self._values(blocks.values())
        self._check_addresses(stmt, blocks)
        moved = self._moved(with_fresh_names(stmt, values), blocks)
        axis, stage = self.wish.axis.name, self.bounds.stage.name
        return with_origin(moved, Origin(stage, axis, "tensorize", self.wish.line))

    def _values(self, blocks: Iterable[_Block]) -> dict[Var, Expr]:
        """What the variables are that strides and offsets are declared with."""
        values: dict[Var, Expr] = {}
        wanted: list[tuple[BufferView, str, Expr, Expr]] = []
        for block in blocks:
            view, pairs = block.view, list[tuple[str, Expr, Expr]]()
            if view.strides:
                strides = zip(
                    view.strides, block.own_strides(), view.shape, strict=True
                )
                pairs += [
                    ("stride", a, b) for a, b, size in strides if as_int(size) != 1
                ]
                for given, actual in zip(
                    view.strides, block.own_strides(), strict=True
                ):
                    if isinstance(given, Var):
                        values.setdefault(given, actual)
            if as_int(view.elem_offset) != 0:
                pairs.append(
                    ("elem_offset", view.elem_offset, block.offset(self.facts))
                )
                if isinstance(view.elem_offset, Var):
                    values.setdefault(view.elem_offset, block.offset(self.facts))
            wanted += [(view, what, a, b) for what, a, b in pairs]
        for view, what, given, actual in wanted:
            if not _is_equal(substitute(given, values), actual, self.facts):
                self.refuse(
                    f"{view.name} is declared with {what} {given}, and here it is {actual}",
                    "declare a variable for it, or copy the block first: cache_read",
                )
        return values

    def _check_addresses(self, stmt: Stmt, blocks: Mapping[Buffer, _Block]) -> None:
        """A callee that is given an address finds the elements by the strides declared."""
        taken = {n.buffer for n in walk(stmt) if isinstance(n, AddressOf)}
        for buffer, block in blocks.items():
            if block.view.strides or buffer not in taken:
                continue
            compact = _int(1)
            for size, actual in zip(
                reversed(block.view.shape), reversed(block.own_strides()), strict=True
            ):
                if as_int(size) != 1 and not _is_equal(compact, actual, self.facts):
                    self.refuse(
                        f"{buffer.name} is declared without gaps and its address taken, and "
                        f"neighbours lie {actual} elements apart in {block.buffer.name}, not "
                        f"{compact}",
                        'declare strides, decl_buffer(..., strides=[var("s"), 1]), and pass them '
                        "on, or copy the block first: cache_read, cache_write",
                    )
                compact = simplify(compact * size)

    def _moved(self, stmt: Stmt, blocks: Mapping[Buffer, _Block]) -> Stmt:
        def visit(recurse: Rewrite, node: Node) -> Node:
            if isinstance(node, CallPacked):
                return self._moved_packed(node, blocks, recurse)
            node = map_children(node, recurse)
            if not isinstance(node, _ACCESSES) or node.buffer not in blocks:
                return node
            block = blocks[node.buffer]
            is_whole = isinstance(node, AddressOf) and not node.indices
            at = () if is_whole and block.is_whole(self.facts) else None
            indices = block.at(node.indices, self.facts) if at is None else at
            return with_fields(node, buffer=block.buffer, indices=indices)

        return rewriter(visit)(stmt)

    def _moved_packed(
        self, call: CallPacked, blocks: Mapping[Buffer, _Block], recurse: Rewrite
    ) -> CallPacked:
        """A registered function is given whole buffers only."""
        args: list[Expr] = []
        for arg in call.args:
            block = blocks.get(arg.buffer) if isinstance(arg, AddressOf) else None
            if block is None:
                args.append(recurse(arg))
                continue
            if not block.is_whole(self.facts):
                self.refuse(
                    f"{call.name} is a registered function, and {block.view.name} a part of "
                    f"{block.buffer.name}: it can be given whole buffers only",
                    "copy the block first (cache_read, cache_write, computed at the loop outside), "
                    "or call a C function by call_extern",
                )
            args.append(with_fields(arg, buffer=block.buffer))
        return with_fields(call, args=tuple(args))


def _int(value: int) -> Expr:
    return IntImm(value, I64)


def _is_equal(a: Expr, b: Expr, facts: Facts) -> bool:
    return prove(EQ(simplify(a, facts), simplify(b, facts)), facts)
