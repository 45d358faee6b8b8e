"""Print atomic updates as C: integers by functions of the dialect, floats by compare-exchange.

Refuses, with Unsupported, elements that are not 32 or 64 bits wide, and elements of 64 bits if the
device cannot update them.
"""

from __future__ import annotations

from refcomp.codegen.c_family.function import CFunction, CModule
from refcomp.codegen.c_family.memory import element
from refcomp.codegen.c_family.prelude import pick_function
from refcomp.codegen.spelling import Table
from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import Unsupported
from refcomp.ir.stmt import AtomicUpdate


def print_atomic(out: CFunction, update: AtomicUpdate) -> None:
    """Print an AtomicUpdate; value and index are evaluated before it."""
    dtype = update.value.dtype
    by_operator = out.tables["atomic"].get(str(dtype.bits))
    if by_operator is None:
        raise Unsupported(
            f"an atomic {update.operator} on elements of dtype {dtype} of {update.buffer.name}",
            why="devices update elements of 32 and 64 bits at once",
            remedy="accumulate in a buffer of i32 or f32, and convert it afterwards",
        )
    if dtype.is_float:
        function = _function_for_floats(out, update)
    else:
        function = _use(out.module, by_operator[update.operator], dtype)
    place = element(out, update.buffer, update.indices[0])
    address = out.compound(out.say.address, place=place)
    call = out.call(function, address, out.value(update.value))
    out.emit(out.say.evaluate(value=call))


def _use(module: CModule, entry: Table, dtype: DType) -> str:
    """Enable the extension that a function of the dialect needs. Return the function's name."""
    if "extension" in entry:
        what = f"no element of dtype {dtype} can be updated at once"
        module.use(entry["extension"], what)
    return str(entry["name"])


def _function_for_floats(out: CFunction, update: AtomicUpdate) -> str:
    module = out.module
    dtype = update.value.dtype
    scope = update.buffer.scope
    exchange = _use(module, module.tables["compare_exchange"][str(dtype.bits)], dtype)
    old = out.named("a")  # as the macro calls them
    value = out.named("b")
    if update.operator == "add":
        updated = out.infix("Add", old, value)
    else:
        pick = pick_function(module, update.operator.capitalize(), dtype)
        updated = out.call(pick, old, value)
    return module.define(
        f"atomic_{update.operator}_{scope}_{dtype}",
        out.say.atomic_update,
        scope=module.tables["scope"][scope],
        type=module.type_of(dtype),
        bits_type=module.type_of(DType("uint", dtype.bits)),
        exchange=exchange,
        updated=updated,
    )
