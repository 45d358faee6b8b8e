"""Draw small random graphs with inputs, by which passes over graphs are tested.

A graph consists of samples of the registered operators (`refcomp.topi.draws`) and of planted
patterns, each of which some pass looks for. A step reads results of earlier steps where it can:
another step's floats are cast, cut, repeated and reshaped as needed. Operands of other dtypes have
meanings, such as indices or keys, so each step draws its own.

Extents are constant, so that `refcomp.graph.equivalence` can bound errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

import numpy as np

from refcomp.foundation.errors import RefcompError
from refcomp.graph.builder import GraphBuilder
from refcomp.graph.graph import Array, Graph, Value
from refcomp.topi.draws import Draws
from refcomp.topi.operator import Attribute, find_operator
from refcomp.topi.sources import OPERATOR_HOMES

_MAX_ELEMENTS = 600  # of a value that a step may read
_MOST_STEPS = 4


@dataclass(frozen=True, slots=True)
class RandomGraph:
    """A graph, and an array for each of its inputs.

    Attributes:
        graph: a verified graph, which may have dead nodes.
        feeds: name of an input -> its array.
        planted: the names of the patterns that were planted.
    """

    graph: Graph
    feeds: Mapping[str, Array]
    planted: tuple[str, ...]


def random_graph(seed: int) -> RandomGraph:
    """Return a small graph of random operators and planted patterns. Equal seeds draw the same.

    Args:
        seed: any integer >= 0.
    """
    grower = _Grower(seed)
    planted = []
    for _ in range(grower.draws.integer(1, _MOST_STEPS)):
        if grower.draws.integer(0, 2) == 0:
            grower.add_sample()
        else:
            name = grower.draws.choice(sorted(PATTERNS))
            PATTERNS[name](grower)
            planted.append(name)
    return RandomGraph(grower.finish(), grower.feeds, tuple(planted))


class _Grower:
    """A graph under construction, with the array of each value."""

    def __init__(self, seed: int) -> None:
        self.draws = Draws(seed)
        self.builder = GraphBuilder("random")
        self.arrays: dict[Value, Array] = {}
        self.feeds: dict[str, Array] = {}
        self.pool: list[Value] = []  # floats that a step may read
        self.results: list[Value] = []

    def input(self, array: Array) -> Value:
        value = self.builder.input(f"x{len(self.feeds)}", array.dtype.name, array.shape)
        self.feeds[value.name] = array
        self.arrays[value] = array
        return value

    def constant(self, array: Array) -> Value:
        value = self.builder.constant(f"c{len(self.arrays)}", array)
        self.arrays[value] = array
        return value

    def floats(self, *shape: int, dtype: str = "float32") -> Value:
        """Add a constant of floats without special numbers."""
        return self.constant(self.draws.array(shape, dtype, special=False))

    def nodes(
        self,
        operator: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Attribute] | None = None,
    ) -> list[Value]:
        """Add a node, and return its results. An operator that refuses them raises an error."""
        given = dict(attributes or {})
        arrays = [None if value is None else self.arrays[value] for value in inputs]
        with np.errstate(all="ignore"):
            made = find_operator(operator).numpy(*arrays, **given)
        results = made if isinstance(made, list) else [made]
        name = f"{operator}_{len(self.arrays)}"
        names = [f"{name}_{place}" for place in range(len(results))]
        values = self.builder.nodes(operator, inputs, given, names)
        self.arrays.update(zip(values, map(np.asarray, results), strict=True))
        for value, array in zip(values, results, strict=True):
            self.results.append(value)
            is_float = value.dtype.is_float and value.dtype.bits >= 16
            if is_float and 0 < array.size <= _MAX_ELEMENTS:
                self.pool.append(value)
        return list(values)

    def node(
        self,
        operator: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Attribute] | None = None,
    ) -> Value:
        return self.nodes(operator, inputs, attributes)[0]

    def data(self, *shape: int, dtype: str = "float32") -> Value:
        """Return floats of a shape: a new input, or what another step has computed."""
        if not self.pool or not math.prod(shape) or self.draws.integer(0, 2) == 0:
            return self.input(self.draws.array(shape, dtype, special=False))
        return self._linked(self.draws.choice(self.pool), shape, dtype)

    def _linked(self, value: Value, shape: tuple[int, ...], dtype: str) -> Value:
        """Return a value of another step in this shape and dtype."""
        needed = math.prod(shape)
        array = self.arrays[value]
        if array.dtype.name != dtype:
            value = self.node("cast", [value], {"dtype": dtype})
        if array.shape == shape:
            return value
        if array.ndim != 1:
            value = self.node("reshape", [value], {"shape": (array.size,)})
        if array.size < needed:
            repeats = -(-needed // array.size)
            value = self.node("tile", [value], {"reps": (repeats,)})
        if self.arrays[value].size > needed:
            cut: dict[str, Attribute] = {"begin": (0,), "end": (needed,)}
            value = self.node("strided_slice", [value], cut)
        if shape == (needed,):
            return value
        return self.node("reshape", [value], {"shape": shape})

    def add_sample(self) -> None:
        """Add a sample of some operator, unless graphs cannot have it."""
        operator = find_operator(self.draws.choice(_sampled()))
        assert operator.sample is not None
        sample = operator.sample(Draws(self.draws.integer(0, 10**9)))
        inputs = [
            None if array is None else self._operand(array) for array in sample.operands
        ]
        attributes = {
            name: _as_attribute(value)
            for name, value in sample.attributes.items()
            if value is not None
        }
        try:
            self.nodes(operator.name, inputs, attributes)
        except (RefcompError, ArithmeticError, LookupError, TypeError, ValueError):
            # Numbers of another step may be none that the operator takes.
            fresh = [None if a is None else self.input(a) for a in sample.operands]
            self.nodes(operator.name, fresh, attributes)

    def _operand(self, array: Array) -> Value:
        is_float = array.dtype.name in ("float16", "float32", "float64")
        if is_float and array.size and self.pool and self.draws.flag():
            other = self.draws.choice(self.pool)
            return self._linked(other, array.shape, array.dtype.name)
        return (
            self.constant(array) if self.draws.integer(0, 3) == 0 else self.input(array)
        )

    def finish(self) -> Graph:
        """Return the graph. It may keep nodes that no output needs."""
        if not self.results:
            self.node("relu", [self.data(2, 3)])
        whole = self.builder.finish(self.results)
        read = {value for node in whole.nodes for value in node.reads}
        last = [value for value in self.results if value not in read]
        inner = [value for value in self.results if value in read]
        outputs = [value for value in last if self.draws.integer(0, 5) > 0] or last[:1]
        if inner and self.draws.integer(0, 3) == 0:
            outputs.append(self.draws.choice(inner))
        return replace(whole, outputs=tuple(outputs))


@lru_cache(maxsize=1)
def _sampled() -> tuple[str, ...]:
    """Return the names of the operators that can be drawn."""
    # Not those that other modules register: a seed would depend on what was imported.
    return tuple(
        name for name in OPERATOR_HOMES if find_operator(name).sample is not None
    )


def _as_attribute(value: object) -> Attribute:
    """Return an attribute as a graph has it: of Python's own types, without lists."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple):
        return tuple(cast("int | float", _as_attribute(item)) for item in value)
    return cast(Attribute, value)


