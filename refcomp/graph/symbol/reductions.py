"""Classic operators that reduce a tensor along axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from refcomp.foundation.dtype import DType, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.graph.graph import Value
from refcomp.graph.symbol.declare import classic
from refcomp.graph.symbol.operator import Attributes, NodeMaker
from refcomp.graph.symbol.symbol import Symbol
from refcomp.topi.operator import Attribute

Axes = tuple[int, ...] | int | None

_TEXTS = {"axis": "the axes to reduce over; none for all."}


def _reduced_axes(data: Value, axis: Axes, exclude: bool) -> tuple[int, ...]:
    """Return the axes to reduce over, in order."""
    rank = len(data.shape)
    given = (axis,) if isinstance(axis, int) else axis or ()
    for place in given:
        if not -rank <= place < rank:
            raise UserError(
                f"the data has no axis {place}", remedy=f"it has {rank} axes"
            )
    chosen = sorted({place % rank for place in given})
    if exclude:
        return tuple(place for place in range(rank) if place not in chosen)
    return tuple(chosen) or tuple(range(rank))


def _reduction(name: str, meaning: str) -> Callable[..., Symbol]:
    """Declare a reduction, which topi has under the same name."""

    def convert(
        make: NodeMaker,
        data: Value,
        *,
        axis: Axes = (),
        keepdims: bool = False,
        exclude: bool = False,
    ) -> Value:
        axes = _reduced_axes(data, axis, exclude)
        if not axes:
            return make.last("identity", [data])
        return make.last(name, [data], {"axis": axes, "keepdims": keepdims})

    convert.__name__ = name
    convert.__doc__ = f"""Return {meaning} along axes, in the dtype of `data`."""
    return classic(texts=_TEXTS)(convert)


def _index_dtype(_: Sequence[DType], __: Attributes) -> Sequence[DType]:
    return [as_dtype("int32")]


def _position(name: str, meaning: str) -> Callable[..., Symbol]:
    """Declare a reduction to an index, which topi has under the same name."""

    def convert(
        make: NodeMaker,
        data: Value,
        *,
        axis: Axes = None,
        keepdims: bool = False,
        exclude: bool = False,
    ) -> Value:
        axes = _reduced_axes(data, axis, exclude)
        attributes: dict[str, Attribute] = {"keepdims": keepdims}
        if len(axes) == 1:
            attributes["axis"] = axes[0]
        elif len(axes) != len(data.shape):
            raise UserError(
                f"{name} cannot count along the axes {axes}",
                remedy="give one axis, or none for all",
            )
        found = make.step(name, [data], attributes)
        return make.last("cast", [found], {"dtype": "int32"})

    convert.__name__ = name
    convert.__doc__ = f"""Return the index of {meaning} along an axis, as int32.

    Without an axis, it is the index in the flat data.
    """
    texts = {"axis": "the axis along which indices count; none for all."}
    return classic(dtypes=_index_dtype, texts=texts)(convert)


sum = _reduction("sum", "the sum")
max = _reduction("max", "the maximum")
min = _reduction("min", "the minimum")
mean = _reduction("mean", "the mean")
prod = _reduction("prod", "the product")
argmax = _position("argmax", "the greatest element")
argmin = _position("argmin", "the least element")


@classic(
    texts={
        "axis": "the axis along which elements are added.",
        "exclusive": "True to leave the element itself out of its sum.",
    }
)
def cumsum(
    make: NodeMaker, data: Value, *, axis: int = 0, exclusive: bool = False
) -> Value:
    """Return the sums of all elements up to each element, along an axis."""
    return make.last("cumsum", [data], {"axis": axis, "exclusive": exclusive})


@classic(texts={"like": "a tensor with the shape of the result."})
def collapse_sum(make: NodeMaker, data: Value, like: Value) -> Value:
    """Return sums of the data, so that it has the shape of `like`: undo a broadcast."""
    shape = tuple(dim for dim in like.shape if isinstance(dim, int))
    if len(shape) != len(like.shape):
        raise UserError(
            f"collapse_sum needs constant extents, not {like}",
            remedy="give the shapes of the inputs as numbers",
        )
    return make.last("collapse_sum", [data], {"shape": shape})
