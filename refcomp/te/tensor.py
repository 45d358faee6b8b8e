"""Tensors, the axes over which they are computed, and the reads of their elements.

A Tensor is one output of an Operation. Reading it (`A[i, j]`) makes a TensorRead, an expression
that exists only above the loop IR. Lowering replaces it by a BufferLoad or by the expression read.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any, ClassVar, Final, NoReturn
from typing import cast as cast_type

import numpy as np

from refcomp.foundation.choices import Choice
from refcomp.foundation.dtype import I64, DType, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.foundation.names import checked_name
from refcomp.foundation.near_misses import advise
from refcomp.foundation.provenance import declared_at
from refcomp.foundation.records import record
from refcomp.foundation.snippets import Snippet
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Derived, Expr, IntImm, Operators, Var
from refcomp.ir.node import node
from refcomp.ir.not_numbers import NotANumber
from refcomp.ir.promotion import as_expr, cast, const
from refcomp.ir.rewrite import variables_in, walk
from refcomp.ir.stmt import (
    PARALLEL,
    THREAD_TAGS,
    UNROLLED,
    VECTORIZED,
    VTHREAD,
    LoopKind,
)
from refcomp.te.tensor_operators import TensorOperators

# What `as_expr` accepts. A NotANumber is an expression, an axis, or a tensor of rank 0.
ExprLike = NotANumber | int | float | np.generic
# What `as_dtype` accepts: a DType, a name, or a type of Python or numpy.
DTypeLike = DType | str | type | np.dtype[np.generic]
# What `as_shape` accepts: an extent alone is a shape of one dimension.
ShapeLike = ExprLike | Sequence[ExprLike]


class AxisKind(Choice):
    """The dependences between the iterations of an axis, on which primitives rely."""

    DATA_PARALLEL = "data_parallel"  # iterations are independent
    REDUCTION = "reduction"  # the values of all iterations are combined
    ORDERED = "ordered"  # an iteration may need earlier ones, as in a scan
    OPAQUE = "opaque"  # nothing is known, as in an extern operation
    THREAD = (
        "thread"  # iterations are the threads of a GPU that `IterVar.thread_tag` names
    )


# Python 3.11 looks up members by a slow property, so code that compares kinds uses these names.
DATA_PARALLEL = AxisKind.DATA_PARALLEL
REDUCTION = AxisKind.REDUCTION
ORDERED = AxisKind.ORDERED
OPAQUE = AxisKind.OPAQUE
THREAD = AxisKind.THREAD
_TAGS = (*THREAD_TAGS, VTHREAD, *(f"{VTHREAD}.{dim}" for dim in "xyz"))
# The mark of a loop that a tensor intrinsic replaces.
TENSORIZED: Final = "tensorized"


@record
class AxisRange:
    """The values minimum, ..., minimum + extent - 1 of an axis; none if the extent is negative.

    Attributes:
        minimum: an i64 expression, the first value.
        extent: an i64 expression, the number of iterations.
    """

    minimum: Expr
    extent: Expr

    @property
    def min(self) -> Expr:
        """Return the first value, by its classic name."""
        return self.minimum


# A range of iterations: an extent, (begin, end) with the end exclusive, or that of another axis.
RangeLike = ExprLike | tuple[ExprLike, ExprLike] | AxisRange


def as_range(dom: object) -> AxisRange:
    """Return the range of (begin, end), whose end is exclusive, or of an extent.

    Raises:
        UserError: `dom` has another form, or a bound is not an integer.
    """
    if isinstance(dom, AxisRange):
        return dom
    # Any: the difference of two bounds may be a number or an expression.
    bounds: tuple[Any, ...] = tuple(dom) if isinstance(dom, tuple | list) else (0, dom)
    if len(bounds) != 2:
        raise UserError(f"{dom!r} is not a range", remedy="pass (begin, end)")
    begin, end = bounds
    # Each bound is checked separately, so that the message names the bound, not the difference.
    # The difference of two narrow integers might wrap around.
    low = as_dim(begin)
    high = as_dim(end)
    extent = high if as_int(low) == 0 else high - low
    return AxisRange(folded(low), folded(extent))


@record(eq=False)
class IterVar(Operators):
    """An axis: a loop variable over minimum, ..., minimum + extent - 1.

    It can be used as an index in expressions. Two axes are equal only if they are the same object.
    `compute`, `reduce_axis`, `thread_axis` and the primitives of schedules make axes.

    Attributes:
        var: the loop variable, of dtype i64.
        minimum: an i64 expression, the first value of the variable.
        extent: an i64 expression, the number of iterations. For threads, 0 stands for the extent
            of the loops that are bound to the axis.
        kind: what is known about the iterations: data_parallel, reduction, ordered, opaque or
            thread.
        thread_tag: the threads that a thread axis means, such as `threadIdx.x`; else empty.
        DataPar, ThreadIndex, CommReduce, Ordered, Opaque: the classic names of the kinds.
        Unrolled, Vectorized, Parallelized, Tensorized: the classic names of what primitives make
            of a loop, as `iter_var_attrs` of a stage says it.

    Source: TVM, tir.IterVar.

    Example::

        >>> k = rc.reduce_axis((2, 8), name="k")
        >>> k
        reduction axis k
        >>> k.name, k.minimum, k.extent, str(k.kind)
        ('k', 2, 6, 'reduction')
        >>> k.as_expr() is k.var, k + 1
        (True, k + 1)
        >>> k.dom.min, k.dom.extent, k.iter_type == rc.te.IterVar.CommReduce
        (2, 6, True)
    """

    DataPar: ClassVar[AxisKind] = DATA_PARALLEL
    ThreadIndex: ClassVar[AxisKind] = THREAD
    CommReduce: ClassVar[AxisKind] = REDUCTION
    Ordered: ClassVar[AxisKind] = ORDERED
    Opaque: ClassVar[AxisKind] = OPAQUE
    Unrolled: ClassVar[LoopKind] = UNROLLED
    Vectorized: ClassVar[LoopKind] = VECTORIZED
    Parallelized: ClassVar[LoopKind] = PARALLEL
    Tensorized: ClassVar[str] = TENSORIZED

    var: Var
    minimum: Expr
    extent: Expr
    kind: AxisKind
    thread_tag: str = ""

    @property
    def name(self) -> str:
        """Return the variable's name, unique within its stage."""
        return self.var.name

    @property
    def dom(self) -> AxisRange:
        """Return `minimum` and `extent` under their classic names, `min` and `extent`."""
        return AxisRange(self.minimum, self.extent)

    @property
    def iter_type(self) -> AxisKind:
        """Return `kind`, under its classic name."""
        return self.kind

    def as_expr(self) -> Expr:
        """Return the variable, so that an axis can be used as an expression."""
        return self.var

    def __repr__(self) -> str:
        return f"{self.kind} axis {self.name}"


