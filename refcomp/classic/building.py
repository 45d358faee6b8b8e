"""`tvm.build`, `tvm.lower` and `tvm.decl_tensor_intrin` under the options of `tvm.build_config`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from refcomp import building
from refcomp.classic.options import ClassicSettings, build_config, classic_settings
from refcomp.foundation.errors import UserError
from refcomp.foundation.target import Target
from refcomp.ir.expr import Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.promotion import const
from refcomp.ir.stmt import Pragma, Stmt
from refcomp.ir.verify import Level, find_fault
from refcomp.ir.view import BufferView
from refcomp.lowering import lower as lowering
from refcomp.passes.apply_unroll_pragmas import AUTO_UNROLL_MAX_STEP, UNROLL_EXPLICIT
from refcomp.runtime.module import Module
from refcomp.schedule.schedule import Schedule
from refcomp.te import intrin
from refcomp.te.operation import Operation
from refcomp.te.tensor import Tensor

__all__ = ["build", "build_config", "decl_tensor_intrin", "lower"]
_NAME = "default_function"


def lower(
    sch: Schedule,
    args: Sequence[Tensor | Var] | None = None,
    name: str = _NAME,
    binds: object = None,
    simple_mode: bool = False,
) -> PrimFunc:
    """Return the function that carries out a schedule, by `refcomp.lower`.

    `tvm.build_config(auto_unroll_max_step=..., unroll_explicit=...)` acts like these pragmas around
    the whole function. The functions of `add_lower_pass` then change its statement. They get the
    loops before any pass of refcomp, whatever their phase.

    Args:
        sch: the schedule.
        args: the parameters of the function: tensors and scalar variables.
        name: the name of the function.
        binds: None. Arguments are contiguous arrays.
        simple_mode: accepted, and ignored.

    Raises:
        UserError: the arguments do not fit the schedule, `binds` is given, or a function of
            `add_lower_pass` returns what is not a legal statement.

    Example::

        >>> from refcomp import classic as tvm
        >>> A = tvm.placeholder((4,), name="A")
        >>> B = tvm.compute((4,), lambda i: A[i] + 1.0, name="B")
        >>> with tvm.build_config(auto_unroll_max_step=16):
        ...     print(tvm.lower(tvm.create_schedule(B.op), [A, B], name="f"))
        func f(A: f32[4], B: f32[4] out) {
          pragma auto_unroll_max_step 16 {
            for i in range(4) {
              B[i] = A[i] + 1.0f32
            }
          }
        }
    """
    _check_binds(binds)
    func = lowering.lower(sch, args, name, simple_mode)
    body = func.body
    settings = classic_settings()
    if not settings.unroll_explicit:
        body = Pragma(UNROLL_EXPLICIT, const(0, "int64"), body)
    if settings.auto_unroll_max_step:
        body = Pragma(
            AUTO_UNROLL_MAX_STEP, const(settings.auto_unroll_max_step, "int64"), body
        )
    func = func.with_body(body)
    for _, change in settings.add_lower_pass:
        func = _changed(func, change)
    return func


def _changed(func: PrimFunc, change: Callable[[Stmt], Stmt]) -> PrimFunc:
    """Return `func` with the statement that a user's pass returns. Refuse an illegal one."""
    name = getattr(change, "__name__", repr(change))
    body = change(func.body)
    if not isinstance(body, Stmt):
        raise UserError(
            f"the pass {name} returned {body!r}, which is not a statement",
            remedy="return the statement that it was given, or another one",
        )
    made = func.with_body(body)
    fault = find_fault(made, Level.NESTED)
    if fault is not None:
        raise UserError(
            f"the pass {name} returned an illegal statement: {fault.what}",
            where=None if fault.stmt is None else repr(fault.stmt),
            remedy="return a statement of the loops that tvm.lower makes",
        )
    return made


def build(
    inputs: Schedule | PrimFunc | Sequence[PrimFunc] | Mapping[Any, Sequence[PrimFunc]],
    args: Sequence[Tensor | Var] | None = None,
    target: Target | str | None = None,
    target_host: Target | str | None = None,
    name: str = _NAME,
    binds: object = None,
) -> Module:
    """Compile a schedule, or functions of the loop IR, by `refcomp.build`.

    Args:
        inputs: the schedule; or what `tvm.lower` returned, or a list of that; or a dictionary,
            target -> such a list.
        args: the tensors and scalar variables of a schedule, in calling order.
        target: what to compile for; by default the current target, or else `"llvm"`.
        target_host: accepted: the host's part is always compiled for this machine.
        name: the name of the function that a schedule becomes.
        binds: None. Arguments are contiguous arrays.

    Raises:
        UserError: `inputs` cannot be built, or `binds` is given.
        Unsupported: the target cannot express the computation.
        ToolchainError: a tool is missing or fails.

    Example::

        >>> from refcomp import classic as tvm
        >>> A = tvm.placeholder((4,), name="A")
        >>> B = tvm.compute((4,), lambda i: A[i] + 1.0, name="B")
        >>> tvm.build(tvm.create_schedule(B.op), [A, B], "interp").entry_name
        'default_function'
    """
    _check_binds(binds)
    is_plain = replace(classic_settings(), offset_factor=0) == ClassicSettings()
    if isinstance(inputs, Schedule) and not is_plain:
        return building.build(lower(inputs, args, name), None, target, target_host)
    return building.build(inputs, args, target, target_host, name)


def decl_tensor_intrin(
    op: Operation | Tensor,
    fcompute: Callable[..., object],
    name: str = "tensor_intrin",
    binds: Mapping[Tensor, BufferView] | None = None,
) -> intrin.TensorIntrin:
    """Declare a tensor intrinsic, by `refcomp.decl_tensor_intrin`.

    Buffers that are not in `binds` have the `offset_factor` of `tvm.build_config`.

    Args:
        op: the compute that defines the result, or its tensor.
        fcompute: takes a list of input views and a list of output views, and returns statements.
        name: the name in messages.
        binds: tensor -> the view that the user declared by `decl_buffer`.

    Raises:
        UserError: `op` is not a compute of constant extents, or a statement is illegal.

    Example::

        >>> from refcomp import classic as tvm
        >>> a = tvm.placeholder((4,), name="a")
        >>> b = tvm.compute((4,), lambda i: a[i] * 2.0, name="b")
        >>> def call_double(ins, outs):
        ...     return tvm.call_extern("int32", "double_four", outs[0], ins[0])
        >>> with tvm.build_config(offset_factor=4):
        ...     tvm.decl_tensor_intrin(b.op, call_double).buffers[0].offset_factor
        4
    """
    factor = classic_settings().offset_factor
    defaults = {"offset_factor": factor} if factor else None
    return intrin.decl_tensor_intrin(op, fcompute, name, binds, defaults)


def _check_binds(binds: object) -> None:
    if binds is not None:
        raise UserError(
            "refcomp does not take binds",
            why="arguments are contiguous arrays, whose shapes are those of the tensors",
            remedy="leave it out. Buffers of an extern operation are in_buffers and out_buffers "
            "of tvm.extern, those of an intrinsic are binds of tvm.decl_tensor_intrin",
        )
