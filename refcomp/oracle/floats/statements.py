"""Error bounds of extern operations, whose statements are run on legal values.

No schedule changes these statements: each operation rounds where it stands, in its order. So the
bounds are those of a running error analysis (Higham, section 3.3). A called function gives exact
results for exact arguments. For other arguments, and where a condition, a loop or an index is
undecided, nothing is known of the outputs (error inf).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from refcomp.foundation.errors import Unsupported
from refcomp.ir import stmt as st
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, Var
from refcomp.ir.rewrite import walk
from refcomp.oracle.floats.expressions import Points
from refcomp.oracle.floats.legal_values import Approx, exact, unknown, zeros
from refcomp.oracle.floats.rounding import TRUE, to_dtype
from refcomp.oracle.tensors.arrays import Array
from refcomp.oracle.tensors.evaluate import run_extern, shape_of
from refcomp.te.operation import ExternOp
from refcomp.te.tensor import Tensor


class _Undecided(Exception):
    """Control flow or an index depends on a value that is not known."""


def approximate_extern(
    op: ExternOp, values: Mapping[Var, Array], known: Mapping[Tensor, Approx]
) -> list[Approx]:
    """Return the outputs of `op`, given its inputs in `known`, and `values` of symbols."""
    shapes = {tensor: shape_of(tensor, values) for tensor in op.buffers.values()}
    inputs = {tensor: known[tensor].spread(shapes[tensor]) for tensor in op.inputs}
    calls = any(isinstance(node, st.CALLS) for node in walk(op.body))
    if not calls:
        memory: dict[Buffer, Approx] = {}
        for buffer, tensor in op.buffers.items():
            is_input = tensor in inputs
            start = inputs[tensor] if is_input else zeros(shapes[tensor], tensor.dtype)
            memory[buffer] = start
        try:
            _run(op.body, _State(op.name, memory, values, {}))
        except (_Undecided, Unsupported):
            pass
        else:
            return [memory[buffer] for buffer in op.out_buffers]
    # Run on the floats nearest to the references. Only a call on exact inputs gives exact outputs.
    arrays = {tensor: _nearest(found, tensor) for tensor, found in inputs.items()}
    run_extern(op, values, arrays)
    is_known = calls and all(map(_is_exact, inputs.values()))
    outputs = []
    for tensor in op.outputs:
        output = exact(arrays[tensor], tensor.dtype)
        if not is_known:
            output = unknown(arrays[tensor], TRUE, tensor.dtype)
        outputs.append(output.spread(arrays[tensor].shape))
    return outputs


def _nearest(found: Approx, tensor: Tensor) -> Array:
    if tensor.dtype.is_float:
        return to_dtype(found.value, tensor.dtype)
    return found.value


def _is_exact(found: Approx) -> bool:
    return not np.any(~found.is_exact | found.doubtful | (found.others != 0))


@dataclass(frozen=True, slots=True)
class _State:
    """The memory and the variables that a statement sees."""

    name: str  # of the operation, for messages
    memory: dict[Buffer, Approx]
    values: Mapping[Var, Array]  # of loop variables and sizes, exact
    local: Mapping[Var, Approx]  # of lets

    def value(self, expr: Expr) -> Approx:
        """Return the value of `expr`, an array of one element."""
        points = Points(
            values=self.values,
            tensors=self.memory,
            shape=(1,),
            name=self.name,
            local=self.local,
        )
        return points.spread(expr)

    def integer(self, expr: Expr) -> int:
        """Return the value of a size, an index or a condition. Raises _Undecided."""
        found = self.value(expr)
        if found.error[0] > 0:
            raise _Undecided
        return int(found.value[0])


def _run(stmt: st.Stmt, state: _State) -> None:
    """Run `stmt`. Raises _Undecided if that needs a value that is not known."""
    match stmt:
        case st.For():
            begin = state.integer(stmt.minimum)
            for number in range(begin, begin + state.integer(stmt.extent)):
                bound = {**state.values, stmt.var: np.asarray(number, np.int64)}
                _run(stmt.body, replace(state, values=bound))
        case st.BufferStore():
            place = tuple(map(state.integer, stmt.indices))
            state.memory[stmt.buffer][place] = state.value(stmt.value)[0]
        case st.IfThenElse():
            if state.integer(stmt.condition):
                _run(stmt.then_case, state)
            elif stmt.else_case is not None:
                _run(stmt.else_case, state)
        case st.LetStmt():
            local = {**state.local, stmt.var: state.value(stmt.value)}
            _run(stmt.body, replace(state, local=local))
        case st.Allocate():
            shape = tuple(max(0, state.integer(dim)) for dim in stmt.buffer.shape)
            state.memory[stmt.buffer] = zeros(shape, stmt.buffer.dtype)
            _run(stmt.body, state)
        case st.Block():
            for part in stmt.stmts:
                _run(part, state)
        case st.Pragma():
            _run(stmt.body, state)
        case st.Prefetch():
            pass
        case _:
            raise _Undecided
