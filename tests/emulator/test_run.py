"""Kernels on numpy arrays: all that refcomp prints for AMD GPUs, as machine code of gfx942.

The interpreter of the loop IR says what they mean; results agree to the bit, or within the bound
of an intrinsic, and nothing is found wrong with them.
"""

import copy
from dataclasses import replace

import numpy as np
import pytest

from refcomp.dtype import to_numpy
from refcomp.errors import UserError
from refcomp.ir.expr import IntImm
from refcomp.ir.intrinsics import INTRINSICS
from refcomp.ir.kernels import kernel_nest, kernels_in
from refcomp.ir.parser import parse_func
from refcomp.ir.stmt import For
from refcomp.oracle.interpret import interpret
from tests.codegen.access_cases import DTYPES, access_arguments, access_kernel, accesses
from tests.codegen.device_kernels import TEXTS, device_kernel, draw_arguments
from tests.codegen.host_kernels import same_bits
from tests.codegen.intrinsic_cases import (
    CASES,
    COUNT,
    draw_operands,
    intrinsic_kernel,
    kernel_as_written,
    within_bound,
)
from tests.codegen.one_operation import (
    binary_cases,
    cast_cases,
    choice_cases,
    constant_cases,
    let_cases,
)
from tests.emulator.kernels import Kernels, compiled_code, make_gpu

pytestmark = pytest.mark.rocm
GENERATORS = (binary_cases, cast_cases, choice_cases, let_cases, constant_cases)
# LLVM takes half a minute to optimize them all as it usually does.
_QUICK = {"passes": "always-inline,sroa", "verify": "0"}


def _extents(kernel, args):
    """Grid and block of a kernel with these arguments."""
    known = dict(zip(kernel.params, args, strict=True))
    nest = kernel_nest(next(iter(kernels_in(kernel.body))))
    sides = nest.grid, nest.block
    return tuple(
        tuple(e.value if isinstance(e, IntImm) else int(known[e]) for e in side) for side in sides
    )


@pytest.fixture(scope="module")
def device_kernels():
    return Kernels([device_kernel(name) for name in TEXTS])


