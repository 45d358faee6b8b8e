"""Rules of operators that move elements: each adjoint returns to where its element came from."""

from __future__ import annotations

import math
from collections.abc import Sequence

from refcomp.foundation.artifacts import Dim
from refcomp.foundation.dtype import I64
from refcomp.graph.gradients.pullback import (
    Adjoints,
    Pullback,
    Rule,
    constant_extents,
)
from refcomp.graph.graph import Value

_MAX_INDEX = 2**63 - 1


def _reshaped(pull: Pullback) -> Adjoints | None:
    shape = constant_extents(pull.input(0).shape)
    # In the attribute of `reshape`, 0 means an extent that stays.
    if shape is None or 0 in shape:
        return None
    return [pull.add("reshape", pull.head, shape=shape)]


def _transpose(pull: Pullback) -> Adjoints:
    rank = len(pull.input(0).shape)
    axes = [axis % rank for axis in pull.integers("axes")]
    order = tuple(axes.index(axis) for axis in range(rank))
    return [pull.add("transpose", pull.head, axes=order)]


def _swap_axes(pull: Pullback) -> Adjoints:
    axes = pull.given("axis1", "axis2")
    return [pull.add("swap_axes", pull.head, **axes)]


def _moveaxis(pull: Pullback) -> Adjoints:
    source = pull.node.attributes["source"]
    destination = pull.node.attributes["destination"]
    return [pull.add("moveaxis", pull.head, source=destination, destination=source)]


def _expand_dims(pull: Pullback) -> Adjoints:
    rank = len(pull.output.shape)
    axis = pull.attribute("axis")
    given = axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(sorted(int(one) % rank for one in given if one is not None))
    return [pull.add("squeeze", pull.head, axis=axes) if axes else pull.head]


def _squeeze(pull: Pullback) -> Adjoints | None:
    data = pull.input(0)
    rank = len(data.shape)
    axis = pull.attribute("axis")
    if axis is None:
        return _reshaped(pull)
    given = axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(sorted(int(one) % rank for one in given))
    return [pull.add("expand_dims", pull.head, axis=axes) if axes else pull.head]


def _part(pull: Pullback, axis: int, begin: int, end: int) -> Value:
    return pull.add(
        "strided_slice", pull.head, begin=(begin,), end=(end,), axes=(axis,)
    )


def _concatenate(pull: Pullback) -> Adjoints | None:
    tensors = [pull.input(place) for place in range(len(pull.node.inputs))]
    axis = pull.integer("axis") % len(tensors[0].shape)
    sizes = constant_extents(tuple(tensor.shape[axis] for tensor in tensors))
    if sizes is None:
        return None
    adjoints = []
    begin = 0
    for size in sizes:
        adjoints.append(_part(pull, axis, begin, begin + size))
        begin += size
    return adjoints


def _stack(pull: Pullback) -> Adjoints:
    axis = pull.integer("axis") % len(pull.output.shape)
    count = len(pull.node.inputs)
    parts = [_part(pull, axis, place, place + 1) for place in range(count)]
    return [pull.add("squeeze", part, axis=(axis,)) for part in parts]


def _split(pull: Pullback) -> Adjoints:
    parts = [
        pull.add("zeros_like", output) if head is None else head
        for output, head in zip(pull.node.outputs, pull.heads, strict=True)
    ]
    return [pull.add("concatenate", *parts, axis=pull.integer("axis"))]


def _strided_slice(pull: Pullback) -> Adjoints | None:
    """Return zeros around the adjoint, for slices whose steps are 1."""
    data = pull.input(0)
    shape = constant_extents(data.shape)
    taken = constant_extents(pull.output.shape)
    strides = pull.attribute("strides")
    steps = strides if isinstance(strides, tuple) else ()
    if shape is None or taken is None or any(step != 1 for step in steps):
        return None
    begin = pull.integers("begin")
    axes = pull.attribute("axes")
    chosen = axes if isinstance(axes, tuple) else tuple(range(len(begin)))
    before = [0] * len(shape)
    for axis, first in zip(chosen, begin, strict=True):
        place = int(axis) % len(shape)
        before[place] = _clamped(first, shape[place])
    sizes = zip(shape, before, taken, strict=True)
    after = [size - first - count for size, first, count in sizes]
    if any(count < 0 for count in after):
        return None
    return [_padded(pull, pull.head, before, after)]


def _clamped(index: int, extent: int) -> int:
    return min(max(index + extent if index < 0 else index, 0), extent)


def _padded(
    pull: Pullback, value: Value, before: Sequence[int], after: Sequence[int]
) -> Value:
    if not any(before) and not any(after):
        return value
    return pull.add("pad", value, pad_before=tuple(before), pad_after=tuple(after))


def _pad(pull: Pullback) -> Adjoints | None:
    """Return the part of the adjoint that belongs to the data, if constants were added."""
    if pull.attribute("mode") != "constant":
        return None
    before = pull.integers("pad_before")
    after = pull.integers("pad_after") if pull.attribute("pad_after") else before
    # A negative number of `pad` removes elements.
    removed = [-count for count in before], [-count for count in after]
    return [_padded(pull, pull.head, *removed)]


def _flip(pull: Pullback) -> Adjoints:
    return [pull.add("flip", pull.head, **pull.given("axis"))]


