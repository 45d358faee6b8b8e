"""What kernels take is read from their code; the warning names the loop or the stage to change."""

import re
import warnings

import pytest

import refcomp
from refcomp.driver.amd_resources import expected_kernel, resources_of, warn_of_slow_kernels
from refcomp.driver.compile import compile_functions
from refcomp.driver.kernel_resources import SlowKernelWarning
from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.errors import Unsupported
from refcomp.ir.parser import parse_func
from refcomp.ir.stmt import Block
from refcomp.toolchain import read_code_object
from tests.codegen.amdgpu.kernels import compile_kernels
from tests.codegen.device_kernels import device_kernel
from tests.foundation.test_amd_metadata import argument, code_object, kernel


@pytest.mark.rocm
def test_what_a_kernel_takes():
    (found,) = resources_of(compile_kernels([device_kernel("matmul")], "gfx90a"))
    assert found.kernel == "matmul"
    assert (found.shared_bytes, found.threads) == (2 * 16 * 16 * 4, 256)
    assert (found.spilled_vgprs, found.spilled_sgprs, found.private_bytes) == (0, 0, 0)
    assert 16 <= found.vgprs <= 128 and found.sgprs > 8 and found.agprs == 0
    assert found.waves == 8 and found.limit == "the GPU"


@pytest.mark.parametrize("code", [None, Source("", "opencl"), Binary(b"", "so")])
def test_other_devices_do_not_tell(code):
    with pytest.raises(Unsupported, match="the resources of kernels are not known") as caught:
        resources_of(code)
    assert "build for the target rocm, cuda" in str(caught.value)


def _lowered(n, in_registers):
    """Each thread keeps n sums, and adds up all in turn."""
    a = refcomp.placeholder((64, 32), name="A")
    k = refcomp.reduce_axis((0, 32), name="k")
    c = refcomp.compute((64, n), lambda i, j: refcomp.sum(a[i, (j + k) % 32], axis=k), name="C")
    s = refcomp.create_schedule(c)
    sums = s.cache_write(c, "local")
    s[c].bind(c.op.axis[0], refcomp.thread_axis("threadIdx.x"))
    s[sums].compute_at(s[c], c.op.axis[0])
    i, j = s[sums].op.axis
    s[sums].reorder(s[sums].op.reduce_axis[0], i, j)
    for stage in (s[sums], s[c]) if in_registers else ():
        stage.unroll(stage.op.axis[1])
    return refcomp.lower(s, [a, c], name="sums")


def _warning(func, target):
    with pytest.warns(SlowKernelWarning) as caught:
        compile_functions([func], target)
    assert [warning.filename for warning in caught] == [__file__]
    return str(caught[0].message)


@pytest.mark.rocm
def test_the_loop_that_indexes_local_memory_is_named():
    text = _warning(_lowered(512, False), "rocm -mcpu=gfx90a")
    what = r"the kernel sums_kernel0 keeps 2\d\d\d bytes of each thread's local memory out of reg"
    assert re.match(what, text)
    assert "what to do: unroll stage C.local, axis j.c" in text


@pytest.mark.rocm
def test_the_stage_that_keeps_too_much_is_named():
    text = _warning(_lowered(96, True), "rocm -mcpu=gfx90a -waves=8")
    assert re.match(
        r"the kernel sums_kernel0 spills \d+ vector registers to memory \(\d+ bytes a thread\)",
        text,
    )
    assert "what to do: let a thread keep fewer elements of C.local (stage C.local, " in text
    assert "which has 384 bytes: split its loops by smaller factors" in text


def _told(func, **counts):
    """The warning of a kernel whose code object has these counts."""
    metadata = code_object(kernel(func.name, argument(0, 8, "global_buffer"), **counts))
    with pytest.warns(SlowKernelWarning) as caught:
        warn_of_slow_kernels([func], read_code_object(metadata))
    return str(caught[0].message).split("\n")[0].removeprefix(f"the kernel {func.name} ")


