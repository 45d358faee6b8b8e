"""Products of matrices become what one writes by hand: registers, 16 bytes, v_fma or v_mfma.

By the walkthroughs' schedules. The instructions are counted, and the places in shared memory that
the lanes of a wave touch together are worked out from the loop IR; the tuned ones run emulated.
"""

import re
from collections import Counter

import numpy as np
import pytest

import refcomp
from refcomp.driver.amd_resources import resources_of
from refcomp.driver.devices import rocm_emulator
from refcomp.driver.pipeline import run_passes
from refcomp.ir.buffer import Load
from refcomp.ir.expr import Ramp
from refcomp.ir.kernels import kernel_nest, kernels_in
from refcomp.ir.rewrite import substitute, variables_in, walk
from refcomp.ir.stmt import LetStmt, Store
from refcomp.oracle.interpreter.interpret import evaluate_expr
from tests.codegen.amdgpu.kernels import TOOLS_AND_GPUS, use_llvm
from tests.walkthroughs import walkthrough

GEMM, TUNED = walkthrough("tiled_gemm_rocm"), walkthrough("tuned_gemm_rocm")
CORES = walkthrough("tuned_matrix_cores")
_FUSED = ("v_fma", "v_fmac", "v_pk_fma", "v_dual_fmac", "v_mfma", "v_wmma")
_BANKS, _WORD = 32, 4


@pytest.mark.rocm
@pytest.mark.parametrize(("llvm", "gpu"), [*TOOLS_AND_GPUS, ("19", "gfx1200"), ("19", "gfx908")])
def test_the_inner_loop(llvm, gpu, monkeypatch):
    use_llvm(llvm, monkeypatch)
    kernel = GEMM["compile_kernel"](f"rocm -mcpu={gpu}")
    fused = _check_kernel(kernel, 2 * 8 * 128 * 4, least=0.85)
    assert _work(fused) == 8 * 64  # of each thread


@pytest.mark.rocm
@pytest.mark.parametrize("gpu", ["gfx942", "gfx90a", "gfx1100"])
def test_the_tuned_loop_hardly_does_anything_but_multiply(gpu, monkeypatch):
    use_llvm("19", monkeypatch)
    kernel = TUNED["compile_kernel"](f"rocm -mcpu={gpu}").imported_modules[0]
    fused = _check_kernel(kernel, 2 * 16 * (128 + 256) * 4, least=0.95)
    assert _work(fused) == 16 * 8 * 16


@pytest.mark.rocm
def test_the_tuned_product_on_the_emulated_gpu():
    n, random, profile = 256, np.random.default_rng(5), refcomp.Profile()
    device = rocm_emulator("gfx942", profile=profile)
    a, b = (random.integers(-8, 9, (n, n)).astype(np.float32) for _ in "AB")
    c = refcomp.array(np.zeros((n, n), np.float32), device)
    module = TUNED["compile_kernel"]("rocm -mcpu=gfx942", n)
    module(refcomp.array(a, device), refcomp.array(b, device), c)
    np.testing.assert_array_equal(c.asnumpy(), a.T @ b)
    (kernel,) = profile.kernels
    assert kernel.fmas == n**3 and _conflicts_counted(kernel) == 0


def _conflicts_counted(kernel):
    """What the emulator counted: clocks in which lanes waited for a bank that others used."""
    return sum(one.access.conflicts for one in kernel.accesses("shared"))


