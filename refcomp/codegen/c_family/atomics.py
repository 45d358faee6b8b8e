"""Print atomic updates as C: by functions of the dialect, else by compare-exchange.

The table `atomic` names the functions, for integers by their width and for floats by their dtype.
Refuses, with Unsupported, elements of 8 and 16 bits if the dialect cannot exchange parts of a word.
Likewise, it refuses elements of 64 bits if the device cannot update them.
"""

from __future__ import annotations

from refcomp.codegen.c_family.function import CExpr, CFunction, CModule
from refcomp.codegen.c_family.memory import element
from refcomp.codegen.c_family.prelude import pick_function
from refcomp.codegen.spelling import Table
from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import Unsupported
from refcomp.ir.stmt import AtomicUpdate

_INFIX = {"add": "Add", "and": "BitAnd", "or": "BitOr", "xor": "BitXor"}


def print_atomic(out: CFunction, update: AtomicUpdate) -> None:
    """Print an AtomicUpdate; value and index are evaluated before it."""
    dtype = update.value.dtype
    exchange = out.tables["compare_exchange"].get(str(dtype.bits))
    if exchange is None:
        raise Unsupported(
            f"an atomic {update.operator} on elements of dtype {dtype} of {update.buffer.name}",
            why="devices update elements of 32 and 64 bits at once",
            remedy="accumulate in a buffer of i32 or f32, and convert it afterwards",
        )
    key = str(dtype) if dtype.is_float else str(dtype.bits)
    entry = out.tables["atomic"].get(key, {}).get(update.operator)
    if entry is not None:
        function = _use(out.module, entry, dtype)
    else:
        function = _function_by_exchange(out, update, exchange)
    place = element(out, update.buffer, update.indices[0])
    address = out.compound(out.say.address, place=place)
    call = out.call(function, address, out.narrowed(out.value(update.value), dtype))
    out.emit(out.say.evaluate(value=call))


def _use(module: CModule, entry: Table, dtype: DType) -> str:
    """Enable the extension that a function of the dialect needs. Return the function's name."""
    if "extension" in entry:
        what = f"no element of dtype {dtype} can be updated at once"
        module.use(entry["extension"], what)
    return str(entry["name"])


def _function_by_exchange(out: CFunction, update: AtomicUpdate, entry: Table) -> str:
    """Define a function that tries again while other threads come between. Return its name."""
    module = out.module
    dtype = update.value.dtype
    scope = update.buffer.scope
    exchange = _use(module, entry, dtype)
    updated = _updated(
        out, update, out.named("a"), out.named("b")
    )  # as the macro calls them
    return module.define(
        f"atomic_{update.operator}_{scope}_{dtype}",
        out.say.atomic_update,
        scope=module.tables["scope"][scope],
        type=module.type_of(dtype),
        bits_type=module.type_of(DType("uint", dtype.bits)),
        exchange=exchange,
        updated=updated,
        is_part=entry.get("part", False),
    )


def _updated(out: CFunction, update: AtomicUpdate, old: CExpr, value: CExpr) -> CExpr:
    """Return what replaces an element `old`."""
    dtype = update.value.dtype
    if update.operator in _INFIX:
        updated = out.infix(_INFIX[update.operator], old, value)
    elif dtype.is_float:
        pick = pick_function(out.module, update.operator.capitalize(), dtype)
        updated = out.call(pick, old, value)
    else:
        is_min = update.operator == "min"
        macro = out.say.least if is_min else out.say.greatest
        updated = out.compound(macro, a=old, b=value)
    return out.narrowed(updated, dtype)
