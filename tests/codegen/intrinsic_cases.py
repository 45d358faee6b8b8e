"""Every intrinsic on every dtype: kernels, operands, and how near results must be."""

import numpy as np

from refcomp.foundation.dtype import SCALAR_DTYPES, DType, to_numpy
from refcomp.ir.func import PrimFunc
from refcomp.ir.intrinsics import INTRINSICS
from refcomp.ir.parser import parse_func
from refcomp.passes.lower_intrinsics import lower_intrinsics
from tests.codegen.host_kernels import same_bits
from tests.codegen.one_operation import edge_values, operands_of

COUNT = 240  # a multiple of many numbers of lanes
CASES = [
    (name, dtype)
    for name, intrinsic in INTRINSICS.items()
    for dtype in SCALAR_DTYPES
    if dtype.kind in intrinsic.kinds
    and dtype.kind != "bfloat"
    and not (name == "bits_to_float" and dtype.bits == 8)
]


def intrinsic_kernel(name: str, dtype: DType, lanes: int, count: int = COUNT) -> PrimFunc:
    """The intrinsic on `count` elements, lowered, in vectors of `lanes`."""
    intrinsic = INTRINSICS[name]
    result = intrinsic.result_dtype(dtype)
    index = f"ramp(i * {lanes}, 1, {lanes})" if lanes > 1 else "i"
    names = "XYZ"[: intrinsic.arity]
    params = "".join(f"{x}: {dtype}[{count}], " for x in names)
    args = ", ".join(f"{x}@[{index}]" for x in names)
    return lower_intrinsics(
        parse_func(
            f"func {name}_{dtype}_x{lanes}({params}R: {result}[{count}] out) "
            f"{{ for i in range({count // lanes}) {{ R@[{index}] = {name}({args}) }} }}"
        )
    )


def draw_operands(name, dtype):
    """Edge values, then values where most functions are defined; COUNT in all."""
    arity = INTRINSICS[name].arity
    edges = [column[:100] for column in operands_of(dtype, arity)]
    if arity == 1:
        edges = [edge_values(dtype)]
    if not dtype.is_float:
        return [np.resize(column, COUNT) for column in edges]
    rng = np.random.default_rng(1)
    rest = COUNT - len(edges[0])
    drawn = [rng.uniform(-4, 4, rest).astype(to_numpy(dtype)) for _ in range(arity)]
    drawn[0][::3] *= np.asarray(0.01, drawn[0].dtype)
    drawn[0][1::3] = np.abs(drawn[0][1::3]) / 4
    return [np.concatenate(pair) for pair in zip(edges, drawn, strict=True)]


def within_bound(name, dtype, actual, expected):
    """Where the result is that of the interpreter, within the bound of the intrinsic."""
    same = same_bits(actual, expected)
    ulp = INTRINSICS[name].ulp
    if not ulp:
        return same
    # f16 is computed in f32, whose error may tip the one rounding.
    ulp = 1.0 if dtype.bits == 16 else ulp + 0.5
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(actual.astype(np.longdouble) - expected.astype(np.longdouble))
        allowed = ulp * np.spacing(np.abs(expected)).astype(np.longdouble)
    return same | (error <= allowed)


def kernel_as_written(name, dtype):
    """The intrinsic itself, before it is lowered."""
    names = "XYZ"[: INTRINSICS[name].arity]
    params = "".join(f"{x}: {dtype}[n], " for x in names)
    args = ", ".join(f"{x}@[i]" for x in names)
    result = INTRINSICS[name].result_dtype(dtype)
    text = (
        f"func f({params}R: {result}[n] out) {{ for i in range(n) {{ R@[i] = {name}({args}) }} }}"
    )
    return parse_func(text)
