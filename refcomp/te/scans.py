"""scan: tensors computed row by row, each row from the rows before.

    state = placeholder((T, n))
    init = compute((1, n), lambda _, i: X[0, i])
    update = compute((T, n), lambda t, i: state[t - 1, i] + X[t, i])
    S = scan(init, update, state)

Row t of the result is row t of `init` where that has one, else row t of `update`, in which the
placeholder stands for the result so far. Only rows that are computed need their inputs: an update
may read `X[t - 1, i]`, and so may a compute that it reads. Refuses an update that reads a row which
may not be computed yet, or another row of an update than its own. It also refuses other operations
than computes between the state and the update.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import overload

from refcomp.arith import Facts, prove, simplify
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.names import checked_name
from refcomp.foundation.provenance import caller_line
from refcomp.ir.expr import EQ, LT, Expr, IntImm, Sub, Var
from refcomp.ir.rewrite import substitute, variables_in, walk
from refcomp.ir.structure import structurally_equal
from refcomp.te.check_reads import check_reads
from refcomp.te.dependent_ranges import ranged_axes
from refcomp.te.operation import (
    ComputeOp,
    PlaceholderOp,
    ScanOp,
    reachable_operations,
)
from refcomp.te.tag import tag_in_force
from refcomp.te.tensor import OPAQUE, ORDERED, IterVar, Tensor, TensorRead, axis


@overload
def scan(
    init: Tensor,
    update: Tensor,
    state_placeholder: Tensor,
    inputs: Tensor | Sequence[Tensor] | None = ...,
    name: str = ...,
    tag: str = ...,
) -> Tensor: ...
@overload
def scan(
    init: Sequence[Tensor],
    update: Sequence[Tensor],
    state_placeholder: Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor] | None = ...,
    name: str = ...,
    tag: str = ...,
) -> list[Tensor]: ...
def scan(
    init: Tensor | Sequence[Tensor],
    update: Tensor | Sequence[Tensor],
    state_placeholder: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor] | None = None,
    name: str = "scan",
    tag: str = "",
) -> Tensor | list[Tensor]:
    """Return the tensors whose row t is row t of `init`, or else row t of `update`.

    Args:
        init: a tensor with the first rows, or a list of tensors for several states, which are
            computed together.
        update: a tensor with all rows, of the shape of the state, or a list.
        state_placeholder: the placeholder that stands for the result in `update`, or a list.
        inputs: the other tensors that the update reads; optional.
        name: the name of the result.
        tag: a label for schedules; the default is that of the enclosing `tag_scope`.

    Returns:
        A tensor, or a list of tensors if lists are given.

    Raises:
        UserError: an update reads a row of the state that is not proved to be an earlier one, or
            the shapes or dtypes do not match.
        Unsupported: another operation than a compute is between the state and the update.

    Source: TVM, te.scan.

    Example::

        >>> X = rc.placeholder((5, 3), name="X")
        >>> state = rc.placeholder((5, 3), name="state")
        >>> init = rc.compute((1, 3), lambda t, i: X[t, i], name="init")
        >>> update = rc.compute((5, 3), lambda t, i: state[t - 1, i] + X[t, i], name="update")
        >>> S = rc.scan(init, update, state, name="S")
        >>> print(rc.lower(rc.create_schedule(S), [X, S], "prefix_sums"))
        func prefix_sums(X: f32[5, 3], S: f32[5, 3] out) {
          for t in range(1) {
            for i in range(3) {
              S[t, i] = X[0, i]
            }
          }
          for S.idx in range(1, extent=4) {
            for t in range(1) {
              for i in range(3) {
                S[S.idx, i] = S[S.idx - 1, i] + X[S.idx, i]
              }
            }
          }
        }
    """
    checked_name(name, "a tensor")
    inits = _tensors(init, "init", name)
    updates = _tensors(update, "update", name)
    states = _tensors(state_placeholder, "state", name)
    _check_counts(inits, updates, states, name)
    for first, row, state in zip(inits, updates, states, strict=True):
        _check_state(first, row, state, name)
    _check_rows(inits, states, name)
    given = () if inputs is None else _tensors(inputs, "input", name)
    op = ScanOp(
        name,
        caller_line(),
        axis=_axes(name, inits, states),
        init=inits,
        update=updates,
        state=states,
        given=given,
        tag=tag_in_force(tag),
    )
    _check_body(op)
    op.outputs = tuple(Tensor(op, k, t.shape, t.dtype) for k, t in enumerate(states))
    is_list = isinstance(state_placeholder, list | tuple)
    return list(op.outputs) if is_list else op.outputs[0]


def _tensors(given: object, what: str, name: str) -> tuple[Tensor, ...]:
    tensors = tuple(given) if isinstance(given, list | tuple) else (given,)
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise UserError(
                f"the {what} of scan {name} is {tensor!r}, which is not a tensor",
                remedy="pass a tensor, or a list of tensors for several states",
            )
    return tensors


def _check_counts(
    inits: Sequence[Tensor],
    updates: Sequence[Tensor],
    states: Sequence[Tensor],
    name: str,
) -> None:
    counts = (len(inits), len(updates), len(states))
    if len(set(counts)) > 1 or not states:
        raise UserError(
            f"scan {name} has {counts[0]} inits, {counts[1]} updates and {counts[2]} states",
            remedy="give one of each for every state",
        )
    if len(set(states)) < len(states):
        raise UserError(
            f"scan {name} has one state twice", remedy="make a placeholder for each"
        )


def _check_state(init: Tensor, update: Tensor, state: Tensor, name: str) -> None:
    if not isinstance(state.op, PlaceholderOp):
        raise UserError(
            f"the state {state.name} of scan {name} is {state.op.what}",
            why="the state stands for the result, which is not there before",
            remedy="make a placeholder of the result's shape",
            earlier=[state.declaration()],
        )
    if state.ndim < 1:
        raise UserError(
            f"the state {state.name} of scan {name} has no rows: its rank is 0"
        )
    for tensor, shape in (
        (init, init.shape[:1] + state.shape[1:]),
        (update, state.shape),
    ):
        is_same = len(tensor.shape) == len(shape) and all(
            structurally_equal(a, b) for a, b in zip(tensor.shape, shape, strict=True)
        )
        if not is_same or tensor.dtype != state.dtype:
            raise UserError(
                f"{tensor.name} does not fit the state {state.name} of scan {name}",
                where=f"{_form(tensor)}, where {_form(state)} belongs",
                remedy="give init, update and state one dtype, and rows of one shape",
                earlier=[tensor.declaration(), state.declaration()],
            )


def _form(tensor: Tensor) -> str:
    return f"{tensor.dtype}[{', '.join(map(str, tensor.shape))}]"


def _check_rows(inits: Sequence[Tensor], states: Sequence[Tensor], name: str) -> None:
    for tensors in (inits, states):
        rows = tensors[0].shape[0]
        for tensor in tensors[1:]:
            if not structurally_equal(rows, tensor.shape[0]):
                raise UserError(
                    f"scan {name} has {tensors[0].name} of {rows} rows, and {tensor.name} of "
                    f"{tensor.shape[0]}",
                    why="all states are computed row by row together",
                    remedy="give all of them as many rows",
                    earlier=[tensors[0].declaration(), tensor.declaration()],
                )


def _axes(
    name: str, inits: Sequence[Tensor], states: Sequence[Tensor]
) -> tuple[IterVar, ...]:
    """Return the axis of the rows and, for each state, an axis for each dimension of a row."""
    begin = inits[0].shape[0]
    end = states[0].shape[0]
    rows: Expr = Sub(end, begin)
    if isinstance(begin, IntImm) and isinstance(end, IntImm):
        rows = IntImm(max(0, end.value - begin.value), I64)
    axes = [axis(f"{name}.idx", begin, rows, ORDERED)]
    for k, state in enumerate(states):
        for d, extent in enumerate(state.shape[1:], 1):
            axes.append(axis(f"{name}.out{k}.i{d}", 0, extent, OPAQUE))
    return tuple(axes)


def _check_body(op: ScanOp) -> None:
    states = set(op.state)
    for inner in reachable_operations(tensor.op for tensor in op.init):
        if inner in {state.op for state in states}:
            raise UserError(
                f"the init of scan {op.name} depends on the state {inner.name}",
                why="the first rows are there before the others",
            )
    for inner in op.body_operations():
        if not isinstance(inner, ComputeOp):
            raise Unsupported(
                f"{inner.name}, {inner.what}, stands between the state and the update of scan "
                f"{op.name}",
                why="a row is computed by computes alone",
                remedy="compute it before the scan, for all rows",
            )
    for tensor in op.update:
        if isinstance(tensor.op, ComputeOp):
            _check_reads(op, tensor.op, states)
            # Of an update, the scan computes the rows after those of the init.
            rows = replace(
                tensor.op.axis[0],
                minimum=op.scan_axis.minimum,
                extent=op.scan_axis.extent,
            )
            axes = (rows, *tensor.op.axis[1:])
            at = tensor.declaration()
            check_reads(tensor.op.name, axes, tensor.op.body, at=at)


def _check_reads(op: ScanOp, update: ComputeOp, states: set[Tensor]) -> None:
    """Refuse an update that reads later rows of a state, or other rows of an update than its own.

    The check follows the computes between the states and the update.
    """
    row = update.axis[0].var
    computes = [inner for inner in op.body_operations() if isinstance(inner, ComputeOp)]
    body = {tensor: inner for inner in computes for tensor in inner.outputs}
    facts = _ranges(Facts(), update.axis[1:])
    facts = facts.bind(row, op.scan_axis.minimum, op.scan_axis.extent)
    # Computes whose reads are still to be checked, each with the values of its axes. A compute that
    # is read at several places is checked with the index of each.
    left: list[tuple[ComputeOp, dict[Var, Expr]]] = [(update, {})]
    seen: set[tuple[int, ...]] = set()
    while left:
        inner, at = left.pop()
        own = [axis.var for axis in inner.axis]
        facts = _ranges(facts, ranged_axes(inner.reduction), own)
        for node in (node for value in inner.body for node in walk(value)):
            if not isinstance(node, TensorRead):
                continue
            tensor = node.tensor
            indices = [simplify(substitute(index, at), facts) for index in node.indices]
            if tensor in states:
                _check_earlier(op, update, tensor, indices[0], facts)
            elif tensor in op.update:
                _check_own(op, update, tensor, indices[0], facts)
            elif tensor in body:
                key = (
                    id(tensor),
                    # Equal indices intern to the same object.
                    *(id(facts.table.intern(index)) for index in indices),
                )
                if key not in seen:
                    seen.add(key)
                    axes = (axis.var for axis in body[tensor].axis)
                    left.append((body[tensor], dict(zip(axes, indices, strict=True))))


def _ranges(facts: Facts, axes: Sequence[IterVar], outer: Sequence[Var] = ()) -> Facts:
    """Return `facts` with the ranges of `axes`, which may depend on the variables `outer`."""
    known = {*outer, *(inner.var for inner in axes)}
    for inner in axes:
        for symbol in variables_in(inner.extent):
            if symbol not in known:
                facts = facts.nonnegative(symbol)  # as all shape variables are
        facts = facts.bind(inner.var, inner.minimum, inner.extent)
    return facts


def _check_earlier(
    op: ScanOp, update: ComputeOp, state: Tensor, index: Expr, facts: Facts
) -> None:
    row = update.axis[0].var
    before = LT(index, row)
    if not prove(before, facts):
        raise UserError(
            f"the update {update.name} of scan {op.name} reads row {index} of the state "
            f"{state.name} to compute row {row}",
            why=f"only the rows before are there then, and it cannot be shown that {before}",
            remedy=f"read an earlier row: {state.name}[{row} - 1, ...]",
        )


def _check_own(
    op: ScanOp, update: ComputeOp, other: Tensor, index: Expr, facts: Facts
) -> None:
    row = update.axis[0].var
    state = op.state[op.update.index(other)]
    if not prove(EQ(index, row), facts):
        raise UserError(
            f"the update {update.name} of scan {op.name} reads row {index} of the update "
            f"{other.name} to compute row {row}",
            why=f"{other.name} computes row {row} alone then, in the memory of the result",
            remedy=f"read an earlier row of the result: {state.name}[{row} - 1, ...]",
        )
