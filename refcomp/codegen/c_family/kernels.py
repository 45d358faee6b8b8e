"""Print kernels in a language of the C family: names, parameters, and the file that holds them.

Ensures of each kernel:

- Its name is `machine_symbol(name)`.
- Its parameters are its own in order. A bool is passed as a byte, and an f16 that the device has
  only in memory as its two bytes.
- It states the extents of its group if they are constants.

Refuses, with UserError, two kernels of one name, and names that mean something in the language.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.codegen.accumulator import BODY, Chunk
from refcomp.codegen.c_family.conversions import from_memory
from refcomp.codegen.c_family.expressions import EXPRESSIONS
from refcomp.codegen.c_family.function import (
    CFunction,
    CModule,
    ExpressionPrinters,
    StatementPrinters,
)
from refcomp.codegen.c_family.maths import CALLS
from refcomp.codegen.c_family.memory import READS
from refcomp.codegen.c_family.statements import print_stmt
from refcomp.codegen.line_map import LineMap
from refcomp.codegen.signature import machine_symbol
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.ir.buffer import Buffer
from refcomp.ir.constants import as_constant
from refcomp.ir.expr import Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import is_bound, kernel_nest
from refcomp.ir.stmt import For

_PRINTERS: ExpressionPrinters = {**EXPRESSIONS, **READS, **CALLS}


def print_kernels(
    module: CModule,
    kernels: Sequence[PrimFunc],
    language: str,
    instructions: ExpressionPrinters | None = None,
    statements: StatementPrinters | None = None,
) -> None:
    """Print `kernels` to `module`.

    Args:
        module: the file.
        kernels: functions at the device level.
        language: its name in messages.
        instructions: printers of expressions that only this dialect has.
        statements: printers of statements that this dialect prints its own way.
    """
    printers = {**_PRINTERS, **(instructions or {})}
    symbols = [_symbol(module, kernel, language) for kernel in kernels]
    for kernel, symbol in zip(kernels, symbols, strict=True):
        if symbols.count(symbol) > 1:
            raise UserError(
                f"two kernels named {kernel.name!r} cannot stand in one file",
                remedy="give each kernel that is built together a name of its own",
            )
        _print_kernel(CFunction(module, printers, statements), kernel, symbol)


def _symbol(module: CModule, kernel: PrimFunc, language: str) -> str:
    symbol = machine_symbol(kernel.name)
    if module.is_reserved(symbol):
        raise UserError(
            f"no kernel can be named {kernel.name!r}",
            why=f"the name means something in {language}, or may mean something",
            remedy="give the function another name",
        )
    return symbol


def _print_kernel(out: CFunction, kernel: PrimFunc, symbol: str) -> None:
    module = out.module
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
    out.source = f"func {kernel.name}"
    holes = {
        "name": symbol,
        "params": params + out.shared_params,
        "declarations": BODY,
        "body": BODY,
    }
    if out.group_size is None:
        text = out.say.kernel(**holes)
    else:
        text = out.say.kernel_of_size(size=out.group_size, **holes)
    out.emit_around(text, [Chunk("".join(out.declarations))], body)
    module.functions.extend(out.chunks)


def _print_param(out: CFunction, kernel: PrimFunc, param: Var | Buffer) -> str:
    """Return the declaration of a parameter. Print its conversion to a value if it needs one."""
    module = out.module
    if isinstance(param, Buffer):
        return out.say.buffer_param(
            scope=module.tables["scope"]["global"],
            type=module.memory_type_of(param.dtype),
            name=out.name(param),
            is_read=param.name not in kernel.outputs,
        )
    type_ = module.type_of(param.dtype)
    if module.memory_dtype(param.dtype) == param.dtype:
        return out.say.value_param(type=type_, name=out.name(param))
    passed = out.take_name(module.identifier(f"{param.name}_passed"))
    value = from_memory(out, out.named(passed), param.dtype)
    out.emit(
        out.say.define(
            type=type_,
            name=out.name(param),
            value=value,
        )
    )
    return out.say.value_param(type=module.memory_type_of(param.dtype), name=passed)


def _group_size(kernel: PrimFunc) -> list[int] | None:
    """Return the extents of a group, or None if one is not constant."""
    body = kernel.body
    if not (isinstance(body, For) and is_bound(body)):
        return [1, 1, 1]
    extents = [as_constant(extent) for extent in kernel_nest(body).block]
    sizes = [int(extent) for extent in extents if extent is not None and extent > 0]
    return sizes if len(sizes) == len(extents) else None
