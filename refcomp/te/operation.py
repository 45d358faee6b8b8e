"""Operations, which make tensors: placeholders, whose elements are given, computes, scans, externs.

The operations of a computation and the tensors between them form the dataflow graph. The functions
that make scans and externs are in files of their own: scans.py, externs.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import ClassVar, overload

from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import UserError
from refcomp.foundation.names import checked_name
from refcomp.foundation.provenance import caller_line
from refcomp.foundation.records import record
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr
from refcomp.ir.func import Requirement
from refcomp.ir.node import Node
from refcomp.ir.promotion import as_expr
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Stmt
from refcomp.te.axis_names import axis_names
from refcomp.te.check_reads import check_reads
from refcomp.te.dependent_ranges import with_ranges
from refcomp.te.extents import (
    Extent,
    broadcast_extents,
    extents,
    read_broadcast,
    require_tensor,
)
from refcomp.te.reducer import Reduce
from refcomp.te.tag import INJECTIVE, tag_in_force
from refcomp.te.tensor import (
    DATA_PARALLEL,
    DTypeLike,
    ExprLike,
    IterVar,
    ShapeLike,
    Tensor,
    TensorRead,
    as_shape,
    axis,
)
from refcomp.te.tensor_operators import TensorOperators


@record(eq=False, frozen=False)
class Operation:
    """A node of the dataflow graph, which makes tensors: the base class of all operations.

    Attributes:
        name: the name of the operation, of its first output and of the loops' stage.
        line: `file:line` of the user's call.
        outputs: the tensors that the operation makes.
        inputs: the tensors that the operation reads; `input_tensors` is the classic name.
        num_outputs: the number of tensors that the operation makes.
        what: the kind of operation, for messages; one text for each class.

    Source: TVM, te.Operation.

    Example::

        >>> A = rc.placeholder((8,), name="A")
        >>> B = rc.compute((8,), lambda i: A[i] + 1.0, name="B")
        >>> isinstance(B.op, rc.te.Operation), B.op.name, B.op.what
        (True, 'B', 'a compute')
        >>> B.op.inputs == B.op.input_tensors == (A,), B.op.outputs == (B,), B.op.num_outputs
        (True, True, 1)
    """

    what: ClassVar[str] = "an operation"
    name: str
    line: str
    # Set once, when the operation is made: a tensor refers to its operation.
    outputs: tuple[Tensor, ...] = field(init=False, default=())

    def output(self, index: int) -> Tensor:
        """Return one of the tensors that the operation makes.

        Args:
            index: the number of the tensor, counted from 0.

        Raises:
            IndexError: the operation makes fewer tensors.

        Source: TVM, Operation.output.

        Example::

            >>> A = rc.placeholder((8,), name="A")
            >>> A.op.output(0) is A
            True
        """
        return self.outputs[index]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Return the tensors that are read, in order of first appearance."""
        return ()

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """Return `inputs`, under its classic name."""
        return self.inputs

    @property
    def num_outputs(self) -> int:
        """Return the number of tensors that the operation makes."""
        return len(self.outputs)


@record(eq=False, frozen=False)
class PlaceholderOp(Operation):
    """An operation without inputs: its tensor is provided by the caller. `placeholder` makes it.

    Attributes:
        name: the name of the tensor, and of the argument.
        line: `file:line` of the user's call.
        tag: always empty; schedules ask each operation for its tag.
        attrs: always empty, like the tag.

    Source: TVM, te.PlaceholderOp.

    Example::

        >>> A = rc.placeholder((8,), name="A")
        >>> isinstance(A.op, rc.te.PlaceholderOp), A.op.name, A.op.inputs
        (True, 'A', ())
        >>> A.op.tag, dict(A.op.attrs)
        ('', {})
    """

    what: ClassVar[str] = "a placeholder"
    tag: ClassVar[str] = ""
    attrs: ClassVar[Mapping[str, object]] = MappingProxyType({})


