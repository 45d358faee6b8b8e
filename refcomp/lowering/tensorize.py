"""Replaces tensorized loops by the statements of their tensor intrinsic.

    for io { for jo { for ko { for i < 8 { for j < 8 { for k < 8 { C[..] = C[..] + A[..] * .. }}}}}}

    for io { for jo { RESET(C[io * 8, jo * 8]); for ko { UPDATE(A[io * 8, ko * 8], .., C[..]) }}}

The buffers of the intrinsic's declaration become blocks of the stage's buffers. The origin
of the block is added to each index. Declared variables for strides and offsets are replaced
by their values.

Requires: the loops match (see `match_intrin`), and all of their points run.
Refuses guards that are left inside, an intrinsic without the statement that is needed,
and memory that is not as declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from refcomp.arith import Facts, prove, simplify
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.ir.buffer import GLOBAL, AddressOf, Buffer, BufferLoad
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
from refcomp.lowering.bounds.ranges import is_equal
from refcomp.lowering.bounds.regions import StageBounds
from refcomp.lowering.extern import with_origin
from refcomp.lowering.match_intrin import is_covered, match_intrin
from refcomp.schedule.axes import AxisGuard
from refcomp.schedule.placement import place_text, placement_lines
from refcomp.schedule.primitives.tensorize import check_block
from refcomp.schedule.stage import Tensorized
from refcomp.te.tensor import REDUCTION, IterVar, Tensor, TensorRead

_ACCESSES = (BufferLoad, AddressOf, BufferStore, AtomicUpdate, Prefetch)
# (tensor, indices of an element) -> the indices of the element in the buffer of the tensor.
Element = Callable[[Tensor, Sequence[Expr]], tuple[Expr, ...]]


@dataclass(frozen=True, slots=True)
class Replacement:
    """The statements of an intrinsic that replace the loops from `axis` inwards."""

    axis: IterVar
    # The guards of the loops outside.
    guards: Sequence[AxisGuard]
    # The whole computation, or None if reduction loops stand outside.
    whole: Stmt | None
    # The initialisation, or None if the caller stores the identity instead.
    reset: Stmt | None
    # The accumulation of one step of the reduction loops outside.
    update: Stmt | None


def lower_intrin(
    bounds: StageBounds,
    guards: Sequence[AxisGuard],
    buffers: Mapping[Tensor, Buffer],
    element: Element,
) -> Replacement:
    """Return the statements that replace the tensorized loops of a stage.

    Args:
        bounds: the bounds of the stage.
        guards: the guards of all of its loops.
        buffers: the buffer of each tensor.
        element: returns the indices of an element of a tensor in its buffer.

    Raises:
        UserError: see the module docstring.
    """
    tensorized = bounds.stage.loops.tensorized
    assert tensorized is not None
    axis = tensorized.axis
    intrin = tensorized.intrin
    placement = _IntrinsicPlacement(bounds, tensorized, buffers, element)
    placement.check_loops()
    guards = [placement.outside(guard) for guard in guards]
    blocks = placement.blocks()
    outside = bounds.stage.loops.leaves[: bounds.stage.loops.position(axis)]
    guarded = [guard.axis for guard in guards if guard.axis is not None]
    reduced = [a.name for a in (*outside, *guarded) if a.kind == REDUCTION]
    if intrin.body is not None and not reduced:
        whole = placement.placed(intrin.body, blocks)
        return Replacement(axis, guards, whole, reset=None, update=None)
    if intrin.update is None:
        placement.refuse(
            f"reduction axis {reduced[0]} stands outside, and {intrin} has no update",
            "return (body, reset, update) from its function, "
            "or reorder: the reduction inside",
        )
    reset = None
    if intrin.reset is not None:
        reset = placement.placed(intrin.reset, blocks)
    update = placement.placed(intrin.update, blocks)
    return Replacement(axis, guards, whole=None, reset=reset, update=update)


@dataclass(frozen=True, slots=True)
class _Block:
    """The part of `buffer` that a view stands for (see `MatchedBlock`)."""

    view: BufferView
    buffer: Buffer
    # Dimension of the view -> the dimension of the buffer that it maps to.
    dims: tuple[int, ...]
    # The indices in the buffer of the block's first element.
    origin: tuple[Expr, ...]

    def strides(self) -> list[Expr]:
        """Return the strides of the buffer's dimensions, in elements."""
        strides: list[Expr] = [IntImm(1, I64)]
        for extent in reversed(self.buffer.shape[1:]):
            strides.insert(0, simplify(strides[0] * extent))
        return strides[: len(self.buffer.shape)]

    def view_strides(self) -> list[Expr]:
        """Return the strides of the view's dimensions, in elements."""
        strides = self.strides()
        return [strides[dim] for dim in self.dims]

    def offset(self, facts: Facts) -> Expr:
        """Return the number of elements before the block's first one."""
        total: Expr = IntImm(0, I64)
        for index, stride in zip(self.origin, self.strides(), strict=True):
            total = total + index * stride
        return simplify(total, facts)

    def at(self, indices: Sequence[Expr], facts: Facts) -> tuple[Expr, ...]:
        """Return the place in the buffer of the view's element at `indices`.

        Without indices, the element is the first one.
        """
        moved = list(self.origin)
        for dim, index in zip(self.dims, indices, strict=False):
            moved[dim] = simplify(moved[dim] + index, facts)
        return tuple(moved)

    def is_whole(self, facts: Facts) -> bool:
        """Return True if the block is all of the buffer."""
        shape = self.view.shape
        whole = self.buffer.shape
        if len(shape) != len(whole):
            return False
        for size, extent in zip(shape, whole, strict=True):
            if not is_equal(size, extent, facts):
                return False
        zero = IntImm(0, I64)
        return all(is_equal(zero, index, facts) for index in self.origin)


