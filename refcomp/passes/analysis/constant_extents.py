"""Returns the extent of a loop of a kind that needs a constant extent."""

from refcomp.foundation.errors import UserError
from refcomp.ir.constants import as_int
from refcomp.ir.printer import print_expr
from refcomp.ir.stmt import For, line_of, place_of


def constant_extent(loop: For) -> int:
    """Return the extent of a vectorized or unrolled loop.

    Raises:
        UserError: the extent is not a constant, or is negative.
    """
    extent = as_int(loop.extent)
    if extent is not None and extent >= 0:
        return extent
    flaw = "is not a constant" if extent is None else "is negative"
    raise UserError(
        f"the extent of the {loop.kind} loop {loop.var.name}, "
        f"{print_expr(loop.extent)}, {flaw}",
        where=place_of(loop.origin),
        at=line_of(loop.origin),
        why=f"a loop is {loop.kind} by writing out all of its iterations",
        remedy="split the axis by a constant factor and use the inner axis, "
        "or give the shape as a constant",
    )