def axis(name: str, minimum: ExprLike, extent: ExprLike, kind: AxisKind) -> IterVar:
    """Return a new axis named `name` over [minimum, minimum + extent)."""
    var = Var(checked_name(name, "an axis"), I64)
    return IterVar(var, _as_bound(minimum), _as_bound(extent), kind)


def thread_axis(dom: object = None, tag: object = None, name: str = "") -> IterVar:
    """Return an axis of a GPU's threads, to which loops can be bound.

    Args:
        dom: the range (0, number of threads), or the tag. `thread_axis("threadIdx.x")` has as many
            threads as the loops that are bound to it.
        tag: blockIdx.x, .y or .z (groups of threads), threadIdx.x, .y or .z (threads within a
            group), or vthread. Each thread executes all virtual threads in turn, and there may be
            several such axes.
        name: a label.

    Raises:
        UserError: the tag is unknown, or the range is empty or does not begin at 0.

    Source: TVM, te.thread_axis.

    Example::

        >>> A = rc.placeholder((8,), name="A")
        >>> B = rc.compute((8,), lambda i: A[i] * 2.0, name="B")
        >>> s = rc.create_schedule(B)
        >>> s[B].bind(B.op.axis[0], rc.thread_axis("threadIdx.x"))
        >>> print(rc.lower(s, [A, B], "double"))
        func double(A: f32[8], B: f32[8] out) {
          for threadIdx.x in range(8) threadIdx.x {
            B[threadIdx.x] = A[threadIdx.x] * 2.0f32
          }
        }
    """
    if tag is None:  # thread_axis(tag)
        tag = dom
        dom = None
    if not isinstance(tag, str) or tag not in _TAGS:
        known = (*THREAD_TAGS, VTHREAD)
        raise UserError(
            f"{tag!r} is not a thread axis",
            why="a GPU has groups of threads and threads in a group, in up to three dimensions",
            remedy=advise(tag, known, f"use one of {', '.join(known)}"),
        )
    extent = IntImm(0, I64) if dom is None else _thread_extent(dom, tag)
    label = checked_name(name, "a thread axis") if name else tag
    return IterVar(Var(label, I64), IntImm(0, I64), extent, THREAD, tag)


