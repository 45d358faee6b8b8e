"""Statements that call functions outside the loop IR.

A registered function is called in Python, a C function through ctypes. The former gets copies of
the memory of the program, the latter the memory itself. Both do so once it is checked that all
elements they may read have been written.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from refcomp.foundation.c_functions import CArgument, call_c_function, find_c_function
from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.lent_arrays import LentMemory, call_with_copies
from refcomp.foundation.registry import get_global_func
from refcomp.ir import stmt as st
from refcomp.ir.buffer import READ, WRITE, AddressOf
from refcomp.ir.expr import TextImm
from refcomp.oracle.interpreter.expressions import Frame, python_number


def call_packed(frame: Frame, call: st.CallPacked) -> tuple[()]:
    """Call a registered function with arrays and Python's own numbers."""
    args: list[object] = []
    for arg in call.args:
        if isinstance(arg, AddressOf):
            args.append(LentMemory(_array(frame, arg), arg.access != READ))
        elif isinstance(arg, TextImm):
            args.append(arg.value)
        else:
            args.append(python_number(frame.evaluate(arg), arg.dtype))
    function = get_global_func(call.name)
    assert function is not None
    # The interpreter silences numpy's warnings; the function gets numpy's defaults.
    with np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"):
        call_with_copies(function, args)
    return ()


def call_extern(frame: Frame, call: st.CallExtern) -> tuple[()]:
    """Call a C function with addresses and numbers, and drop its result."""
    function = find_c_function(call.name, frame.libraries)
    args: list[CArgument] = []
    for arg in call.args:
        if isinstance(arg, AddressOf):
            offset = _offset(frame, arg) if arg.indices else None
            elements = _array(frame, arg, offset).reshape(-1)
            args.append(elements[offset:])
        else:
            args.append((frame.evaluate(arg), arg.dtype))
    call_c_function(function, args, call.result)
    return ()


def _array(
    frame: Frame, address: AddressOf, offset: int | None = None
) -> npt.NDArray[np.generic]:
    """Return the buffer of `address` as an array that is read-only unless it may be written."""
    memory = frame.memory_of(address.buffer)
    lent = memory.lend(
        is_read=address.access != WRITE,
        is_written=address.access != READ,
        thread=frame,
        at=offset,
    )
    array = lent.view(to_numpy(address.element))
    array.flags.writeable = address.access != READ
    return array


def _offset(frame: Frame, address: AddressOf) -> int:
    """Return the position of the element. A single index counts all elements of the buffer."""
    indices = [frame.evaluate(index) for index in address.indices]
    if len(indices) == 1 and len(address.buffer.shape) != 1:
        return int(indices[0])
    return frame.memory_of(address.buffer).offset(indices)
