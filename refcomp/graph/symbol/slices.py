"""Classic operators that select elements: parts, slices, and elements at indices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import UserError
from refcomp.graph.graph import Value
from refcomp.graph.symbol.declare import classic
from refcomp.graph.symbol.operator import Attributes, NodeMaker
from refcomp.topi.operator import Attribute


def _count_parts(attributes: Attributes) -> int:
    parts = attributes["indices_or_sections"]
    count = len(parts) + 1 if isinstance(parts, tuple) else parts
    assert isinstance(count, int)
    if not 1 <= count <= 100_000:
        raise UserError(
            f"split cannot make {count} parts",
            remedy="give a number of parts of at least 1",
        )
    return count


def _dtype_of_each_part(
    inputs: Sequence[DType], attributes: Attributes
) -> Sequence[DType]:
    return [inputs[0]] * _count_parts(attributes)


@classic(
    dtypes=_dtype_of_each_part,
    count_outputs=_count_parts,
    texts={
        "indices_or_sections": "the number of equal parts, or the places where parts begin, "
        "without the first.",
        "axis": "the axis along which the data is divided.",
    },
)
def split(
    make: NodeMaker,
    data: Value,
    *,
    indices_or_sections: int | tuple[int, ...],
    axis: int = 1,
) -> tuple[Value, ...]:
    """Divide the data into parts along an axis, one output for each.

    Example::

        >>> parts = rc.sym.split(rc.sym.Variable("x"), indices_or_sections=(1, 3), name="s")
        >>> parts.list_output_names(), parts.infer_shape(x=(2, 6))[1]
        (['s_output0', 's_output1', 's_output2'], [(2, 1), (2, 2), (2, 3)])
        >>> parts[1].list_output_names()
        ['s_output1']
    """
    rank = len(data.shape)
    if not -rank <= axis < rank:
        raise UserError(f"the data has no axis {axis}", remedy=f"it has {rank} axes")
    extent = data.shape[axis]
    if not isinstance(extent, int):
        raise UserError(
            f"split needs a constant extent along axis {axis}",
            remedy="give the shapes of the inputs as numbers",
        )
    sizes = _part_sizes(extent, indices_or_sections)
    attributes: dict[str, Attribute] = {"axis": axis % rank, "sizes": sizes}
    return make.last_of_several("split", [data], attributes, len(sizes))


def _part_sizes(extent: int, parts: int | tuple[int, ...]) -> tuple[int, ...]:
    if isinstance(parts, int):
        if extent % parts:
            raise UserError(
                f"an axis of extent {extent} cannot be divided into {parts} equal parts",
                remedy="give a divisor, or the places where parts begin",
            )
        return (extent // parts,) * parts
    bounds = (0, *parts, extent)
    sizes = tuple(end - begin for begin, end in pairwise(bounds))
    if any(size < 0 for size in sizes):
        raise UserError(
            f"an axis of extent {extent} cannot be divided at {parts}",
            remedy="give ascending places within the axis",
        )
    return sizes


@classic(
    texts={
        "begin": "the first element along each axis; a negative one counts from the end.",
        "end": "the element after the last along each axis.",
        "stride": "the distance between elements along each axis; none for 1.",
    }
)
def strided_slice(
    make: NodeMaker,
    data: Value,
    *,
    begin: tuple[int, ...],
    end: tuple[int, ...],
    stride: tuple[int, ...] = (),
) -> Value:
    """Return every `stride`-th element from `begin` to `end`, along the first axes.

    Example::

        >>> y = rc.sym.strided_slice(rc.sym.Variable("x"), begin=(0, 1), end=(2, 4))
        >>> y.infer_shape(x=(3, 5))[1]
        [(2, 3)]
    """
    attributes: dict[str, Attribute] = {"begin": begin, "end": end}
    attributes["axes"] = tuple(range(len(begin)))
    if stride:
        attributes["strides"] = stride
    return make.last("strided_slice", [data], attributes)


@classic(
    texts={
        "begin": "the first element; a negative one counts from the end.",
        "end": "the element after the last; None for all that follow.",
    }
)
def slice_axis(
    make: NodeMaker, data: Value, *, axis: int, begin: int, end: int | None = None
) -> Value:
    """Return the elements from `begin` to `end` along an axis.

    Example::

        >>> y = rc.sym.slice_axis(rc.sym.Variable("x"), axis=1, begin=2)
        >>> y.infer_shape(x=(3, 5))[1]
        [(3, 3)]
    """
    last = 2**31 - 1 if end is None else end
    attributes: dict[str, Attribute] = {"begin": (begin,), "end": (last,)}
    attributes["axes"] = (axis,)
    return make.last("strided_slice", [data], attributes)


@classic(
    texts={
        "slice_like": "a tensor with the shape of the result.",
        "axis": "the axes to shorten; none for all.",
    }
)
def slice_like(
    make: NodeMaker, data: Value, slice_like: Value, *, axis: tuple[int, ...] = ()
) -> Value:
    """Return the first elements along axes, as many as `slice_like` has there."""
    attributes: dict[str, Attribute] = {"axes": axis} if axis else {}
    return make.last("slice_like", [data, slice_like], attributes)


def as_indices(make: NodeMaker, indices: Value) -> Value:
    """Return indices as integers. Classic programs give them as floats, too."""
    if indices.dtype.is_int or str(indices.dtype).startswith("u"):
        return indices
    return make.step("cast", [indices], {"dtype": "int32"})


@classic(
    texts={
        "indices": "indices of any shape; floats lose their fraction.",
        "axis": "the axis along which they count; None for the flat data.",
        "mode": "clip moves wrong indices to the nearest, wrap takes the remainder. fast is clip.",
    }
)
def take(
    make: NodeMaker,
    data: Value,
    indices: Value,
    *,
    axis: int | None = None,
    mode: Literal["clip", "wrap", "fast"] = "clip",
) -> Value:
    """Return the slices of the data at indices, which stand in place of the axis."""
    attributes: dict[str, Attribute] = {"mode": "wrap" if mode == "wrap" else "clip"}
    if axis is not None:
        attributes["axis"] = axis
    return make.last("take", [data, as_indices(make, indices)], attributes)


@classic(
    texts={
        "indices": "[m, ...]: m coordinates along the first axis, of the first m axes."
    }
)
def gather_nd(make: NodeMaker, data: Value, indices: Value) -> Value:
    """Return the slices of the data at indices of several coordinates."""
    places = as_indices(make, indices)
    rank = len(indices.shape)
    if rank == 0:
        raise UserError("the indices have no axis", remedy="give indices [m, ...]")
    if rank > 1:
        axes = (*range(1, rank), 0)
        places = make.step("transpose", [places], {"axes": axes})
    return make.last("gather_nd", [data, places])
