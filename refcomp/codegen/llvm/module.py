"""Print functions of the loop IR, at the host level, as one file of LLVM IR.

Requires functions after the passes of a host target: all loops are serial, parallel regions are
outlined, bfloat16 is lowered, and LLVM or libm has each intrinsic.
Ensures a text that LLVM 15 to 19 read. Refuses two functions of the same name.

The functions have the ABI of host code: `i32 name(pointers and scalars, i64 for each symbol, i32
num_threads)`. They return 0 on success, and 1 if memory is lacking.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from refcomp.codegen.accumulator import BODY, Chunk, Declarations, join_chunks
from refcomp.codegen.line_map import LineMap
from refcomp.codegen.llvm.calls import CALL_STATEMENTS, EXTERN_EXPRESSIONS, OWN_CALLS
from refcomp.codegen.llvm.expressions import EXPRESSIONS
from refcomp.codegen.llvm.function import (
    ExpressionPrinters,
    LlvmFunction,
    LlvmModule,
    StatementPrinters,
)
from refcomp.codegen.llvm.imports import (
    all_imports,
    check_names,
    import_chunks,
    refuse_name,
)
from refcomp.codegen.llvm.joined_calls import declare_callers
from refcomp.codegen.llvm.maths import CALLS
from refcomp.codegen.llvm.memory import READS
from refcomp.codegen.llvm.separate_imports import separate
from refcomp.codegen.llvm.statements import HOST_STATEMENTS
from refcomp.codegen.signature import machine_symbol
from refcomp.codegen.spelling import load_spelling
from refcomp.foundation.artifacts import Source
from refcomp.foundation.dtype import I32, I64
from refcomp.foundation.errors import UserError
from refcomp.foundation.python_limits import deep_recursion, paused_collector
from refcomp.ir.expr import Var
from refcomp.ir.func import PrimFunc

_DECLARED = re.compile(r"^declare [^@]*@([-\w.$]+)\(", re.MULTILINE)
# Part of the data layout of a machine whose addresses have 32 bits.
_SHORT_POINTERS = re.compile(r"(?:^|-)p:32:")
_EXPRESSIONS: ExpressionPrinters = {
    **EXPRESSIONS,
    **READS,
    **CALLS,
    **EXTERN_EXPRESSIONS,
}
_STATEMENTS: StatementPrinters = {**HOST_STATEMENTS, **CALL_STATEMENTS}


def print_llvm(
    funcs: Sequence[PrimFunc],
    *,
    triple: str,
    layout: str,
    vector_bits: int,
    word_bits: int = 0,
) -> Source:
    """Return one module with `funcs`.

    Args:
        funcs: at the host level.
        triple: LLVM's name of the target.
        layout: the target's data layout, as LLVM spells it.
        vector_bits: width of the widest vector register; no vector of maths is wider.
        word_bits: width of the widest vector of 16-bit integers whose products are added in pairs
            by one instruction; 0 if there is none.
    """
    printer = HostPrinter(
        triple=triple, layout=layout, vector_bits=vector_bits, word_bits=word_bits
    )
    return printer.print_part(funcs)


class HostPrinter:
    """A printer of functions in several parts. Each part is a file that can be compiled alone.

    No two parts define the same name, so that one file can hold all parts, too. A function may call
    only the imported functions of its own part. The arguments are those of `print_llvm`.
    """

    def __init__(
        self, *, triple: str, layout: str, vector_bits: int, word_bits: int = 0
    ) -> None:
        self._module = LlvmModule(load_spelling("llvm"), triple, vector_bits)
        self._module.word_bits = word_bits
        if _SHORT_POINTERS.search(layout):
            self._module.c_size = I32
        self._triple = triple
        self._layout = layout
        self._funcs: list[PrimFunc] = []  # of all parts
        self._functions: list[Chunk] = []  # their texts
        self._declarations = Declarations()  # what the texts declare
        self._imports: list[str] = []  # the user's own LLVM IR

    @deep_recursion()
    @paused_collector()
    def print_part(
        self, funcs: Sequence[PrimFunc], *, has_others: bool = False
    ) -> Source:
        """Return a file with `funcs` alone.

        Args:
            funcs: the functions.
            has_others: True if there are other parts. In a module of several functions, one call
                can run several of them (see `declare_callers`).
        """
        module = self._module
        module.functions = []
        module.declarations = Declarations()
        for func in funcs:
            reserve_symbol(module, func)
        imports = separate(all_imports(funcs))
        _take_imported(module, imports)
        for func in funcs:
            _print_function(module, func)
        if has_others or len(funcs) > 1:
            declare_callers(module, funcs)
        self._funcs += funcs
        self._functions += module.functions
        self._declarations.update(module.declarations)
        self._imports += imports
        return self._file(funcs, module.functions, module.declarations, imports)

    def whole(self) -> Source:
        """Return a file with the functions of all parts."""
        return self._file(
            self._funcs, self._functions, self._declarations, self._imports
        )

    def _file(
        self,
        funcs: Sequence[PrimFunc],
        functions: Sequence[Chunk],
        declarations: Declarations,
        imports: Sequence[str],
    ) -> Source:
        say = self._module.say
        layout, triple = self._layout, self._triple
        declared = _declared(self._module, declarations.text)
        gap = say.gap() if declarations.text else ""
        text, came_from = join_chunks(
            [
                Chunk(say.header(layout=layout, triple=triple)),
                *functions,
                Chunk(declarations.text + gap),
                Chunk(say.attributes()),
                *import_chunks(imports, declared, triple, layout),
            ]
        )
        requires = frozenset(self._module.requires)
        return Source(text, "llvm", LineMap(funcs, came_from), requires)


def reserve_symbol(module: LlvmModule, func: PrimFunc) -> str:
    """Return the name of `func` in the module. Raise UserError if another function has it."""
    symbol = machine_symbol(func.name)
    if module.take_symbol(symbol) != symbol:
        raise UserError(
            f"two functions named {func.name!r} cannot stand in one module",
            remedy="give each function that is built together a name of its own",
        )
    return symbol


def _take_imported(module: LlvmModule, texts: Sequence[str]) -> None:
    """Let calls find the functions that the user's own LLVM IR defines."""
    for name, function in check_names(texts, OWN_CALLS).items():
        if module.take_symbol(name) != name:
            refuse_name(name, "a function of this module has that name")
        if machine_symbol(name) == f"{name}_":
            why = "it is a function of the C library, which compilers know by name"
            refuse_name(name, why)
        module.imported[name] = function


