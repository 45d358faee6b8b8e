"""Classic operators of one tensor, element by element."""

from __future__ import annotations

from collections.abc import Callable

from refcomp.graph.graph import Value
from refcomp.graph.symbol.declare import classic, dtype_of_attribute, same_shapes
from refcomp.graph.symbol.operator import NodeMaker
from refcomp.graph.symbol.symbol import Symbol


def _of_one(
    name: str, operator: str, meaning: str, aliases: tuple[str, ...] = ()
) -> Callable[..., Symbol]:
    """Declare an operator that is one operator of topi."""

    def convert(make: NodeMaker, data: Value) -> Value:
        return make.last(operator, [data])

    convert.__name__ = name
    convert.__doc__ = f"""Return {meaning}, for each element x.

    The result has the shape and dtype of `data`.
    """
    return classic(shapes=same_shapes, aliases=aliases)(convert)


sigmoid = _of_one("sigmoid", "sigmoid", "1 / (1 + exp(-x))")
tanh = _of_one("tanh", "tanh", "the hyperbolic tangent of x")
exp = _of_one("exp", "exp", "e to the power of x")
log = _of_one("log", "log", "the natural logarithm of x")
sqrt = _of_one("sqrt", "sqrt", "the square root of x")
negative = _of_one("negative", "negative", "-x")
abs = _of_one("abs", "abs", "the absolute value of x")
floor = _of_one("floor", "floor", "the greatest integer that is not above x")
ceil = _of_one("ceil", "ceil", "the least integer that is not below x")
trunc = _of_one("trunc", "trunc", "x without its fraction")
round = _of_one("round", "round", "the nearest integer, of two the even one")
sign = _of_one("sign", "sign", "-1, 0 or 1")
copy = _of_one("copy", "identity", "x itself", aliases=("identity",))
block_grad = _of_one("block_grad", "identity", "x itself, without a gradient")


@classic(
    shapes=same_shapes,
    texts={"a_min": "the least value.", "a_max": "the greatest value."},
)
def clip(make: NodeMaker, data: Value, *, a_min: float, a_max: float) -> Value:
    """Return x, or the nearest value between a_min and a_max, for each element x.

    Example::

        >>> rc.sym.clip(rc.sym.Variable("x"), a_min=0, a_max=6).infer_shape(x=(2,))[1]
        [(2,)]
    """
    return make.last("clip", [data], {"minimum": a_min, "maximum": a_max})


@classic(shapes=same_shapes, dtypes=dtype_of_attribute)
def cast(make: NodeMaker, data: Value, *, dtype: str) -> Value:
    """Return each element converted to another dtype. Floats become integers without a fraction.

    Example::

        >>> rc.sym.cast(rc.sym.Variable("x"), dtype="int8").infer_dtype()
        (['float32'], ['int8'])
    """
    return make.last("cast", [data], {"dtype": dtype})


@classic(shapes=same_shapes)
def logical_not(make: NodeMaker, data: Value) -> Value:
    """Return 1 where x is 0, else 0, for each element x.

    The result has the shape and dtype of `data`.
    """
    found = make.step("logical_not", [is_set(make, data)])
    return make.last("cast", [found], {"dtype": str(data.dtype)})


def is_set(make: NodeMaker, data: Value) -> Value:
    """Return a tensor of bool: True where an element is not 0."""
    if str(data.dtype) == "bool":
        return data
    return make.step("not_equal", [data, make.scalar(0, data.dtype)])
