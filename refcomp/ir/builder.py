"""ir_builder: a builder of loop IR that follows the order of the user's own statements.

Requires views of buffers, from `decl_buffer` or as arguments of the function given to `extern`.
Ensures statements of the nested level, and kernels in canonical form. Refuses an `else_scope` that
does not follow an `if_scope`, and `get` while a scope is open.

Example::

    >>> A, B = rc.decl_buffer((8,), name="A"), rc.decl_buffer((8,), name="B")
    >>> ib = rc.ir_builder.create()
    >>> a, b = ib.buffer_ptr(A), ib.buffer_ptr(B)
    >>> with ib.for_range(0, 8, name="i") as i:
    ...     with ib.if_scope(i < 4):
    ...         b[i] = a[i] + 1.0
    ...     with ib.else_scope():
    ...         b[i] = 0.0
    >>> print(ib.func("first_half", [A, B]))
    func first_half(A: f32[8], B: f32[8] out) {
      for i in range(8) {
        if (i < 4) {
          B[i] = A[i] + 1.0f32
        } else {
          B[i] = 0.0f32
        }
      }
    }
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from refcomp.foundation.dtype import BOOL, I64, DType, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.foundation.names import checked_name
from refcomp.foundation.near_misses import advise
from refcomp.ir.buffer import GLOBAL, READ, AddressOf, Buffer, memory_scope
from refcomp.ir.builder_scopes import OpenScope, Wrap, with_kernels
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr, IntImm, Sub, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernel_memory import memory_in_kernels
from refcomp.ir.lanes import expand_lanes
from refcomp.ir.outside_calls import as_statement
from refcomp.ir.promotion import as_expr, cast
from refcomp.ir.rewrite import walk, with_fields
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
    LoopKind,
    Origin,
    Pragma,
    Stmt,
)
from refcomp.ir.view import Addressable, BufferView, element_indices

# The primitives' words for two kinds are allowed, too, as in the classic API.
_LOOP_KINDS: dict[str, LoopKind] = {
    SERIAL: SERIAL,
    PARALLEL: PARALLEL,
    UNROLLED: UNROLLED,
    VECTORIZED: VECTORIZED,
    "unroll": UNROLLED,
    "vectorize": VECTORIZED,
}


def create() -> IRBuilder:
    """Return a builder without statements.

    Source: TVM, tvm.ir_builder.create.

    Example::

        >>> ib = rc.ir_builder.create()
        >>> ib.emit(rc.call_packed("f", 1))
        >>> print(ib.get())
        packed f(1i32)
    """
    return IRBuilder()


class BufferPointer(Addressable):
    """The memory of a view, which a builder reads and writes; `IRBuilder.buffer_ptr` returns it.

    `p[i, j]` is the element at these indices, and `p[i, j] = x` emits a store, which converts x to
    the dtype. A single index of several dimensions counts elements from the first one.

    Args:
        builder: the builder that emits the stores.
        view: the view of the buffer.

    Example::

        >>> ib = rc.ir_builder.create()
        >>> p = ib.buffer_ptr(rc.decl_buffer((2, 4), "float16", name="A"))
        >>> p[1, 2] = p[5] + 1
        >>> str(p.dtype), p.access_ptr("r")
        ('f16', read(A))
        >>> print(ib.get())
        A[1, 2] = A[5 // 4, 5 % 4] + 1.0f16
    """

    def __init__(self, builder: IRBuilder, view: BufferView) -> None:
        self._builder = builder
        self.view = view
        self.buffer = view.buffer

    def __getitem__(self, indices: object) -> Expr:
        return self.view[indices]

    def __setitem__(self, indices: object, value: object) -> None:
        buffer = self.buffer
        place = element_indices(buffer, indices)
        self._builder.emit(BufferStore(buffer, place, cast(buffer.dtype, value)))

    @property
    def dtype(self) -> DType:
        """Return the dtype of the elements."""
        return self.view.dtype


class IRBuilder:
    """The statements that were emitted so far, and the scopes that are open; `create` returns one.

    Attribute `origin` is where the next statements and scopes come from, for messages.

    Example::

        >>> A, B = rc.decl_buffer((8,), name="A"), rc.decl_buffer((8,), name="B")
        >>> ib = rc.ir_builder.create()
        >>> a, b = ib.buffer_ptr(A), ib.buffer_ptr(B)
        >>> with ib.for_range(0, 8, name="i") as i:
        ...     half = ib.let("half", a[i] * 0.5)
        ...     with ib.if_scope(half < 4.0):
        ...         b[i] = half
        ...     with ib.else_scope():
        ...         b[i] = 4.0
        >>> print(ib.get())
        for i in range(8) {
          let half: f32 = A[i] * 0.5f32 {
            if (half < 4.0f32) {
              B[i] = half
            } else {
              B[i] = 4.0f32
            }
          }
        }
    """

    def __init__(self) -> None:
        self._scopes = [OpenScope()]
        # Of the statements that are emitted from now on.
        self.origin: Origin | None = None

    def emit(self, stmt: object) -> None:
        """Add a statement.

        Args:
            stmt: a statement: a store, a call, or what `get` returned.

        Raises:
            UserError: it is not a statement.

        Example::

            >>> ib = rc.ir_builder.create()
            >>> ib.emit(rc.call_packed("f", 1))
            >>> ib.emit(rc.call_packed("g", 2))
            >>> print(ib.get())
            block {
              packed f(1i32)
              packed g(2i32)
            }
        """
        stmt = as_statement(stmt)
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
        return with_kernels(self._scopes[-1].close())

    def func(
        self, name: str, args: Sequence[BufferView | BufferPointer | Var]
    ) -> PrimFunc:
        """Return the statements as a function. The buffers that they write are its outputs.

        Args:
            name: the name of the function.
            args: the parameters: views, the results of `pointer`, and scalar variables.

        Raises:
            UserError: a scope is open, or the name is not a text.

        Example::

            >>> n, B = rc.var("n"), rc.decl_buffer((8,), "int64", name="B")
            >>> ib = rc.ir_builder.create()
            >>> ib.buffer_ptr(B)[0] = n
            >>> print(ib.func("store", [B, n]))
            func store(B: i64[8] out, n: i64) {
              B[0] = n
            }
        """
        body = memory_in_kernels(self.get())
        written = written_buffers(body)
        params: list[Buffer | Var] = []
        outputs: list[str] = []
        for arg in args:
            view = arg.view if isinstance(arg, BufferPointer) else arg
            param = view.buffer if isinstance(view, BufferView) else view
            params.append(param)
            if isinstance(param, Buffer) and param in written:
                outputs.append(param.name)
        func = PrimFunc(
            name=checked_name(name, "a function"),
            params=tuple(params),
            body=body,
            outputs=tuple(outputs),
        )
        return expand_lanes(func)

    # Scopes.

    @contextmanager
    def _scope(self, wrap: Wrap) -> Iterator[None]:
        """Open a scope; when it ends, emit `wrap` around its statements."""
        self._scopes.append(OpenScope())
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
        """Open a scope. What is allocated or declared inside ends with it.

        Example::

            >>> ib = rc.ir_builder.create()
            >>> with ib.scope():
            ...     two = ib.let("two", 2)
            ...     ib.emit(rc.call_packed("f", two))
            >>> ib.emit(rc.call_packed("g"))
            >>> print(ib.get())
            block {
              let two: i32 = 2i32 {
                packed f(two)
              }
              packed g()
            }
        """
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
        """Open a loop over begin, ..., end - 1. The `with` statement gives its variable.

        Args:
            begin: the first value, an int or an integer expression.
            end: the value behind the last one.
            name: the name of the variable.
            for_type: `"serial"`, `"parallel"`, `"unroll"` or `"vectorize"`.
            dtype: the dtype of the variable, int64 or int32.

        Raises:
            UserError: `for_type` is another text, or the name is not a text.

        Source: TVM, IRBuilder.for_range.

        Example::

            >>> ib = rc.ir_builder.create()
            >>> with ib.for_range(2, 8, name="i", for_type="parallel") as i:
            ...     ib.emit(rc.call_packed("f", i))
            >>> print(ib.get())
            for i in range(2, extent=6) parallel {
              packed f(i)
            }
        """
        kind = _LOOP_KINDS.get(for_type)
        if kind is None:
            known = ", ".join(_LOOP_KINDS)
            raise UserError(
                f"a loop cannot be {for_type!r}",
                remedy=advise(for_type, _LOOP_KINDS, f"use one of {known}"),
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
        """Open a scope that runs if a condition holds.

        Args:
            condition: a bool expression. A number is compared with 0.
        """
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

    def _around_the_rest(self, wrap: Wrap) -> None:
        scope = self._scopes[-1]
        scope.wraps.append((len(scope.stmts), wrap))
        scope.last_if = -1

    def allocate(
        self, dtype: object, shape: object, name: str = "buf", scope: str = GLOBAL
    ) -> BufferPointer:
        """Allocate memory for the rest of the scope, and return its `BufferPointer`.

        Args:
            dtype: the dtype of the elements: a number, a bool, or a vector such as `float32x4`.
            shape: the extents: an int or an expression, or several.
            name: the name of the buffer.
            scope: `"global"`, `"shared"`, `"warp"` (which is shared memory) or `"local"`.

        Source: TVM, IRBuilder.allocate.

        Example::

            >>> B = rc.decl_buffer((1,), name="B")
            >>> ib = rc.ir_builder.create()
            >>> b = ib.buffer_ptr(B)
            >>> t = ib.allocate("float32", 4, name="t", scope="local")
            >>> t[0] = 1.0
            >>> b[0] = t[0]
            >>> print(ib.get())
            alloc t: f32[4] local {
              t[0] = 1.0f32
              B[0] = t[0]
            }
        """
        dims = shape if isinstance(shape, tuple | list) else (shape,)
        buffer = Buffer(
            name=checked_name(name, "a buffer"),
            dtype=as_dtype(dtype),
            shape=tuple(cast(I64, dim) for dim in dims),
            scope=memory_scope(scope or GLOBAL),
        )
        self._around_the_rest(lambda body: Allocate(buffer, body))
        return BufferPointer(self, BufferView(buffer))

    def let(self, name: str, value: object) -> Var:
        """Return a variable for the rest of the scope. Its value is evaluated once, here.

        Args:
            name: the name of the variable.
            value: an expression or a number.
        """
        held = as_expr(value)
        var = Var(checked_name(name, "a variable"), held.dtype)
        self._around_the_rest(lambda body: LetStmt(var, held, body))
        return var

    def scope_attr(self, node: object, attr_key: str, value: object) -> None:
        """Set an attribute for the rest of the scope: the extent of a thread axis, or a pragma.

        Args:
            node: the thread axis. For a pragma it is not used.
            attr_key: `"thread_extent"`, or `"pragma_"` and the name of a pragma.
            value: the number of threads, or the pragma's value.

        Raises:
            UserError: the attribute is unknown, or `node` is not a thread axis.

        Source: TVM, IRBuilder.scope_attr.

        Example::

            >>> B = rc.decl_buffer((64,), "int32", name="B")
            >>> ib = rc.ir_builder.create()
            >>> b, thread = ib.buffer_ptr(B), rc.thread_axis("threadIdx.x")
            >>> ib.scope_attr(thread, "thread_extent", 64)
            >>> b[thread] = 1
            >>> print(ib.get())
            for threadIdx.x in range(64) threadIdx.x {
              B[threadIdx.x] = 1i32
            }
        """
        tag = getattr(node, "thread_tag", None)
        var = getattr(node, "var", None)
        if attr_key == "thread_extent" and tag and isinstance(var, Var):
            extent = cast(I64, value)
            zero = IntImm(0, I64)
            kind = LoopKind.parse(tag, "kind of loop")
            self._around_the_rest(lambda body: For(var, zero, extent, kind, body))
        elif attr_key.startswith("pragma_"):
            key = attr_key.removeprefix("pragma_")
            held = as_expr(value)
            self._around_the_rest(lambda body: Pragma(key, held, body))
        else:
            raise UserError(
                f"{attr_key!r} is not an attribute of {node!r}",
                remedy='scope_attr(thread_axis("threadIdx.x"), "thread_extent", 64), or pragma_...',
            )

    def pointer(
        self, content_type: object, name: str = "ptr", scope: str = GLOBAL
    ) -> BufferPointer:
        """Return the `BufferPointer` of an argument of one dimension, as long as what is passed.

        `func` takes it as an argument. Its extent is a symbol, `NAME.size`. A builder proves no
        index within it: with `build_options(check_bounds=True)`, each access is checked.

        Args:
            content_type: the dtype of the elements.
            name: the name of the argument.
            scope: `"global"`, where arguments lie.

        Raises:
            UserError: the scope is another one.

        Source: TVM, IRBuilder.pointer.

        Example::

            >>> ib = rc.ir_builder.create()
            >>> n, a = rc.var("n"), ib.pointer("float32", name="A")
            >>> with ib.for_range(0, n, name="i") as i:
            ...     a[i] = a[i] * 2.0
            >>> print(ib.func("double", [a, n]))
            func double(A: f32[A.size] out, n: i64) {
              for i in range(n) {
                A[i] = A[i] * 2.0f32
              }
            }
        """
        label = checked_name(name, "a pointer")
        if memory_scope(scope or GLOBAL) != GLOBAL:
            raise UserError(
                f"pointer {label} points to {scope} memory",
                why="an argument lies in global memory",
                remedy=f"allocate it: allocate(dtype, extent, scope={scope!r})",
            )
        dtype = as_dtype(content_type)
        size = Var(f"{label}.size", I64)
        return BufferPointer(self, BufferView(Buffer(label, dtype, (size,))))

    def likely(self, expr: object) -> Expr:
        """Return a condition, as a bool expression.

        In the classic API, this marks guards that mostly hold. Here guards are found without marks.

        Args:
            expr: a condition. A number is compared with 0.

        Source: TVM, IRBuilder.likely.

        Example::

            >>> ib = rc.ir_builder.create()
            >>> ib.likely(rc.var("n") < 8)
            n < 8
        """
        return cast(BOOL, expr)

    def buffer_ptr(self, view: BufferView) -> BufferPointer:
        """Return the `BufferPointer` of a view.

        Args:
            view: from `decl_buffer`, or as an argument of the function given to `extern`.

        Raises:
            UserError: it is not a view of a buffer.
        """
        if not isinstance(view, BufferView):
            raise UserError(
                f"{view!r} is not a buffer",
                remedy="declare one: decl_buffer(shape, dtype)",
            )
        return BufferPointer(self, view)


def written_buffers(body: Stmt) -> set[Buffer]:
    """Return the buffers that a statement may write: by stores, atomic updates and calls.

    Args:
        body: the statement.

    Example::

        >>> A, B = rc.decl_buffer((8,), name="A"), rc.decl_buffer((8,), name="B")
        >>> {buffer.name for buffer in rc.ir_builder.written_buffers(B.vstore(0, A[1]))}
        {'B'}
    """
    written: set[Buffer] = set()
    for item in walk(body):
        if isinstance(item, BufferStore | AtomicUpdate):
            written.add(item.buffer)
        # Below a call, an address says whether the callee writes.
        if isinstance(item, AddressOf) and item.access != READ:
            written.add(item.buffer)
    return written
