"""The extent of a loop whose kind asks for one that is known while compiling."""

from refcomp.foundation.errors import UserError
from refcomp.ir.constants import as_int
from refcomp.ir.printer import print_expr
from refcomp.ir.stmt import For


def constant_extent(loop: For) -> int:
    """The constant extent of a vectorized or unrolled loop, at least 0; UserError otherwise."""
    extent = as_int(loop.extent)
    if extent is not None and extent >= 0:
        return extent
    lack = "is no constant" if extent is None else "is negative"
    raise UserError(
        f"the extent of the {loop.kind} loop {loop.var.name}, {print_expr(loop.extent)}, {lack}",
        where=str(loop.origin) if loop.origin else None,
        why=f"a loop is {loop.kind} by writing out all of its iterations",
        remedy="split the axis by a constant factor and use the inner axis, "
        "or give the shape as a constant",
    )
