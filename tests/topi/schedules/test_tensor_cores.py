"""Products on tensor cores: results, machine code at full size, banks of memory, refusals."""

import re

import ml_dtypes
import numpy as np
import pytest

import refcomp
from refcomp.codegen.cuda.module import print_cuda
from refcomp.driver.pipeline import run_pipeline
from refcomp.foundation.errors import ToolchainError, Unsupported, UserError
from refcomp.foundation.options import build_options
from refcomp.ir.buffer import Load
from refcomp.ir.expr import Ramp
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import kernel_nest
from refcomp.ir.rewrite import substitute, variables_in, walk
from refcomp.ir.stmt import LetStmt, Store
from refcomp.oracle.interpreter.interpret import evaluate_expr
from refcomp.toolchain import compile_source
from refcomp.toolchain.disassembly import disassemble
from refcomp.topi.schedules.tensor_cores import TensorCoreBlock, schedule_tensor_cores
from tests.codegen.cuda.host_kernels import HostKernels
from tests.codegen.nvptx.kernels import assemble, compile_ptx
from tests.topi.schedules.sass import counts, parsed

_DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
_SMALL = TensorCoreBlock(16, 16, 16, 1, 1)
# name -> extents of C, depth, block, dtype
_CASES = {
    "one_warp": (32, 64, 48, TensorCoreBlock(32, 32, 16, 1, 1), "float16"),
    "two_warps": (64, 64, 96, TensorCoreBlock(32, 64, 32, 1, 2), "bfloat16"),
    "four_warps": (128, 128, 96, None, "float16"),
}


def _product(rows, columns, depth, dtype="float16"):
    a = refcomp.placeholder((rows, depth), dtype, "A")
    b = refcomp.placeholder((depth, columns), dtype, "B")
    k = refcomp.reduce_axis((0, depth), "k")
    c = refcomp.compute(
        (rows, columns),
        lambda i, j: refcomp.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k),
        name="C",
    )
    return [a, b, c]


def _kernel(name, rows, columns, depth, block, dtype, target="cuda"):
    args = _product(rows, columns, depth, dtype)
    with build_options(narrow_indices=True):
        func = refcomp.lower(schedule_tensor_cores(args[2], block), args, name)
        (kernel,) = run_pipeline(func, target).kernels
    return PrimFunc(name, kernel.params, kernel.body, kernel.outputs)


def _operands(rows, columns, depth, dtype):
    """Small whole numbers, so that every order of the additions gives the same sum."""
    rng = np.random.default_rng(0)
    a = rng.integers(-8, 9, (rows, depth))
    b = rng.integers(-8, 9, (depth, columns))
    return a.astype(_DTYPES[dtype]), b.astype(_DTYPES[dtype]), (a @ b).astype(np.float32)


@pytest.mark.search
def test_the_interpreter_agrees_with_numpy():
    args = _product(16, 16, 48)
    a, b, expected = _operands(16, 16, 48, "float16")
    c = np.zeros_like(expected)
    refcomp.build(schedule_tensor_cores(args[2], _SMALL), args, "interp")(a, b, c)
    np.testing.assert_array_equal(c, expected)


@pytest.fixture(scope="module")
def built():
    kernels = {name: _kernel(name, *case) for name, case in _CASES.items()}
    return kernels, HostKernels(list(kernels.values()))


def _run(built, name):
    kernels, library = built
    rows, columns, depth, _, dtype = _CASES[name]
    a, b, expected = _operands(rows, columns, depth, dtype)
    bits = np.uint16 if dtype == "bfloat16" else np.float16
    c = np.zeros_like(expected)
    given = {"A": a.view(bits), "B": b.view(bits), "C": c}
    library.call(kernels[name], [given[param.name] for param in kernels[name].params])
    return c, expected


@pytest.mark.gcc
@pytest.mark.parametrize("name", _CASES)
def test_the_printed_text_agrees_with_numpy(name, built):
    np.testing.assert_array_equal(*_run(built, name))


@pytest.mark.gcc
def test_a_missing_barrier_is_a_race():
    case = _CASES["two_warps"]
    kernels = [_kernel(name, *case) for name in ("right", "wrong")]
    before, barrier, after = print_cuda(kernels, "sm_80").text.rpartition("__syncthreads();")
    assert barrier
    library = HostKernels(kernels, before + after, "races")
    right, wrong = ({"two_warps": kernel} for kernel in kernels)
    np.testing.assert_array_equal(*_run((right, library), "two_warps"))
    with pytest.raises(ToolchainError, match="a CUDA kernel fails on this machine") as caught:
        _run((wrong, library), "two_warps")
    assert "data race" in caught.value.stderr


# Machine code of 4096 x 4096 x 4096.


_FULL_SIZE = (4096, 4096, 4096, None, "float16")


@pytest.fixture(scope="module")
def full_size():
    return _kernel("full_size", *_FULL_SIZE)


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_the_loop_multiplies_on_tensor_cores(arch, full_size):
    source = print_cuda([full_size], arch)
    binary = compile_source(source, {"arch": arch}, "cubin", description="cuda")
    _check_machine_code(disassemble(binary), least=0.45)


@pytest.mark.llvm
@pytest.mark.nvcc
def test_so_does_the_loop_that_llvm_makes():
    kernel = _kernel("full_size", *_FULL_SIZE, target="nvptx")
    ptx = compile_ptx([kernel], "sm_80")
    _check_machine_code(disassemble(assemble(ptx, "sm_80")), least=0.6)


