"""The extent of a loop whose kind asks for one that is known while compiling."""

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import IntImm
from refcomp.ir.printer import print_expr
from refcomp.ir.stmt import For


def constant_extent(loop: For) -> int:
    """The constant extent of a vectorized or unrolled loop, at least 0; UserError otherwise."""
    if isinstance(loop.extent, IntImm) and loop.extent.value >= 0:
        return loop.extent.value
    lack = "is negative" if isinstance(loop.extent, IntImm) else "is no constant"
    raise UserError(
        f"the extent of the {loop.kind} loop {loop.var.name}, {print_expr(loop.extent)}, {lack}",
        where=str(loop.origin) if loop.origin else None,
        why=f"a loop is {loop.kind} by writing out all of its iterations",
        remedy="split the axis by a constant factor and use the inner axis, "
        "or give the shape as a constant",
    )