def _thread_extent(dom: Any, tag: str) -> Expr:
    if isinstance(dom, AxisRange):
        dom = (dom.minimum, dom.minimum + dom.extent)
    begin, end = dom if isinstance(dom, tuple | list) and len(dom) == 2 else (0, dom)
    first = _as_bound(begin)
    extent = _as_bound(end)
    is_empty = isinstance(extent, IntImm) and extent.value < 1
    if as_int(first) != 0 or is_empty:
        raise UserError(
            f"{dom!r} is not a range of threads for {tag}",
            why="threads are counted from 0, and there is at least one",
            remedy=f'pass thread_axis((0, 64), "{tag}"), or thread_axis("{tag}")',
        )
    return extent


def as_dim(value: object) -> Expr:
    """Return an int, IterVar or integer expression as an i64 expression: an extent or an index."""
    if isinstance(value, bool | float):  # a bool is an int for Python
        raise UserError(f"{value!r} is not an index or extent", remedy="use an integer")
    expr = const(value, I64) if isinstance(value, int) else as_expr(value)
    if expr.dtype is I64:
        return expr
    if expr.dtype.lanes > 1:
        raise UserError(
            f"an index or extent must be a single integer, not a vector of {expr.dtype}",
            remedy="compute over the lanes: a tensor of scalars with one more dimension",
        )
    if not expr.dtype.is_int:
        raise UserError(
            f"an index or extent must be an integer, not {expr.dtype}",
            remedy="convert it with .astype('int64')",
        )
    return cast(I64, expr)


def _as_bound(value: object) -> Expr:
    """Return `as_dim(value)`. Refuse values that are known only during a computation."""
    dim = folded(as_dim(value))
    if isinstance(dim, IntImm | Var):  # as most extents are
        return dim
    for item in walk(dim):
        if isinstance(item, TensorRead):
            raise UserError(
                f"an extent depends on elements of {item.tensor.name}",
                why="extents are known before anything is computed",
                remedy='pass it as a scalar argument: var("n"), listed among the arguments',
            )
    return dim


def folded(dim: Expr) -> Expr:
    """Return an expression without variables as a constant; itself, if an element is in it."""
    if isinstance(dim, IntImm | Var) or variables_in(dim):
        return dim  # as most extents are; the others are such as convert(8) + 4
    from refcomp.arith import simplify  # noqa: PLC0415 (few programs use it)

    return simplify(dim)


def as_shape(shape: object) -> tuple[Expr, ...]:
    """Return a shape as i64 expressions. An int or expression alone is one dimension.

    Raises:
        UserError: a constant is negative, or a shape variable is not int64.
    """
    dims = shape if isinstance(shape, tuple | list) else (shape,)
    extents = []
    for value in dims:
        extent = _as_bound(value)
        size = as_int(extent)
        if size is not None and size < 0:
            raise UserError(f"a dimension cannot be negative: {size}")
        given = value.dtype if isinstance(value, Expr) else I64
        # Extents reach the compiled function as i64.
        if given != I64 and size is None:
            raise UserError(
                f"a symbolic dimension has dtype {given}",
                why="shape variables are int64",
                remedy='declare it as var("n")',
            )
        extents.append(extent)
    return tuple(extents)


def _scalar_dtype(dtype: object, of_what: str) -> DType:
    """Return a dtype of one lane. Raise UserError for vectors."""
    scalar = as_dtype(dtype)
    if scalar.lanes != 1:
        raise UserError(
            f"{of_what} has the vector dtype {scalar}",
            why="an argument is a number or an array",
            remedy=f"pass a tensor of one vector: placeholder((), {str(scalar)!r})",
        )
    return scalar