@pytest.mark.parametrize("name", TEXTS)
def test_kernels_agree_with_the_interpreter(name, device_kernels):
    kernel, args = device_kernel(name), draw_arguments(name)
    expected = copy.deepcopy(args)
    interpret(kernel, expected)
    report = device_kernels.run(kernel, args, *_extents(kernel, args), shared_bytes=4096)
    for ours, theirs in zip(args, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    assert not report.findings


def _as_threads(func):
    """The kernel whose outermost loop is one of threads, and how many there are."""
    loop = func.body
    assert isinstance(loop, For) and isinstance(loop.extent, IntImm)
    return replace(func, body=replace(loop, kind="threadIdx.x")), (loop.extent.value, 1, 1)


def _select(cases, request):
    """Every case at night, else every second one."""
    return cases if request.config.getoption("--nightly") else cases[::2]


@pytest.mark.parametrize("cases", GENERATORS)
def test_operations_agree_to_the_bit(cases, request, record_property):
    drawn = [(case, lanes) for case in _select(list(cases()), request) for lanes in (1, 4)]
    if not request.config.getoption("--nightly"):
        drawn = drawn[::3] if cases is constant_cases else drawn
    funcs = [_as_threads(case.kernels[lanes]) for case, lanes in drawn]
    kernels, wrong = Kernels([func for func, _ in funcs], **_QUICK), []
    for (case, lanes), (func, block) in zip(drawn, funcs, strict=True):
        result = case.empty_result()
        report = kernels.run(func, [*case.operands, result], (1, 1, 1), block)
        bad = np.flatnonzero(~same_bits(result, case.expected))
        if bad.size:
            inputs = [operand[bad[0]] for operand in case.operands]
            told = f"{inputs} gives {result[bad[0]]}, not {case.expected[bad[0]]}"
            wrong.append(f"{case.name} x{lanes}: {told}")
        wrong += [f"{case.name} x{lanes}: {finding}" for finding in report.findings]
    assert not wrong, "\n".join(wrong[:20])
    record_property("summary", f"{len(drawn)} {cases.__name__} emulated as gfx942")


def test_intrinsics_agree_within_their_bounds(request):
    drawn = [(case, lanes) for case in _select(CASES, request) for lanes in (1, 4)]
    funcs = [_as_threads(intrinsic_kernel(*case, lanes)) for case, lanes in drawn]
    kernels, wrong = Kernels([func for func, _ in funcs], **_QUICK), []
    for ((name, dtype), lanes), (func, block) in zip(drawn, funcs, strict=True):
        operands = draw_operands(name, dtype)
        expected = np.zeros(COUNT, to_numpy(INTRINSICS[name].result_dtype(dtype)))
        interpret(kernel_as_written(name, dtype), [*operands, expected])
        actual = np.zeros_like(expected)
        report = kernels.run(func, [*operands, actual], (1, 1, 1), block)
        bad = np.flatnonzero(~within_bound(name, dtype, actual, expected))
        wrong += [f"{name} {dtype} x{lanes}: {actual[k]}, not {expected[k]}" for k in bad[:1]]
        wrong += map(str, report.findings)
    assert not wrong, "\n".join(wrong)


def test_accesses_agree_to_the_bit(request):
    drawn = [(access_kernel(*a, dtype), dtype) for dtype in DTYPES for a in accesses(dtype, 16)]
    drawn = _select(drawn, request)
    kernels, wrong = Kernels([func for func, _ in drawn], **_QUICK), []
    for func, dtype in drawn:
        expected, actual = access_arguments(dtype), access_arguments(dtype)
        interpret(func, expected)
        report = kernels.run(func, actual)
        same = all(same_bits(a, e).all() for a, e in zip(actual, expected, strict=True))
        wrong += [] if same and not report.findings else [func.name]
    assert not wrong


def test_arguments_that_do_not_fit_are_refused():
    gpu = make_gpu()
    loaded = gpu.load(compiled_code("vector_add"))
    floats = np.zeros(64, np.float32)
    shape = (1, 1, 1), (64, 1, 1)
    with pytest.raises(UserError, match=r"takes 5 arguments \(A, B, C, n, groups\), not 1"):
        gpu.run(loaded, "vector_add", *shape, [floats])
    with pytest.raises(UserError, match="the argument n has 8 bytes, not 4"):
        gpu.run(loaded, "vector_add", *shape, [floats] * 3 + [np.int32(64), np.int64(1)])
    with pytest.raises(UserError, match="the argument n is a number, not an array"):
        gpu.run(loaded, "vector_add", *shape, [floats] * 4 + [np.int64(1)])
    with pytest.raises(UserError, match="the array for A is not contiguous"):
        gpu.run(loaded, "vector_add", *shape, [floats[::2]] * 3 + [np.int64(1)] * 2)


def test_wrong_kernels_are_found():
    """A guard that is too wide, and memory of the group that no thread wrote."""
    text = """
    func f(A: f32[100], C: f32[100] out) {
      for g in range(2) blockIdx.x { for t in range(64) threadIdx.x {
        alloc S: f32[64] shared {
          if (t < 63) { S@[t] = A@[g * 50 + t] }
          barrier
          if (g * 64 + t < 101) { C@[g * 64 + t] = S@[63 - t] }
        }
      } }
    }
    """
    kernel = parse_func(text)
    arrays = [np.ones(100, np.float32), np.zeros(100, np.float32)]
    report = Kernels([kernel]).run(kernel, arrays, (2, 1, 1), (64, 1, 1))
    told = {finding.what for finding in report.findings}
    assert "4 bytes that end 4 bytes behind the argument C (400 bytes)" in told
    assert "what is stored depends on bits that nothing wrote" in told
