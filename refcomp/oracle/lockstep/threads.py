"""Threads that run in step, with the values of their variables as arrays.

A value has a row for each thread, or a single row that holds for all of them, and a column for each
lane of a vector; a scalar has one column.
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
from refcomp.oracle.lockstep.elements import Elements
from refcomp.oracle.lockstep.groups import Doubt, Groups
from refcomp.oracle.tensors.arrays import Array

Meaning = Callable[["Threads", Any], Any]


class Crowd(Groups):
    """The threads of a launch, with all that they share.

    Attributes:
        memory: what the threads see.
        allocated: what they have allocated so far.
        stmt: the statement at hand.
        origins: where the loops come from that bound variables.
        expressions: the meaning of each class of expressions.
        libraries: shared objects in which C functions are sought first.
    """

    def __init__(
        self,
        group: Array,
        group_size: int,
        is_kernel: bool,
        expressions: Mapping[type[Any], Meaning],
        libraries: Sequence[str] = (),
    ) -> None:
        super().__init__(group, group_size)
        self.is_kernel, self.expressions, self.libraries = (
            is_kernel,
            expressions,
            libraries,
        )
        self.memory: dict[Buffer, Elements] = {}
        self.allocated: dict[Allocate, Elements] = {}
        self.stmt: Stmt = Block(())
        self.origins: dict[Var, Origin] = {}
        self.constants: dict[Expr, Array] = {}
        self.folds: dict[For, Any] = {}


class Threads:
    """The threads `ids` of a crowd, which do the same, and the variables that they have bound.

    They are some of the `outer` ones, whose variables they see; `chosen` says which. `known` is
    what of the expression at hand is evaluated.
    """

    def __init__(
        self,
        crowd: Crowd,
        ids: Array,
        values: Mapping[Var, Array],
        outer: Threads | None = None,
        chosen: Array | None = None,
    ) -> None:
        self.crowd, self.ids, self._outer, self._chosen = crowd, ids, outer, chosen
        self.column = ids[:, None]
        self.values, self._seen = dict(values), dict[Var, Array]()
        self.known: dict[int, Array] = {}

    @property
    def libraries(self) -> Sequence[str]:
        """Where C functions are sought first."""
        return self.crowd.libraries

    def narrow(self, chosen: Array) -> Threads:
        """Those in the rows `chosen`, by a truth for each of these or by numbers; at least one."""
        return Threads(self.crowd, self.ids[chosen], {}, self, chosen)

    def rows(self, value: Array) -> Array:
        """These threads' rows of a value of the outer ones."""
        return value if len(value) == 1 or self._chosen is None else value[self._chosen]

    def value(self, expr: Expr) -> Array:
        """The value of `expr`, in which nothing that is `known` is evaluated again."""
        known = self.known.get(id(expr))
        if known is None:
            known = self.known[id(expr)] = self.crowd.expressions[type(expr)](
                self, expr
            )
        return known

    def value_of(self, var: Var) -> Array:
        """The value of `var`. Raises Doubt where it is not bound."""
        found = self.values.get(var)
        if found is None:
            found = self._seen.get(var)
        if found is None:
            if self._outer is None:
                raise Doubt
            found = self._seen[var] = self.rows(self._outer.value_of(var))
        return found

    def bind(self, var: Var, value: Array) -> None:
        """Binds `var`. Raises Doubt where it is bound."""
        if self.is_bound(var):
            raise Doubt
        self.values[var] = value

    def is_bound(self, var: Var) -> bool:
        """Whether `var` has a value."""
        return var in self.values or (
            self._outer is not None and self._outer.is_bound(var)
        )

    def memory_of(self, buffer: Buffer) -> Elements:
        """Where `buffer` lies. Raises Doubt where it is not bound."""
        found = self.crowd.memory.get(buffer)
        if found is None:
            raise Doubt
        return found

    def thread_of(self, number: int) -> Thread:
        """Return the thread of that number as the plain interpreter has it, where it is now."""
        thread = Thread(str(number), None)
        thread.values = self.bindings(int(np.searchsorted(self.ids, number)))
        thread.origins = self.crowd.origins
        thread.stmt = self.crowd.stmt
        return thread

    def bindings(self, row: int) -> dict[Var, Any]:
        """Return the variables of the thread in that row, in the order in which they were bound."""
        values = {var: _plain(var, value, row) for var, value in self.values.items()}
        if self._outer is None or self._chosen is None:
            return values
        return self._outer.bindings(int(np.flatnonzero(self._chosen)[row])) | values


def _plain(var: Var, value: Array, row: int) -> Any:
    lanes = value[row if len(value) > 1 else 0]
    plain = tuple(lane if var.dtype.is_float else lane.item() for lane in lanes)
    return plain if var.dtype.lanes > 1 else plain[0]


def as_value(var: Var, plain: Any) -> Array:
    """A value of the plain interpreter, as one row."""
    return np.array([lanes_of(plain)], to_numpy(var.dtype.element))
