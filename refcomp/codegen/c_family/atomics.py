"""Prints atomic updates as C: integers by functions of the dialect, floats by compare-exchange.

Refuses, with Unsupported, elements that are not 32 or 64 bits wide, and those of 64 where the
device lacks them.
"""

from __future__ import annotations

from typing import Any

from refcomp.codegen.c_family.function import CExpr, CFunction, CModule
from refcomp.codegen.c_family.memory import element
from refcomp.codegen.c_family.prelude import pick_function
from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import Unsupported
from refcomp.ir.stmt import AtomicUpdate


def print_atomic(out: CFunction, update: AtomicUpdate) -> None:
    """Prints an AtomicUpdate; value and index are evaluated before it."""
    dtype, scope, index = update.value.dtype, update.buffer.scope, update.indices[0]
    by_width = out.module.tables["atomic"].get(str(dtype.bits))
    if by_width is None:
        raise Unsupported(
            f"an atomic {update.operator} on elements of dtype {dtype} of {update.buffer.name}",
            why="devices update elements of 32 and 64 bits at once",
            remedy="accumulate in a buffer of i32 or f32, and convert it afterwards",
        )
    if dtype.is_float:
        function = _function_for_floats(out, update.operator, dtype, scope)
    else:
        function = _use(out.module, by_width[update.operator], dtype)
    place = element(out, update.buffer, index)
    address = out.compound(out.say.address(place.text), place)
    out.emit(
        out.say.evaluate(out.call(function, address, out.value(update.value)).text)
    )


def _use(module: CModule, entry: dict[str, Any], dtype: DType) -> str:
    if "extension" in entry:
        module.use(
            entry["extension"], f"no element of dtype {dtype} can be updated at once"
        )
    name: str = entry["name"]
    return name


def _function_for_floats(
    out: CFunction, operator: str, dtype: DType, scope: str
) -> str:
    module, name = out.module, f"atomic_{operator}_{scope}_{dtype}"
    exchange = _use(module, module.tables["compare_exchange"][str(dtype.bits)], dtype)
    updated = _updated(out, operator, dtype).text
    types = (module.type_of(dtype), module.type_of(DType("uint", dtype.bits)))
    space, prefix = module.tables["scope"][scope], out.say.function_prefix()
    write = out.say.atomic_update
    module.prelude.add(
        name, lambda: write(prefix, name, space, *types, exchange, updated)
    )
    return name


def _updated(out: CFunction, operator: str, dtype: DType) -> CExpr:
    old, value = out.named("a"), out.named("b")  # as the macro calls them
    if operator == "add":
        return out.infix("Add", old, value)
    return out.call(pick_function(out.module, operator.capitalize(), dtype), old, value)
