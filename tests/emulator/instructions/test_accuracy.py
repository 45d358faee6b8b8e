"""Functions and approximate instructions on emulated GPUs, held against mpmath within their ulps.

Instructions: 1 ulp of the true value, as the tables promise. Functions of AMD's device library: the
limits that OpenCL C sets (its section "Relative Error as ULPs"), of halves those of its extension.
"""

import mpmath
import numpy as np
import pytest

from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.ir.intrinsics import INTRINSICS
from tests.codegen.intrinsic_cases import intrinsic_kernel
from tests.emulator.agreement import QUICK, as_threads
from tests.emulator.kernels import Kernels
from tests.emulator.snippets import get, make_waves, put, run
from tests.oracle.interpreter.test_intrinsics import TRUTH

COUNT = 192
_SINGLE = {
    **dict.fromkeys(("exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "sqrt"), 3),
    **dict.fromkeys(("acos", "acosh", "asin", "asinh", "cos", "cosh", "sin", "sinh", "hypot"), 4),
    **dict.fromkeys(("atan", "atanh", "tan", "tanh"), 5),
    **{"log1p": 2, "rsqrt": 2, "atan2": 6, "erf": 16, "pow": 16},
}
_HALF = dict.fromkeys(_SINGLE, 2) | {"rsqrt": 1, "sqrt": 1, "erf": 4, "pow": 4}
_DTYPES = ("f16", "f32", "f64")
_POSITIVE = ("log", "log2", "log10", "sqrt", "rsqrt", "pow")
_OF_UNIT = ("asin", "acos", "atanh")


def _numbers(name, dtype, count=COUNT):
    """Where the function is defined: some near 1, some near 0, some large ones."""
    rng, kind = np.random.default_rng(7), to_numpy(as_dtype(dtype))
    far = {"f16": 9, "f32": 40, "f64": 200}[dtype]
    near, small = rng.uniform(-4, 4, count), rng.uniform(-4, 4, count) * 2.0**-7
    large = rng.choice([-1, 1], count) * 2.0 ** rng.uniform(2, far, count)
    values = np.choose(np.arange(count) % 3, [near, small, large])
    if name in _POSITIVE:
        values = np.abs(values)
    if name in _OF_UNIT:
        values = rng.uniform(-0.999, 0.999, count)
    if name == "acosh":
        values = 1 + np.abs(values)
    if name == "log1p":
        values = np.where(values > -0.99, values, -values)
    return values.astype(kind)


def _operands(name, dtype):
    first = _numbers(name, dtype)
    return [first, _numbers("other", dtype)[::-1].copy()][: INTRINSICS[name].arity]


def _ulps(actual, truths):
    """How far results are from the truth, in units of the last place; of those that are finite."""
    worst, where = 0.0, -1
    for k, (value, truth) in enumerate(zip(actual, truths, strict=True)):
        with np.errstate(over="ignore"):
            nearest = actual.dtype.type(float(truth))
        if not np.isfinite(nearest):
            continue
        unit = mpmath.mpf(float(np.spacing(np.abs(nearest))))
        error = float(abs(mpmath.mpf(float(value)) - truth) / unit)
        if not error <= worst:
            worst, where = error, k
    return worst, where


@pytest.mark.rocm
def test_functions_keep_to_the_limits_of_opencl(record_property):
    cases = [(name, dtype) for name in _SINGLE for dtype in _DTYPES]
    ways = {c: as_threads(intrinsic_kernel(c[0], as_dtype(c[1]), 1, COUNT)) for c in cases}
    kernels, wrong, worst = Kernels([func for func, *_ in ways.values()], **QUICK), [], 0.0
    for (name, dtype), (func, grid, block) in ways.items():
        operands = _operands(name, dtype)
        result = np.zeros(COUNT, operands[0].dtype)
        assert not kernels.run(func, [*operands, result], grid, block).findings
        with mpmath.workprec(400):  # sines of large numbers
            given = zip(*operands, strict=True)
            truths = [TRUTH[name](*(mpmath.mpf(float(x)) for x in one)) for one in given]
            error, where = _ulps(result, truths)
        limit = (_HALF if dtype == "f16" else _SINGLE)[name]
        worst = max(worst, error / limit)
        if not error <= limit:
            wrong.append(f"{name} {dtype}: {error:.3} ulps at {[x[where] for x in operands]}")
    assert not wrong, "\n".join(wrong)
    record_property("summary", f"{len(cases)} functions emulated: {worst:.0%} of OpenCL's limits")


def _of_turns(function):
    return lambda x: function(2 * mpmath.pi * x)


_INSTRUCTIONS = {
    "exp": TRUTH["exp2"],
    "log": TRUTH["log2"],
    "rcp": lambda x: 1 / x,
    "rsq": TRUTH["rsqrt"],
    "sqrt": mpmath.sqrt,
    "sin": _of_turns(mpmath.sin),
    "cos": _of_turns(mpmath.cos),
}
_IN_F64 = ("rcp", "rsq", "sqrt")  # a real GPU is less exact there


_PAIRS = [(n, d) for n in _INSTRUCTIONS for d in _DTYPES if d != "f64" or n in _IN_F64]


@pytest.mark.parametrize(("name", "dtype"), _PAIRS)
def test_instructions_are_within_an_ulp(name, dtype):
    operands = {"exp": "exp2", "rsq": "rsqrt"}.get(name, name)
    values = _numbers(operands, dtype)
    if name in ("sin", "cos"):
        values = values[np.abs(values) < 256]  # where the manual says they are right
    results = []
    for start in range(0, len(values), 64):
        waves, some = make_waves(), np.resize(values[start : start + 64], 64)
        put(waves, 2, some)
        run(waves, f"v_{name}_{dtype} {'v[4:5], v[2:3]' if dtype == 'f64' else 'v4, v2'}")
        results.append(get(waves, 4, dtype)[: len(values) - start])
    found = np.concatenate(results)[: len(values)]
    with mpmath.workprec(400):
        truths = [_INSTRUCTIONS[name](mpmath.mpf(float(x))) for x in values]
        error, where = _ulps(found, truths)
    assert error <= 1, f"{values[where]}: {found[where]}"