def var(name: str = "n", dtype: DTypeLike = "int64") -> Var:
    """Return a scalar variable: a symbolic extent (int64), or a scalar argument of a function.

    Args:
        name: the name, a non-empty text. Two variables with one name are still different.
        dtype: any scalar dtype. An extent is int64.

    Raises:
        UserError: the name is not a text, or the dtype is unknown or a vector.

    Example::

        >>> n = rc.var("n")
        >>> A = rc.placeholder((n,), name="A")
        >>> B = rc.compute((n,), lambda i: A[i] * 2.0, name="B")
        >>> print(rc.lower(rc.create_schedule(B), [A, B], "double"))
        func double(A: f32[n], B: f32[n] out) {
          for i in range(n) {
            B[i] = A[i] * 2.0f32
          }
        }
    """
    return Var(
        checked_name(name, "a variable"), _scalar_dtype(dtype, f"variable {name}")
    )


class Tensor(TensorOperators):
    """One output of an operation. `A[i, j]`, `A(i, j)` and `A[i][j]` are reads of an element.

    `placeholder`, `compute`, `scan` and `extern` make tensors.

    Attributes:
        op: the operation that makes the tensor.
        value_index: the number of this output of `op`, counted from 0.
        shape: one i64 expression for each dimension.
        dtype: the dtype of the elements.
        name: the name of the operation, with `.v1`, `.v2` ... for further outputs.
        ndim: the number of dimensions.

    Raises:
        UserError: a read has a slice or a wrong number of indices, or the tensor is used as a
            number, a list or a sequence.

    Source: TVM, te.Tensor.

    Example::

        >>> n = rc.var("n")
        >>> A = rc.placeholder((n, 4), name="A")
        >>> A, A.shape, A[0, n - 1]
        (Tensor(A: f32, rank 2), (n, 4), TensorRead(A, 0, n - 1))
        >>> B = rc.compute((n, 4), lambda i, j: A[i, j] + 1.0, name="B")
        >>> B.op.name, B.value_index, B.op.inputs
        ('B', 0, (Tensor(A: f32, rank 2),))
        >>> A.declaration().label
        'A: f32[n, 4] is declared here'
        >>> rc.placeholder((), name="scale").as_expr()
        TensorRead(scale)
        >>> A[0, 1, 2]
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: A has 2 dimensions and is read with 3 indices...
    """

    __slots__ = ("dtype", "op", "shape", "value_index")

    def __init__(
        self, op: Any, value_index: int, shape: tuple[Expr, ...], dtype: DType
    ) -> None:
        # Any, so that `C.op.axis` needs no cast: only a placeholder has no axes.
        self.op = op
        self.value_index = value_index
        self.shape = shape
        self.dtype = dtype

    @property
    def name(self) -> str:
        """Return the operation's name, with `.v1`, `.v2` ... for further outputs."""
        suffix = f".v{self.value_index}" if self.value_index else ""
        return f"{self.op.name}{suffix}"

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    def declaration(self) -> Snippet:
        """Return the line that declared the tensor, with its dtype and shape, for messages."""
        form = f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"
        return declared_at(self.op.line, form)

    # A type checker takes each read for an element: it does not count indices.
    def __getitem__(self, indices: ExprLike | tuple[ExprLike, ...]) -> TensorRead:
        given = indices if isinstance(indices, tuple) else (indices,)
        read = self._read(tuple([self._as_index(index) for index in given]))
        return cast_type(TensorRead, read)

    def _as_index(self, index: object) -> Expr:
        if isinstance(index, slice | EllipsisType):
            raise UserError(
                f"tensor {self.name} is read with a slice",
                why="a read gives one element, not a tensor of several",
                remedy=f"compute over the index: lambda j: {self.name}[i, j]",
            )
        return as_dim(index)

    def _read(self, indices: tuple[Expr, ...]) -> TensorRead | TensorSlice:
        if len(indices) == self.ndim:
            return TensorRead(self, indices)
        if 0 < len(indices) < self.ndim:
            return TensorSlice(self, indices)
        raise _miscounted(self, len(indices))

    # Without this method, `if tensor:` would call __len__, which raises.
    def __bool__(self) -> bool:
        if self.dtype.is_bool:
            raise UserError(
                f"tensor {self.name} of bool has no truth value",
                why="`and`, `or`, `not`, `if` and comparisons such as `0 < A < 1` ask for one",
                remedy="use (0 < A) & (A < 1), `|`, `~`; and `is not None` for optional tensors",
                earlier=[self.declaration()],
            )
        return True

    def __len__(self) -> NoReturn:
        raise UserError(
            f"tensor {self.name} has no len()",
            why="an extent may be symbolic, and len() is a number",
            remedy=f"use {self.name}.shape[0], or {self.name}.ndim for the number of dimensions",
            earlier=[self.declaration()],
        )

    def __iter__(self) -> NoReturn:
        raise _not_iterable(self)

    def __call__(self, *indices: ExprLike) -> TensorRead:
        return self[indices]

    def as_expr(self) -> Expr:
        """Return the only element of a rank-0 tensor. Raise UserError for other ranks."""
        if self.ndim:
            raise UserError(
                f"tensor {self.name} is used as a number",
                remedy=f"read an element: {self.name}[{', '.join('ijklmnop'[: self.ndim])}]",
                earlier=[self.declaration()],
            )
        return self[()]

    def __repr__(self) -> str:
        return f"Tensor({self.name}: {self.dtype}, rank {self.ndim})"


