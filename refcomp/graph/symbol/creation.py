"""Classic operators that make tensors of one number."""

from __future__ import annotations

from refcomp.graph.graph import Value
from refcomp.graph.symbol.declare import classic, dtype_of_attribute, same_shapes
from refcomp.graph.symbol.operator import NodeMaker
from refcomp.topi.operator import Attribute

_FILL = {"fill_value": "the value of all elements."}


@classic(dtypes=dtype_of_attribute, aliases=("fill",), texts=_FILL)
def full(
    make: NodeMaker,
    *,
    shape: tuple[int, ...],
    fill_value: float,
    dtype: str = "float32",
) -> Value:
    """Return a tensor whose elements are all one number.

    Example::

        >>> rc.sym.full(shape=(2, 3), fill_value=7).infer_shape()
        ([], [(2, 3)])
    """
    attributes: dict[str, Attribute] = {"shape": shape, "dtype": dtype}
    attributes["fill_value"] = fill_value
    return make.last("full", [], attributes)


@classic(shapes=same_shapes, texts=_FILL)
def full_like(make: NodeMaker, data: Value, *, fill_value: float) -> Value:
    """Return a tensor of the shape and dtype of `data` whose elements are all one number.

    Example::

        >>> rc.sym.full_like(rc.sym.Variable("x"), fill_value=7).infer_shape(x=(2,))[1]
        [(2,)]
    """
    return make.last("full_like", [data], {"fill_value": fill_value})


@classic(dtypes=dtype_of_attribute)
def zeros(make: NodeMaker, *, shape: tuple[int, ...], dtype: str = "float32") -> Value:
    """Return a tensor of zeros.

    Example::

        >>> rc.sym.zeros(shape=(2, 3)).infer_shape()
        ([], [(2, 3)])
    """
    return make.last("zeros", [], {"shape": shape, "dtype": dtype})


@classic(dtypes=dtype_of_attribute)
def ones(make: NodeMaker, *, shape: tuple[int, ...], dtype: str = "float32") -> Value:
    """Return a tensor of ones.

    Example::

        >>> rc.sym.ones(shape=(2, 3)).infer_shape()
        ([], [(2, 3)])
    """
    return make.last("ones", [], {"shape": shape, "dtype": dtype})


@classic(shapes=same_shapes)
def zeros_like(make: NodeMaker, data: Value) -> Value:
    """Return zeros in the shape and dtype of `data`."""
    return make.last("zeros_like", [data])


@classic(shapes=same_shapes)
def ones_like(make: NodeMaker, data: Value) -> Value:
    """Return ones in the shape and dtype of `data`."""
    return make.last("ones_like", [data])
