"""Reductions across threads, whose last steps are exchanges between the threads of a subgroup."""

import copy
from functools import cache

import numpy as np
import pytest

import refcomp as rc
from refcomp.codegen.cuda.module import print_cuda
from refcomp.driver.steps import CUDA_STEPS, kernels_of, run_step
from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.ir.expr import Call
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Barrier
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes import reduce_in_subgroups as module
from refcomp.passes.reduce_in_subgroups import reduce_in_subgroups
from refcomp.toolchain import compile_source
from tests.codegen.cuda.host_kernels import HostKernels
from tests.passes.docstring_examples import assert_docstring_holds

# (rows, terms), (threads along y and x), reducer, dtype
REDUCTIONS = {
    "wide": ((4, 300), (1, 128), "sum", "f32"),
    "warp": ((6, 70), (2, 32), "max", "f32"),
    "several_a_warp": ((8, 50), (4, 8), "sum", "i32"),
    "few": ((3, 9), (1, 4), "min", "f64"),
    "halves": ((2, 90), (2, 64), "sum", "f16"),
    "bytes": ((2, 90), (1, 16), "max", "u8"),
}
OTHER = {
    "odd": ((2, 90), (1, 24), "sum", "f32"),
    "pairs": ((2, 90), (1, 2), "sum", "f32"),
    "half_a_row": ((2, 90), (1, 40), "sum", "f32"),
}


@cache
def _kernels(name: str) -> tuple[PrimFunc, PrimFunc]:
    """Return a kernel before and after the pass."""
    (rows, terms), (ty, tx), reducer, dtype = (REDUCTIONS | OTHER)[name]
    A = rc.placeholder((rows, terms), name="A", dtype=dtype)
    k = rc.reduce_axis((0, terms), name="k")
    B = rc.compute((rows,), lambda i: getattr(rc, reducer)(A[i, k], axis=k), name="B")
    s = rc.create_schedule(B)
    _, ki = s[B].split(s[B].op.reduce_axis[0], factor=tx)
    io, ii = s[B].split(s[B].op.axis[0], factor=ty)
    s[B].bind(io, rc.thread_axis("blockIdx.x"))
    s[B].bind(ii, rc.thread_axis("threadIdx.y"))
    s[B].bind(ki, rc.thread_axis("threadIdx.x"))
    return _around_the_pass(rc.lower(s, [A, B], name=name))


def _around_the_pass(made: object) -> tuple[PrimFunc, PrimFunc]:
    names = [step.name for step in CUDA_STEPS]
    position = names.index("reduce_in_subgroups")
    for step in CUDA_STEPS[:position]:
        made = run_step(step, made)
    (before,) = kernels_of([made])
    for step in CUDA_STEPS[position:]:
        made = run_step(step, made)
    return before, *kernels_of([made])


def _count(kernel: PrimFunc, what: type) -> int:
    return sum(isinstance(node, what) for node in walk(kernel.body))


def _exchanges(kernel: PrimFunc) -> int:
    return sum(
        isinstance(node, Call) and node.name == "subgroup_shuffle_xor" for node in walk(kernel.body)
    )


def _arguments(kernel: PrimFunc) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [
        rng.integers(0, 20, [int(str(d).removesuffix("i32")) for d in p.shape]).astype(
            to_numpy(as_dtype(str(p.dtype)))
        )
        for p in kernel.params
    ]


def test_docstring() -> None:
    assert_docstring_holds(module, reduce_in_subgroups)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_the_last_steps_need_no_barriers(name: str) -> None:
    before, after = _kernels(name)
    threads = REDUCTIONS[name][1][1]
    steps = min(threads, 32).bit_length() - 1
    assert _exchanges(after) == steps
    assert _count(after, Barrier) == _count(before, Barrier) - (steps - 1)
    actual, expected = _arguments(before), _arguments(before)
    interpret(before, expected)
    interpret(after, actual)
    np.testing.assert_array_equal(actual[1], expected[1])


