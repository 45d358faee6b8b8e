"""Print the functions that join calls of several functions into one call.

`refcomp.runtime.host.joined_calls` makes this call.

A function of arrays and symbols gets a *caller*, which loads its arguments from memory. Functions
of one type share a caller. Functions with scalars are called one by one, and get none.
"""

from __future__ import annotations

from collections.abc import Iterable

from refcomp.codegen.llvm.function import LlvmModule
from refcomp.foundation.artifacts import caller_symbol
from refcomp.foundation.dtype import I64
from refcomp.ir.buffer import Buffer
from refcomp.ir.func import PrimFunc


def declare_callers(module: LlvmModule, funcs: Iterable[PrimFunc]) -> None:
    """Define the callers of `funcs`, and the function that makes joined calls.

    Args:
        module: the file that gets them.
        funcs: functions at the host level.
    """
    say = module.say
    module.declarations.add("call_all", say.declare_call_all)
    for func in funcs:
        if not all(isinstance(param, Buffer) for param in func.params):
            continue
        arrays = len(func.params)
        symbols = len(func.symbols)
        name = caller_symbol(arrays, symbols)
        types = [say.pointer()] * arrays + [module.type_of(I64)] * symbols
        module.declarations.add(name, say.declare_caller, name=name, types=types)
