"""Lowers a hybrid function: its statement, with the marks and pragmas of its stage.

Loops that are bound to threads become the top of a kernel, in the order that kernels need.

Before (schedule):  s[C].bind(j, thread_axis("threadIdx.x")); s[C].vectorize(k)
After:              for j in range(64) threadIdx.x { for k in range(4) vectorized { ... } }

Before (schedule):  s[C].bind(j, thread_axis("threadIdx.x")), with i bound to blockIdx.x inside of j
After:              for i in range(64) blockIdx.x { for j in range(64) threadIdx.x { ... } }

Refuses kernels that no GPU can run: see `refcomp.ir.kernels`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.ir.constants import as_int
from refcomp.ir.expr import IntImm, Var
from refcomp.ir.kernels import NEST_ORDER, kernel_fault
from refcomp.ir.rewrite import (
    buffers_in,
    map_children,
    substitute,
    variables_in,
    with_fields,
)
from refcomp.ir.stmt import THREAD_TAGS, VTHREAD, For, Stmt
from refcomp.lowering.loop_pragmas import with_pragmas
from refcomp.schedule.stage import Stage
from refcomp.schedule.statement_loops import nest_from
from refcomp.te.tensor import IterVar


def scheduled_statement(stage: Stage) -> Stmt:
    """Return the statement of a stage of a hybrid function, as its schedule wants it.

    Raises:
        UserError: the bound loops do not make a kernel.
    """
    statement = stage.loops.statement
    assert statement is not None
    result = _Marking(stage).visit(statement)
    bound = [axis for axis, mark in stage.loops.marks.items() if mark in THREAD_TAGS]
    fault = kernel_fault(result) if bound else None
    if fault is not None:
        _refuse(stage, bound[0], fault[0])
    return result


class _Marking:
    """The marks and pragmas of one stage, and the loops that they belong to."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.axes: Mapping[Var, IterVar] = {
            axis.var: axis for axis in stage.loops.leaves
        }

    def visit(self, stmt: Stmt) -> Stmt:
        """Return `stmt` with all marks and pragmas."""
        nest = nest_from(stmt, self.axes)
        if not nest:
            return map_children(stmt, self.visit, only=Stmt)
        body = self.visit(nest[-1].body)
        is_bound = [self._mark(loop) in THREAD_TAGS for loop in nest]
        if not any(is_bound):
            return self._around(body, nest)
        # Virtual threads belong to the kernel, wherever their loop stands in the nest.
        is_virtual = [self._mark(loop) == VTHREAD for loop in nest]
        start = min(
            is_bound.index(True), *(k for k, v in enumerate(is_virtual) if v), len(nest)
        )
        inside = nest[start:]
        threads = [loop for loop in inside if self._mark(loop) in THREAD_TAGS]
        self._check_threads(threads, inside)
        body = self._around(body, [loop for loop in inside if loop not in threads])
        for loop in threads:
            if as_int(loop.minimum) != 0:
                body = substitute(body, {loop.var: loop.minimum + loop.var})
        for loop in sorted(threads, key=self._depth, reverse=True):
            kind = self._mark(loop)
            body = with_fields(loop, minimum=IntImm(0, I64), kind=kind, body=body)
        return self._around(body, nest[:start])

    def _mark(self, loop: For) -> str:
        return self.stage.loops.marks.get(self.axes[loop.var], loop.kind)

    def _depth(self, loop: For) -> int:
        return [str(tag) for tag in NEST_ORDER].index(str(self._mark(loop)))

    def _around(self, body: Stmt, nest: Sequence[For]) -> Stmt:
        """Return `body` inside the loops of `nest`, with their marks and pragmas."""
        for loop in reversed(nest):
            axis = self.axes[loop.var]
            kind = self._mark(loop)
            if kind == VTHREAD and as_int(loop.minimum) != 0:
                body = substitute(body, {loop.var: loop.minimum + loop.var})
                loop = with_fields(loop, minimum=IntImm(0, I64))
            body = with_fields(loop, kind=kind, body=body)
            body = with_pragmas(self.stage, axis, body, loop.origin)
        return body

    def _check_threads(self, threads: Sequence[For], inside: Sequence[For]) -> None:
        """Refuse numbers of threads that are known only inside of the kernel."""
        variables = {loop.var for loop in inside}
        tags: list[str] = []
        for loop in threads:
            axis = self.axes[loop.var]
            tag = self._mark(loop)
            if tag in tags:
                _refuse(self.stage, axis, f"another loop of the nest is bound to {tag}")
            tags.append(tag)
            for bound in (loop.minimum, loop.extent):
                if buffers_in(bound):
                    _refuse(
                        self.stage, axis, "its number of iterations is read from memory"
                    )
                if not variables.isdisjoint(variables_in(bound)):
                    _refuse(
                        self.stage,
                        axis,
                        "its iterations depend on a loop of the kernel",
                    )


def _refuse(stage: Stage, axis: IterVar, why: str) -> NoReturn:
    call = stage.loops.provenance[axis]
    raise UserError(
        f"the loop {axis.name} of stage {stage.name} cannot be bound to threads",
        where=f"stage {stage.name}",
        why=why,
        remedy="bind loops that are directly nested, outermost first; or write "
        "bind(tag, n) in the hybrid function",
        at=call.snippet(f"axis {axis.name}"),
        earlier=[stage.declaration()],
    )
