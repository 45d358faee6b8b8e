"""Classic operators of a tensor and a number, which Python's operators on symbols make."""

from __future__ import annotations

from collections.abc import Callable

from refcomp.graph.graph import Value
from refcomp.graph.symbol.declare import classic, same_shapes
from refcomp.graph.symbol.operator import NodeMaker
from refcomp.graph.symbol.symbol import Symbol


def _with_scalar(
    name: str, operator: str, meaning: str, is_reversed: bool = False
) -> Callable[..., Symbol]:
    """Declare an operator whose second operand is a number; the first one if it is reversed."""

    def convert(make: NodeMaker, data: Value, *, scalar: float) -> Value:
        number = make.scalar(scalar, data.dtype)
        operands = [number, data] if is_reversed else [data, number]
        return make.last(operator, operands)

    convert.__name__ = name
    convert.__doc__ = f"""Return {meaning}, for each element x.

    The result has the shape and dtype of `data`.

    Example::

        >>> rc.sym.{name}(rc.sym.Variable("x"), scalar=2, name="y").list_output_names()
        ['y_output']
    """
    return classic(shapes=same_shapes)(convert)


__add_scalar__ = _with_scalar("__add_scalar__", "add", "x + scalar")
__sub_scalar__ = _with_scalar("__sub_scalar__", "subtract", "x - scalar")
__rsub_scalar__ = _with_scalar("__rsub_scalar__", "subtract", "scalar - x", True)
__mul_scalar__ = _with_scalar("__mul_scalar__", "multiply", "x * scalar")
__div_scalar__ = _with_scalar("__div_scalar__", "divide", "x / scalar")
__rdiv_scalar__ = _with_scalar("__rdiv_scalar__", "divide", "scalar / x", True)
__pow_scalar__ = _with_scalar("__pow_scalar__", "power", "x to the power of scalar")
__rpow_scalar__ = _with_scalar(
    "__rpow_scalar__", "power", "scalar to the power of x", True
)
__left_shift_scalar__ = _with_scalar(
    "__left_shift_scalar__", "left_shift", "x, shifted left by scalar bits"
)
__right_shift_scalar__ = _with_scalar(
    "__right_shift_scalar__", "right_shift", "x, shifted right by scalar bits"
)
