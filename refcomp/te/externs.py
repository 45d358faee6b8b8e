"""extern: tensors that a statement of the user computes.

The statement is loop IR: calls of registered or C functions, or the result of an `ir_builder`. It
is opaque to schedules: its axes have no order, all outputs are computed at once, and all inputs are
complete before. Statements that break a rule of the loop IR are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from refcomp.foundation.dtype import I64, DType, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.foundation.names import UniqueNames, checked_name
from refcomp.foundation.provenance import caller_line
from refcomp.ir.buffer import GLOBAL, READ, WRITE, Buffer, BufferAccess
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernel_memory import memory_in_kernels, outside_memory
from refcomp.ir.kernels import kernels_in
from refcomp.ir.lanes import expand_lanes, expand_statement
from refcomp.ir.node import bound_by
from refcomp.ir.outside_calls import as_statement
from refcomp.ir.rewrite import replace_buffers, substitute, variables_in, walk
from refcomp.ir.stmt import Block, Stmt
from refcomp.ir.structure import structurally_equal
from refcomp.ir.view import BufferView
from refcomp.te.declare import decl_buffer
from refcomp.te.operation import ExternOp
from refcomp.te.tag import tag_in_force
from refcomp.te.tensor import (
    OPAQUE,
    DTypeLike,
    ShapeLike,
    Tensor,
    as_shape,
    axis,
)

_ExternOp = TypeVar("_ExternOp", bound=ExternOp)
_KERNEL_RULES = (
    "begin a kernel by all its loops over threads, one in the other, and allocate its "
    "memory within them"
)


def extern(
    shape: ShapeLike | Sequence[ShapeLike],
    inputs: Sequence[Tensor],
    fcompute: Callable[..., object],
    name: str = "extern",
    dtype: DTypeLike | Sequence[DTypeLike] | None = None,
    in_buffers: BufferView | Sequence[BufferView] | None = None,
    out_buffers: BufferView | Sequence[BufferView] | None = None,
    tag: str = "",
) -> Any:
    """Return the tensors that the statement `fcompute(ins, outs)` computes from `inputs`.

    Args:
        shape: the shape of the output, or a list of shapes for several outputs.
        inputs: the tensors that the statement reads.
        fcompute: takes a view of a buffer for each input and each output, and returns a statement:
            `call_packed("name", ins[0], outs[0])`, `call_extern("int32", "name", ...)`, or the
            result of an ir_builder. Variables that it uses and does not bind are scalar arguments.
        name: the name of the result.
        dtype: the dtype of the outputs, or a list of dtypes. The default is that of all inputs.
        in_buffers: views that the user declared (`decl_buffer`), one for each input.
        out_buffers: the same for the outputs.
        tag: a label for schedules; the default is that of the enclosing `tag_scope`.

    Returns:
        A tensor, or a list of tensors for several outputs.

    Raises:
        UserError: `fcompute` is not a function or returns something other than a legal statement, a
            declared view does not fit its tensor, or the dtype is missing where the inputs differ.

    Source: TVM, te.extern.

    Example::

        >>> def write_squares(ins, outs):
        ...     ib = rc.ir_builder.create()
        ...     a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        ...     with ib.for_range(0, 4, name="i") as i:
        ...         b[i] = a[i] * a[i]
        ...     return ib.get()
        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.extern((4,), [A], write_squares, name="B")
        >>> print(rc.lower(rc.create_schedule(B), [A, B], "squares"))
        func squares(A: f32[4], B: f32[4] out) {
          for i in range(4) {
            B[i] = A[i] * A[i]
          }
        }
    """
    op = make_extern(
        ExternOp,
        shape,
        inputs,
        fcompute,
        name=name,
        dtype=dtype,
        in_buffers=in_buffers,
        out_buffers=out_buffers,
        tag=tag,
    )
    return list(op.outputs) if len(op.outputs) > 1 else op.outputs[0]


def make_extern(
    cls: type[_ExternOp],
    shape: ShapeLike | Sequence[ShapeLike],
    inputs: Sequence[Tensor],
    fcompute: Callable[..., object],
    *,
    name: str,
    dtype: DTypeLike | Sequence[DTypeLike] | None,
    in_buffers: BufferView | Sequence[BufferView] | None,
    out_buffers: BufferView | Sequence[BufferView] | None,
    tag: str,
) -> _ExternOp:
    """Return the operation of class `cls` that `extern` describes."""
    checked_name(name, "a tensor")
    if not callable(fcompute):
        raise UserError(
            f"extern {name} is given {fcompute!r}, not a function of its buffers",
            remedy='pass a function such as lambda ins, outs: call_packed("f", ins[0], outs[0])',
        )
    reads = tuple(inputs) if isinstance(inputs, list | tuple) else (inputs,)
    for tensor in reads:
        if not isinstance(tensor, Tensor):
            raise UserError(
                f"extern {name} reads {tensor!r}, which is not a tensor",
                remedy="pass the list of tensors that it reads; it may be empty",
            )
    shapes = _shapes(shape)
    dtypes = _dtypes(dtype, len(shapes), reads, name)
    first = enumerate(shapes[0])
    op = cls(
        name,
        caller_line(),
        axis=tuple(axis(f"i{k}", 0, extent, OPAQUE) for k, extent in first),
        reads=reads,
        in_buffers=(),
        out_buffers=(),
        body=Block(
            ()
        ),  # set below: the statement needs the views, which need the outputs
        tag=tag_in_force(tag),
    )
    pairs = enumerate(zip(shapes, dtypes, strict=True))
    op.outputs = tuple(Tensor(op, k, dims, dtype) for k, (dims, dtype) in pairs)
    ins = _views(in_buffers, reads, READ, "in_buffers", name)
    outs = _views(out_buffers, op.outputs, WRITE, "out_buffers", name)
    body = as_statement(fcompute(ins, outs))
    if not isinstance(body, Stmt):
        raise UserError(
            f"the function of extern {name} returns {body!r}, which is not a statement",
            remedy="return call_packed(...), call_extern(...) or what ir_builder's get() gives",
        )
    _set_body(op, body, [*ins, *outs])
    return op


def _shapes(shape: ShapeLike | Sequence[ShapeLike]) -> list[tuple[Expr, ...]]:
    """Return the shape of each output: `shape` alone, unless it holds a shape."""
    if not isinstance(shape, list | tuple):
        return [as_shape(shape)]
    shapes = [dims for dims in shape if isinstance(dims, list | tuple)]
    return [as_shape(dims) for dims in (shape if shapes else [shape])]


def _dtypes(
    given: object, count: int, reads: Sequence[Tensor], name: str
) -> list[DType]:
    """Return the dtype of each of `count` outputs."""
    if given is None:
        shared = list(dict.fromkeys(tensor.dtype for tensor in reads))
        if len(shared) != 1:
            found = ", ".join(map(str, shared)) or "no dtype"
            raise UserError(
                f"extern {name} needs a dtype, since its inputs have {found}",
                remedy='pass dtype="float32", or a list with one for each output',
            )
        return shared * count
    dtypes = list(given) if isinstance(given, list | tuple) else [given] * count
    if len(dtypes) != count:
        raise UserError(
            f"extern {name} has {count} outputs and {len(dtypes)} dtypes",
            remedy="give one dtype for all outputs, or one for each",
        )
    return [as_dtype(dtype) for dtype in dtypes]


def _views(
    given: object, tensors: Sequence[Tensor], access: BufferAccess, what: str, name: str
) -> list[BufferView]:
    views: list[object]
    if given is None:
        views = [decl_buffer(t.shape, t.dtype, t.name) for t in tensors]
    else:
        views = list(given) if isinstance(given, list | tuple) else [given]
    wrong = [view for view in views if not isinstance(view, BufferView)]
    if wrong or len(views) != len(tensors):
        raise UserError(
            f"{what} of extern {name} holds {len(views)} buffers for {len(tensors)} tensors"
            if not wrong
            else f"{what} of extern {name} holds {wrong[0]!r}",
            remedy="declare one buffer for each: decl_buffer(shape, dtype)",
        )
    # `access`: how a function that is given the view accesses its memory.
    known = (view for view in views if isinstance(view, BufferView))
    return [replace(view, access=access) for view in known]


# The functions below match declared buffers with the tensors that they stand for.


def _declared_values(
    views: Sequence[BufferView], tensors: Sequence[Tensor], name: str
) -> dict[Var, Expr]:
    """Return values for the variables with which views are declared.

    A variable takes the actual value at its first use. All other declarations must equal the
    actual values.
    """
    values: dict[Var, Expr] = {}
    for view, tensor in zip(views, tensors, strict=True):
        _check_kind(view, tensor, name)
        pairs = [*zip(view.shape, tensor.shape, strict=True)]
        if view.strides:
            pairs += zip(view.strides, _compact_strides(tensor.shape), strict=True)
        pairs.append((view.elem_offset, IntImm(0, I64)))
        for declared, actual in pairs:
            known = substitute(declared, values)
            if structurally_equal(known, actual):
                continue
            if not isinstance(declared, Var) or declared in values:
                why = f"{known} is declared, but the tensor has {actual}"
                raise _misfit(view, tensor, name, why)
            values[declared] = actual
    return values


def _check_kind(view: BufferView, tensor: Tensor, name: str) -> None:
    if view.dtype != tensor.dtype or len(view.shape) != tensor.ndim:
        raise _misfit(
            view,
            tensor,
            name,
            f"{view.dtype} of rank {len(view.shape)}, not {tensor.dtype} of rank {tensor.ndim}",
        )
    if view.scope != GLOBAL:
        raise _misfit(
            view,
            tensor,
            name,
            f"it lies in {view.scope} memory, but tensors lie in global memory",
        )


def _misfit(view: BufferView, tensor: Tensor, name: str, why: str) -> UserError:
    return UserError(
        f"buffer {view.name} of extern {name} does not fit tensor {tensor.name}",
        why=why,
        remedy="declare the tensor's own shape and dtype; its memory is row-major, from offset 0",
        earlier=[tensor.declaration()],
    )


def _compact_strides(shape: Sequence[Expr]) -> list[Expr]:
    """Return the strides, in elements, of a row-major tensor of `shape`."""
    strides: list[Expr] = []
    stride: Expr = IntImm(1, I64)
    for extent in reversed(shape):
        strides.insert(0, stride)
        if isinstance(extent, IntImm) and isinstance(stride, IntImm):
            stride = IntImm(extent.value * stride.value, I64)
        else:
            stride = extent if as_int(stride) == 1 else extent * stride
    return strides


def _set_body(op: ExternOp, body: Stmt, views: Sequence[BufferView]) -> None:
    """Set the statement, on buffers like the tensors. Raise UserError if it is illegal."""
    tensors = [*op.reads, *op.outputs]
    values = _declared_values(views, tensors, op.name)
    names = UniqueNames(var.name for var in variables_in(body))
    # Each use of a tensor has its own buffer. Its name differs from all variables' names.
    fresh = {
        view.buffer: Buffer(names.take(view.name), tensor.dtype, tensor.shape)
        for view, tensor in zip(views, tensors, strict=True)
    }
    op.body = memory_in_kernels(replace_buffers(substitute(body, values), fresh))
    if all(tensor.dtype.lanes == 1 for tensor in tensors):
        op.body = expand_statement(op.body, {})
    buffers = tuple(fresh[view.buffer] for view in views)
    op.in_buffers = buffers[: len(op.reads)]
    op.out_buffers = buffers[len(op.reads) :]
    # The verifier checks functions, so make one of the tensors and the free variables.
    bound = {item for node in walk(op.body) for item in bound_by(node)}
    for buffer in buffers:
        for extent in buffer.shape:
            bound.update(variables_in(extent))
    scalars = dict.fromkeys(v for v in variables_in(op.body) if v not in bound)
    outputs = tuple(buffer.name for buffer in op.out_buffers)
    func = PrimFunc(op.name, (*buffers, *scalars), op.body, outputs)
    # Here, since most programs have no statements of their own.
    from refcomp.ir.verify import Level, find_fault  # noqa: PLC0415

    fault = find_fault(expand_lanes(func), Level.NESTED)
    if fault is not None:
        has_kernel = next(kernels_in(op.body), None) is not None
        raise UserError(
            f"the statement of extern {op.name} is not legal: {fault.what}",
            where=None if fault.stmt is None else repr(fault.stmt),
            remedy="let it read only inputs, write only outputs, and bind all other names"
            + (f"; {_KERNEL_RULES}" if has_kernel else ""),
        )
    memory = outside_memory(op.body)
    if memory is not None:
        raise UserError(
            f"the local memory {memory.buffer.name} of extern {op.name} lies outside of the "
            "kernel that uses it",
            where=repr(memory),
            why="each thread has local memory of its own",
            remedy=_KERNEL_RULES,
        )


def buffers_to_places(
    op: ExternOp, places: Mapping[Tensor, Buffer]
) -> dict[Buffer, Buffer]:
    """Return the memory of each buffer of the statement, given the memory of each tensor."""
    return {buffer: places[tensor] for buffer, tensor in op.buffers.items()}
