"""Classic operators that move all elements: shapes, axes, repetition."""

from __future__ import annotations

import math
from collections.abc import Sequence

from refcomp.foundation.errors import UserError
from refcomp.graph.dims import Shape
from refcomp.graph.graph import Value
from refcomp.graph.symbol.declare import classic
from refcomp.graph.symbol.operator import NodeMaker

_KEEP, _INFER, _KEEP_REST, _MERGE, _SPLIT = 0, -1, -2, -3, -4


def reshaped(shape: Sequence[int], codes: Sequence[int]) -> tuple[int, ...]:
    """Return the extents that the codes of `reshape` stand for.

    Args:
        shape: the extents of the data.
        codes: positive extents and the codes 0 to -4.

    Raises:
        UserError: the codes are ill-formed, or mean another number of elements.

    Example::

        >>> from refcomp.graph.symbol.movement import reshaped
        >>> reshaped((2, 3, 4), (0, -1)), reshaped((2, 3, 4), (-3, 4))
        ((2, 12), (6, 4))
        >>> reshaped((6, 5), (-4, 2, -1, 0))
        (2, 3, 5)
    """
    made: list[int] = []
    place = 0
    rest = iter(codes)
    for code in rest:
        needed = {_KEEP: 1, _MERGE: 2, _SPLIT: 1}.get(code, 0)
        is_missing = needed > 0 and place + needed > len(shape)
        if is_missing or code < _SPLIT:
            raise _ill_formed(shape, codes)
        if code > 0 or code == _INFER:
            made.append(code)
            place += 1
        elif code == _KEEP:
            made.append(shape[place])
            place += 1
        elif code == _KEEP_REST:
            made += shape[place:]
            place = len(shape)
        elif code == _MERGE:
            made.append(shape[place] * shape[place + 1])
            place += 2
        else:
            made += _split_extent(
                shape, codes, shape[place], next(rest, 0), next(rest, 0)
            )
            place += 1
    return _with_inferred(shape, codes, made)


def _split_extent(
    shape: Sequence[int], codes: Sequence[int], extent: int, first: int, second: int
) -> tuple[int, int]:
    if first == _INFER and second > 0:
        first = extent // second
    elif second == _INFER and first > 0:
        second = extent // first
    if first <= 0 or second <= 0 or first * second != extent:
        raise _ill_formed(shape, codes)
    return first, second


def _with_inferred(
    shape: Sequence[int], codes: Sequence[int], made: list[int]
) -> tuple[int, ...]:
    total = math.prod(shape)
    if made.count(_INFER) > 1:
        raise _ill_formed(shape, codes)
    if _INFER in made:
        known = -math.prod(made)
        if known == 0 or total % known:
            raise _ill_formed(shape, codes)
        made[made.index(_INFER)] = total // known
    if math.prod(made) != total:
        raise _ill_formed(shape, codes)
    return tuple(made)


def _ill_formed(shape: Sequence[int], codes: Sequence[int]) -> UserError:
    return UserError(
        f"the shape {tuple(shape)} cannot become {tuple(codes)}",
        why="0 keeps an extent, -1 infers one, -2 keeps the rest, -3 merges two, "
        "and -4 divides one into the next two",
        remedy="give a shape with as many elements",
    )


def constant_extents(shape: Shape) -> tuple[int, ...] | None:
    """Return the extents of a shape; None if one of them is symbolic."""
    extents = tuple(dim for dim in shape if isinstance(dim, int))
    return extents if len(extents) == len(shape) else None


@classic(
    texts={
        "shape": "the extents of the result. 0 keeps the extent at its place. -1 stands for what "
        "is left, -2 for all further extents, -3 for the product of two. -4 divides one extent "
        "into the two that follow."
    }
)
def reshape(make: NodeMaker, data: Value, *, shape: tuple[int, ...]) -> Value:
    """Return the same elements, in row-major order, in another shape.

    Example::

        >>> rc.sym.reshape(rc.sym.Variable("x"), shape=(0, -1)).infer_shape(x=(2, 3, 4))[1]
        [(2, 12)]
    """
    extents = constant_extents(data.shape)
    target = shape if extents is None else reshaped(extents, shape)
    return make.last("reshape", [data], {"shape": target})


@classic(texts={"like": "a tensor with the shape of the result."})
def reshape_like(make: NodeMaker, data: Value, like: Value) -> Value:
    """Return the elements of `data`, in row-major order, in the shape of `like`."""
    extents = constant_extents(like.shape)
    if extents is None:
        raise UserError(
            f"reshape_like needs constant extents, not {like}",
            remedy="give the shapes of the inputs as numbers",
        )
    return make.last("reshape", [data], {"shape": extents})