@pytest.mark.parametrize("name", OTHER)
def test_other_numbers_of_threads_stay(name: str) -> None:
    assert _exchanges(_kernels(name)[1]) == 0


@pytest.mark.gcc
def test_kernels_compute_the_same_as_before() -> None:
    kernels = [_kernels(name) for name in REDUCTIONS]
    built = HostKernels([after for _, after in kernels])
    assert "__shfl_xor_sync" in built.text
    for before, after in kernels:
        expected = _arguments(before)
        actual = copy.deepcopy(expected)
        interpret(before, expected)
        built.call(after, actual)
        np.testing.assert_array_equal(actual[1], expected[1], err_msg=after.name)


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_nvcc_compiles_the_exchanges(arch: str) -> None:
    source = print_cuda([_kernels(name)[1] for name in REDUCTIONS])
    ptx = compile_source(source, {"arch": arch}, "ptx", description="cuda").data.decode()
    assert "shfl.sync.bfly" in ptx


def test_two_results_are_exchanged_together() -> None:
    A = rc.placeholder((4, 64), name="A")
    k = rc.reduce_axis((0, 64), name="k")

    def better(a: tuple, b: tuple) -> tuple:
        return rc.select(a[1] >= b[1], a[0], b[0]), rc.select(a[1] >= b[1], a[1], b[1])

    argmax = rc.comm_reducer(better, lambda p, v: (rc.const(-1, p), rc.min_value(v)), name="argmax")
    P, V = rc.compute((4,), lambda i: argmax((k.var, A[i, k]), axis=k), name="B")
    s = rc.create_schedule(V)
    _, ki = s[V].split(s[V].op.reduce_axis[0], factor=32)
    s[V].bind(s[V].op.axis[0], rc.thread_axis("blockIdx.x"))
    s[V].bind(ki, rc.thread_axis("threadIdx.x"))
    before, after = _around_the_pass(rc.lower(s, [A, P, V], name="argmax"))
    assert _exchanges(after) >= 10 and _count(after, Barrier) < _count(before, Barrier)
    arrays = {p.name: a for p, a in zip(before.params, _arguments(before), strict=True)}
    expected = copy.deepcopy(arrays)
    interpret(before, list(expected.values()))
    interpret(after, list(arrays.values()))
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, expected[name])


STEPS = """
func f(A: f32[4], B: f32[4] out) {{
  for t in range({threads}) threadIdx.x {{
    alloc S: f32[{threads}] shared {{
      S@[{own}] = A@[t]
      barrier
      if (t < 2) {{ S@[t] = {value} }}
      {between}
      if (t < 1) {{ S@[0] = S@[0] + S@[1] }}
      {after}
      if (t == 0) {{ B@[0] = S@[0] }}
    }}
  }}
}}
"""
PLAIN = {
    "threads": 4,
    "own": "t",
    "value": "S@[t] + S@[t + 2]",
    "between": "barrier",
    "after": "",
}


@pytest.mark.parametrize(
    ("change", "is_taken"),
    [
        ({}, True),
        ({"value": "S@[t + 2] - S@[t]"}, True),
        ({"value": "S@[t] + S@[t + 1]"}, False),  # another thread
        ({"value": "S@[t] + S@[t + 2] + A@[3 - t]"}, False),  # may lie outside in other threads
        ({"own": "3 - t"}, False),  # the elements of another order
        ({"between": "barrier B@[t] = S@[t] barrier"}, False),
        ({"after": "barrier S@[3 - t] = 0.0f32 barrier"}, False),  # others write the elements
        ({"after": "atomic add S[0] with 1.0f32"}, False),
    ],
)
def test_only_steps_of_this_form_are_taken(change: dict, is_taken: bool) -> None:
    func = parse_func(STEPS.format(**PLAIN | change))
    verify(func, "device")
    assert (_exchanges(reduce_in_subgroups(func)) > 0) == is_taken
