"""Functions that a file defines once if its kernels use them, where C has no operator.

Their names end with the dtype. No user's name ends so (see the table `reserved_in_c`).
"""

from __future__ import annotations

from refcomp.codegen.c_family.function import CModule, wrapping_dtype
from refcomp.foundation.dtype import DType


def integer_function(module: CModule, macro: str, dtype: DType) -> str:
    """Define the function of `macro` on two integers of `dtype`. Return its name.

    It is a division, whose divisor may be zero, or a shift, whose amount may exceed the width.
    """
    return module.define(
        f"{macro.removesuffix(f'_{dtype.kind}')}_{dtype}",
        getattr(module.say, macro),
        type=module.type_of(dtype),
        wrapping=module.type_of(wrapping_dtype(dtype)),
        unsigned=module.type_of(DType("uint", dtype.bits)),
        bits=dtype.bits,
    )


def pick_function(module: CModule, node: str, dtype: DType) -> str:
    """Define Min or Max (`node`) of two floats, or of two vectors of floats. Return its name."""
    is_min = node == "Min"
    symbol = module.tables["operator"]["LT" if is_min else "GT"]["symbol"]
    return module.define(
        f"{'least' if is_min else 'greatest'}_{module.value_dtype(dtype)}",
        module.say.pick if dtype.lanes == 1 else module.say.pick_lanes,
        type=module.type_of(dtype),
        symbol=symbol,
    )