def _check_machine_code(text, least):
    """Nothing is spilled, accesses are wide, and `least` of the loop's instructions multiply."""
    opcodes, loops = parsed(text)
    found = counts(opcodes)
    accesses = {o for o in found if re.match(r"(LDG|STG|LDS|LDSM|STS|LDL|STL|ATOM|RED)\b", o)}
    assert accesses == {"LDG.E.128", "STS.128", "LDSM.16.M88.4", "LDSM.16.MT88.4", "STG.E.64"}
    (loop,) = [counts(opcodes[first : last + 1]) for first, last in loops][:1]
    # Two tiles: 4 steps of 4 x 8 products for each warp, and 8 loads of fragments.
    assert loop["HMMA.16816.F32"] == 4 * 4 * 8
    assert loop["LDSM.16.M88.4"] == loop["LDSM.16.MT88.4"] == 4 * 4
    assert loop["LDG.E.128"] == loop["STS.128"] == 16
    assert loop["BAR.SYNC.DEFER_BLOCKING"] == 2
    assert loop["HMMA.16816.F32"] / sum(loop.values()) > least
    assert found["FFMA"] == found["FMUL"] == found["F2F"] == 0


def test_neighbouring_lanes_use_different_banks(full_size):
    """Eight lanes access 16 bytes each at a time: together all 32 banks of 4 bytes."""
    nest = kernel_nest(full_size.body)
    lets, places = {}, []
    for node in walk(nest.body):
        if isinstance(node, LetStmt):
            lets[node.var] = node.value
        if isinstance(node, Load | Store) and node.buffer.scope == "shared":
            assert isinstance(node.index, Ramp) and node.index.lanes == 8
            places.append(node.index.base)
    assert len(places) >= 8
    for place in places:
        while any(variable in lets for variable in variables_in(place)):
            place = substitute(place, lets)
        for first in range(0, 128, 8):
            starts = [2 * _at(nest, place, first + lane) for lane in range(8)]
            assert sorted(start // 16 % 8 for start in starts) == list(range(8))
            assert all(start % 16 == 0 for start in starts)


def _at(nest, index, thread):
    """The value of an index for a thread of the first group, in the first iteration."""
    values = dict.fromkeys(variables_in(index), 0)
    for tag in ("threadIdx.x", "threadIdx.y", "threadIdx.z"):
        loop = nest.loop(tag)
        thread, values[loop.var] = divmod(thread, loop.extent.value)
    return int(evaluate_expr(index, values))


# Refusals.


def test_an_older_gpu_refuses():
    args = _product(128, 128, 32)
    schedule = schedule_tensor_cores(args[2])
    with pytest.raises(Unsupported, match="m16n8k16.row.col.f32.f32 need sm_80 or newer"):
        refcomp.build(schedule, args, "cuda -arch=sm_75")


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        ((64, 128, 32), "a block of 128 does not divide its rows, 64"),
        ((128, 64, 32), "a block of 128 does not divide its columns, 64"),
        ((128, 128, 48), "a block of 32 does not divide its depth, 48"),
    ],
)
def test_a_block_divides_the_extents(shape, why):
    with pytest.raises(UserError, match="'C' cannot be computed on tensor cores") as caught:
        schedule_tensor_cores(_product(*shape)[2])
    assert caught.value.why == why
    assert "pad the matrices" in caught.value.remedy


@pytest.mark.parametrize(
    ("block", "why"),
    [
        (TensorCoreBlock(rows=0), "not all positive integers"),
        (TensorCoreBlock(rows="64"), "not all positive integers"),
        (TensorCoreBlock(depth=64), "its depth is 64, not 16 or 32"),
        (TensorCoreBlock(rows=128, warp_rows=3), "not multiples of 16"),
        (TensorCoreBlock(32, 16, 16, 2, 1), "2 warps cannot share the elements of a tile"),
    ],
)
def test_impossible_blocks_are_refused(block, why):
    with pytest.raises(UserError, match="cannot be computed on tensor cores") as caught:
        schedule_tensor_cores(_product(128, 128, 64)[2], block)
    assert why in caught.value.why


def _others():
    a, b = refcomp.placeholder((128, 32), "float16", "A"), refcomp.placeholder((32, 128), "float16")
    w = refcomp.placeholder((128, 32), name="W")
    k = refcomp.reduce_axis((0, 32), "k")
    yield "elementwise", refcomp.compute((128, 32), lambda i, j: a[i, j] * a[i, j], name="C")
    yield "a sum in f16", refcomp.topi.matmul(a, b)
    for what, term in {
        "transposed": lambda i, j: a[i, k].astype("float32") * a[j, k].astype("float32"),
        "of two dtypes": lambda i, j: w[i, k] * b[k, j].astype("float32"),
        "no product": lambda i, j: a[i, k].astype("float32") + b[k, j].astype("float32"),
    }.items():
        yield (
            what,
            refcomp.compute(
                (128, 128), lambda i, j, term=term: refcomp.sum(term(i, j), axis=k), name="C"
            ),
        )


@pytest.mark.parametrize(("what", "output"), list(_others()))
def test_other_computes_are_refused(what, output):
    with pytest.raises(UserError, match="cannot be computed on tensor cores") as caught:
        schedule_tensor_cores(output)
    assert "is not a sum of A[i, k] * B[k, j] of f16 or bf16" in caught.value.why, what


def test_extents_are_constant():
    with pytest.raises(UserError, match="cannot be computed on tensor cores") as caught:
        schedule_tensor_cores(_product(refcomp.var("m"), 128, 32)[2])
    assert caught.value.why == "its extents are not constants"


def test_what_is_no_tensor_is_refused():
    with pytest.raises(UserError, match="3 cannot be computed on tensor cores"):
        schedule_tensor_cores(3)
