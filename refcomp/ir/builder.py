"""ir_builder: writes loop IR statement by statement, in the order of the user's own program.

    ib = refcomp.ir_builder.create()
    a, b = ib.buffer_ptr(A), ib.buffer_ptr(B)
    with ib.for_range(0, n, name="i") as i:
        with ib.if_scope(i < 4):
            b[i] = a[i] + 1.0
    body = ib.get()

Needs views of buffers (`decl_buffer`, or those that `extern` hands out). Ensures statements of the
nested level; loops over thread axes come out as kernels in canonical form. Refuses an `else_scope`
that follows no `if_scope`, and a result that is asked for while a scope is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from refcomp.foundation.dtype import BOOL, I64, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.foundation.names import checked_name
from refcomp.ir.buffer import READ, AddressOf, Buffer
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr, IntImm, Sub, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import NEST_ORDER, is_bound
from refcomp.ir.promotion import as_expr, cast
from refcomp.ir.rewrite import map_children, walk, with_fields
from refcomp.ir.stmt import (
    CALLS,
    PARALLEL,
    SERIAL,
    UNROLLED,
    VECTORIZED,
    Allocate,
    AtomicUpdate,
    BufferStore,
    For,
    IfThenElse,
    LetStmt,
    Origin,
    Pragma,
    Stmt,
    block,
)
from refcomp.ir.view import BufferView, element_indices

_LOOP_KINDS = {
    SERIAL: SERIAL,
    PARALLEL: PARALLEL,
    UNROLLED: UNROLLED,
    VECTORIZED: VECTORIZED,
    "unroll": UNROLLED,
    "vectorize": VECTORIZED,
}
_Wrap = Callable[[Stmt], Stmt]  # what a scope makes of its statements


def create() -> IRBuilder:
    """A builder without statements."""
    return IRBuilder()


class BufferPointer:
    """The memory of a view: `p[i, j]` reads an element, `p[i, j] = x` emits what writes it.

    One index where there are several dimensions is an offset in elements.
    """

    def __init__(self, builder: IRBuilder, view: BufferView) -> None:
        self._builder, self.view = builder, view

    def __getitem__(self, indices: Any) -> Expr:
        return self.view[indices]

    def __setitem__(self, indices: Any, value: Any) -> None:
        buffer = self.view.buffer
        at = element_indices(buffer, indices)
        self._builder.emit(BufferStore(buffer, at, cast(buffer.dtype, value)))

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.view.dtype

    def access_ptr(self, access_mask: Any, offset: Any = 0) -> Any:
        """See `BufferView.access_ptr`."""
        return self.view.access_ptr(access_mask, offset)


@dataclass(slots=True)
class _Scope:
    """Statements in order; `wraps` holds, by the number of statements before it, what stands
    around all that follow. `last_if` is the `if_scope` that an `else_scope` may follow."""

    stmts: list[Stmt] = field(default_factory=list)
    wraps: list[tuple[int, _Wrap]] = field(default_factory=list)
    last_if: int = -1

    def close(self) -> Stmt:
        stmts = list(self.stmts)
        for number, wrap in reversed(self.wraps):
            stmts[number:] = [wrap(block(stmts[number:]))]
        return block(stmts)


class IRBuilder:
    """What is written so far; see the module's docstring.

    `origin` is where the statements come from that are emitted, and the scopes that are opened.
    """

    def __init__(self) -> None:
        self._scopes = [_Scope()]
        self.origin: Origin | None = None

    def emit(self, stmt: Stmt) -> None:
        """Adds a statement."""
        if not isinstance(stmt, Stmt):
            raise UserError(
                f"{stmt!r} is no statement",
                remedy="emit a store, a call, or what get() gave",
            )
        if stmt.origin is None and self.origin is not None:
            stmt = with_fields(stmt, origin=self.origin)
        self._scopes[-1].stmts.append(stmt)

    def get(self) -> Stmt:
        """All statements as one, with the loops over thread axes as kernels."""
        if len(self._scopes) > 1:
            raise UserError(
                "a scope is still open", remedy="call get() after all `with` blocks"
            )
        result: Stmt = _with_kernels(self._scopes[-1].close())
        return result

    def func(self, name: str, args: Sequence[BufferView | Var]) -> PrimFunc:
        """The function `name` of what is written, which takes `args`: views and scalars.

        The buffers that are written are its outputs.
        """
        body = self.get()
        params = tuple(
            arg.buffer if isinstance(arg, BufferView) else arg for arg in args
        )
        written = written_buffers(body)
        outputs = [p.name for p in params if isinstance(p, Buffer) and p in written]
        return PrimFunc(checked_name(name, "a function"), params, body, tuple(outputs))

    # Scopes.

    @contextmanager
    def _scope(self, wrap: _Wrap) -> Iterator[None]:
        self._scopes.append(_Scope())
        origin = self.origin
        try:
            yield
        except BaseException:
            self._scopes.pop()
            raise
        body = self._scopes.pop().close()
        self.origin = origin
        self.emit(wrap(body))

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A scope that does nothing but end: what stands around the rest of it ends with it."""
        with self._scope(lambda body: body):
            yield

    @contextmanager
    def for_range(
        self,
        begin: Any,
        end: Any,
        name: str = "i",
        for_type: str = SERIAL,
        dtype: Any = I64,
    ) -> Iterator[Var]:
        """A loop over begin, ..., end - 1: serial, parallel, unroll or vectorize."""
        kind = _LOOP_KINDS.get(for_type)
        if kind is None:
            raise UserError(
                f"a loop cannot be {for_type!r}",
                remedy=f"use one of {', '.join(_LOOP_KINDS)}",
            )
        var = Var(checked_name(name, "a loop"), as_dtype(dtype))
        minimum = cast(var.dtype, begin)
        extent = cast(var.dtype, end if as_int(minimum) == 0 else as_expr(end) - begin)
        with self._scope(lambda body: For(var, minimum, _folded(extent), kind, body)):
            yield var

    @contextmanager
    def if_scope(self, condition: Any) -> Iterator[None]:
        """Statements that run where `condition` holds."""
        chosen = cast(BOOL, condition)
        with self._scope(lambda body: IfThenElse(chosen, body)):
            yield
        outer = self._scopes[-1]
        outer.last_if = len(outer.stmts) - 1

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """Statements that run where the condition of the `if_scope` right before does not hold."""
        outer = self._scopes[-1]
        if outer.last_if < 0 or outer.last_if != len(outer.stmts) - 1:
            raise UserError(
                "else_scope follows no if_scope",
                remedy="open it right after the if_scope",
            )
        branch = outer.stmts[-1]
        assert isinstance(branch, IfThenElse)
        with self._scope(lambda body: with_fields(branch, else_case=body)):
            yield
        outer.stmts[-2:] = outer.stmts[-1:]
        outer.last_if = -1

    # What stands around all that follows in the scope.

    def _around_the_rest(self, wrap: _Wrap) -> None:
        scope = self._scopes[-1]
        scope.wraps.append((len(scope.stmts), wrap))
        scope.last_if = -1

    def allocate(
        self, dtype: Any, shape: Any, name: str = "buf", scope: str = "global"
    ) -> BufferPointer:
        """Memory for the rest of the scope, of `shape` (one int or expression, or several)."""
        dims = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
        extents = tuple(cast(I64, dim) for dim in dims)
        buffer = Buffer(
            checked_name(name, "a buffer"), as_dtype(dtype), extents, scope or "global"
        )
        self._around_the_rest(lambda body: Allocate(buffer, body))
        return BufferPointer(self, BufferView(buffer))

    def let(self, name: str, value: Any) -> Var:
        """A variable that holds `value`, evaluated here, for the rest of the scope."""
        held = as_expr(value)
        var = Var(checked_name(name, "a variable"), held.dtype)
        self._around_the_rest(lambda body: LetStmt(var, held, body))
        return var

    def scope_attr(self, node: Any, attr_key: str, value: Any) -> None:
        """What holds for the rest of the scope: of a thread axis its `thread_extent`; a wish of
        some pass (`pragma_NAME`), with `node` for the record only."""
        tag = getattr(node, "thread_tag", None)
        if attr_key == "thread_extent" and tag:
            extent = cast(I64, value)
            zero = IntImm(0, I64)
            self._around_the_rest(lambda body: For(node.var, zero, extent, tag, body))
        elif attr_key.startswith("pragma_"):
            wish = attr_key.removeprefix("pragma_")
            held = as_expr(value)
            self._around_the_rest(lambda body: Pragma(wish, held, body))
        else:
            raise UserError(
                f"there is no attribute {attr_key!r} of {node!r}",
                remedy='scope_attr(thread_axis("threadIdx.x"), "thread_extent", 64), or pragma_...',
            )

    def buffer_ptr(self, view: BufferView) -> BufferPointer:
        """What reads and writes the memory of a view."""
        if not isinstance(view, BufferView):
            raise UserError(
                f"{view!r} is no buffer",
                remedy="declare one: decl_buffer(shape, dtype)",
            )
        return BufferPointer(self, view)


def written_buffers(body: Stmt) -> set[Buffer]:
    """The buffers that `body` may write."""
    written: set[Buffer] = set()
    for item in walk(body):
        if isinstance(item, BufferStore | AtomicUpdate):
            written.add(item.buffer)
        elif isinstance(item, CALLS):
            places = (arg for arg in item.args if isinstance(arg, AddressOf))
            written.update(place.buffer for place in places if place.access != READ)
    return written


def _folded(extent: Expr) -> Expr:
    """The difference of two constants as one."""
    match extent:
        case Sub(a=IntImm(value=end), b=IntImm(value=begin)):
            return IntImm(end - begin, extent.dtype)
    return extent


def _with_kernels(stmt: Stmt) -> Stmt:
    """`stmt` with the bound loops of each nest in canonical order."""
    if not is_bound(stmt):
        return map_children(stmt, _with_kernels, only=Stmt)
    loops, body = [], stmt
    while isinstance(body, For) and is_bound(body):
        loops.append(body)
        body = body.body
    body = _with_kernels(body)
    for loop in sorted(
        loops, key=lambda loop: NEST_ORDER.index(loop.kind), reverse=True
    ):
        body = with_fields(loop, body=body)
    return body
