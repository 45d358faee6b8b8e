"""Does the statement of an extern operation on values that are known up to an error.

No schedule changes what the user wrote there: each operation rounds as it stands, in its order, so
that the bounds are those of a running error analysis. What a function gives that is called for
values known exactly is what it gives; for others, and where a condition, a loop or an index is
undecided, nothing is known of the outputs (error inf).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from refcomp.foundation.errors import Unsupported
from refcomp.ir import stmt as st
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, Var
from refcomp.ir.rewrite import walk
from refcomp.oracle.floats.expressions import Points
from refcomp.oracle.floats.legal_values import Approx, exact, unknown, zeros
from refcomp.oracle.floats.rounding import to_dtype
from refcomp.oracle.tensors.arrays import Array
from refcomp.oracle.tensors.evaluate import run_extern, shape_of
from refcomp.te.extern import ExternOp
from refcomp.te.tensor import Tensor


class _Undecided(Exception):
    """What is done depends on a value that is not known."""


def approximate_extern(
    op: ExternOp, values: Mapping[Var, Array], known: Mapping[Tensor, Approx]
) -> list[Approx]:
    """The outputs of `op`, of whose inputs that is `known`."""
    inputs = {
        tensor: known[tensor].spread(shape_of(tensor, values)) for tensor in op.inputs
    }
    if not any(isinstance(node, st.CALLS) for node in walk(op.body)):
        memory: dict[Buffer, Approx] = {}
        for buffer, tensor in op.buffers.items():
            is_input = tensor in inputs
            shape = shape_of(tensor, values)
            memory[buffer] = inputs[tensor] if is_input else zeros(shape, tensor.dtype)
        try:
            _StatementRun(op.name, memory).do(op.body, values, {})
            return [memory[buffer] for buffer in op.out_buffers]
        except (_Undecided, Unsupported):
            pass
    return _as_called(op, values, inputs)


def _as_called(
    op: ExternOp, values: Mapping[Var, Array], inputs: Mapping[Tensor, Approx]
) -> list[Approx]:
    """What is there for the values nearest to the reference."""
    arrays = {tensor: _nearest(found, tensor) for tensor, found in inputs.items()}
    run_extern(op, values, arrays)
    calls = any(isinstance(node, st.CALLS) for node in walk(op.body))
    is_known = calls and all(_is_exact(found) for found in inputs.values())
    return [
        exact(arrays[tensor], tensor.dtype).spread(arrays[tensor].shape)
        if is_known
        else unknown(arrays[tensor], np.True_, tensor.dtype).spread(
            arrays[tensor].shape
        )
        for tensor in op.outputs
    ]


def _nearest(found: Approx, tensor: Tensor) -> Array:
    is_float = tensor.dtype.is_float
    nearest: Array = to_dtype(found.value, tensor.dtype) if is_float else found.value
    return nearest


def _is_exact(found: Approx) -> bool:
    return not np.any((found.error > 0) | found.doubtful | (found.others != 0))


_Values = Mapping[Var, Array]
_Local = Mapping[Var, Approx]


class _StatementRun:
    """A statement being done in `memory`: exact `values` of loop variables and sizes, and `local`
    ones of lets."""

    def __init__(self, name: str, memory: dict[Buffer, Approx]) -> None:
        self.name, self.memory = name, memory

    def do(self, stmt: st.Stmt, values: _Values, local: _Local) -> None:
        """Does `stmt`; _Undecided where that is not known, or it is none of those below."""
        handler = _STATEMENTS.get(type(stmt))
        if handler is None:
            raise _Undecided
        handler(self, stmt, values, local)

    def value(self, expr: Expr, values: _Values, local: _Local) -> Approx:
        """The value of `expr`, an array of one element."""
        return (
            Points(values, self.memory, (1,), self.name, local).value(expr).spread((1,))
        )

    def integer(self, expr: Expr, values: _Values, local: _Local) -> int:
        """The value of a size, an index or a condition."""
        found = self.value(expr, values, local)
        if found.error[0] > 0:
            raise _Undecided
        return int(found.value[0])


def _for(run: _StatementRun, loop: st.For, values: _Values, local: _Local) -> None:
    begin, extent = (run.integer(e, values, local) for e in (loop.minimum, loop.extent))
    for step in range(begin, begin + extent):
        run.do(loop.body, {**values, loop.var: np.asarray(step, np.int64)}, local)


def _store(
    run: _StatementRun, store: st.BufferStore, values: _Values, local: _Local
) -> None:
    place = tuple(run.integer(index, values, local) for index in store.indices)
    run.memory[store.buffer][place] = run.value(store.value, values, local)[0]


def _if_then_else(
    run: _StatementRun, branch: st.IfThenElse, values: _Values, local: _Local
) -> None:
    if run.integer(branch.condition, values, local):
        run.do(branch.then_case, values, local)
    elif branch.else_case is not None:
        run.do(branch.else_case, values, local)


def _let(run: _StatementRun, let: st.LetStmt, values: _Values, local: _Local) -> None:
    run.do(let.body, values, {**local, let.var: run.value(let.value, values, local)})


def _allocate(
    run: _StatementRun, allocate: st.Allocate, values: _Values, local: _Local
) -> None:
    buffer = allocate.buffer
    shape = tuple(max(0, run.integer(dim, values, local)) for dim in buffer.shape)
    run.memory[buffer] = zeros(shape, buffer.dtype)
    run.do(allocate.body, values, local)


def _block(run: _StatementRun, block: st.Block, values: _Values, local: _Local) -> None:
    for stmt in block.stmts:
        run.do(stmt, values, local)


def _pragma(
    run: _StatementRun, pragma: st.Pragma, values: _Values, local: _Local
) -> None:
    run.do(pragma.body, values, local)


def _nothing(
    _run: _StatementRun, _stmt: st.Stmt, _values: _Values, _local: _Local
) -> None:
    """What does nothing to values."""


_STATEMENTS: dict[type[Any], Callable[[_StatementRun, Any, _Values, _Local], None]] = {
    st.For: _for,
    st.BufferStore: _store,
    st.IfThenElse: _if_then_else,
    st.LetStmt: _let,
    st.Allocate: _allocate,
    st.Block: _block,
    st.Pragma: _pragma,
    st.Prefetch: _nothing,
}