_PLAIN = parse_func("func f(A: i8[9] out) { A@[0] = 1i8 }")
_LANES = "keeps 180 scalar registers in lanes of vector registers"


@pytest.mark.parametrize(
    ("vectors", "scalars", "size", "message"),
    [
        (12, 0, 48, "spills 12 vector registers to memory (48 bytes a thread)"),
        (1, 0, 4, "spills 1 vector register to memory (4 bytes a thread)"),
        (12, 0, 0, "spills 12 vector registers to accumulators"),
        (0, 180, 0, _LANES),
        (0, 0, 8, "keeps 8 bytes a thread in memory, but spills no vector register"),
        (
            0,
            180,
            8,
            f"keeps 8 bytes a thread in memory, but spills no vector register and {_LANES}",
        ),
        (3, 180, 12, f"spills 3 vector registers to memory (12 bytes a thread) and {_LANES}"),
    ],
)
def test_the_warning_says_what_lies_where(vectors, scalars, size, message):
    counts = {"vgpr_spill_count": vectors, "sgpr_spill_count": scalars}
    assert _told(_PLAIN, private_segment_fixed_size=size, **counts) == message


def test_registers_alone_do_not_blame_a_loop_that_indexes_local_memory():
    func = parse_func("""
    func f(A: i8[9] out) {
      alloc L: i8[4] local { for i in range(4) { L@[i] = 1i8 } for i in range(4) { A@[i] = L@[i] } }
    }
    """)
    assert _told(func, sgpr_spill_count=180) == _LANES
    size = {"private_segment_fixed_size": 16}
    assert _told(func, **size) == "keeps 16 bytes of each thread's local memory out of registers"


@pytest.mark.rocm
def test_what_fits_is_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile_functions([_lowered(16, True)], "rocm -mcpu=gfx90a")


def test_a_shared_buffer_may_be_parted_into_its_elements():
    """LLVM makes two variables of this buffer, each at the alignment of the whole: 65 bytes."""
    parted = parse_func("""
    func f(A: i8[64], C: i8[64] out, n: i64) {
      for g in range(n) blockIdx.x { for t in range(1) threadIdx.x {
        alloc S: i8[2] shared align 64 {
          S@[0] = A@[g] * 3i8
          S@[1] = A@[g + 1] * 5i8
          for k in range(2) { if (g + k < n) { C@[g + k] = S@[k] } }
        }
      } }
    }
    """)
    assert expected_kernel(parted).shared_bytes == 128


def _expected_bytes(body):
    return expected_kernel(parse_func(f"func f(A: i8[9] out) {{ {body} }}")).shared_bytes


def test_what_shared_memory_is_expected():
    one = "alloc S: i8[5] shared { A@[0] = S@[0] }"
    assert _expected_bytes(one) == 5 * 16  # in so many parts
    wide = one.replace("shared", "shared align 64").replace("S", "T")
    assert _expected_bytes(f"{one} {wide}") == 2 * 5 * 64  # in whatever order they lie
    dynamic = "alloc S: i8[n] shared { A@[0] = S@[0] }"
    func = parse_func(f"func f(A: i8[9] out, n: i64) {{ {dynamic} }}")
    assert expected_kernel(func).shared_bytes == 0


def test_llvm_may_put_local_memory_into_shared():
    local = "alloc L: i64[3] local { A@[0] = i8(L@[0]) }"
    assert _expected_bytes(local) == 32
    assert _expected_bytes(f"for t in range(4) threadIdx.x {{ {local} }}") == 96
    func = parse_func(
        f"func f(A: i8[9] out, n: i64) {{ for t in range(n) threadIdx.x {{ {local} }} }}"
    )
    assert expected_kernel(func).shared_bytes == 1024 * 24


def test_a_statement_that_stands_twice_has_memory_twice():
    kernel = parse_func("func f(A: i8[9] out) { alloc S: i8[5] shared { A@[0] = S@[0] } }")
    twice = kernel.with_body(Block((kernel.body, kernel.body)))
    assert expected_kernel(twice).shared_bytes == 2 * 80