@classic(
    texts={"axes": "the axes of the data in their new order; none to reverse them."}
)
def transpose(make: NodeMaker, data: Value, *, axes: tuple[int, ...] = ()) -> Value:
    """Return the data with its axes in another order."""
    rank = len(data.shape)
    order = axes or tuple(reversed(range(rank)))
    return make.last("transpose", [data], {"axes": order})


@classic(
    texts={
        "axis": "the place of the first new axis; a negative one counts from the end.",
        "num_newaxis": "the number of new axes.",
    }
)
def expand_dims(
    make: NodeMaker, data: Value, *, axis: int, num_newaxis: int = 1
) -> Value:
    """Return the data with new axes of extent 1.

    Example::

        >>> rc.sym.expand_dims(rc.sym.Variable("x"), axis=1).infer_shape(x=(2, 3))[1]
        [(2, 1, 3)]
    """
    rank = len(data.shape)
    if not -rank - 1 <= axis <= rank or not 0 <= num_newaxis <= 64:
        raise UserError(
            f"expand_dims cannot add {num_newaxis} axes at {axis} of {rank}",
            remedy=f"give an axis from {-rank - 1} to {rank}, and at most 64 new axes",
        )
    first = axis if axis >= 0 else axis + rank + 1
    axes = tuple(range(first, first + num_newaxis))
    if not axes:
        return make.last("identity", [data])
    return make.last("expand_dims", [data], {"axis": axes})


@classic(texts={"axis": "the axes to remove; none for all axes of extent 1."})
def squeeze(
    make: NodeMaker, data: Value, *, axis: tuple[int, ...] | int | None = None
) -> Value:
    """Return the data without axes of extent 1."""
    axes = (axis,) if isinstance(axis, int) else axis
    if not axes:
        return make.last("squeeze", [data])
    return make.last("squeeze", [data], {"axis": axes})


@classic(
    texts={
        "data": "at least one tensor; their shapes differ along the axis only.",
        "axis": "the axis along which they are joined.",
    }
)
def concatenate(make: NodeMaker, *data: Value, axis: int = 1) -> Value:
    """Return all tensors, one after the other along an axis."""
    return make.last("concatenate", data, {"axis": axis})


@classic(
    texts={
        "data": "at least one tensor; all of one shape.",
        "axis": "the place of the new axis.",
    }
)
def stack(make: NodeMaker, *data: Value, axis: int = 0) -> Value:
    """Return all tensors, one after the other along a new axis."""
    return make.last("stack", data, {"axis": axis})


@classic(texts={"axis": "the axis to reverse."})
def flip(make: NodeMaker, data: Value, *, axis: int = 0) -> Value:
    """Return the data in reverse order along an axis."""
    return make.last("flip", [data], {"axis": axis})


@classic(texts={"reps": "the number of copies along each axis."})
def tile(make: NodeMaker, data: Value, *, reps: tuple[int, ...]) -> Value:
    """Return copies of the whole data, one after the other along each axis.

    Example::

        >>> rc.sym.tile(rc.sym.Variable("x"), reps=(2, 1)).infer_shape(x=(2, 3))[1]
        [(4, 3)]
    """
    return make.last("tile", [data], {"reps": reps})


@classic(texts={"repeats": "how many times each element stands there."})
def repeat(make: NodeMaker, data: Value, *, repeats: int, axis: int = 0) -> Value:
    """Return the data with each element repeated along an axis.

    Example::

        >>> rc.sym.repeat(rc.sym.Variable("x"), repeats=2, axis=1).infer_shape(x=(2, 3))[1]
        [(2, 6)]
    """
    return make.last("repeat", [data], {"repeats": repeats, "axis": axis})


@classic(
    aliases=("__layout_transform__",),
    texts={
        "src_layout": "the layout of the data, such as NCHW.",
        "dst_layout": "the layout of the result, such as NCHW16c.",
    },
)
def layout_transform(
    make: NodeMaker, data: Value, *, src_layout: str, dst_layout: str
) -> Value:
    """Return the data in another layout.

    Example::

        >>> x = rc.sym.Variable("x")
        >>> y = rc.sym.layout_transform(x, src_layout="NCHW", dst_layout="NHWC")
        >>> y.infer_shape(x=(1, 3, 4, 5))[1]
        [(1, 4, 5, 3)]
    """
    attributes = {"src_layout": src_layout, "dst_layout": dst_layout}
    return make.last("layout_transform", [data], attributes)
