"""Small computations that together use most of what an output language can spell.

Each operation is applied to all pairs of the special numbers of a dtype: zeros, extremes, ties,
infinities, NaN; on scalars and on vectors. Memory is accessed in every way: contiguous, strided,
gathered, masked, guarded; temporaries lie on the stack and on the heap.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from refcomp.foundation.dtype import DType, as_dtype, to_numpy
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.intrinsics import INTRINSICS, Intrinsic
from refcomp.mutate.subjects import Subject, subjects
from refcomp.oracle.tensors.arrays import Array
from refcomp.schedule.schedule import Schedule, create_schedule
from refcomp.te import maths
from refcomp.te.operation import compute, placeholder
from refcomp.te.reducer import reduce_axis, sum
from refcomp.te.tensor import Tensor, thread_axis

_LANES = 4  # of the vectorized computations
_Form = Callable[[Expr, Expr], Expr]
_ARITHMETIC: dict[str, _Form] = {
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
_ON_INTEGERS: dict[str, _Form] = {
    "quotient": maths.truncdiv,
    "remainder": maths.truncmod,
    "floor_quotient": maths.floordiv,
    "floor_remainder": maths.floormod,
    "by_3": lambda a, _: maths.truncdiv(a, 3),
    "floor_by_3": lambda a, _: maths.floordiv(a, 3),
    "rest_by_3": lambda a, _: maths.floormod(a, 3),
    "floor_by_8": lambda a, _: maths.floordiv(a, 8),
    "rest_by_8": lambda a, _: maths.floormod(a, 8),
    "both": lambda a, b: a & b,
    "either": lambda a, b: a | b,
    "differing": lambda a, b: a ^ b,
    "inverted": lambda a, _: ~a,
    "shifted_left": lambda a, b: a << b,
    "shifted_right": lambda a, b: a >> b,
    "set_bits": lambda a, _: maths.popcount(a),
    "leading_zeros": lambda a, _: maths.clz(a),
}
_ON_FLOATS: dict[str, _Form] = {
    "quotient": lambda a, b: a / b,
    "remainder": maths.fmod,
    "with_sign": maths.copysign,
    "magnitude": lambda a, _: maths.abs(a),
    "square_root": lambda a, _: maths.sqrt(a),
    "down": lambda a, _: maths.floor(a),
    "up": lambda a, _: maths.ceil(a),
    "truncated": lambda a, _: maths.trunc(a),
    "nearest": lambda a, _: maths.round(a),
    "is_nan": lambda a, _: maths.isnan(a),
    "is_finite": lambda a, _: maths.isfinite(a),
    "is_infinite": lambda a, _: maths.isinf(a),
    "scaled": lambda a, _: a * 0.1 + 2.5,
    "fused": lambda a, b: maths.fma(a, b, a),
}
_ON_BOOLS: dict[str, _Form] = {
    "both": maths.all,
    "either": maths.any,
    "inverted": lambda a, _: ~a,
    "unequal": lambda a, b: maths.all(a != b),
    "equal": lambda a, b: a.equal(b),
    "as_f32": lambda a, _: a.astype("float32"),
    "as_i32": lambda a, _: a.astype("int32"),
    "chosen": lambda a, b: maths.select(a, b, ~b),
}


@dataclass(frozen=True, slots=True)
class Operations:
    """A schedule with its arguments and inputs."""

    name: str
    target: str
    schedule: Schedule
    args: tuple[Tensor, ...]
    inputs: tuple[Array, ...]  # the values of the placeholders among `args`, in order
    inexact: frozenset[str] = frozenset()  # the outputs whose last digits are free
    # True if it needs more memory than any machine has. It must report that and write nothing.
    fails: bool = False


_HOST_DTYPES = (
    "int32",
    "uint8",
    "int64",
    "float32",
    "float64",
    "float16",
    "bool",
    "int16",
    "uint16",
    "uint64",
)
_DEVICE_DTYPES = ("int32", "uint32", "float32", "float64", "bool")
# CUDA has its own operators on f16, and widens small integers.
_CUDA_DTYPES = (*_DEVICE_DTYPES, "int64", "uint8", "int16", "float16")


def operations(target: str) -> list[Operations]:
    """Return all computations for a kind of target, built anew."""
    is_host = target == "llvm"
    dtypes = {"llvm": _HOST_DTYPES, "cuda": _CUDA_DTYPES}.get(target, _DEVICE_DTYPES)
    made = [
        _elementwise(dtype, target, lanes) for dtype in dtypes for lanes in (1, _LANES)
    ]
    made += [_functions(dtype, target) for dtype in ("float32", "float64")]
    for subject in subjects():
        if (subject.kind == "llvm") == is_host:
            made.append(_from_subject(subject, target))
    if target == "cuda":
        made.append(_sums_of_threads())
    if is_host:
        made += [_reads(), _writes(), _temporaries()]
        made += [_without_memory(is_parallel) for is_parallel in (False, True)]
    return made


def special(dtype: DType) -> Array:
    """Return ten numbers of `dtype` at which operations behave in special ways."""
    if dtype.is_bool:
        return np.array([False, True] * 5)
    numpy_type = to_numpy(dtype)
    if dtype.is_float:
        high = float(np.finfo(numpy_type).max)
        tiny = float(np.finfo(numpy_type).smallest_subnormal)
        numbers = [np.nan, np.inf, -np.inf, -0.0, 0.0, 2.5, -3.7, 0.6, high, tiny]
        return np.array(numbers).astype(numpy_type)
    low, end, bits = dtype.min_value, dtype.max_value, dtype.bits
    first = [low, -7, -1] if low else [2, 100, 9]
    return np.array([*first, 0, 1, 3, bits - 1, bits, end - 1, end], numpy_type)


def _elementwise(name: str, target: str, lanes: int) -> Operations:
    """Return the computation of every operation on all pairs of special numbers."""
    dtype = as_dtype(name)
    forms = _ON_BOOLS
    if not dtype.is_bool:
        forms = _ARITHMETIC | (_ON_FLOATS if dtype.is_float else _ON_INTEGERS)
        if dtype.bits == 16:
            forms.pop("fused", None)  # fma exists for f32 and f64 only
    numbers = special(dtype)
    pairs = itertools.product(numbers, numbers)
    inputs = tuple(
        np.asarray(side, to_numpy(dtype)) for side in zip(*pairs, strict=True)
    )
    a = placeholder(inputs[0].shape, name, "A")
    b = placeholder(inputs[1].shape, name, "B")
    outputs = [_elements(op, form, a, b) for op, form in forms.items()]
    return Operations(
        name=f"{dtype} in vectors" if lanes > 1 else str(dtype),
        target=target,
        schedule=_scheduled(outputs, target, lanes),
        args=(a, b, *outputs),
        inputs=inputs,
    )


def _elements(name: str, form: _Form, a: Tensor, b: Tensor) -> Tensor:
    tensor = compute(a.shape, lambda i: form(a[i], b[i]), name=f"{name}_")
    assert isinstance(tensor, Tensor)
    return tensor


def _scheduled(outputs: Sequence[Tensor], target: str, lanes: int) -> Schedule:
    schedule = create_schedule(list(outputs))
    for tensor in outputs:
        (axis,) = tensor.op.axis
        if lanes > 1:
            axis, inner = schedule[tensor].split(axis, factor=lanes)
            schedule[tensor].vectorize(inner)
        if target != "llvm":
            schedule[tensor].bind(axis, thread_axis("threadIdx.x"))
    return schedule


def _functions(name: str, target: str) -> Operations:
    """Return the computation of all inexact functions, where they are well-conditioned."""
    numbers = np.linspace(-0.9, 0.9, 12).astype(name)
    x = placeholder(numbers.shape, name, "X")
    outputs = [_function(intrin, x) for intrin in INTRINSICS.values() if intrin.ulp]
    return Operations(
        name=f"functions of {name}",
        target=target,
        schedule=_scheduled(outputs, target, lanes=1),
        args=(x, *outputs),
        inputs=(numbers,),
        inexact=frozenset(tensor.name for tensor in outputs),
    )


_DEFINED_FROM_ONE = ("log", "log2", "log10", "rsqrt", "acosh")


def _function(intrinsic: Intrinsic, x: Tensor) -> Tensor:
    name = intrinsic.name
    function = maths.power if name == "pow" else getattr(maths, name)

    def element(i: Var) -> Expr:
        operand = x[i] + 2.0 if name in _DEFINED_FROM_ONE else x[i]
        operands = [operand]
        if intrinsic.arity == 2:
            operands = [maths.abs(operand) + 0.5, x[i] * 0.7]
        result = function(*operands)
        assert isinstance(result, Expr)
        return result

    tensor = compute(x.shape, element, name=f"{name}_")
    assert isinstance(tensor, Tensor)
    return tensor


def _from_subject(subject: Subject, target: str) -> Operations:
    rng = np.random.default_rng(5)
    inputs = []
    for arg in subject.args:
        if not arg.op.inputs:
            shape = tuple(dim.value for dim in arg.shape if isinstance(dim, IntImm))
            inputs.append(rng.standard_normal(shape).astype(np.float32))
    is_inexact = subject.name == "softmax"
    return Operations(
        name=subject.name,
        target=target,
        schedule=subject.schedule,
        args=subject.args,
        inputs=tuple(inputs),
        inexact=frozenset(arg.name for arg in subject.args if is_inexact),
    )


def _reads() -> Operations:
    """Return a computation that reads with a stride, by gathering, under masks and conditions."""
    rng = np.random.default_rng(5)
    a = placeholder((24,), name="A")
    p = placeholder((10,), "int32", "P")
    forms: dict[str, Callable[[Var], Expr]] = {
        "strided": lambda i: a[i * 2],
        "gathered": lambda i: a[p[i]],
        "gathered_further": lambda i: a[p[i] + i],
        "masked": lambda i: maths.if_then_else(i < 7, a[i + 3], 1.5),
        "guarded": lambda i: maths.if_then_else(p[i] < 5, a[p[i] * 4], 2.5),
    }
    outputs = [compute((10,), form, name=name) for name, form in forms.items()]
    numbers = rng.standard_normal(24).astype(np.float32)
    places = rng.permutation(10).astype(np.int32)
    return Operations(
        name="reads",
        target="llvm",
        schedule=_scheduled(outputs, "llvm", _LANES),
        args=(a, p, *outputs),
        inputs=(numbers, places),
    )


def _sums_of_threads() -> Operations:
    """Return a computation whose threads add up rows together, in two warps."""
    x = placeholder((3, 64), "int32", "X")
    k = reduce_axis((0, 64), "k")
    total = compute((3,), lambda i: sum(x[i, k], axis=k), name="total")
    assert isinstance(total, Tensor)
    schedule = create_schedule(total)
    schedule[total].bind(total.op.axis[0], thread_axis("blockIdx.x"))
    schedule[total].bind(k, thread_axis("threadIdx.x"))
    numbers = np.random.default_rng(6).integers(-99, 99, (3, 64)).astype(np.int32)
    return Operations("sums of threads", "cuda", schedule, (x, total), (numbers,))


def _writes() -> Operations:
    """Return a computation that writes with a stride and under a mask, and in a parallel loop."""
    x = placeholder((6, 5), name="X")
    turned = compute((5, 6), lambda i, j: x[j, i] * 2.0, name="turned")
    added = compute((6, 5), lambda i, j: x[i, j] + 1.0, name="added")
    schedule = create_schedule([turned, added])
    row, column = turned.op.axis
    schedule[turned].reorder(column, row)
    _, inner = schedule[turned].split(row, factor=4)
    schedule[turned].vectorize(inner)
    schedule[added].parallel(added.op.axis[0])
    numbers = np.random.default_rng(6).standard_normal((6, 5)).astype(np.float32)
    return Operations("writes", "llvm", schedule, (x, turned, added), (numbers,))


def _temporaries() -> Operations:
    """Return a computation with temporaries: one on the heap, small ones on the threads' stacks."""
    x = placeholder((4, 3000), name="X")
    k = reduce_axis((0, 3000), "k")
    large = compute((4, 3000), lambda i, j: x[i, j] * 3.0, name="large")
    small = compute((4,), lambda i: sum(large[i, k], axis=k), name="small")
    result = compute((4,), lambda i: small[i] + large[i, 7], name="result")
    schedule = create_schedule(result)
    schedule[result].parallel(result.op.axis[0])
    schedule[small].compute_at(schedule[result], result.op.axis[0])
    numbers = np.random.default_rng(6).integers(-9, 9, (4, 3000)).astype(np.float32)
    return Operations("temporaries", "llvm", schedule, (x, result), (numbers,))


def _without_memory(is_parallel: bool) -> Operations:
    """Return a computation whose temporary has more bytes than any host can allocate.

    The temporary belongs to the function, or to each task of its parallel loop.
    """
    x = placeholder((4,), name="X")
    huge = compute((4, 2**46), lambda i, j: x[i] + j.astype("float32"), name="huge")
    result = compute((4,), lambda i: huge[i, 0] + huge[i, 2**46 - 1], name="result")
    schedule = create_schedule(result)
    if is_parallel:
        schedule[result].parallel(result.op.axis[0])
        schedule[huge].compute_at(schedule[result], result.op.axis[0])
    return Operations(
        name="no memory in a region" if is_parallel else "no memory",
        target="llvm",
        schedule=schedule,
        args=(x, result),
        inputs=(np.ones(4, np.float32),),
        fails=True,
    )