@record(eq=False, frozen=False)
class ComputeOp(Operation):
    """An operation whose tensors are computed element by element over `axis`. `compute` makes it.

    If one value of the body is a reduction, all are, with the same reducer and sources.

    Attributes:
        name: the name of the operation, and of its first output.
        line: `file:line` of the user's call.
        axis: the data-parallel axes, one for each dimension.
        body: the value of each output at the point `axis`.
        tag: a label for schedules; empty without any.
        waits_for_scan: True if its first rows cannot be computed, so that it must belong to a scan.
        attrs: name -> value that a schedule may read.

    Source: TVM, te.ComputeOp.

    Example::

        >>> A = rc.placeholder((4, 8), name="A")
        >>> k = rc.reduce_axis(8, name="k")
        >>> B = rc.compute((4,), lambda i: rc.sum(A[i, k], k), name="B", tag="row_sum")
        >>> B.op.axis, B.op.reduce_axis, B.op.tag
        ((data_parallel axis i,), (reduction axis k,), 'row_sum')
        >>> B.op.reduction.sources
        (TensorRead(A, i, k),)
    """

    what: ClassVar[str] = "a compute"
    axis: tuple[IterVar, ...]
    body: tuple[Expr, ...]
    tag: str = ""
    waits_for_scan: bool = False
    attrs: Mapping[str, object] = field(default_factory=dict)
    # Found once, since the body never changes and each primitive asks all operations.
    _inputs: tuple[Tensor, ...] | None = field(init=False, default=None, repr=False)

    @property
    def reduction(self) -> Reduce | None:
        """Return the reduction that is the body, or None."""
        return self.body[0] if isinstance(self.body[0], Reduce) else None

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """Return the axes of the reduction; none without a reduction."""
        return () if self.reduction is None else self.reduction.axes

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Return the tensors that are read, in order of first appearance."""
        if self._inputs is None:
            self._inputs = _tensors_read(
                [node for root in self.body for node in walk(root)]
            )
        return self._inputs


def _tensors_read(nodes: Iterable[Node]) -> tuple[Tensor, ...]:
    return tuple(
        dict.fromkeys([node.tensor for node in nodes if isinstance(node, TensorRead)])
    )


@record(eq=False, frozen=False)
class ScanOp(Operation):
    """An operation whose tensors are computed row by row along `scan_axis`. `scan` makes it.

    The first row that is computed follows the rows of `init`. Each state has an init, an update and
    an output, under the same number.

    Attributes:
        name: the name of the operation, and of its first output.
        line: `file:line` of the user's call.
        axis: the ordered axis of the rows, then the opaque axes of a row of each output.
        init: the first rows of each output.
        update: row t of each output, computed from earlier rows of the states.
        state: placeholders that stand for the outputs in the updates.
        given: other tensors that the user listed as inputs.
        tag: a label for schedules; empty without any.

    Source: TVM, te.ScanOp.

    Example::

        >>> X = rc.placeholder((5, 3), name="X")
        >>> state = rc.placeholder((5, 3), name="state")
        >>> init = rc.compute((1, 3), lambda t, i: X[t, i], name="init")
        >>> update = rc.compute((5, 3), lambda t, i: state[t - 1, i] + X[t, i], name="update")
        >>> S = rc.scan(init, update, state, inputs=[X], name="S")
        >>> S.op.scan_axis, S.op.axis, S.op.reduce_axis
        (ordered axis S.idx, (ordered axis S.idx, opaque axis S.out0.i1), ())
        >>> S.op.state, S.op.given
        ((Tensor(state: f32, rank 2),), (Tensor(X: f32, rank 2),))
    """

    what: ClassVar[str] = "a scan"
    axis: tuple[IterVar, ...]
    init: tuple[Tensor, ...]
    update: tuple[Tensor, ...]
    state: tuple[Tensor, ...]
    given: tuple[Tensor, ...]
    tag: str = ""

    @property
    def scan_axis(self) -> IterVar:
        """Return the axis along which rows are computed in order."""
        return self.axis[0]

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """Return no axes."""
        return ()

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Return the tensors that are read: init, update, and those that were named."""
        return tuple(dict.fromkeys((*self.init, *self.update, *self.given)))

    def row_axes(self, output: int) -> tuple[IterVar, ...]:
        """Return the opaque axes of a row of an output: the loops of its update compute the row.

        Args:
            output: the number of the output, counted from 0.

        Example::

            >>> X = rc.placeholder((5, 3), name="X")
            >>> state = rc.placeholder((5, 3), name="state")
            >>> init = rc.compute((1, 3), lambda t, i: X[t, i], name="init")
            >>> update = rc.compute((5, 3), lambda t, i: state[t - 1, i] + X[t, i], name="update")
            >>> S = rc.scan(init, update, state, inputs=[X], name="S")
            >>> S.op.row_axes(0) == S.op.axis[1:]
            True
        """
        begin = 1 + sum(tensor.ndim - 1 for tensor in self.state[:output])
        return self.axis[begin : begin + self.state[output].ndim - 1]

    def body_operations(
        self, updates: Sequence[Operation] | None = None
    ) -> list[Operation]:
        """Return the operations of a row, which the scan computes row by row.

        These are the operations on the way from the states to the updates. A compute whose first
        rows cannot be computed (`X[t - 1, i]`) is one, too, and what reads it.

        Args:
            updates: the operations to end at; None for the updates of the scan.

        Returns:
            The operations, producers first.

        Example::

            >>> X = rc.placeholder((5, 3), name="X")
            >>> state = rc.placeholder((5, 3), name="state")
            >>> init = rc.compute((1, 3), lambda t, i: X[t, i], name="init")
            >>> update = rc.compute((5, 3), lambda t, i: state[t - 1, i] + X[t, i], name="update")
            >>> S = rc.scan(init, update, state, inputs=[X], name="S")
            >>> [op.name for op in S.op.body_operations()]
            ['update']
        """
        states = {tensor.op for tensor in self.state}
        inside: set[Operation] = set(states)
        last = updates if updates is not None else [tensor.op for tensor in self.update]
        order = []
        for op in reachable_operations(last):
            is_fed = any(tensor.op in inside for tensor in op.inputs)
            waits = isinstance(op, ComputeOp) and op.waits_for_scan
            if op not in states and (is_fed or waits or op in last):
                inside.add(op)
                order.append(op)
        return order


