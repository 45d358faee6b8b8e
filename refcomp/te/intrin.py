"""decl_tensor_intrin: an instruction or a hand-written function that computes a whole block.

A tensor intrinsic has two sides. A compute defines its result. The statements of `fcompute`
implement it on buffers that stand for a block within larger memory. The strides and offsets of
these buffers are variables that each use binds. A reduction may have three statements: for the
whole, to reset the output, and to add to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from refcomp.foundation.errors import UserError
from refcomp.foundation.names import UniqueNames, checked_name
from refcomp.foundation.records import record
from refcomp.ir.buffer import GLOBAL, READ, UPDATE, Buffer
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.lanes import expand_lanes
from refcomp.ir.node import bound_by
from refcomp.ir.outside_calls import as_statement
from refcomp.ir.rewrite import (
    buffers_in,
    replace_buffers,
    variables_in,
    walk,
    with_fields,
)
from refcomp.ir.stmt import Stmt
from refcomp.ir.structure import structurally_equal
from refcomp.ir.view import BufferView
from refcomp.te.declare import decl_buffer
from refcomp.te.operation import ComputeOp, Operation
from refcomp.te.tensor import Tensor


@record(eq=False)
class TensorIntrin:
    """The computation `op` as statements on blocks of memory.

    `decl_tensor_intrin` makes it, and `tensorize` replaces loops by its statements. A reduction may
    be computed in parts: `reset` stores the identity, and `update` adds one part. There is a `body`
    or an `update`.

    Attributes:
        name: the name in messages.
        op: the compute that defines the result; its extents are constants.
        inputs: the tensors that `op` reads.
        buffers: the views of the block of each input, then of each output.
        views: tensor -> its view.
        body: the statement that computes the whole output; None if there is none.
        reset: the statement that stores the identity; None if there is none. `reduce_init` is the
            classic name.
        update: the statement that adds one part; None if there is none. `reduce_update` is the
            classic name.

    Source: TVM, te.TensorIntrin.

    Example::

        >>> a = rc.placeholder((4,), name="a")
        >>> b = rc.compute((4,), lambda i: a[i] * 2.0, name="b")
        >>> def call_double(ins, outs):
        ...     return rc.call_extern("int32", "double_four", outs[0], ins[0])
        >>> double_four = rc.decl_tensor_intrin(b.op, call_double, name="double_four")
        >>> double_four, double_four.inputs, list(double_four.views)
        (tensor intrinsic double_four, (Tensor(a: f32, rank 1),), [Tensor(a: f32, rank 1), ...])
        >>> double_four.buffers[0].shape, double_four.buffers[1] is double_four.views[b]
        ((4,), True)
        >>> double_four.reduce_init is None, double_four.reduce_update is None
        (True, True)
    """

    name: str
    op: ComputeOp
    inputs: tuple[Tensor, ...]
    buffers: tuple[BufferView, ...]
    body: Stmt | None
    reset: Stmt | None
    update: Stmt | None

    @property
    def views(self) -> dict[Tensor, BufferView]:
        """Return the view of each tensor."""
        return dict(zip((*self.inputs, *self.op.outputs), self.buffers, strict=True))

    @property
    def reduce_init(self) -> Stmt | None:
        """Return `reset`, under its classic name."""
        return self.reset

    @property
    def reduce_update(self) -> Stmt | None:
        """Return `update`, under its classic name."""
        return self.update

    def __repr__(self) -> str:
        return f"tensor intrinsic {self.name}"


def decl_tensor_intrin(
    op: Operation | Tensor,
    fcompute: Callable[..., object],
    name: str = "tensor_intrin",
    binds: Mapping[Tensor, BufferView] | None = None,
    default_buffer_params: Mapping[str, Any] | None = None,
) -> TensorIntrin:
    """Declare a tensor intrinsic: statements that have the same result as a compute.

    The extents of the compute are constants. `s[T].tensorize(axis, intrin)` replaces loops by the
    statements.

    Args:
        op: the compute that defines the result, or its tensor.
        fcompute: takes a list of input views and a list of output views. It returns a statement,
            or three of them: body, reset and update. A statement that does not exist is None.
        name: the name in messages.
        binds: tensor -> the view that the user declared (`decl_buffer`, with `strides` and
            `offset_factor`). Other tensors get compact views.
        default_buffer_params: options of `decl_buffer` for these compact views.

    Raises:
        UserError: `op` is not a compute of constant extents, `fcompute` is not a function, or a
            statement is illegal.

    Source: TVM, te.decl_tensor_intrin.

    Example::

        >>> a = rc.placeholder((4,), name="a")
        >>> b = rc.compute((4,), lambda i: a[i] * 2.0, name="b")
        >>> def call_double(ins, outs):
        ...     return rc.call_extern("int32", "double_four", outs[0], ins[0])
        >>> double_four = rc.decl_tensor_intrin(b.op, call_double, name="double_four")
        >>> A = rc.placeholder((8,), name="A")
        >>> B = rc.compute((8,), lambda i: A[i] * 2.0, name="B")
        >>> s = rc.create_schedule(B)
        >>> outer, inner = s[B].split(B.op.axis[0], factor=4)
        >>> s[B].tensorize(inner, double_four)
        >>> print(rc.lower(s, [A, B], "double"))
        func double(A: f32[8], B: f32[8] out) {
          for i.outer in range(2) {
            extern i32 double_four(update(B[i.outer * 4]), read(A[i.outer * 4]))
          }
        }
    """
    made = op.op if isinstance(op, Tensor) else op
    checked_name(name, "a tensor intrinsic")
    if not isinstance(made, ComputeOp):
        raise UserError(
            f"tensor intrinsic {name} is declared with {getattr(op, 'name', op)!r}",
            why="what it computes is said by a compute",
            remedy="declare it with what compute() returned",
        )
    if not callable(fcompute):
        raise UserError(
            f"tensor intrinsic {name} is given {fcompute!r}, not a function of its views",
            remedy="pass a function of the input views and the output views",
        )
    for axis in (*made.axis, *made.reduce_axis):
        if as_int(axis.extent) is None:
            raise UserError(
                f"axis {axis.name} of tensor intrinsic {name} has the extent {axis.extent}",
                why="an intrinsic computes a block of one size",
                remedy="declare it with constants; loops around it take care of the rest",
            )
    views = _views(made, dict(binds or {}), dict(default_buffer_params or {}), name)
    count = len(made.inputs)
    given = fcompute(list(views[:count]), list(views[count:]))
    statements = _statements(given, made, name)
    # Two tensors, or two views that the user declared, may have the same name.
    names = UniqueNames()
    fresh = {v.buffer: with_fields(v.buffer, name=names.take(v.name)) for v in views}
    renamed = [None if s is None else replace_buffers(s, fresh) for s in statements]
    views = tuple(replace(view, buffer=fresh[view.buffer]) for view in views)
    intrin = TensorIntrin(name, made, made.inputs, views, *renamed)
    for what, statement in zip(("body", "reset", "update"), renamed, strict=True):
        if statement is not None:
            _check_statement(intrin, what, statement)
    return intrin


def _views(
    op: ComputeOp, binds: dict[Tensor, BufferView], params: dict[str, Any], name: str
) -> tuple[BufferView, ...]:
    tensors = (*op.inputs, *op.outputs)
    foreign = [t for t in binds if t not in set(tensors)]
    if foreign:
        raise UserError(
            f"tensor intrinsic {name} binds {foreign[0]!r}, which {op.name} does not use",
            remedy=f"it uses {', '.join(t.name for t in tensors)}",
        )
    views = []
    for tensor in tensors:
        view = binds.get(tensor) or decl_buffer(
            tensor.shape, tensor.dtype, tensor.name, **params
        )
        _check_view(view, tensor, name)
        access = READ if tensor in set(op.inputs) else UPDATE
        views.append(replace(view, access=access))
    return tuple(views)


def _check_view(view: object, tensor: Tensor, name: str) -> None:
    if isinstance(view, BufferView):
        has_type = view.dtype == tensor.dtype and len(view.shape) == tensor.ndim
        pairs = zip(view.shape, tensor.shape, strict=False)
        if has_type and all(structurally_equal(a, b) for a, b in pairs):
            return
    raise UserError(
        f"{view!r} does not fit {tensor.name} of tensor intrinsic {name}",
        remedy="declare a buffer of the tensor's own shape and dtype",
        earlier=[tensor.declaration()],
    )


def _statements(given: object, op: ComputeOp, name: str) -> tuple[Stmt | None, ...]:
    several: list[Any] = [given, None, None]
    if isinstance(given, list | tuple):
        several = list(given)
    if len(several) == 2:  # reset and update, the form of older programs
        several = [None, *several]
    several = [as_statement(s) for s in several]
    wrong = [s for s in several if not (s is None or isinstance(s, Stmt))]
    if len(several) != 3 or wrong:
        raise UserError(
            f"the function of tensor intrinsic {name} returns {given!r}",
            remedy="return a statement, or (body, reset, update)",
        )
    body, reset, update = several
    if body is None and update is None:
        raise UserError(f"tensor intrinsic {name} has neither a body nor an update")
    if op.reduction is None and (reset is not None or update is not None):
        raise UserError(
            f"tensor intrinsic {name} has a reset or an update, but {op.name} is not a reduction",
            remedy="return its body alone",
        )
    return body, reset, update


def _check_statement(intrin: TensorIntrin, what: str, statement: Stmt) -> None:
    outputs = tuple(view.name for view in intrin.buffers[len(intrin.inputs) :])
    buffers = tuple(view.buffer for view in intrin.buffers)
    # The verifier checks functions, whose arguments are global: here the blocks in their place.
    given = {buffer: with_fields(buffer, scope=GLOBAL) for buffer in buffers}
    params: tuple[Buffer | Var, ...] = (*given.values(), *_scalars(intrin, statement))
    func = PrimFunc(intrin.name, params, replace_buffers(statement, given), outputs)
    # Here, since most programs have no statements of their own.
    from refcomp.ir.verify import Level, find_fault  # noqa: PLC0415

    fault = find_fault(expand_lanes(func), Level.NESTED)
    if fault is not None:
        raise UserError(
            f"the {what} of {intrin} is not legal: {fault.what}",
            where=None if fault.stmt is None else repr(fault.stmt),
            remedy="let it read only inputs, write only outputs, and bind all other names",
        )
    inputs = set(buffers[: len(intrin.inputs)])
    if what == "reset" and inputs.intersection(buffers_in(statement)):
        raise UserError(
            f"the reset of {intrin} reads inputs", why="it makes the identity of none"
        )


def _scalars(intrin: TensorIntrin, statement: Stmt) -> list[Var]:
    """Return the strides and offsets that the statement uses.

    Raises:
        UserError: the statement has another free variable.
    """
    bound = {item for node in walk(statement) for item in bound_by(node)}
    declared: set[Var] = set()
    for view in intrin.buffers:
        for expr in (*view.strides, view.elem_offset):
            declared.update(variables_in(expr))
    used = [var for var in dict.fromkeys(variables_in(statement)) if var not in bound]
    for var in used:
        if var not in declared:
            raise UserError(
                f"{intrin} uses the variable {var.name}, which nothing gives a value",
                remedy="use constants, and the strides and offsets of declared buffers",
            )
    return used
