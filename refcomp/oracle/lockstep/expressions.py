"""The value of each expression for threads in lockstep.

The counterpart of `refcomp.oracle.interpreter.expressions`, by numpy. Values are arrays
[threads, lanes], as in `refcomp.oracle.lockstep.threads`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from refcomp.foundation.dtype import to_numpy
from refcomp.ir import expr as ir
from refcomp.ir.buffer import BufferLoad, Load
from refcomp.ir.expr import Expr, Var
from refcomp.oracle.interpreter.scalars import make_scalar
from refcomp.oracle.lockstep.threads import Threads
from refcomp.oracle.tensors.arrays import Array
from refcomp.oracle.tensors.elementwise import ELEMENTWISE


def evaluate(threads: Threads, expr: Expr) -> Array:
    """Return the value of `expr`, in which what occurs several times is evaluated once."""
    threads.known = {}
    return threads.value(expr)


def _immediate(threads: Threads, imm: ir.IntImm | ir.FloatImm) -> Array:
    constants = threads.batch.constants
    if imm not in constants:
        value = make_scalar(imm.value, imm.dtype)
        constants[imm] = np.array([[value]], to_numpy(imm.dtype))
    return constants[imm]


def _if_then_else(threads: Threads, expr: ir.IfThenElseExpr) -> Array:
    condition = threads.value(expr.condition)
    if condition.all():
        return threads.value(expr.true_value)
    if not condition.any():
        return threads.value(expr.false_value)
    chosen = condition[:, 0]
    result = np.empty((len(chosen), expr.dtype.lanes), to_numpy(expr.dtype.element))
    some = threads.select(chosen)
    others = threads.select(~chosen)
    result[chosen] = some.value(expr.true_value)
    result[~chosen] = others.value(expr.false_value)
    return result


def _ramp(threads: Threads, ramp: ir.Ramp) -> Array:
    base = threads.value(ramp.base)
    stride = threads.value(ramp.stride)
    return np.asarray(base + stride * np.arange(ramp.lanes, dtype=base.dtype))


def _broadcast(threads: Threads, broadcast: ir.Broadcast) -> Array:
    value = threads.value(broadcast.value)
    return np.broadcast_to(value, (len(value), broadcast.lanes))


def _let(threads: Threads, let: ir.Let) -> Array:
    value = threads.value(let.value)
    # A part of the body that also occurs outside may have another value there.
    outside = threads.known
    threads.known = {}
    threads.bind(let.var, value)
    result = threads.value(let.body)
    del threads.values[let.var]
    threads.known = outside
    return result


def _buffer_load(threads: Threads, load: BufferLoad) -> Array:
    elements = threads.memory_of(load.buffer)
    offset = elements.offset([threads.value(index) for index in load.indices])
    return elements.read(offset, threads.column)


def _load(threads: Threads, load: Load) -> Array:
    elements = threads.memory_of(load.buffer)
    index = threads.value(load.index)
    if load.predicate is None:
        offset = elements.offset([index], by_dimension=False)
        return elements.read(offset, threads.column)
    wanted = threads.value(load.predicate)
    index, wanted, ids = np.broadcast_arrays(index, wanted, threads.column)
    offset = elements.offset([index[wanted]], by_dimension=False)
    result = np.zeros(index.shape, to_numpy(load.buffer.dtype))
    result[wanted] = elements.read(offset, ids[wanted])
    return result


EXPRESSIONS: dict[type[Expr], Callable[[Threads, Any], Array]] = {
    **ELEMENTWISE,
    Var: Threads.value_of,
    ir.IntImm: _immediate,
    ir.FloatImm: _immediate,
    ir.IfThenElseExpr: _if_then_else,
    ir.Ramp: _ramp,
    ir.Broadcast: _broadcast,
    ir.Let: _let,
    BufferLoad: _buffer_load,
    Load: _load,
}
