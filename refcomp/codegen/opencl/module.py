"""Prints kernels of the loop IR, at the device level, as one file of OpenCL C 1.2.

Needs that the passes of an OpenCL target ran: vectors of 2, 4, 8 or 16 lanes, no bfloat16,
intrinsics that the table `maths` has. Ensures: a kernel's name is `machine_symbol(name)`; its
parameters are its own in order, bools as bytes (as is an f16 that the device has in memory only,
two of them), then one pointer for each shared buffer of a size that is not constant, in the order
of allocation; where the extents of a group are constants, the kernel states them. f32 division
and square roots are correctly rounded where the program is built to. Refuses two kernels of one
name, names that OpenCL has for itself, and what the device's extensions do not offer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from refcomp.codegen.accumulator import BODY, Chunk, join_chunks
from refcomp.codegen.c_family.conversions import from_memory
from refcomp.codegen.c_family.expressions import EXPRESSIONS
from refcomp.codegen.c_family.function import CFunction, CModule
from refcomp.codegen.c_family.maths import CALLS
from refcomp.codegen.c_family.memory import READS
from refcomp.codegen.c_family.statements import print_stmt
from refcomp.codegen.line_map import LineMap
from refcomp.codegen.signature import machine_symbol
from refcomp.codegen.spelling import load_spelling
from refcomp.foundation.artifacts import Source
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.python_limits import deep_recursion
from refcomp.ir.buffer import Buffer
from refcomp.ir.constants import as_constant
from refcomp.ir.expr import Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import is_bound, kernel_nest
from refcomp.ir.stmt import For

_TABLE = EXPRESSIONS | READS | CALLS


@deep_recursion()
def print_opencl(kernels: Sequence[PrimFunc], *, extensions: Collection[str]) -> Source:
    """One file with `kernels`, for a device that offers `extensions` (`cl_khr_fp64`, ...)."""
    module = CModule(load_spelling("c_family", "opencl"), extensions)
    symbols = [_symbol(module, kernel) for kernel in kernels]
    for kernel, symbol in zip(kernels, symbols, strict=True):
        if symbols.count(symbol) > 1:
            raise UserError(
                f"two kernels named {kernel.name!r} cannot stand in one file",
                remedy="give each kernel that is built together a name of its own",
            )
        _print_kernel(module, kernel, symbol)
    text, came_from = join_chunks(
        [
            Chunk(module.say.header(list(module.enabled_extensions))),
            Chunk(module.prelude.text),
            *module.functions,
        ]
    )
    return Source(text, "opencl", LineMap(kernels, came_from))


def _symbol(module: CModule, kernel: PrimFunc) -> str:
    symbol = machine_symbol(kernel.name)
    if module.is_reserved(symbol):
        raise UserError(
            f"no kernel can be named {kernel.name!r}",
            why="the name means something in OpenCL C, or may mean something",
            remedy="give the function another name",
        )
    return symbol


def _print_kernel(module: CModule, kernel: PrimFunc, symbol: str) -> None:
    out = CFunction(module, _TABLE)
    out.group_size = _group_size(kernel)
    out.take_name(symbol)
    params: list[str] = []

    def print_body() -> None:
        out.source = f"func {kernel.name}"
        params.extend(_print_param(out, kernel, param) for param in kernel.params)
        print_stmt(out, kernel.body)

    try:
        body = out.capture_block(print_body)
    except Unsupported as error:
        error.where = error.where or LineMap([kernel], [out.source])[0]
        raise
    params += out.shared_params
    out.source = f"func {kernel.name}"
    declarations: list[Chunk] = [Chunk("".join(out.declarations))]
    text = (
        out.say.kernel(symbol, params, BODY, BODY)
        if out.group_size is None
        else out.say.kernel_of_size(symbol, out.group_size, params, BODY, BODY)
    )
    out.emit_around(text, declarations, body)
    module.functions.extend(out.chunks)


def _print_param(out: CFunction, kernel: PrimFunc, param: Var | Buffer) -> str:
    module = out.module
    if isinstance(param, Buffer):
        type_, scope = (
            module.memory_type_of(param.dtype),
            module.tables["scope"]["global"],
        )
        is_read = param.name not in kernel.outputs
        text: str = out.say.buffer_param(scope, type_, out.name(param), is_read)
        return text
    if module.memory_dtype(param.dtype) == param.dtype:
        text = out.say.value_param(module.type_of(param.dtype), out.name(param))
        return text
    passed = out.take_name(module.harmless(f"{param.name}_passed"))
    value = from_memory(out, out.named(passed), param.dtype)
    out.emit(out.say.define(module.type_of(param.dtype), out.name(param), value.text))
    text = out.say.value_param(module.memory_type_of(param.dtype), passed)
    return text


def _group_size(kernel: PrimFunc) -> list[int] | None:
    """The extents of a group, where they are constants."""
    body = kernel.body
    if not (isinstance(body, For) and is_bound(body)):
        return [1, 1, 1]
    extents = [as_constant(extent) for extent in kernel_nest(body).block]
    sizes = [int(extent) for extent in extents if extent is not None and extent > 0]
    return sizes if len(sizes) == len(extents) else None
