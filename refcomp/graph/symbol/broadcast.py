"""Classic operators of two or more tensors, element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import UserError
from refcomp.graph.graph import Value
from refcomp.graph.symbol.declare import classic, no_shapes, same_shapes
from refcomp.graph.symbol.elementwise import is_set
from refcomp.graph.symbol.operator import Attributes, NodeMaker
from refcomp.graph.symbol.symbol import Symbol

_SHAPES = "Shapes broadcast as in numpy."


def _check_same_shapes(operator: str, values: Sequence[Value]) -> None:
    shapes = dict.fromkeys(value.shape for value in values)
    if len(shapes) > 1:
        raise UserError(
            f"{operator} is applied to different shapes",
            remedy=f"give equal shapes, or use {operator.replace('elemwise', 'broadcast')}",
        )


def _of_equal(
    name: str, operator: str, meaning: str, aliases: tuple[str, ...] = ()
) -> Callable[..., Symbol]:
    """Declare an operator of two tensors of one shape."""

    def convert(make: NodeMaker, lhs: Value, rhs: Value) -> Value:
        _check_same_shapes(name, [lhs, rhs])
        return make.last(operator, [lhs, rhs])

    convert.__name__ = name
    convert.__doc__ = (
        f"""Return {meaning}, element by element. Both operands have one shape."""
    )
    return classic(shapes=same_shapes, aliases=aliases)(convert)


def _of_two(
    name: str, operator: str, meaning: str, aliases: tuple[str, ...] = ()
) -> Callable[..., Symbol]:
    """Declare an operator of two tensors whose shapes broadcast."""

    def convert(make: NodeMaker, lhs: Value, rhs: Value) -> Value:
        return make.last(operator, [lhs, rhs])

    convert.__name__ = name
    convert.__doc__ = f"""Return {meaning}, element by element. {_SHAPES}"""
    return classic(aliases=aliases)(convert)


def _comparison(name: str, operator: str, meaning: str) -> Callable[..., Symbol]:
    """Declare a comparison, whose result has the dtype of its operands."""

    def convert(make: NodeMaker, lhs: Value, rhs: Value) -> Value:
        found = make.step(operator, [lhs, rhs])
        return make.last("cast", [found], {"dtype": str(lhs.dtype)})

    convert.__name__ = name
    convert.__doc__ = (
        f"""Return 1 where {meaning}, else 0, in the dtype of `lhs`. {_SHAPES}"""
    )
    return classic()(convert)


def _logical(name: str, meaning: str) -> Callable[..., Symbol]:
    """Declare a logical operator. Elements other than 0 count as true."""

    def convert(make: NodeMaker, lhs: Value, rhs: Value) -> Value:
        found = make.step(name, [is_set(make, lhs), is_set(make, rhs)])
        return make.last("cast", [found], {"dtype": str(lhs.dtype)})

    convert.__name__ = name
    convert.__doc__ = f"""Return 1 where {meaning} not 0, else 0, in the dtype of `lhs`.

    {_SHAPES}
    """
    return classic()(convert)


elemwise_add = _of_equal("elemwise_add", "add", "lhs + rhs")
elemwise_sub = _of_equal("elemwise_sub", "subtract", "lhs - rhs")
elemwise_mul = _of_equal("elemwise_mul", "multiply", "lhs * rhs")
elemwise_div = _of_equal("elemwise_div", "divide", "lhs / rhs")
elemwise_mod = _of_equal(
    "elemwise_mod", "mod", "the remainder of lhs / rhs, with the sign of lhs"
)
elemwise_pow = _of_equal("elemwise_pow", "power", "lhs to the power of rhs")

broadcast_add = _of_two("broadcast_add", "add", "lhs + rhs", ("__add_symbol__",))
broadcast_sub = _of_two("broadcast_sub", "subtract", "lhs - rhs", ("__sub_symbol__",))
broadcast_mul = _of_two("broadcast_mul", "multiply", "lhs * rhs", ("__mul_symbol__",))
broadcast_div = _of_two("broadcast_div", "divide", "lhs / rhs", ("__div_symbol__",))
broadcast_mod = _of_two(
    "broadcast_mod", "mod", "the remainder of lhs / rhs, with the sign of lhs"
)
broadcast_pow = _of_two(
    "broadcast_pow", "power", "lhs to the power of rhs", ("__pow_symbol__",)
)
broadcast_max = _of_two("broadcast_max", "maximum", "the greater element")
broadcast_min = _of_two("broadcast_min", "minimum", "the lesser element")
broadcast_left_shift = _of_two(
    "broadcast_left_shift",
    "left_shift",
    "lhs, shifted left by rhs bits",
    ("__left_shift_symbol__",),
)
broadcast_right_shift = _of_two(
    "broadcast_right_shift",
    "right_shift",
    "lhs, shifted right by rhs bits",
    ("__right_shift_symbol__",),
)

broadcast_greater = _comparison("broadcast_greater", "greater", "lhs > rhs")
broadcast_less = _comparison("broadcast_less", "less", "lhs < rhs")
broadcast_greater_equal = _comparison(
    "broadcast_greater_equal", "greater_equal", "lhs >= rhs"
)
broadcast_less_equal = _comparison("broadcast_less_equal", "less_equal", "lhs <= rhs")
broadcast_equal = _comparison("broadcast_equal", "equal", "lhs is equal to rhs")
broadcast_not_equal = _comparison(
    "broadcast_not_equal", "not_equal", "lhs differs from rhs"
)
greater = _comparison("greater", "greater", "lhs > rhs")
less = _comparison("less", "less", "lhs < rhs")
greater_equal = _comparison("greater_equal", "greater_equal", "lhs >= rhs")
less_equal = _comparison("less_equal", "less_equal", "lhs <= rhs")
equal = _comparison("equal", "equal", "lhs is equal to rhs")
not_equal = _comparison("not_equal", "not_equal", "lhs differs from rhs")

logical_and = _logical("logical_and", "both elements are")
logical_or = _logical("logical_or", "one of the elements is")


@classic(shapes=same_shapes, texts={"data": "at least one tensor; all of one shape."})
def elemwise_sum(make: NodeMaker, *data: Value) -> Value:
    """Return the sum of all tensors, element by element, from left to right."""
    _check_same_shapes("elemwise_sum", data)
    return make.last("add_n", data)


def _where_dtypes(inputs: Sequence[DType], _: Attributes) -> Sequence[DType]:
    return inputs[1:2]


@classic(
    shapes=same_shapes,
    dtypes=_where_dtypes,
    texts={
        "condition": "a tensor of any dtype; elements other than 0 count as true. A vector chooses "
        "along the first axis of x.",
        "x": "the elements where the condition holds.",
        "y": "the elements where it does not hold.",
    },
)
def where(make: NodeMaker, condition: Value, x: Value, y: Value) -> Value:
    """Return x where the condition is not 0, else y. Other shapes broadcast as in numpy."""
    chosen = is_set(make, condition)
    if len(condition.shape) == 1 < len(x.shape):
        axes = tuple(range(1, len(x.shape)))
        chosen = make.step("expand_dims", [chosen], {"axis": axes})
    return make.last("where", [chosen, x, y])


@classic()
def broadcast_to(make: NodeMaker, data: Value, *, shape: tuple[int, ...]) -> Value:
    """Return the data, repeated along axes of extent 1 until it has the given shape.

    Example::

        >>> rc.sym.broadcast_to(rc.sym.Variable("x"), shape=(4, 3)).infer_shape(x=(1, 3))[1]
        [(4, 3)]
    """
    return make.last("broadcast_to", [data], {"shape": shape})


@classic(shapes=no_shapes, texts={"like": "a tensor with the shape of the result."})
def broadcast_like(make: NodeMaker, data: Value, like: Value) -> Value:
    """Return the data, repeated along axes of extent 1 until it has the shape of `like`."""
    return make.last("broadcast_like", [data, like])
