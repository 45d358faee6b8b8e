"""ir_builder: a builder of loop IR that follows the order of the user's own statements.

    ib = refcomp.ir_builder.create()
    a, b = ib.buffer_ptr(A), ib.buffer_ptr(B)
    with ib.for_range(0, n, name="i") as i:
        with ib.if_scope(i < 4):
            b[i] = a[i] + 1.0
    body = ib.get()

Requires views of buffers, from `decl_buffer` or as arguments of the function given to `extern`.
Ensures statements of the nested level, and kernels in canonical form.
Refuses an `else_scope` that does not follow an `if_scope`, and `get` while a scope is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from refcomp.foundation.dtype import BOOL, I64, DType, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.foundation.names import checked_name
from refcomp.ir.buffer import READ, AddressOf, Buffer
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr, IntImm, Sub, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import NEST_ORDER, is_bound, kernel_nest
from refcomp.ir.promotion import as_expr, cast
from refcomp.ir.rewrite import map_children, walk, with_fields
from refcomp.ir.stmt import (
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
_Wrap = Callable[[Stmt], Stmt]  # puts a statement around those of a scope


def create() -> IRBuilder:
    """Return a builder without statements."""
    return IRBuilder()


class BufferPointer:
    """The memory of a view: `p[i, j]` reads an element, `p[i, j] = x` emits a store.

    A single index of a buffer with several dimensions is an offset in elements.
    """

    def __init__(self, builder: IRBuilder, view: BufferView) -> None:
        self._builder = builder
        self.view = view

    def __getitem__(self, indices: object) -> Expr:
        return self.view[indices]

    def __setitem__(self, indices: object, value: object) -> None:
        buffer = self.view.buffer
        place = element_indices(buffer, indices)
        self._builder.emit(BufferStore(buffer, place, cast(buffer.dtype, value)))

    @property
    def dtype(self) -> DType:
        """Return the dtype of the elements."""
        return self.view.dtype

    def access_ptr(self, access_mask: object, offset: object = 0) -> AddressOf:
        """Return the address of an element (see `BufferView.access_ptr`)."""
        return self.view.access_ptr(access_mask, offset)


@dataclass(slots=True)
class _Scope:
    """An open scope."""

    stmts: list[Stmt] = field(default_factory=list)
    # A statement around the rest of the scope, such as an allocation, with the number of statements
    # before it.
    wraps: list[tuple[int, _Wrap]] = field(default_factory=list)
    last_if: int = -1  # index of the IfThenElse that an else_scope may follow; -1: none

    def close(self) -> Stmt:
        """Return the statements as one."""
        stmts = list(self.stmts)
        # The last one first: it lies inside of the others.
        for number, wrap in reversed(self.wraps):
            stmts[number:] = [wrap(block(stmts[number:]))]
        return block(stmts)


class IRBuilder:
    """The statements written so far, and the open scopes (see the module docstring)."""

    def __init__(self) -> None:
        self._scopes = [_Scope()]
        self.origin: Origin | None = (
            None  # of the statements that are emitted from now on
        )

    def emit(self, stmt: Stmt) -> None:
        """Add a statement."""
        if not isinstance(stmt, Stmt):
            raise UserError(
                f"{stmt!r} is not a statement",
                remedy="emit a store, a call, or the result of get()",
            )
        if stmt.origin is None and self.origin is not None:
            stmt = with_fields(stmt, origin=self.origin)
        self._scopes[-1].stmts.append(stmt)

    def get(self) -> Stmt:
        """Return all statements as one, with kernels in canonical form."""
        if len(self._scopes) > 1:
            raise UserError(
                "a scope is still open", remedy="call get() after all `with` blocks"
            )
        return _with_kernels(self._scopes[-1].close())

    def func(self, name: str, args: Sequence[BufferView | Var]) -> PrimFunc:
        """Return the function that runs all statements. Its outputs are the written buffers."""
        body = self.get()
        written = written_buffers(body)
        params: list[Buffer | Var] = []
        outputs: list[str] = []
        for arg in args:
            param = arg.buffer if isinstance(arg, BufferView) else arg
            params.append(param)
            if isinstance(param, Buffer) and param in written:
                outputs.append(param.name)
        return PrimFunc(
            name=checked_name(name, "a function"),
            params=tuple(params),
            body=body,
            outputs=tuple(outputs),
        )

    # Scopes.

    @contextmanager
    def _scope(self, wrap: _Wrap) -> Iterator[None]:
        """Open a scope; when it ends, emit `wrap` around its statements."""
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
        """Open a plain scope. Allocations and variables in it end with it."""
        with self._scope(lambda body: body):
            yield

    @contextmanager
    def for_range(
        self,
        begin: object,
        end: object,
        name: str = "i",
        for_type: str = SERIAL,
        dtype: object = I64,
    ) -> Iterator[Var]:
        """Open a loop over begin, ..., end - 1: serial, parallel, unroll or vectorize."""
        kind = _LOOP_KINDS.get(for_type)
        if kind is None:
            raise UserError(
                f"a loop cannot be {for_type!r}",
                remedy=f"use one of {', '.join(_LOOP_KINDS)}",
            )
        var = Var(checked_name(name, "a loop"), as_dtype(dtype))
        minimum = cast(var.dtype, begin)
        # Converted first: a difference of i32 could wrap, and constants would not fold.
        extent = cast(var.dtype, end)
        if as_int(minimum) != 0:
            extent = extent - minimum
        match extent:
            case Sub(a=IntImm(value=last), b=IntImm(value=first)):
                extent = IntImm(last - first, extent.dtype)
        with self._scope(lambda body: For(var, minimum, extent, kind, body)):
            yield var

    @contextmanager
    def if_scope(self, condition: object) -> Iterator[None]:
        """Open a scope that runs if `condition` holds."""
        chosen = cast(BOOL, condition)
        with self._scope(lambda body: IfThenElse(chosen, body)):
            yield
        outer = self._scopes[-1]
        outer.last_if = len(outer.stmts) - 1

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """Open a scope that runs if the condition of the preceding `if_scope` does not hold."""
        outer = self._scopes[-1]
        if outer.last_if < 0 or outer.last_if != len(outer.stmts) - 1:
            raise UserError(
                "else_scope does not follow an if_scope",
                remedy="open it right after the if_scope",
            )
        branch = outer.stmts[-1]
        assert isinstance(branch, IfThenElse)
        with self._scope(lambda body: with_fields(branch, else_case=body)):
            yield
        # The statement with both branches replaces the one without the second.
        del outer.stmts[-2]
        outer.last_if = -1

    # Statements around the rest of the scope.

    def _around_the_rest(self, wrap: _Wrap) -> None:
        scope = self._scopes[-1]
        scope.wraps.append((len(scope.stmts), wrap))
        scope.last_if = -1

    def allocate(
        self, dtype: object, shape: object, name: str = "buf", scope: str = "global"
    ) -> BufferPointer:
        """Allocate memory for the rest of the scope.

        `shape` is an int or an expression, or a tuple or list of several.
        """
        dims = shape if isinstance(shape, tuple | list) else (shape,)
        buffer = Buffer(
            name=checked_name(name, "a buffer"),
            dtype=as_dtype(dtype),
            shape=tuple(cast(I64, dim) for dim in dims),
            scope=scope or "global",
        )
        self._around_the_rest(lambda body: Allocate(buffer, body))
        return BufferPointer(self, BufferView(buffer))

    def let(self, name: str, value: object) -> Var:
        """Return a variable that holds `value`, evaluated here, for the rest of the scope."""
        held = as_expr(value)
        var = Var(checked_name(name, "a variable"), held.dtype)
        self._around_the_rest(lambda body: LetStmt(var, held, body))
        return var

    def scope_attr(self, node: object, attr_key: str, value: object) -> None:
        """Set an attribute of the rest of the scope.

        Args:
            node: a thread axis for `thread_extent`; not used for pragmas.
            attr_key: `thread_extent`, which binds the axis to threads or groups, or `pragma_NAME`.
            value: the number of threads or groups, or the value of the pragma.
        """
        tag = getattr(node, "thread_tag", None)
        var = getattr(node, "var", None)
        if attr_key == "thread_extent" and tag and isinstance(var, Var):
            extent = cast(I64, value)
            zero = IntImm(0, I64)
            self._around_the_rest(lambda body: For(var, zero, extent, tag, body))
        elif attr_key.startswith("pragma_"):
            key = attr_key.removeprefix("pragma_")
            held = as_expr(value)
            self._around_the_rest(lambda body: Pragma(key, held, body))
        else:
            raise UserError(
                f"{attr_key!r} is not an attribute of {node!r}",
                remedy='scope_attr(thread_axis("threadIdx.x"), "thread_extent", 64), or pragma_...',
            )

    def buffer_ptr(self, view: BufferView) -> BufferPointer:
        """Return an object that reads and writes the memory of a view."""
        if not isinstance(view, BufferView):
            raise UserError(
                f"{view!r} is not a buffer",
                remedy="declare one: decl_buffer(shape, dtype)",
            )
        return BufferPointer(self, view)


def written_buffers(body: Stmt) -> set[Buffer]:
    """Return the buffers that `body` may write."""
    written: set[Buffer] = set()
    for item in walk(body):
        if isinstance(item, BufferStore | AtomicUpdate):
            written.add(item.buffer)
        # Below a call, an address says whether the callee writes.
        if isinstance(item, AddressOf) and item.access != READ:
            written.add(item.buffer)
    return written


def _with_kernels(stmt: Stmt) -> Stmt:
    """Return `stmt` with the bound loops of each nest in canonical order."""
    if not isinstance(stmt, For) or not is_bound(stmt):
        return map_children(stmt, _with_kernels, only=Stmt)
    nest = kernel_nest(stmt)
    body = _with_kernels(nest.body)
    innermost_first = sorted(
        nest.loops, key=lambda loop: NEST_ORDER.index(loop.kind), reverse=True
    )
    for loop in innermost_first:
        body = with_fields(loop, body=body)
    return body
