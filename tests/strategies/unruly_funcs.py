"""Random functions of the loop IR whose accesses may leave their buffers.

`unruly_funcs()` gives a function of `tests.strategies.funcs` at the nested level and a value for
each of its symbols. Some indices are shifted by a few elements, or replaced by elements of a
buffer of integers; many are left alone, so that functions without a wrong access are drawn, too.

Never made: what `tests.strategies.funcs` never makes, but for reads through an index that is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from refcomp.foundation.dtype import I64
from refcomp.ir.buffer import Buffer, BufferLoad
from refcomp.ir.expr import Add, Expr, IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.promotion import cast
from refcomp.ir.rewrite import map_children, with_fields
from refcomp.ir.stmt import BufferStore
from tests.strategies.funcs import runnable_funcs

_SHIFTS = (0, 0, 0, 0, 0, 0, 1, -1, 3)


@st.composite
def unruly_funcs(draw: Callable[..., Any]) -> tuple[PrimFunc, dict[Var, int]]:
    """Return a function that is legal at the nested level, and the values of its symbols."""
    func, symbols = draw(runnable_funcs("nested"))
    tables = [b for b in func.buffers if b.dtype.is_int and b.shape and b.name not in func.outputs]
    random = draw(st.randoms(use_true_random=False))

    def wild(index: Expr) -> Expr:
        if tables and random.random() < 0.1:
            table: Buffer = random.choice(tables)
            zeros = tuple(IntImm(0, I64) for _ in table.shape)
            return cast(index.dtype, BufferLoad(table, zeros))
        shift = random.choice(_SHIFTS)
        return Add(index, IntImm(shift, index.dtype)) if shift else index

    def visit(node: Any) -> Any:
        node = map_children(node, visit)
        if isinstance(node, BufferLoad | BufferStore) and random.random() < 0.3:
            return with_fields(node, indices=tuple(map(wild, node.indices)))
        return node

    return func.with_body(visit(func.body)), symbols
