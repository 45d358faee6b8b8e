"""Print products of pairs (`refcomp.ir.integer_pairs`) by x86's instruction for them, pmaddwd.

LLVM does not find the instruction behind the shifts: it multiplies the low and the high halves
apart. Processors with VNNI add the products to a sum by the same instruction, vpdpwssd, which LLVM
chooses itself. Vectors of other lengths, scalars and other processors have the arithmetic as it
stands.
"""

from __future__ import annotations

from refcomp.codegen.llvm.function import LlvmFunction, TypedValue
from refcomp.foundation.dtype import DType
from refcomp.ir.expr import Add
from refcomp.ir.integer_pairs import find_pair_product


def print_pair_product(out: LlvmFunction, expr: Add) -> str | None:
    """Print the instruction for `expr` and return its operand; None if there is none for it."""
    module = out.module
    table = out.tables.get("pair_product", {})
    dtype = expr.dtype
    bits = dtype.bits * dtype.lanes
    if bits > module.word_bits or module.architecture != table.get("architecture"):
        return None
    function = table["function"].get(str(bits))
    factors = find_pair_product(expr)
    if function is None or factors is None:
        return None
    words = DType("int", 16, 2 * dtype.lanes)
    opcode = out.tables["reinterpret"]["float_to_bits"]
    arguments = [
        TypedValue(
            out.type_of(words), out.convert(opcode, out.value(factor), dtype, words)
        )
        for factor in factors
    ]
    return out.call_intrinsic(function, out.type_of(dtype), *arguments)