def _roll(pull: Pullback) -> Adjoints:
    shift = pull.attribute("shift")
    back = tuple(-int(one) for one in shift) if isinstance(shift, tuple) else None
    attributes = pull.given("axis")
    attributes["shift"] = -pull.integer("shift") if back is None else back
    return [pull.add("roll", pull.head, **attributes)]


def _masked_again(pull: Pullback) -> Adjoints:
    """Return the rule of an operator that only sets elements to 0: it is its own adjoint."""
    return [pull.add(pull.node.operator, pull.head, **pull.node.attributes)]


def _cast(pull: Pullback) -> Adjoints:
    data = pull.input(0)
    back = pull.add("cast", pull.head, dtype=str(data.dtype.dtype))
    return [back, *[None for _ in pull.node.inputs[1:]]]


def _places(pull: Pullback, indices: Value, least: int, size: Dim) -> Value | None:
    """Return indices that `scatter_add` reads, each the nearest of least, ..., size - 1.

    None if they are left to `vjp`: an i64 does not hold each u64, and no index is in range of an
    axis without elements.
    """
    if not isinstance(size, int) or size == 0 or indices.dtype.max_value > _MAX_INDEX:
        return None
    wide = indices
    if indices.dtype != I64:
        wide = pull.add("cast", indices, dtype="int64")
    lowest = pull.numbers.value(max(least, -size), I64)
    highest = pull.numbers.value(size - 1, I64)
    return pull.add("minimum", pull.add("maximum", wide, lowest), highest)


def _gather(pull: Pullback) -> Adjoints | None:
    data = pull.input(0)
    axis = pull.integer("axis") % len(data.shape)
    # A negative index counts from the end, for `scatter_add` too.
    places = _places(pull, pull.input(1), -_MAX_INDEX, data.shape[axis])
    if places is None:
        return None
    zeros = pull.add("zeros_like", data)
    return [pull.add("scatter_add", zeros, places, pull.head, axis=axis), None]


def _index_select(pull: Pullback) -> Adjoints | None:
    data = pull.input(0)
    axis = pull.integer("axis") % len(data.shape)
    places = _places(pull, pull.input(1), -_MAX_INDEX, data.shape[axis])
    return None if places is None else _scattered(pull, data, places, axis)


def _take(pull: Pullback) -> Adjoints | None:
    """Return the adjoint of slices at a vector of indices; other cases are left to `vjp`."""
    data, indices = pull.input(0), pull.input(1)
    is_read = indices.dtype.max_value <= _MAX_INDEX
    if pull.attribute("axis") is None or len(indices.shape) != 1 or not is_read:
        return None
    axis = pull.integer("axis") % len(data.shape)
    size = data.shape[axis]
    # Of both modes, clip moves a negative index to 0.
    least = 0 if pull.attribute("mode") == "clip" else -_MAX_INDEX
    if least and isinstance(size, int) and size:
        limit = pull.numbers.value(size, I64)
        wide = pull.add("cast", indices, dtype="int64")
        indices = pull.add("floor_mod", wide, limit)
    places = _places(pull, indices, least, size)
    return None if places is None else _scattered(pull, data, places, axis)


def _scattered(pull: Pullback, data: Value, places: Value, axis: int) -> Adjoints:
    """Return zeros, to whose slices at a vector of indices along an axis the adjoint is added."""
    others = tuple(place for place in range(len(data.shape)) if place != axis)
    if others:
        places = pull.add("expand_dims", places, axis=others)
    wide = pull.add("broadcast_like", places, pull.head)
    zeros = pull.add("zeros_like", data)
    return [pull.add("scatter_add", zeros, wide, pull.head, axis=axis), None]


def _embedding(pull: Pullback) -> Adjoints | None:
    """Return the sums of the adjoints of each row of the table."""
    indices, weight = pull.input(0), pull.input(1)
    extents = constant_extents(indices.shape)
    count, width = weight.shape
    # In the attribute of `reshape`, 0 means an extent that stays.
    if not isinstance(width, int) or extents is None or 0 in (*extents, width):
        return None
    # A negative index is moved to row 0.
    places = _places(pull, indices, 0, count)
    if places is None:
        return None
    total = math.prod(extents)
    rows = pull.add("reshape", pull.head, shape=(total, width))
    column = pull.add("reshape", places, shape=(total, 1))
    wide = pull.add("broadcast_like", column, rows)
    zeros = pull.add("zeros_like", weight)
    return [None, pull.add("scatter_add", zeros, wide, rows, axis=0)]


RULES: dict[str, Rule] = {
    "reshape": _reshaped,
    "flatten": _reshaped,
    "transpose": _transpose,
    "swap_axes": _swap_axes,
    "moveaxis": _moveaxis,
    "expand_dims": _expand_dims,
    "squeeze": _squeeze,
    "concatenate": _concatenate,
    "stack": _stack,
    "split": _split,
    "strided_slice": _strided_slice,
    "pad": _pad,
    "flip": _flip,
    "roll": _roll,
    "tril": _masked_again,
    "triu": _masked_again,
    "trilu": _masked_again,
    "cast": _cast,
    "cast_like": _cast,
    "gather": _gather,
    "gather_elements": _gather,
    "index_select": _index_select,
    "take": _take,
    "embedding": _embedding,
}
