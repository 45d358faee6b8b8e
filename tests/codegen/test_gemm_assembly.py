"""The tiled product of matrices becomes what one writes by hand: registers, 16 bytes, v_fma.

By the walkthrough's schedule. Nothing is run: the instructions are counted, and the places in
shared memory that the lanes of a wave touch together are worked out from the loop IR.
"""

import re
import runpy
from collections import Counter
from pathlib import Path

import pytest

import refcomp
from refcomp.ir.buffer import Load
from refcomp.ir.expr import Ramp
from refcomp.ir.kernels import kernel_nest, kernels_in
from refcomp.ir.rewrite import variables_in, walk
from refcomp.ir.stmt import Store
from refcomp.kernel_resources import resources_of
from refcomp.oracle.interpret import evaluate_expr
from refcomp.pipeline import run_passes
from tests.codegen.amdgpu_kernels import TOOLS_AND_GPUS, use_llvm

SCRIPT = Path(__file__).parents[2] / "scripts" / "walkthroughs" / "tiled_gemm_rocm.py"
GEMM = runpy.run_path(str(SCRIPT))
_FUSED = ("v_fma", "v_fmac", "v_pk_fma", "v_dual_fmac", "v_mfma", "v_wmma")
_BANKS, _WORD = 32, 4


@pytest.mark.rocm
@pytest.mark.parametrize(("llvm", "gpu"), [*TOOLS_AND_GPUS, ("19", "gfx1200"), ("19", "gfx908")])
def test_the_inner_loop(llvm, gpu, monkeypatch):
    use_llvm(llvm, monkeypatch)
    kernel = GEMM["compile_kernel"](f"rocm -mcpu={gpu}")
    (taken,) = resources_of(kernel.code)
    assert (taken.spilled, taken.private_bytes) == (0, 0)
    assert (taken.shared_bytes, taken.threads) == (2 * 8 * 128 * 4, 256)
    assembly = kernel.get_source("asm")
    _check_accesses(assembly, "global_", ("dwordx4", "b128"))
    _check_accesses(assembly, "ds_", ("b128",))
    assert not re.search(r"^\s+(scratch|flat)_", assembly, re.MULTILINE)
    vector = [name for name in _mnemonics(_inner_loop(assembly)) if name.startswith("v_")]
    fused = [name for name in vector if name.startswith(_FUSED)]
    work = sum(2 if "_pk_" in name else 1 for name in fused)
    assert work == 8 * 64  # of each thread
    assert len(fused) >= 0.85 * len(vector), Counter(vector)


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


def test_no_two_lanes_wait_for_the_same_bank():
    a, b, c = GEMM["describe"](256)
    schedule = GEMM["schedule_tiles"](a, b, c)
    func = run_passes(refcomp.lower(schedule, [a, b, c], "gemm"), "rocm")
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
    found = []
    for node in walk(start.body):
        if isinstance(node, Load | Store) and node.buffer.scope == "shared":
            words = {word for lane in range(64) for word in _words(start, node.index, lane)}
            per_bank = Counter(word % _BANKS for word in words)
            if max(per_bank.values()) > -(-len(words) // _BANKS):
                found.append((node.buffer.name, max(per_bank.values())))
    return found


def _words(start, index, lane):
    """The words that a lane of the first wave touches in the first iteration of all loops."""
    base, lanes = (index.base, index.lanes) if isinstance(index, Ramp) else (index, 1)
    numbers = dict.fromkeys(variables_in(base), 0)
    for tag in ("threadIdx.x", "threadIdx.y"):
        loop = kernel_nest(start).loop(tag)
        if loop is not None:
            lane, numbers[loop.var] = divmod(lane, loop.extent.value)
    first = int(evaluate_expr(base, numbers)) if not lane else None
    return [] if first is None else range(first, first + lanes)