class _IntrinsicPlacement:
    """Places the statements of one intrinsic on the memory of one stage."""

    def __init__(
        self,
        bounds: StageBounds,
        tensorized: Tensorized,
        buffers: Mapping[Tensor, Buffer],
        element: Element,
    ) -> None:
        self.bounds = bounds
        self.stage = bounds.stage
        self.facts = bounds.facts
        self.tensorized = tensorized
        self.buffers = buffers
        self.element = element

    def refuse(self, why: str, remedy: str) -> NoReturn:
        """Raise UserError: the loops cannot be tensorized."""
        raise UserError(
            f"cannot tensorize axis {self.tensorized.axis.name} "
            f"of stage {self.stage.name}",
            where=place_text(self.stage),
            why=why,
            remedy=remedy,
            at=self.tensorized.snippet(),
            earlier=placement_lines(self.stage),
        )

    def check_loops(self) -> None:
        """Refuse loops that later primitives changed in an unsupported way."""
        if not any(leaf is self.tensorized.axis for leaf in self.stage.loops.leaves):
            self.refuse("it is no longer a loop of this stage", "tensorize last")
        try:
            check_block(self.stage, self.tensorized, True, self.bounds.extents)
        except UserError as error:
            error.at = self.tensorized.snippet()
            raise

    def outside(self, guard: AxisGuard) -> AxisGuard:
        """Return `guard` in terms of the loops outside.

        Refuse a guard that holds for some points of a block but not for all.
        """
        condition = guard.condition
        loops = self.stage.loops
        inside = loops.leaves[loops.position(self.tensorized.axis) :]
        begins = self.bounds.ranges.begins
        first = {self.bounds.variables[leaf]: begins[leaf] for leaf in inside}
        if not set(first).intersection(variables_in(condition)):
            return guard
        moved = simplify(substitute(condition, first), self.facts)
        holds_for_all = prove(condition, self.facts.assume(moved))
        fails_for_all = prove(Not(condition), self.facts.assume(Not(moved)))
        if not (holds_for_all and fails_for_all):
            self.refuse(
                f"the loops inside run only where {condition}, "
                "but an intrinsic computes its whole block",
                "split by factors that divide the extents: constants, or shapes such as "
                "(n * 8,), whose multiple is known",
            )
        return AxisGuard(guard.axis, moved)

    # Blocks.

    def blocks(self) -> dict[Buffer, _Block]:
        """Return the block that each of the intrinsic's buffers stands for."""

        def load(recurse: Rewrite, node: Node) -> Node:
            node = map_children(node, recurse)
            if isinstance(node, TensorRead):
                at = self.element(node.tensor, node.indices)
                return BufferLoad(self.buffers[node.tensor], at)
            return node

        # The origin of a block may depend on an element of a tensor, as in A[indices[i]].
        loaded = rewriter(load)
        places = match_intrin(self.bounds, self.tensorized)
        intrin = self.tensorized.intrin
        blocks: dict[Buffer, _Block] = {}
        for tensor, view in intrin.views.items():
            place = places[tensor]
            buffer = self.buffers[place.tensor]
            origin = self.element(place.tensor, place.origin)
            block = _Block(view, buffer, place.dims, tuple(map(loaded, origin)))
            self._check_memory(block)
            if tensor in intrin.inputs and not is_covered(intrin.op, tensor):
                self._check_inside(block, tensor)
            blocks[view.buffer] = block
        return blocks

    def _check_memory(self, block: _Block) -> None:
        """Refuse a block whose scope, offset or alignment is not as declared."""
        view = block.view
        name = block.buffer.name
        if view.scope not in (GLOBAL, block.buffer.scope):
            self.refuse(
                f"{view.name} is declared in {view.scope} memory, but {name} lies "
                f"in {block.buffer.scope} memory",
                f'copy it: cache_read or cache_write with scope "{view.scope}"',
            )
        offset = block.offset(self.facts)
        factor = view.offset_factor
        if factor > 1 and not self._is_multiple(offset, factor):
            self.refuse(
                f"{view.name} is declared with offset_factor {factor}, "
                f"but its block begins at element {offset} of {name}",
                "split by multiples of the factor, or copy the block first: cache_read",
            )
        declared = view.data_alignment
        actual = block.buffer.alignment or view.dtype.bytes
        start = offset * view.dtype.bytes
        if declared == 0:
            return
        if actual % declared or not self._is_multiple(start, declared):
            self.refuse(
                f"{view.name} is declared with data_alignment {declared}, but its block "
                f"begins {offset} elements into {name}, "
                f"known to be aligned to {actual} bytes",
                "copy the block first (cache_read, cache_write), or declare less",
            )

    def _is_multiple(self, value: Expr, factor: int) -> bool:
        remainder = FloorMod(value, IntImm(factor, I64))
        return prove(EQ(remainder, IntImm(0, I64)), self.facts)

    def _check_inside(self, block: _Block, tensor: Tensor) -> None:
        """Refuse a block that may reach beyond its buffer.

        `match_intrin` covers only elements that the operation reads, and it may not read all.
        """
        for size, dim in zip(block.view.shape, block.dims, strict=True):
            first = block.origin[dim]
            inside = (
                LE(IntImm(0, I64), first),
                LE(first + size, block.buffer.shape[dim]),
            )
            if not all(prove(condition, self.facts) for condition in inside):
                self.refuse(
                    f"the operation of {self.tensorized.intrin} does not read all of "
                    f"{tensor.name}, and its statements may access elements outside of "
                    f"{block.buffer.name}",
                    "declare it with the shape that its operation reads",
                )

    # Statements.

    def placed(self, stmt: Stmt, blocks: Mapping[Buffer, _Block]) -> Stmt:
        """Return a copy of `stmt` that works on the blocks."""

        def visit(recurse: Rewrite, node: Node) -> Node:
            if isinstance(node, CallPacked):
                return self._moved_packed(node, blocks, recurse)
            # Indices may read memory themselves, so the children come first.
            node = map_children(node, recurse)
            if not isinstance(node, _ACCESSES) or node.buffer not in blocks:
                return node
            block = blocks[node.buffer]
            is_base_address = isinstance(node, AddressOf) and not node.indices
            if is_base_address and block.is_whole(self.facts):
                return with_fields(node, buffer=block.buffer, indices=())
            indices = block.at(node.indices, self.facts)
            return with_fields(node, buffer=block.buffer, indices=indices)

        values = self._values(blocks.values())
        self._check_addresses(stmt, blocks)
        # The statements may be placed more than once, so that each copy needs names of its own.
        moved = rewriter(visit)(with_fresh_names(stmt, values))
        origin = Origin(
            self.stage.name,
            axis=self.tensorized.axis.name,
            primitive="tensorize",
            line=self.tensorized.line,
        )
        return with_origin(moved, origin)

    def _values(self, blocks: Iterable[_Block]) -> dict[Var, Expr]:
        """Return the values of the variables that declare strides and offsets.

        Refuse strides and offsets that are not as declared.
        """
        values: dict[Var, Expr] = {}
        declared: list[tuple[BufferView, str, Expr, Expr]] = []
        for block in blocks:
            view = block.view
            if view.strides:
                actual_strides = block.view_strides()
                strides = zip(view.strides, actual_strides, view.shape, strict=True)
                for given, actual, size in strides:
                    if isinstance(given, Var):
                        values.setdefault(given, actual)
                    # A dimension of length 1 has no second element, so its stride is unused.
                    if as_int(size) != 1:
                        declared.append((view, "stride", given, actual))
            given = view.elem_offset
            if as_int(given) != 0:
                actual = block.offset(self.facts)
                declared.append((view, "elem_offset", given, actual))
                if isinstance(given, Var):
                    values.setdefault(given, actual)
        # A variable may occur in several declarations. Its value must be right in all of them.
        for view, what, given, actual in declared:
            if not is_equal(substitute(given, values), actual, self.facts):
                self.refuse(
                    f"{view.name} is declared with {what} {given}, but here it is {actual}",
                    "declare a variable for it, or copy the block first: cache_read",
                )
        return values

    def _check_addresses(self, stmt: Stmt, blocks: Mapping[Buffer, _Block]) -> None:
        """Refuse to pass the address of a block with gaps but without declared strides.

        A callee finds the elements by declared strides, or takes the block for compact.
        """
        taken = {node.buffer for node in walk(stmt) if isinstance(node, AddressOf)}
        for buffer, block in blocks.items():
            if block.view.strides or buffer not in taken:
                continue
            compact: Expr = IntImm(1, I64)
            dims = zip(block.view.shape, block.view_strides(), strict=True)
            for size, actual in reversed(list(dims)):
                if as_int(size) != 1 and not is_equal(compact, actual, self.facts):
                    self.refuse(
                        f"{buffer.name} is passed by address and declared without strides, "
                        f"but in {block.buffer.name} its neighbours lie {actual} elements "
                        f"apart, not {compact}",
                        'declare strides, decl_buffer(..., strides=[var("s"), 1]), '
                        "and pass them on, "
                        "or copy the block first: cache_read, cache_write",
                    )
                compact = simplify(compact * size)

    def _moved_packed(
        self, call: CallPacked, blocks: Mapping[Buffer, _Block], recurse: Rewrite
    ) -> CallPacked:
        """Return `call` on the buffers of the blocks. Refuse blocks that are not whole buffers."""
        args: list[Expr] = []
        for arg in call.args:
            if not isinstance(arg, AddressOf) or arg.buffer not in blocks:
                args.append(recurse(arg))
                continue
            block = blocks[arg.buffer]
            if not block.is_whole(self.facts):
                self.refuse(
                    f"{call.name} is a registered function, which takes whole buffers only, "
                    f"but {block.view.name} is a part of {block.buffer.name}",
                    "copy the block first (cache_read, cache_write, computed at the loop "
                    "outside), or call a C function by call_extern",
                )
            args.append(with_fields(arg, buffer=block.buffer))
        return with_fields(call, args=tuple(args))
