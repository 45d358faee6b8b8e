"""call_packed, call_extern, call_pure_extern and call_pure_intrin: functions called by name."""

from __future__ import annotations

from typing import Any, TypeVar

from refcomp.dtype import F32, as_dtype
from refcomp.errors import UserError
from refcomp.ir.buffer import AddressOf
from refcomp.ir.expr import Call, Expr, PureExtern
from refcomp.ir.intrinsics import find_intrinsic
from refcomp.ir.names import checked_callee
from refcomp.ir.node import Node
from refcomp.ir.promotion import as_expr, cast
from refcomp.ir.stmt import CallExtern, CallPacked
from refcomp.ir.type_rules import type_fault
from refcomp.ir.view import BufferView
from refcomp.te.tensor import Tensor

_N = TypeVar("_N", bound=Node)


def call_packed(name: str, *args: Any) -> CallPacked:
    """A statement that calls the registered function `name` (`register_func`).

    A buffer becomes a numpy array on its memory, a number Python's int, float or bool. Only while
    the function runs is the array's memory certain to be there.
    """
    return _checked(CallPacked(checked_callee(name), tuple(_argument(a, name) for a in args)))


def call_extern(dtype: Any, name: str, *args: Any) -> CallExtern:
    """A statement that calls the C function `name`, whose result, of `dtype`, is dropped.

    A buffer becomes the address of its first element. Numbers go as they are: convert them to the
    types that the function takes. The function is sought in the shared objects of the target's
    option `-libs`, in libm and in libc.
    """
    passed = tuple(_argument(a, name) for a in args)
    return _checked(CallExtern(checked_callee(name), as_dtype(dtype), passed))


def call_pure_extern(dtype: Any, name: str, *args: Any) -> Expr:
    """The value, of `dtype`, that the C function `name` gives for numbers. See `call_extern`."""
    passed = tuple(_argument(a, name) for a in args)
    return _checked(PureExtern(checked_callee(name), passed, as_dtype(dtype)))


def call_pure_intrin(dtype: Any, name: str, *args: Any) -> Expr:
    """The intrinsic `name` of numbers, which become `dtype` first where it takes floats."""
    target = as_dtype(dtype)
    operands = [as_expr(a) for a in args]
    if target.is_float:
        operands = [cast(target, operand) for operand in operands]
    operand = operands[0].dtype if operands else F32
    intrinsic = find_intrinsic(name, operand, len(operands))
    return _checked(Call(name, tuple(operands), intrinsic.result_dtype(operand)))


def _argument(given: Any, name: str) -> Expr:
    if isinstance(given, BufferView):
        return given.data
    if isinstance(given, AddressOf):
        return given
    if isinstance(given, Tensor):
        raise UserError(
            f"{name} is given the tensor {given.name}",
            why="a tensor has no memory while it is described",
            remedy="call it in the function of extern(), with the buffers that this is given",
        )
    if isinstance(given, str | bytes):
        raise UserError(
            f"{name} is given the text {given!r}",
            why="numbers and buffers can be passed",
            remedy="register a function that knows the text: functools.partial(f, text)",
        )
    return as_expr(given)


def _checked(node: _N) -> _N:
    fault = type_fault(node)
    if fault is not None:
        raise UserError(
            f"{getattr(node, 'name', '')} cannot be called: {fault}",
            remedy="convert numbers with .astype(...), pass buffers as they are",
        )
    return node
