"""A pipeline of nine stages: how much of a corner each pixel of an image is, after Harris.

Gradients in both directions, their three products, sums of these over 3 x 3 pixels, the response.
Strips of rows are shared among threads; all that a strip needs is computed there, in vectors.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import refcomp
from refcomp.ir.expr import Expr
from refcomp.te.tensor import IterVar, Tensor

_ROWS, _LANES, _WEIGHT = 32, 16, 0.04


def describe_corners(height: int, width: int) -> tuple[refcomp.Schedule, list[Tensor]]:
    """Return the schedule and its arguments: an f32 image, and a response smaller by 4 each way."""
    image = refcomp.placeholder((height, width), name="image")
    gradients = _gradients(image)
    pairs = {"xx": (0, 0), "xy": (0, 1), "yy": (1, 1)}
    products = [_product(f"I{name}", gradients[a], gradients[b]) for name, (a, b) in pairs.items()]
    sums = [_sum(f"S{name}", tensor) for name, tensor in zip(pairs, products, strict=True)]
    response = _response(*sums)
    return _schedule(response, [*gradients, *products, *sums]), [image, response]


def _gradients(image: Tensor) -> list[Tensor]:
    def across(y: Expr, x: Expr) -> Expr:
        rows = [image[y + k, x + 2] - image[y + k, x] for k in range(3)]
        return rows[0] + 2.0 * rows[1] + rows[2]

    def down(y: Expr, x: Expr) -> Expr:
        columns = [image[y + 2, x + k] - image[y, x + k] for k in range(3)]
        return columns[0] + 2.0 * columns[1] + columns[2]

    shape = tuple(dim - 2 for dim in image.shape)
    functions = {"Ix": across, "Iy": down}
    return [refcomp.compute(shape, function, name=name) for name, function in functions.items()]


def _product(name: str, a: Tensor, b: Tensor) -> Tensor:
    tensor: Tensor = refcomp.compute(a.shape, lambda y, x: a[y, x] * b[y, x], name=name)
    return tensor


def _sum(name: str, tensor: Tensor) -> Tensor:
    def element(y: Expr, x: Expr) -> Expr:
        return reduce(add, [tensor[y + k // 3, x + k % 3] for k in range(9)])

    result: Tensor = refcomp.compute(tuple(dim - 2 for dim in tensor.shape), element, name=name)
    return result


def _response(xx: Tensor, xy: Tensor, yy: Tensor) -> Tensor:
    def element(y: Expr, x: Expr) -> Expr:
        trace = xx[y, x] + yy[y, x]
        return xx[y, x] * yy[y, x] - xy[y, x] * xy[y, x] - _WEIGHT * trace * trace

    result: Tensor = refcomp.compute(xx.shape, element, name="response")
    return result


def _schedule(response: Tensor, inner: list[Tensor]) -> refcomp.Schedule:
    schedule = refcomp.create_schedule(response)
    y, x = response.op.axis
    strip, _ = schedule[response].split(y, factor=_ROWS)
    schedule[response].parallel(strip)
    _vectorize(schedule[response], x)
    for tensor in inner:
        schedule[tensor].compute_at(schedule[response], strip)
        _vectorize(schedule[tensor], tensor.op.axis[1])
    return schedule


def _vectorize(stage: Any, axis: IterVar) -> None:
    _, lanes = stage.split(axis, factor=_LANES)
    stage.vectorize(lanes)
