"""Small computations that between them use most of what an output language spells.

Each operation of a kind of number on pairs of numbers where it is special: zeros, the greatest and
the least, ties, infinities, NaN; on single numbers and on vectors. Reads and writes of each shape:
side by side, a stride apart, gathered, masked, guarded; and memory on the stack and on the heap.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from refcomp.foundation.dtype import DType, as_dtype, to_numpy
from refcomp.ir.expr import Expr
from refcomp.ir.intrinsics import INTRINSICS
from refcomp.mutate.subjects import subjects
from refcomp.schedule.schedule import Schedule, create_schedule
from refcomp.te import maths
from refcomp.te.operation import compute, placeholder
from refcomp.te.reducer import reduce_axis, sum
from refcomp.te.tensor import Tensor, thread_axis

_LANES = 4
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "least": maths.minimum,
    "greatest": maths.maximum,
    "equal": lambda a, b: a.equal(b),
    "unequal": lambda a, b: maths.all(a != b),
    "below": lambda a, b: a < b,
    "at_most": lambda a, b: a <= b,
    "above": lambda a, b: a > b,
    "at_least": lambda a, b: a >= b,
    "chosen": lambda a, b: maths.select(a < b, b, a),
    "guarded": lambda a, b: maths.if_then_else(a > b, a - b, b),
    "as_bool": lambda a, _: a.astype("bool"),
    "as_f32": lambda a, _: a.astype("float32"),
    "as_f64": lambda a, _: a.astype("float64"),
    "as_i8": lambda a, _: a.astype("int8"),
    "as_u32": lambda a, _: a.astype("uint32"),
    "as_i64": lambda a, _: a.astype("int64"),
}
_OF_INTEGERS: dict[str, Callable[[Any, Any], Any]] = {
    "quotient": maths.truncdiv,
    "remainder": maths.truncmod,
    "floor_quotient": maths.floordiv,
    "floor_remainder": maths.floormod,
    "third": lambda a, _: maths.truncdiv(a, 3),
    "third_floor": lambda a, _: maths.floordiv(a, 3),
    "third_rest": lambda a, _: maths.floormod(a, 3),
    "eighth": lambda a, _: maths.floordiv(a, 8),
    "eighth_rest": lambda a, _: maths.floormod(a, 8),
    "both": lambda a, b: a & b,
    "either": lambda a, b: a | b,
    "odd": lambda a, b: a ^ b,
    "none": lambda a, _: ~a,
    "left": lambda a, b: a << b,
    "right": lambda a, b: a >> b,
    "ones": lambda a, _: maths.popcount(a),
    "zeros": lambda a, _: maths.clz(a),
}
_OF_FLOATS: dict[str, Callable[[Any, Any], Any]] = {
    "quotient": lambda a, b: a / b,
    "remainder": maths.fmod,
    "signed": maths.copysign,
    "size": lambda a, _: maths.abs(a),
    "root": lambda a, _: maths.sqrt(a),
    "down": lambda a, _: maths.floor(a),
    "up": lambda a, _: maths.ceil(a),
    "cut": lambda a, _: maths.trunc(a),
    "nearest": lambda a, _: maths.round(a),
    "is_nan": lambda a, _: maths.isnan(a),
    "is_finite": lambda a, _: maths.isfinite(a),
    "is_infinite": lambda a, _: maths.isinf(a),
    "shifted": lambda a, _: a * 0.1 + 2.5,
    "fused": lambda a, b: maths.fma(a, b, a),
}
_OF_BOOLS: dict[str, Callable[[Any, Any], Any]] = {
    "both": maths.all,
    "either": maths.any,
    "none": lambda a, _: ~a,
    "unequal": lambda a, b: maths.all(a != b),
    "equal": lambda a, b: a.equal(b),
    "as_f32": lambda a, _: a.astype("float32"),
    "as_i32": lambda a, _: a.astype("int32"),
    "chosen": lambda a, b: maths.select(a, b, ~b),
}


@dataclass(frozen=True, slots=True)
class Operations:
    """A schedule with its arguments for `target`, and the numbers that go in. Of the outputs named
    by `inexact` the last digits are free. `fails`: it needs more memory than there is, must say so,
    and write nothing."""

    name: str
    target: str
    schedule: Schedule
    args: tuple[Tensor, ...]
    inputs: tuple[Any, ...]
    inexact: frozenset[str] = frozenset()
    fails: bool = False


def operations(target: str) -> list[Operations]:
    """All of them for a kind of target, made anew."""
    is_host = target == "llvm"
    dtypes = _DTYPES if is_host else _DEVICE_DTYPES
    made = [
        _elementwise(dtype, target, lanes) for dtype in dtypes for lanes in (1, _LANES)
    ]
    made += [_functions(dtype, target) for dtype in ("float32", "float64")]
    made += [
        _from_subject(s, target) for s in subjects() if (s.kind == "llvm") == is_host
    ]
    return [*made, *(_host_patterns() if is_host else [])]


_DTYPES = (
    *("int32", "uint8", "int64", "float32", "float64", "float16", "bool"),
    *("int16", "uint16", "uint64"),
)
_DEVICE_DTYPES = ("int32", "uint32", "float32", "float64", "bool")


def special(dtype: DType) -> Any:
    """Ten numbers of `dtype`, at and next to where operations change what they do."""
    if dtype.is_bool:
        return np.array([False, True] * 5)
    numpy_type = to_numpy(dtype)
    if dtype.is_float:
        most = float(np.finfo(numpy_type).max)
        least = float(np.finfo(numpy_type).smallest_subnormal)
        numbers = [np.nan, np.inf, -np.inf, -0.0, 0.0, 2.5, -3.7, 0.6, most, least]
        return np.array(numbers).astype(numpy_type)
    low, high, bits = dtype.min_value, dtype.max_value, dtype.bits
    below = [low, -7, -1] if low else [2, 100, 9]
    return np.array([*below, 0, 1, 3, bits - 1, bits, high - 1, high], numpy_type)


def _elementwise(name: str, target: str, lanes: int) -> Operations:
    dtype = as_dtype(name)
    numbers = special(dtype)
    inputs = [
        np.array(side)
        for side in zip(*itertools.product(numbers, numbers), strict=True)
    ]
    a, b = (
        placeholder(x.shape, name, side) for x, side in zip(inputs, "AB", strict=True)
    )
    found = [_tensor(op, form, a, b) for op, form in _forms(dtype).items()]
    outputs = [tensor for tensor in found if tensor is not None]
    schedule = _scheduled(outputs, target, lanes)
    what = f"{dtype} in vectors" if lanes > 1 else str(dtype)
    typed = tuple(np.asarray(x, to_numpy(dtype)) for x in inputs)
    return Operations(what, target, schedule, (a, b, *outputs), typed)


def _forms(dtype: DType) -> dict[str, Callable[[Any, Any], Any]]:
    if dtype.is_bool:
        return _OF_BOOLS
    own = dict(_OF_FLOATS if dtype.is_float else _OF_INTEGERS)
    if dtype.bits == 16:
        own.pop("fused", None)  # of f32 and f64 only
    return {**_ARITHMETIC, **own}


def _tensor(name: str, form: Callable[[Any, Any], Any], a: Tensor, b: Tensor) -> Any:
    return compute(a.shape, lambda i: form(a[i], b[i]), name=f"{name}_")


def _scheduled(outputs: Sequence[Tensor], target: str, lanes: int) -> Schedule:
    schedule: Any = create_schedule(list(outputs))
    for tensor in outputs:
        (axis,) = schedule[tensor].op.axis
        if lanes > 1:
            axis, inner = schedule[tensor].split(axis, factor=lanes)
            schedule[tensor].vectorize(inner)
        if target != "llvm":
            schedule[tensor].bind(axis, thread_axis("threadIdx.x"))
    return _typed(schedule)


def _typed(schedule: Any) -> Schedule:
    assert isinstance(schedule, Schedule)
    return schedule


def _functions(name: str, target: str) -> Operations:
    """The functions whose last digits are free, where they are not at their most sensitive."""
    numbers = np.linspace(-0.9, 0.9, 12).astype(name)
    x = placeholder(numbers.shape, name, "X")
    known = [i for i in INTRINSICS.values() if i.ulp]
    outputs = [_function(intrinsic.name, intrinsic.arity, x) for intrinsic in known]
    schedule = _scheduled(outputs, target, 1)
    args = (x, *outputs)
    inexact = frozenset(tensor.name for tensor in outputs)
    return Operations(
        f"functions of {name}", target, schedule, args, (numbers,), inexact
    )


def _function(name: str, arity: int, x: Tensor) -> Tensor:
    def form(i: Any) -> Expr:
        at = x[i] + 2.0 if name in _FROM_ONE else x[i]
        operands = [at] if arity == 1 else [maths.abs(at) + 0.5, x[i] * 0.7]
        found: Expr = _BY_NAME[name](*operands)
        return found

    tensor = compute(x.shape, form, name=f"{name}_")
    assert isinstance(tensor, Tensor)
    return tensor


_FROM_ONE = ("log", "log2", "log10", "rsqrt", "acosh")
_BY_NAME: dict[str, Callable[..., Any]] = {
    **{
        i.name: getattr(maths, i.name)
        for i in INTRINSICS.values()
        if hasattr(maths, i.name)
    },
    "pow": maths.power,
}


def _from_subject(subject: Any, target: str) -> Operations:
    rng = np.random.default_rng(5)
    given = [arg for arg in subject.args if not arg.op.inputs]
    shapes = [tuple(getattr(dim, "value", 0) for dim in arg.shape) for arg in given]
    inputs = tuple(rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    inexact = frozenset(arg.name for arg in subject.args if subject.name == "softmax")
    return Operations(
        subject.name, target, subject.schedule, subject.args, inputs, inexact
    )


def _host_patterns() -> list[Operations]:
    """Reads and writes of each shape, on the host, and where temporaries lie."""
    rng = np.random.default_rng(5)
    a, p = placeholder((24,), name="A"), placeholder((10,), "int32", "P")
    data = (
        rng.standard_normal(24).astype(np.float32),
        rng.permutation(10).astype(np.int32),
    )
    outputs = [
        compute((10,), lambda i: a[i * 2], name="strided"),
        compute((10,), lambda i: a[p[i]], name="gathered"),
        compute((10,), lambda i: a[p[i] + i], name="gathered_further"),
        compute(
            (10,), lambda i: maths.if_then_else(i < 7, a[i + 3], 1.5), name="masked"
        ),
        compute(
            (10,),
            lambda i: maths.if_then_else(p[i] < 5, a[p[i] * 4], 2.5),
            name="guarded",
        ),
    ]
    vectors = Operations(
        "reads", "llvm", _scheduled(outputs, "llvm", 4), (a, p, *outputs), data
    )
    lacking = [_without_memory(is_parallel) for is_parallel in (False, True)]
    return [vectors, _of_rows(), _on_the_heap(), *lacking]


def _of_rows() -> Operations:
    """Writes a stride apart, in a vector and under a mask, and a parallel loop."""
    x = placeholder((6, 5), name="X")
    turned = compute((5, 6), lambda i, j: x[j, i] * 2.0, name="turned")
    added = compute((6, 5), lambda i, j: x[i, j] + 1.0, name="added")
    schedule: Any = create_schedule([turned, added])
    row, column = schedule[turned].op.axis
    schedule[turned].reorder(column, row)
    _, inner = schedule[turned].split(row, factor=4)
    schedule[turned].vectorize(inner)
    schedule[added].parallel(added.op.axis[0])
    numbers = np.random.default_rng(6).standard_normal((6, 5)).astype(np.float32)
    return Operations(
        "writes", "llvm", _typed(schedule), (x, turned, added), (numbers,)
    )


def _on_the_heap() -> Operations:
    """A temporary too large for the stack, one of each thread, and one small one."""
    x = placeholder((4, 3000), name="X")
    k = reduce_axis((0, 3000), "k")
    large = compute((4, 3000), lambda i, j: x[i, j] * 3.0, name="large")
    small = compute((4,), lambda i: sum(large[i, k], axis=k), name="small")
    result = compute((4,), lambda i: small[i] + large[i, 7], name="result")
    schedule: Any = create_schedule(result)
    schedule[result].parallel(result.op.axis[0])
    schedule[small].compute_at(schedule[result], result.op.axis[0])
    numbers = np.random.default_rng(6).integers(-9, 9, (4, 3000)).astype(np.float32)
    return Operations("temporaries", "llvm", _typed(schedule), (x, result), (numbers,))


def _without_memory(is_parallel: bool) -> Operations:
    """A temporary of more bytes than any host has, of the function or of each task."""
    x = placeholder((4,), name="X")
    huge = compute((4, 2**46), lambda i, j: x[i] + j.astype("float32"), name="huge")
    result = compute((4,), lambda i: huge[i, 0] + huge[i, 2**46 - 1], name="result")
    schedule: Any = create_schedule(result)
    if is_parallel:
        schedule[result].parallel(result.op.axis[0])
        schedule[huge].compute_at(schedule[result], result.op.axis[0])
    what = "no memory in a region" if is_parallel else "no memory"
    numbers = np.ones(4, np.float32)
    return Operations(
        what, "llvm", _typed(schedule), (x, result), (numbers,), fails=True
    )