@record(eq=False, frozen=False)
class ExternOp(Operation):
    """An operation whose tensors are computed by a statement. `extern` makes it.

    Attributes:
        name: the name of the operation, and of its first output.
        line: `file:line` of the user's call.
        axis: opaque axes, one for each dimension of the first output.
        reads: the inputs as the user listed them, perhaps with repetitions.
        in_buffers: the buffers that stand for `reads` in the statement, one for each.
        out_buffers: the buffers that stand for the outputs, one for each.
        body: the statement, which is loop IR.
        tag: a label for schedules; empty without any.
        requires: conditions on sizes and scalar arguments, which each call must meet.

    Source: TVM, te.ExternOp.

    Example::

        >>> def call_fill(ins, outs):
        ...     return rc.call_extern("int32", "fill", outs[0], ins[0])
        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.extern((4,), [A], call_fill, name="B")
        >>> B.op.axis, B.op.reduce_axis, B.op.inputs
        ((opaque axis i0,), (), (Tensor(A: f32, rank 1),))
        >>> list(B.op.buffers.values())
        [Tensor(A: f32, rank 1), Tensor(B: f32, rank 1)]
    """

    what: ClassVar[str] = "an extern operation"
    axis: tuple[IterVar, ...]
    reads: tuple[Tensor, ...]
    in_buffers: tuple[Buffer, ...]
    out_buffers: tuple[Buffer, ...]
    body: Stmt
    tag: str = ""
    requires: tuple[Requirement, ...] = ()

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Return the tensors that are read, in order of first appearance."""
        return tuple(dict.fromkeys(self.reads))

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """Return no axes."""
        return ()

    @property
    def buffers(self) -> dict[Buffer, Tensor]:
        """Return the tensor of each buffer of the statement."""
        buffers = (*self.in_buffers, *self.out_buffers)
        return dict(zip(buffers, (*self.reads, *self.outputs), strict=True))


def placeholder(
    shape: ShapeLike, dtype: DTypeLike = "float32", name: str = "placeholder"
) -> Tensor:
    """Return a tensor that the caller of the compiled function provides.

    Args:
        shape: the extents: ints of at least 0, int64 variables, and expressions of them. A single
            extent need not be in a tuple; `()` is a tensor of one element.
        dtype: the dtype of the elements. Elements of a vector dtype such as `float32x4` lie in
            arrays with one more dimension, the lanes.
        name: the name of the argument.

    Raises:
        UserError: a constant extent is negative, a symbolic extent is not int64, the dtype is
            unknown, or the name is not a text.

    Source: TVM, te.placeholder.

    Example::

        >>> n = rc.var("n")
        >>> A = rc.placeholder((n, 4), "float16", name="A")
        >>> A.shape, A.dtype, A.name
        ((n, 4), DType(kind='float', bits=16, lanes=1), 'A')
        >>> A[n - 1, 0]
        TensorRead(A, n - 1, 0)
        >>> V = rc.placeholder((n,), "float32x4", name="V")
        >>> print(rc.oracle.evaluate([V * 2.0], {V: np.ones((1, 4), "float32")})[0])
        [[2. 2. 2. 2.]]
    """
    op = PlaceholderOp(checked_name(name, "a tensor"), caller_line())
    element = as_dtype(dtype)
    tensor = Tensor(op, 0, as_shape(shape), element)
    op.outputs = (tensor,)
    return tensor


@overload
def compute(
    shape: ShapeLike,
    fcompute: Callable[..., ExprLike],
    name: str = ...,
    tag: str = ...,
    attrs: Mapping[str, object] | None = ...,
) -> Tensor: ...
@overload
def compute(
    shape: ShapeLike,
    fcompute: Callable[..., Sequence[ExprLike]],
    name: str = ...,
    tag: str = ...,
    attrs: Mapping[str, object] | None = ...,
) -> list[Tensor]: ...
def compute(
    shape: ShapeLike,
    fcompute: Callable[..., ExprLike | Sequence[ExprLike]],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
) -> Tensor | list[Tensor]:
    """Return the tensor whose element at (i, j, ...) is fcompute(i, j, ...).

    Args:
        shape: the extents: ints of at least 0, int64 variables, and expressions of them.
        fcompute: takes one i64 index for each dimension, and returns an expression, or a tuple of
            expressions for several outputs of one shape. Its parameters name the axes. Parameters
            with a default are not indices.
        name: the name of the tensor.
        tag: a label for schedules; the default is that of the enclosing `tag_scope`.
        attrs: further data for schedules.

    Returns:
        A tensor of the expression's dtype, or a list of tensors if `fcompute` returns a tuple.

    Raises:
        UserError: `fcompute` takes another number of indices, returns something else than
            expressions, uses a reduction inside of an expression, or certainly reads beyond a
            tensor.

    Source: TVM, te.compute.

    Example::

        >>> A = rc.placeholder((4, 8), name="A")
        >>> k = rc.reduce_axis((0, 8), name="k")
        >>> B = rc.compute((4,), lambda i: rc.sum(A[i, k], axis=k), name="B")
        >>> print(rc.lower(rc.create_schedule(B), [A, B], "rows"))
        func rows(A: f32[4, 8], B: f32[4] out) {
          for i in range(4) {
            B[i] = 0.0f32
            for k in range(8) {
              B[i] = B[i] + A[i, k]
            }
          }
        }
    """
    dims = as_shape(shape)
    names = axis_names(fcompute, len(dims), checked_name(name, "a tensor"))
    axes = tuple(axis(n, 0, d, DATA_PARALLEL) for n, d in zip(names, dims, strict=True))
    value = fcompute(*[a.var for a in axes])
    values = value if isinstance(value, tuple | list) else (value,)
    body = with_ranges(tuple([as_expr(v) for v in values]), axes, name)
    roots = _checked_roots(body, name)
    nodes = [node for root in roots for node in walk(root)]
    _check_reductions(nodes, name)
    op = ComputeOp(
        name, caller_line(), axes, body, tag_in_force(tag), attrs=dict(attrs or {})
    )
    op._inputs = _tensors_read(nodes)
    rows = op.axis[0] if op.axis else None
    op.waits_for_scan = check_reads(name, op.axis, body, rows)
    op.outputs = tuple([Tensor(op, k, dims, expr.dtype) for k, expr in enumerate(body)])
    return list(op.outputs) if values is value else op.outputs[0]


def _checked_roots(body: tuple[Expr, ...], name: str) -> tuple[Expr, ...]:
    """Return the expressions that are computed: `body`, or what a reduction combines."""
    if not body:
        raise UserError(
            f"compute {name} returns no value", remedy="return an expression"
        )
    first = body[0]
    if len({value.dtype.lanes for value in body}) > 1:
        dtypes = ", ".join(str(value.dtype) for value in body)
        raise UserError(
            f"compute {name} returns values of different lanes: {dtypes}",
            why="all values of a compute are computed over the same lanes",
            remedy="make a compute for each, or convert scalars: .astype('float32x4')",
        )
    if not isinstance(first, Reduce):
        return body
    if not all(isinstance(b, Reduce) and b.sources is first.sources for b in body):
        raise UserError(
            f"compute {name} mixes different reductions in one operation",
            remedy="return all values of one reducer, or make several computes",
        )
    return (*first.sources, first.condition, *first.ranges)


def _check_reductions(nodes: Iterable[Node], name: str) -> None:
    """Refuse reductions among the nodes of what is computed."""
    if Reduce in map(type, nodes):
        raise UserError(
            f"compute {name} uses a reduction inside a larger expression",
            why="a reduction must be the whole body: it becomes a loop of its own",
            remedy="compute the reduction as a tensor first, then use its elements",
        )


def broadcast_elements(
    tensors: Sequence[Tensor], function: Callable[..., Expr], name: str
) -> Tensor:
    """Return function(*elements) for the elements of one or more tensors, with broadcasting.

    Raises:
        UserError: an operand is not a tensor, or the shapes do not broadcast.
    """
    shape: tuple[Extent, ...] = ()
    for tensor in tensors:
        require_tensor(tensor, name)
        shape = broadcast_extents(shape, extents(tensor), name, tensors=tensors)

    def element(*index: Expr) -> Expr:
        return function(*(read_broadcast(tensor, index) for tensor in tensors))

    return compute(shape, element, name=name, tag=INJECTIVE)


# Operators on tensors make computes, and this file needs tensors.
TensorOperators.broadcast = staticmethod(broadcast_elements)


def reachable_operations(outputs: Iterable[Operation]) -> tuple[Operation, ...]:
    """Return all operations on which `outputs` depend, producers before consumers."""
    # Depth first with a stack of our own: a long chain of operations must not recurse.
    order: dict[Operation, None] = {}
    stack: list[tuple[Operation, bool]] = [
        (op, False) for op in reversed(list(outputs))
    ]
    while stack:
        op, expanded = stack.pop()
        if expanded:
            order[op] = None
        elif op not in order:
            stack.append((op, True))
            stack.extend((tensor.op, False) for tensor in reversed(op.inputs))
    return tuple(order)
