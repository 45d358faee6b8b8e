"""Threads that run in lockstep, with the values of their variables as arrays.

A value has the shape [threads, lanes]. A scalar has one lane, and a value that is the same for all
threads may have a single row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from refcomp.foundation.dtype import to_numpy
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, Var
from refcomp.ir.stmt import Allocate, Block, For, Origin, Stmt
from refcomp.oracle.interpreter.expressions import lanes_of
from refcomp.oracle.interpreter.races import Thread
from refcomp.oracle.interpreter.scalars import Value
from refcomp.oracle.lockstep.elements import Elements
from refcomp.oracle.lockstep.folds import Fold
from refcomp.oracle.lockstep.groups import BailOut, Groups
from refcomp.oracle.tensors.arrays import Array

Meaning = Callable[["Threads", Any], Array]


class Batch(Groups):
    """All threads that run in lockstep at once, with what they share."""

    def __init__(
        self,
        group: Array,
        group_size: int,
        is_kernel: bool,
        expressions: Mapping[type[Expr], Meaning],
        libraries: Sequence[str] = (),
    ) -> None:
        super().__init__(group, group_size)
        self.is_kernel = is_kernel  # False: threads are iterations of host loops
        self.expressions = expressions  # the meaning of each class of expression
        self.libraries = libraries  # searched for C functions before libm and libc
        self.memory: dict[Buffer, Elements] = {}
        self.allocated: dict[Allocate, Elements] = {}  # kept for the next execution
        self.stmt: Stmt = Block(())  # the statement that runs
        self.origins: dict[Var, Origin] = {}  # of loop variables: the loop's origin
        self.constants: dict[Expr, Array] = {}
        self.folds: Mapping[For, Fold] = {}  # loops that may be run as folds


class Threads:
    """Some threads of a batch, which run the same statement, and the variables they bound.

    They are selected from `outer` threads, whose variables they see, too.
    """

    def __init__(
        self,
        batch: Batch,
        ids: Array,
        values: Mapping[Var, Array],
        outer: Threads | None = None,
        selection: Array | None = None,
    ) -> None:
        self.batch = batch
        self.ids = ids  # i64 [n]: numbers within the batch
        self.column = ids[:, None]
        self.values = dict(values)
        self.libraries = batch.libraries
        self.known: dict[int, Array] = {}  # id of a subexpression -> its value
        self._outer = outer
        self._selection = selection  # bool [outer threads], or i64 [n]: rows of `outer`
        self._selected: dict[Var, Array] = {}  # variables of `outer`, for these threads

    def select(self, rows: Array) -> Threads:
        """Return the threads in `rows`, a bool for each thread or row numbers; at least one."""
        return Threads(self.batch, self.ids[rows], {}, self, rows)

    def rows(self, value: Array) -> Array:
        """Return these threads' rows of a value of the outer threads."""
        if len(value) == 1 or self._selection is None:
            return value
        return value[self._selection]

    def value(self, expr: Expr) -> Array:
        """Return the value of `expr`, a part of the expression that is evaluated."""
        known = self.known.get(id(expr))
        if known is None:
            meaning = self.batch.expressions[type(expr)]
            known = meaning(self, expr)
            self.known[id(expr)] = known
        return known

    def value_of(self, var: Var) -> Array:
        """Return the value of `var`. Raises BailOut if it is not bound."""
        found = self.values.get(var)
        if found is None:
            found = self._selected.get(var)
        if found is None:
            if self._outer is None:
                raise BailOut
            found = self._selected[var] = self.rows(self._outer.value_of(var))
        return found

    def bind(self, var: Var, value: Array) -> None:
        """Bind `var`. Raises BailOut if it is already bound."""
        if self.is_bound(var):
            raise BailOut
        self.values[var] = value

    def is_bound(self, var: Var) -> bool:
        """Return True if `var` has a value."""
        if var in self.values:
            return True
        return self._outer is not None and self._outer.is_bound(var)

    def memory_of(self, buffer: Buffer) -> Elements:
        """Return the elements of `buffer`. Raises BailOut if it is not bound."""
        found = self.batch.memory.get(buffer)
        if found is None:
            raise BailOut
        return found

    def thread_of(self, number: int) -> Thread:
        """Return thread `number` as an object of the plain interpreter, where it is now."""
        thread = Thread(str(number), None)
        thread.values = self.bindings(int(np.searchsorted(self.ids, number)))
        thread.origins = self.batch.origins
        thread.stmt = self.batch.stmt
        return thread

    def bindings(self, row: int) -> dict[Var, Value]:
        """Return the variables of the thread in `row`, in the order in which they were bound."""
        values = {var: _plain(var, value, row) for var, value in self.values.items()}
        if self._outer is None or self._selection is None:
            return values
        outer_row = int(np.flatnonzero(self._selection)[row])
        return self._outer.bindings(outer_row) | values


def _plain(var: Var, value: Array, row: int) -> Value:
    """Return one thread's value in the form that the plain interpreter uses."""
    lanes = value[row if len(value) > 1 else 0]
    plain = tuple(lane if var.dtype.is_float else lane.item() for lane in lanes)
    return plain if var.dtype.lanes > 1 else plain[0]


def as_value(var: Var, plain: Value) -> Array:
    """Return a value of the plain interpreter as one row."""
    return np.array([lanes_of(plain)], to_numpy(var.dtype.element))
