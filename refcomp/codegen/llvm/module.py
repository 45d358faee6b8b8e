"""Prints functions of the loop IR, at the host level, as one file of LLVM IR.

Needs that the passes of a host target ran: serial loops only, outlined parallel regions, no
bfloat16, intrinsics that LLVM or libm has. Ensures text that LLVM 15 to 19 read, whose functions
have the ABI of host code: `i32 name(pointers and scalars, i64 for each symbol, i32 num_threads)`,
0 when all went well and 1 when memory could not be had. Refuses two functions of one name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from refcomp.codegen.accumulator import BODY, Chunk, join_chunks
from refcomp.codegen.line_map import LineMap
from refcomp.codegen.llvm.calls import CALL_STATEMENTS, EXTERN_EXPRESSIONS, OWN_CALLS
from refcomp.codegen.llvm.expressions import EXPRESSIONS
from refcomp.codegen.llvm.function import LlvmFunction, LlvmModule
from refcomp.codegen.llvm.imports import check_names, import_chunks, refuse_name
from refcomp.codegen.llvm.maths import CALLS
from refcomp.codegen.llvm.memory import READS
from refcomp.codegen.llvm.statements import HOST_STATEMENTS
from refcomp.codegen.signature import machine_symbol
from refcomp.codegen.spelling import load_spelling
from refcomp.foundation.artifacts import Source
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.foundation.python_limits import deep_recursion
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Var
from refcomp.ir.func import PrimFunc

_DECLARED = re.compile(r"^declare [^@]*@([-\w.$]+)\(", re.MULTILINE)
_EXPRESSIONS = EXPRESSIONS | READS | CALLS | EXTERN_EXPRESSIONS
_STATEMENTS = {**HOST_STATEMENTS, **CALL_STATEMENTS}


@deep_recursion()
def print_llvm(
    funcs: Sequence[PrimFunc], *, triple: str, layout: str, vector_bits: int
) -> Source:
    """One module with `funcs`, for the target `triple` with the data layout `layout`.

    `vector_bits` is the width of the widest vector register; no vector of maths is wider.
    """
    module = LlvmModule(load_spelling("llvm"), triple, vector_bits)
    for func in funcs:
        reserve_symbol(module, func)
    texts = tuple(dict.fromkeys(text for func in funcs for text in func.imports))
    _take_imported(module, texts)
    for func in funcs:
        _print_function(module, func)
    say, declarations = module.say, module.declarations.text
    gap = say.gap() if declarations else ""
    text, came_from = join_chunks(
        [
            Chunk(say.header(layout, triple)),
            *module.functions,
            Chunk(declarations + gap),
            Chunk(say.attributes()),
            *import_chunks(texts, _declared(module), triple, layout),
        ]
    )
    return Source(text, "llvm", LineMap(funcs, came_from), frozenset(module.requires))


def reserve_symbol(module: LlvmModule, func: PrimFunc) -> str:
    """The name of `func` in the module; UserError when another function has it."""
    symbol = machine_symbol(func.name)
    if module.take_symbol(symbol) != symbol:
        raise UserError(
            f"two functions named {func.name!r} cannot stand in one module",
            remedy="give each function that is built together a name of its own",
        )
    return symbol


def _take_imported(module: LlvmModule, texts: Sequence[str]) -> None:
    """Makes the functions that the user's own LLVM IR defines known to calls."""
    for name, function in check_names(texts, OWN_CALLS).items():
        if module.take_symbol(name) != name:
            refuse_name(name, "a function of this module has that name")
        if machine_symbol(name) == f"{name}_":
            refuse_name(
                name, "it is a function of the C library, which compilers know by name"
            )
        module.imported[name] = function


def _declared(module: LlvmModule) -> set[str]:
    """What the printed functions declare; UserError where the user's own text defines it."""
    declared = set(_DECLARED.findall(module.declarations.text))
    for name in sorted(declared & module.imported.keys()):
        refuse_name(name, "compiled code calls the function of that name in a library")
    return declared


def _print_function(module: LlvmModule, func: PrimFunc) -> None:
    out = LlvmFunction(module, _EXPRESSIONS, _STATEMENTS)
    params: list[str] = []

    def print_body() -> None:
        params.extend(_print_param(out, param) for param in func.params)
        params.extend(_print_symbol(out, symbol) for symbol in func.symbols)
        out.statement(func.body)

    body = out.capture(print_body)
    macro = out.say.function_with_status if out.fails else out.say.function
    out.source = f"func {func.name}"
    out.emit_around(
        macro(machine_symbol(func.name), params, BODY, BODY), out.entry_block(), body
    )
    module.functions.extend(out.chunks)


def _print_param(out: LlvmFunction, param: Var | Buffer) -> str:
    if isinstance(param, Var):
        return print_scalar_param(out, param)
    text: str = out.say.buffer_param(out.name(param))
    return text


def print_scalar_param(out: LlvmFunction, param: Var) -> str:
    """The parameter `param`; prints what makes a value of what is passed."""
    name, dtype = out.name(param), str(param.dtype)
    unpack = {"bool": out.say.bool_from_param, "f16": out.say.half_from_param}.get(
        dtype
    )
    type_ = out.module.type_of(param.dtype)
    if unpack is not None:
        type_, passed = out.module.tables["type_as_argument"][dtype], f"{name}.passed"
        out.emit(unpack(name, passed))
        name = passed
    text: str = out.say.value_param(type_, name)
    return text


def _print_symbol(out: LlvmFunction, symbol: Var) -> str:
    name, passed_type = out.name(symbol), out.module.type_of(I64)
    if symbol.dtype.bits < I64.bits:
        passed, narrow = f"{name}.passed", out.module.tables["cast"]["int_narrow"]
        type_ = out.module.type_of(symbol.dtype)
        out.emit(out.say.convert(name, narrow, passed_type, passed, type_))
        name = passed
    text: str = out.say.value_param(passed_type, name)
    return text