def _miscounted(tensor: Tensor, indices: int) -> UserError:
    """Return the error for a read with a wrong number of indices."""
    count = "1 index" if indices == 1 else f"{indices} indices"
    places = ", ".join("ijklmnop"[: tensor.ndim])
    return UserError(
        f"{tensor.name} has {tensor.ndim} dimensions and is read with {count}",
        remedy=f"give one index per dimension: {tensor.name}[{places}]",
        earlier=[tensor.declaration()],
    )


def _not_iterable(tensor: Tensor) -> UserError:
    """Return the error for a loop over the elements of a tensor."""
    return UserError(
        f"tensor {tensor.name} cannot be iterated over",
        remedy="compute over its indices",
        earlier=[tensor.declaration()],
    )


class TensorSlice(Operators):
    """A read of a tensor that lacks indices: `A[i]` of a matrix. Further indices make it a read.

    Attributes:
        tensor: the tensor that is read.
        indices: the indices so far, i64 expressions.
        shape: the extents of the dimensions without an index, i64 expressions.
        dtype: the dtype of the elements.
        ndim: the number of dimensions without an index.

    Raises:
        UserError: it is used as a number, has too many indices, or is written to.

    Source: TVM, te.TensorSlice.

    Example::

        >>> A = rc.placeholder((8, 4), name="A")
        >>> row = A[2]
        >>> row, row.shape, row.ndim, str(row.dtype)
        (TensorSlice(A, 2), (4,), 1, 'f32')
        >>> row[3]
        TensorRead(A, 2, 3)
        >>> row.as_expr()
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: A has 2 dimensions and is read with 1 index...
    """

    __slots__ = ("indices", "tensor")

    def __init__(self, tensor: Tensor, indices: tuple[Expr, ...]) -> None:
        self.tensor = tensor
        self.indices = indices

    @property
    def shape(self) -> tuple[Expr, ...]:
        """Return the extents of the dimensions without an index."""
        return self.tensor.shape[len(self.indices) :]

    @property
    def dtype(self) -> DType:
        """Return the dtype of the elements."""
        return self.tensor.dtype

    @property
    def ndim(self) -> int:
        """Return the number of dimensions without an index."""
        return self.tensor.ndim - len(self.indices)

    def __getitem__(self, index: Any) -> TensorRead:  # type: ignore[override]
        more = index if isinstance(index, tuple) else (index,)
        return self.tensor[(*self.indices, *more)]

    def __call__(self, *indices: ExprLike) -> TensorRead:
        return self[indices]

    def __setitem__(self, index: object, value: object) -> NoReturn:
        self.tensor[(*self.indices, index)] = value  # which refuses it

    def __iter__(self) -> NoReturn:
        raise _not_iterable(self.tensor)

    def as_expr(self) -> NoReturn:
        """Raise UserError: indices are missing."""
        raise _miscounted(self.tensor, len(self.indices))

    def __repr__(self) -> str:
        return f"TensorSlice({self.tensor.name}, {', '.join(map(str, self.indices))})"


@node
class TensorRead(Derived):
    """The element of `tensor` at `indices`."""

    tensor: Tensor
    indices: tuple[Expr, ...]  # i64, one for each dimension

    def _derive_dtype(self) -> DType:
        return self.tensor.dtype
