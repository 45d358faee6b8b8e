"""Calls of functions outside the loop IR, as the interpreter makes them.

A registered function is called in Python, a C function through ctypes. Both get the memory of
the program itself, after a check that it holds what they may read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from refcomp.foundation.c_functions import call_c_function, find_c_function
from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.registry import get_global_func
from refcomp.ir import stmt as st
from refcomp.ir.buffer import READ, WRITE, AddressOf
from refcomp.ir.expr import Expr, PureExtern
from refcomp.ir.gpu_intrinsics import GPU_INTRINSICS, is_of_a_wave
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.interpreter.scalars import Scalar, make_scalar
from refcomp.oracle.interpreter.waves import dot_product, refuse_alone

# How numpy warns outside of the interpreter, which silences it.
_AS_EVER: Any = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


def call_packed(frame: Any, call: st.CallPacked) -> tuple[()]:
    """Calls the registered function with arrays and Python's own numbers."""
    args = [
        _array(frame, a) if isinstance(a, AddressOf) else _number(frame, a)
        for a in call.args
    ]
    function = get_global_func(call.name)
    assert function is not None
    with np.errstate(**_AS_EVER):
        function(*args)
    return ()


def _number(frame: Any, arg: Expr) -> bool | int | float:
    value = frame.evaluate(arg)
    if arg.dtype.is_bool:
        return bool(value)
    return int(value) if arg.dtype.is_int else float(value)


def _array(frame: Any, at: AddressOf, offset: int | None = None) -> Any:
    memory: Memory = frame.memory_of(at.buffer)
    lent = memory.lend(at.access != WRITE, at.access != READ, frame, offset)
    array = lent.view(to_numpy(at.element))
    array.flags.writeable = at.access != READ
    return array


def call_extern(frame: Any, call: st.CallExtern) -> tuple[()]:
    """Calls the C function with addresses and numbers; its result is dropped."""
    function = find_c_function(call.name, frame.libraries)
    call_c_function(
        function, [_c_argument(frame, arg) for arg in call.args], call.result
    )
    return ()


def _c_argument(frame: Any, arg: Expr) -> Any:
    if not isinstance(arg, AddressOf):
        return frame.evaluate(arg), arg.dtype
    offset = _offset(frame, arg) if arg.indices else None
    return _array(frame, arg, offset).reshape(-1)[offset or 0 :]


def _offset(frame: Any, at: AddressOf) -> int:
    indices = [frame.evaluate(index) for index in at.indices]
    if len(indices) == 1 != len(at.buffer.shape):
        return int(indices[0])
    memory: Memory = frame.memory_of(at.buffer)
    return memory.offset(indices)


def call_pure(
    call: PureExtern, operands: Sequence[Scalar], libraries: Sequence[str]
) -> Scalar:
    """What the C function gives for the values of its arguments, or the GPU's instruction."""
    if is_of_a_wave(call):
        refuse_alone(call)
    if call.name in GPU_INTRINSICS:
        return dot_product(call, operands)
    args = [(value, arg.dtype) for value, arg in zip(operands, call.args, strict=True)]
    result = call_c_function(find_c_function(call.name, libraries), args, call.dtype)
    return make_scalar(result, call.dtype)