def _declared(module: LlvmModule, declarations: str) -> set[str]:
    """Return the declared names. Raise UserError if the user's own text defines one of them."""
    declared = set(_DECLARED.findall(declarations))
    for name in sorted(declared & module.imported.keys()):
        refuse_name(name, "compiled code calls the function of that name in a library")
    return declared


def _print_function(module: LlvmModule, func: PrimFunc) -> None:
    out = LlvmFunction(module, _EXPRESSIONS, _STATEMENTS)
    params: list[str] = []

    def print_body() -> None:
        for param in func.params:
            if isinstance(param, Var):
                params.append(print_scalar_param(out, param))
            else:
                params.append(out.say.buffer_param(name=out.name(param)))
        params.extend(_print_symbol(out, symbol) for symbol in func.symbols)
        out.statement(func.body)

    body = out.capture(print_body)
    macro = out.say.function_with_status if out.fails else out.say.function
    out.source = f"func {func.name}"
    symbol = machine_symbol(func.name)
    text = macro(name=symbol, params=params, allocas=BODY, body=BODY)
    out.emit_around(text, out.entry_block(), body)
    module.functions.extend(out.chunks)


def print_scalar_param(out: LlvmFunction, param: Var) -> str:
    """Return the declaration of a parameter. Print its conversion to a value if it needs one."""
    name = out.name(param)
    type_ = out.type_of(param.dtype)
    macros = {"bool": out.say.bool_from_param, "f16": out.say.half_from_param}
    unpack = macros.get(str(param.dtype))
    if unpack is None:
        return out.say.value_param(type=type_, name=name)
    passed = f"{name}.passed"
    out.emit(unpack(result=name, passed=passed))
    type_ = out.tables["type_as_argument"][str(param.dtype)]
    return out.say.value_param(type=type_, name=passed)


def _print_symbol(out: LlvmFunction, symbol: Var) -> str:
    """Return the declaration of a symbol's parameter, an i64. Print its narrowing if needed."""
    name = out.name(symbol)
    i64 = out.type_of(I64)
    if symbol.dtype.bits >= I64.bits:
        return out.say.value_param(type=i64, name=name)
    passed = f"{name}.passed"
    text = out.say.convert(
        result=name,
        opcode=out.tables["cast"]["int_narrow"],
        source=i64,
        value=passed,
        target=out.type_of(symbol.dtype),
    )
    out.emit(text)
    return out.say.value_param(type=i64, name=passed)
