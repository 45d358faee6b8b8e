"""Print products of pairs (`refcomp.ir.integer_pairs`) by x86's instruction for them, pmaddwd.

LLVM does not find the instruction behind the shifts: it multiplies the low and the high halves
apart. Processors with VNNI add the products to a sum by the same instruction, vpdpwssd, which LLVM
chooses itself. A vector of several registers is multiplied in halves, again and again. Vectors of
other lengths, scalars and other processors have the arithmetic as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping

from refcomp.codegen.llvm.function import LlvmFunction, TypedValue
from refcomp.foundation.dtype import DType
from refcomp.ir.expr import Add
from refcomp.ir.integer_pairs import find_pair_product


def print_pair_product(out: LlvmFunction, expr: Add) -> str | None:
    """Print the instruction for `expr` and return its operand; None if there is none for it."""
    module = out.module
    table = out.tables.get("pair_product", {})
    if module.architecture != table.get("architecture"):
        return None
    dtype = expr.dtype
    halvings = _halvings(dtype, table["function"], module.word_bits)
    factors = None if halvings is None else find_pair_product(expr)
    if halvings is None or factors is None:
        return None
    values = [out.value(factor) for factor in factors]
    return _product(out, table["function"], dtype, values, halvings)


def _halvings(dtype: DType, functions: Mapping[str, str], word_bits: int) -> int | None:
    """Return how often a vector must be halved for an instruction; None if there is none."""
    bits = dtype.bits * dtype.lanes
    count = 0
    while bits > word_bits:
        if bits % 2 or not word_bits:
            return None
        bits //= 2
        count += 1
    return count if str(bits) in functions else None


def _product(
    out: LlvmFunction,
    functions: Mapping[str, str],
    dtype: DType,
    factors: list[str],
    halvings: int,
) -> str:
    """Print the products of two vectors, in 2^halvings parts of equal length."""
    if not halvings:
        words = DType("int", 16, 2 * dtype.lanes)
        opcode = out.tables["reinterpret"]["float_to_bits"]
        arguments = [
            TypedValue(out.type_of(words), out.convert(opcode, factor, dtype, words))
            for factor in factors
        ]
        function = functions[str(dtype.bits * dtype.lanes)]
        return out.call_intrinsic(function, out.type_of(dtype), *arguments)
    half = dtype.with_lanes(dtype.lanes // 2)
    lanes = range(dtype.lanes)
    products = []
    for picked in (lanes[: half.lanes], lanes[half.lanes :]):
        parts = [
            out.instruction(
                out.say.take_lanes, type=out.type_of(dtype), value=factor, picked=picked
            )
            for factor in factors
        ]
        products.append(_product(out, functions, half, parts, halvings - 1))
    return out.instruction(
        out.say.join_lanes,
        type=out.type_of(half),
        a=products[0],
        b=products[1],
        picked=lanes,
    )