def _convolution(grower: _Grower, data: Value | None = None, groups: int = 1) -> Value:
    draws = grower.draws
    if data is None:
        data = grower.data(1, draws.integer(1, 2) * groups, 4, 4)
    channels = grower.arrays[data].shape[1]
    kernel = draws.choice((1, 3))
    out = draws.integer(1, 3) * groups
    weight = grower.floats(out, channels // groups, kernel, kernel)
    bias = grower.floats(out) if draws.flag() else None
    attributes: dict[str, Attribute] = {"padding": (kernel // 2,) * 4, "groups": groups}
    return grower.node("conv2d", [data, weight, bias], attributes)


def _plant_blocks(grower: _Grower) -> None:
    """Add a convolution whose channels fill blocks, and what may follow in blocks."""
    draws = grower.draws
    groups = draws.choice((1, 1, 8))
    data = grower.data(1, draws.choice((1, 3, 8)) if groups == 1 else 8, 3, 3)
    channels = grower.arrays[data].shape[1]
    weight = grower.floats(8, channels // groups, 1, 1)
    bias = grower.floats(8) if draws.flag() else None
    value = grower.node("conv2d", [data, weight, bias], {"groups": groups})
    kind = draws.choice(("add", "multiply", "concatenate", "max_pool2d", "pad"))
    if kind == "concatenate":
        grower.node(kind, [value, grower.node("tanh", [value])], {"axis": 1})
    elif kind == "max_pool2d":
        grower.node(kind, [value], {"kernel": (2, 2)})
    elif kind == "pad":
        grower.node(kind, [value], {"pad_before": (0, draws.integer(0, 1), 1, 0)})
    else:
        shape = draws.choice(((8, 1, 1), (1, 8, 3, 1), (3,), ()))
        grower.node("relu", [grower.node(kind, [value, grower.floats(*shape)])])


def _plant_winograd(grower: _Grower) -> None:
    """Add a convolution in blocks that may be large enough for Winograd's filtering."""
    draws = grower.draws
    # Its bounds take most of the time in which a graph is tested, so it is rarely large.
    size = draws.choice((3, 4, 12))
    data = grower.input(draws.array((1, 2, size, size, 16), "float32", special=False))
    weight = grower.floats(2, 2, 3, 3, 16, 16)
    bias = grower.floats(2, 16) if draws.flag() else None
    attributes = {"padding": draws.choice(((1, 1, 1, 1), (1, 0, 1, 1)))}
    grower.node("conv2d_nchwc", [data, weight, bias], attributes)


def _normalized(grower: _Grower, data: Value) -> Value:
    channels = grower.arrays[data].shape[1]
    parameters = [grower.floats(channels) for _ in range(3)]
    variance = grower.draws.uniform((channels,), 0.5, 2)
    return grower.node("batch_norm", [data, *parameters, grower.constant(variance)])


def _plant_normalization(grower: _Grower) -> None:
    data = _convolution(grower) if grower.draws.flag() else grower.data(1, 3, 2, 2)
    grower.node("relu", [_normalized(grower, data)])


def _plant_residual(grower: _Grower) -> None:
    """Add a convolution whose result is read twice."""
    first = _convolution(grower)
    second = grower.node("relu", [first])
    grower.node("relu", [grower.node("add", [second, first])])


def _plant_layout(grower: _Grower) -> None:
    """Add convolutions, and what may follow their layout."""
    draws = grower.draws
    value = _convolution(grower)
    kind = draws.choice(
        ("max_pool2d", "avg_pool2d", "global_max_pool2d", "pad", "concatenate")
    )
    if kind == "pad":
        amounts: dict[str, Attribute] = {
            "pad_before": (0, 1, 0, 2),
            "pad_after": (0, 0, 1, 0),
        }
        value = grower.node(kind, [value], amounts)
    elif kind == "concatenate":
        other = grower.node("tanh", [value])
        value = grower.node(kind, [value, other], {"axis": draws.integer(-3, 3)})
    else:
        pooled: dict[str, Attribute] = {} if "global" in kind else {"kernel": (2, 2)}
        value = grower.node(kind, [value], pooled)
    if draws.flag():
        _convolution(grower, value)


def _plant_scale(grower: _Grower) -> None:
    """Add a product with a constant before or after a layer."""
    draws = grower.draws
    operator = draws.choice(
        ("conv2d", "depthwise_conv2d_nchw", "dense", "gemm", "matmul")
    )
    is_image = "conv2d" in operator
    data = grower.data(1, 2, 3, 3) if is_image else grower.data(2, 3)
    if draws.flag():
        data = _scaled(grower, data)
        if draws.flag():
            data = grower.node("relu", [data])
    if operator == "conv2d":
        value = _convolution(grower, data)
    elif is_image:
        value = grower.node(
            operator, [data, grower.floats(2, 2, 2, 2), grower.floats(4)]
        )
    elif operator == "matmul":
        value = grower.node(operator, [data, grower.floats(3, 2)])
    else:
        shape = (2, 3) if operator == "dense" else (3, 2)
        value = grower.node(operator, [data, grower.floats(*shape), grower.floats(2)])
    if draws.flag():
        sizes = _channel_sizes(grower, value)
        value = grower.node(
            "add", [value, grower.constant(draws.uniform(sizes, -2, 2))]
        )
    if draws.flag():
        value = grower.node("relu", [value])
    _scaled(grower, value)


def _channel_sizes(grower: _Grower, value: Value) -> tuple[int, ...]:
    array = grower.arrays[value]
    if array.ndim == 4:
        return (array.shape[1], 1, 1)
    return (array.shape[-1],)


def _scaled(grower: _Grower, value: Value) -> Value:
    draws = grower.draws
    sizes = draws.choice(((1,), _channel_sizes(grower, value)))
    least = draws.choice((0.25, -2.0))
    factors = grower.constant(draws.uniform(sizes, least, 2))
    pair = [value, factors]
    return grower.node("multiply", pair if draws.flag() else pair[::-1])


def _plant_transposes(grower: _Grower) -> None:
    """Add transposes around operators, most of them elementwise. Softmax has an axis of its own."""
    draws = grower.draws
    between = ("relu", "tanh", "negative", "softmax")
    # With equal extents, a wrong order of axes does not change the shape.
    shape = draws.choice(((2, 3, 4), (3, 3, 2), (2, 2, 2)))
    value = grower.data(*shape)
    for _ in range(draws.integer(2, 4)):
        rank = grower.arrays[value].ndim
        value = grower.node("transpose", [value], {"axes": draws.order(rank)})
        if draws.flag():
            value = grower.node(draws.choice(between), [value])
    if draws.flag():
        axes = draws.order(3)
        first, second = (
            grower.node("transpose", [grower.data(*shape)], {"axes": axes})
            for _ in range(2)
        )
        total = grower.node("add", [first, second])
        order = tuple(int(place) for place in np.argsort(axes))
        grower.node("transpose", [total], {"axes": order})


def _plant_reshapes(grower: _Grower) -> None:
    value = grower.data(2, 3, 4)
    for _ in range(grower.draws.integer(1, 3)):
        shape = grower.draws.choice(((24,), (2, 12), (4, 6), (2, 3, 4), (0, -1)))
        value = grower.node("reshape", [value], {"shape": shape})


def _plant_duplicates(grower: _Grower) -> None:
    """Add equal nodes, which read equal constants, and one that differs a little."""
    draws = grower.draws
    data = grower.data(2, 3)
    elements = draws.array((3,), special=False)
    pair = [
        grower.node("add", [data, grower.constant(elements.copy())]) for _ in range(2)
    ]
    total = grower.node("subtract", pair)
    least = draws.choice((0.0, -0.0, 0.5))
    clipped = [
        grower.node("clip", [total], {"minimum": bound, "maximum": 3.0})
        for bound in (0.0, least)
    ]
    grower.node("divide", clipped)


def _plant_identities(grower: _Grower) -> None:
    value = grower.node("tanh", [grower.data(2, 3)])
    for _ in range(grower.draws.integer(1, 3)):
        kind = grower.draws.choice(("identity", "cast", "reshape", "dropout"))
        if kind == "cast":
            value = grower.node(kind, [value], {"dtype": "float32"})
        elif kind == "reshape":
            value = grower.node(kind, [value], {"shape": (2, 3)})
        elif kind == "dropout":
            key = grower.input(grower.draws.integers((2,), 0, 99, "uint32"))
            # Its mask is a result that nobody reads.
            kept = grower.nodes(kind, [key, value], {"rate": 0.0})
            grower.results.remove(kept[1])
            value = kept[0]
        else:
            value = grower.node(kind, [value])
    grower.node("exp", [value])


def _plant_constants(grower: _Grower) -> None:
    """Add nodes that read constants only, and a product that wants its matrix by rows."""
    weight = grower.floats(4, 3)
    if grower.draws.flag():
        weight = grower.node("multiply", [weight, grower.floats(1)])
    attributes: dict[str, Attribute] = {"trans_b": True, "alpha": 0.5}
    grower.node("gemm", [grower.data(2, 3), weight], attributes)


def _plant_chain(grower: _Grower) -> None:
    """Add operators that may share a kernel: a diamond, and perhaps a sum."""
    draws = grower.draws
    value = grower.data(3, 4)
    for _ in range(draws.integer(1, 3)):
        left = grower.node(draws.choice(("sigmoid", "abs", "square")), [value])
        kind = draws.choice(("diamond", "row", "move", "sum"))
        if kind == "diamond":
            value = grower.node(draws.choice(("add", "maximum")), [left, value])
        elif kind == "row":
            row = grower.node("exp", [grower.floats(grower.arrays[left].shape[-1])])
            value = grower.node("multiply", [left, row])
        elif kind == "move":
            value = grower.node("flip", [left], {"axis": 0})
        else:
            value = grower.node("sum", [left], {"axis": (0,), "keepdims": True})
    grower.node("softmax", [value], {"axis": -1})


def _plant_narrow(grower: _Grower) -> None:
    """Add a product or a convolution of f16 that is added up in f32."""
    draws = grower.draws
    is_image = draws.flag()
    shape = (1, 2, 4, 4) if is_image else (draws.choice((2, 8)), 4)
    data = grower.node("cast", [grower.data(*shape)], {"dtype": "float16"})
    weight = draws.array((3, 2, 3, 3) if is_image else (4, 3), "float16", special=False)
    operator = "conv2d" if is_image else "matmul"
    attributes: dict[str, Attribute] = {"out_dtype": "float32"}
    value = grower.node(operator, [data, grower.constant(weight)], attributes)
    grower.node("relu", [value])


def _plant_quantized(grower: _Grower) -> None:
    """Add a layer between `dequantize` and `quantize`, or operators that move elements."""
    draws = grower.draws
    dtype = draws.choice(("int8", "uint8"))
    is_image = draws.flag()
    shape = (1, 2, 4, 4) if is_image else draws.choice(((2, 4), (2, 3, 4)))
    data = grower.input(draws.integers(shape, 0, 127, dtype))
    scale, zero = _quantum(grower, dtype, 0.02, 0.2)
    value = grower.node("dequantize", [data, scale, zero])
    if draws.integer(0, 2) == 0:
        value = grower.node("relu", [value])
        kind = draws.choice(("flatten", "flip", "concatenate"))
        if kind == "concatenate":
            value = grower.node(kind, [value, value], {"axis": 1})
        else:
            attributes: dict[str, Attribute] = {"axis": 1} if kind == "flip" else {}
            value = grower.node(kind, [value], attributes)
        grower.node("quantize", [value, scale, zero])
        return
    weight = draws.integers((3, 2, 3, 3) if is_image else (3, 4), -99, 99, "int8")
    step = grower.constant(draws.uniform(draws.choice(((), (3,))), 0.01, 0.1))
    inputs = [grower.constant(weight), step, None]
    factors = grower.node("dequantize", inputs, {"axis": 0})
    value = grower.node("conv2d" if is_image else "dense", [value, factors])
    if draws.flag():
        value = grower.node("relu", [value])
    result = draws.choice(("int8", "uint8", "int16"))
    made = grower.node("quantize", [value, *_quantum(grower, result, 0.05, 2)])
    if draws.flag():
        grower.node("dequantize", [made, *_quantum(grower, result, 0.1, 1)])


def _quantum(
    grower: _Grower, dtype: str, least: float, greatest: float
) -> tuple[Value, Value]:
    """Add a scale and a zero point."""
    draws = grower.draws
    scale = draws.choice(
        (
            draws.uniform((), least, greatest),
            np.asarray(np.float32(draws.choice((0.125, 0.25)))),
        )
    )
    zero = draws.integers((), 0, 9, dtype)
    return grower.constant(scale), grower.constant(zero)


# Name of a pattern -> what plants it.
PATTERNS: Mapping[str, Callable[[_Grower], None]] = {
    "blocks": _plant_blocks,
    "chain": _plant_chain,
    "constants": _plant_constants,
    "duplicates": _plant_duplicates,
    "identities": _plant_identities,
    "layout": _plant_layout,
    "narrow": _plant_narrow,
    "normalization": _plant_normalization,
    "quantized": _plant_quantized,
    "reshapes": _plant_reshapes,
    "residual": _plant_residual,
    "scale": _plant_scale,
    "transposes": _plant_transposes,
    "winograd": _plant_winograd,
}