@pytest.mark.rocm
@pytest.mark.parametrize(
    ("gpu", "dtype", "name", "depth"),
    [
        ("gfx942", "float16", "v_mfma_f32_16x16x16_f16", 2048),
        ("gfx942", "bfloat16", "v_mfma_f32_16x16x16_bf16", 1056),
        ("gfx90a", "bfloat16", "v_mfma_f32_16x16x16bf16_1k", 2048),
        ("gfx1100", "float16", "v_wmma_f32_16x16x16_f16", 1536),
        ("gfx1100", "bfloat16", "v_wmma_f32_16x16x16_bf16", 2592),
    ],
)
def test_the_loop_of_the_matrix_cores(gpu, dtype, name, depth, monkeypatch):
    """Structure, and the result on an emulated GPU: small whole numbers, exact in any order."""
    use_llvm("19", monkeypatch)
    cores, profile = CORES["CORES"][gpu], refcomp.Profile()
    many = cores.tiles_a_loop(depth // 32)
    n, products = cores.rows, 2 * cores.blocks**2  # of a tile
    device = rocm_emulator(gpu, profile=profile)
    module = refcomp.build(*CORES["schedule_product"](gpu, dtype, n, depth), f"rocm -mcpu={gpu}")
    padded, both, places = n * (32 + cores.padding) * 2, 2, 2
    kernel = module.imported_modules[0]
    fused = _check_kernel(kernel, padded * both * places, least=0.95, threads=4 * cores.wave)
    assert set(fused) == {name} and len(fused) == many * products
    _check_accesses(kernel.get_source("asm"), "global_", ("dwordx4", "b128"))
    # Between two barriers the next tile comes while one is multiplied. LLVM moves the products of
    # WMMA past barriers, most often into the next part or the one after that.
    parts = " ".join(_mnemonics(_inner_loop(kernel.get_source("asm")))).split("s_barrier")
    parts = [*parts[1:-1], parts[-1] + parts[0]]
    assert [part.count("global_load") for part in parts] == [4] * many
    idle = [part for part in parts if part.count(name) < (2 if cores.is_whole else products / 2)]
    assert len(idle) <= (2 if cores.is_whole else 0), idle
    random, element = np.random.default_rng(6), CORES["DTYPES"][dtype]
    a, b = (random.integers(-8, 9, (n, depth)).astype(element) for _ in "AB")
    c = refcomp.array(np.zeros((n, n), np.float32), device)
    module(refcomp.array(a, device), refcomp.array(b, device), c)
    np.testing.assert_array_equal(c.asnumpy(), a.astype(np.float32) @ b.astype(np.float32).T)
    (kernel,) = profile.kernels
    assert _conflicts_counted(kernel) == 0


def _check_kernel(kernel, shared_bytes, least, threads=256):
    """All in registers, all accesses of 16 bytes; what multiplies in the inner loop, which is at
    least that part of its vector instructions."""
    (taken,) = resources_of(kernel.code)
    assert (taken.spilled_vgprs, taken.private_bytes) == (0, 0)
    assert (taken.shared_bytes, taken.threads) == (shared_bytes, threads)
    assembly = kernel.get_source("asm")
    loop = _inner_loop(assembly)
    _check_accesses("\n".join(f"\t{text}" for text in loop), "global_", ("dwordx4", "b128"))
    _check_accesses(assembly, "ds_", ("b128",))
    assert not re.search(r"^\s+(scratch|flat)_", assembly, re.MULTILINE)
    vector = [name for name in _mnemonics(loop) if name.startswith("v_")]
    fused = [name for name in vector if name.startswith(_FUSED)]
    assert len(fused) >= least * len(vector), Counter(vector)
    return fused


def _work(fused):
    return sum(2 if "_pk_" in name else 1 for name in fused)


def _inner_loop(assembly):
    """The instructions of the longest loop: from where a branch leads back to, up to it."""
    pattern = re.compile(
        r"^\s+(\S.*?)\s*// ([0-9A-F]+):.*?(?:<\w+\+0x([0-9a-f]+)>)?$", re.MULTILINE
    )
    found = [(m[1], int(m[2], 16), m[3]) for m in pattern.finditer(assembly)]
    first = found[0][1]
    loops = [
        [text for text, at, _ in found if first + int(offset, 16) <= at <= end]
        for text, end, offset in found
        if offset and "branch" in text and first + int(offset, 16) <= end
    ]
    return max(loops, key=len)


def _mnemonics(loop):
    """Both halves of instructions that are two."""
    return [part.split()[0] for text in loop for part in text.split(" :: ")]


def _check_accesses(assembly, prefix, wide):
    found = re.findall(rf"^\s+({prefix}(?:load|store|read|write)\w*)", assembly, re.MULTILINE)
    assert found and all(name.endswith(wide) for name in found), Counter(found)


@pytest.mark.search
@pytest.mark.parametrize("how", [GEMM["schedule_tiles"], TUNED["schedule_tuned"]])
def test_no_two_lanes_wait_for_the_same_bank(how):
    a, b, c = GEMM["describe"](256)
    func = run_passes(refcomp.lower(how(a, b, c), [a, b, c], "gemm"), "rocm")
    assert _conflicts(func) == []


def test_a_conflict_would_be_noticed():
    func = refcomp.parse_func("""
    func columns(A: f32[32] out) {
      for t in range(32) threadIdx.x {
        alloc S: f32[1024] shared { S@[t * 32] = 1.0f32 A@[t] = S@[t * 33 % 1024] }
      }
    }
    """)
    assert _conflicts(func) == [("S", 32)]


def _conflicts(func):
    """Of each access of shared memory where some bank has more words than it must: the buffer, and
    the most words of a bank."""
    (start,) = kernels_in(func.body)
    found, lets = [], {}
    for node in walk(start.body):
        if isinstance(node, LetStmt):
            lets[node.var] = substitute(node.value, lets)
        if isinstance(node, Load | Store) and node.buffer.scope == "shared":
            index, each = substitute(node.index, lets), node.buffer.dtype.bytes
            words = {word for lane in range(64) for word in _words(start, index, each, lane)}
            per_bank = Counter(word % _BANKS for word in words)
            if max(per_bank.values()) > -(-len(words) // _BANKS):
                found.append((node.buffer.name, max(per_bank.values())))
    return found


def _words(start, index, each, lane):
    """The words that a lane of the first wave touches in the first iteration of all loops, of
    elements of `each` bytes."""
    base, lanes = (index.base, index.lanes) if isinstance(index, Ramp) else (index, 1)
    numbers = dict.fromkeys(variables_in(base), 0)
    for tag in ("threadIdx.x", "threadIdx.y", "threadIdx.z"):
        loop = kernel_nest(start).loop(tag)
        if loop is not None:
            lane, numbers[loop.var] = divmod(lane, loop.extent.value)
    if lane:
        return []
    first = int(evaluate_expr(base, numbers)) * each
    return range(first // _WORD, -(-(first + lanes * each) // _WORD))
