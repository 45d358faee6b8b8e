"""Functions that a file defines once, where a kernel uses them: what C has no operator for.

Their names end with the dtype; no name of a user's does so (see `[reserved_in_c]`).
"""

from __future__ import annotations

from refcomp.codegen.c_family.function import CModule, ring_of
from refcomp.foundation.dtype import DType


def integer_function(module: CModule, macro: str, dtype: DType) -> str:
    """The function that the macro defines for two integers of `dtype`: a division by what may be
    zero, or a shift by what may exceed the width."""
    name = f"{macro.removesuffix(f'_{dtype.kind}')}_{dtype}"
    unsigned = module.type_of(DType("uint", dtype.bits))
    types = (module.type_of(dtype), module.type_of(ring_of(dtype)), unsigned)
    write, prefix = getattr(module.say, macro), module.say.function_prefix()
    module.prelude.add(name, lambda: write(prefix, name, *types, dtype.bits))
    return name


def pick_function(module: CModule, node: str, dtype: DType) -> str:
    """The function that is Min or Max (`node`) of two floats, or of two vectors of them."""
    held = module.value_dtype(dtype)
    name = f"{'least' if node == 'Min' else 'greatest'}_{held}"
    symbol = module.tables["operator"]["LT" if node == "Min" else "GT"]["symbol"]
    write = module.say.pick if dtype.lanes == 1 else module.say.pick_lanes
    type_, prefix = module.type_of(dtype), module.say.function_prefix()
    module.prelude.add(name, lambda: write(prefix, name, type_, symbol))
    return name
