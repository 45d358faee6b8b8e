"""Factors and clamps of results, by what the MODE register says."""

import subprocess
from dataclasses import replace

import numpy as np
import pytest

from refcomp.emulator.code.assembly import DX10_CLAMP, IEEE_MODE, IEEE_NANS
from refcomp.emulator.execution.program import bind
from refcomp.emulator.instructions.output_modifiers import with_modifiers
from refcomp.emulator.instructions.tables.integers import VECTOR_INTEGERS
from refcomp.foundation.errors import Unsupported
from tests.emulator.kernels import disassembled, make_gpu
from tests.emulator.snippets import get, instruction, make_waves

_FLUSHES = IEEE_MODE & ~0xF0 & ~IEEE_NANS
_SIGNALLING = np.uint32(0x7F800001).view(np.float32)


def _result(line, value, mode, kind="f32"):
    waves = make_waves(v0=np.uint32(0), v1=np.full(64, value))
    with np.errstate(all="ignore"):
        bind(replace(instruction(line), mode=mode))(waves)
    return get(waves, 0, kind)[0]


@pytest.mark.parametrize(("modifier", "factor"), [("mul:2", 2), ("mul:4", 4), ("div:2", 0.5)])
def test_factors_hold_where_ieee_mode_is_cleared_and_denormals_are_flushed(modifier, factor):
    line = f"v_add_f32_e64 v0, v1, v1 {modifier}"
    three = np.float32(3)
    assert _result(line, three, _FLUSHES) == 6 * factor
    for mode in (IEEE_MODE, IEEE_MODE & ~0xF0, IEEE_MODE & ~IEEE_NANS):
        assert _result(line, three, mode) == 6


def test_factors_give_no_denormals_and_no_negative_zero():
    line = "v_mul_f32_e64 v0, 1.0, v1 div:2"
    found = _result(line, np.float32(-(2.0**-126)), _FLUSHES)
    assert found == 0 and not np.signbit(found)
    assert _result(line, np.float32(2.0**-126), IEEE_MODE) == np.float32(2.0**-126)
    half = _result("v_add_f16_e64 v0, v1, v1 mul:2", np.float16(1.5), _FLUSHES, "f16")
    assert half == 6


def test_factors_come_before_a_clamp():
    line = "v_mul_f32_e64 v0, 1.0, v1 mul:4 clamp"
    assert _result(line, np.float32(0.125), _FLUSHES) == 0.5
    assert _result(line, np.float32(0.5), _FLUSHES) == 1


@pytest.mark.parametrize("value", [np.float32(np.nan), _SIGNALLING])
def test_a_clamp_makes_nan_zero_only_under_dx10_clamp(value):
    line = "v_max_f32_e64 v0, v1, v1 clamp"
    assert _result(line, value, IEEE_MODE) == 0
    found = _result(line, value, IEEE_MODE & ~DX10_CLAMP, "u32")
    assert found == value.view(np.uint32) | 0x400000
    loud = _result(line, value, IEEE_MODE & ~DX10_CLAMP & ~IEEE_NANS, "u32")
    assert loud == value.view(np.uint32)


def test_a_clamp_without_dx10_clamp_keeps_numbers_in_range():
    line = "v_max_f32_e64 v0, v1, v1 clamp"
    for value, wanted in ((-3, 0), (0.25, 0.25), (np.inf, 1)):
        assert _result(line, np.float32(value), IEEE_MODE & ~DX10_CLAMP) == wanted


_WITHOUT_IEEE = """
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @f(ptr addrspace(1) %x, ptr addrspace(1) %y) #0 {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %i = zext i32 %t to i64
  %px = getelementptr float, ptr addrspace(1) %x, i64 %i
  %py = getelementptr float, ptr addrspace(1) %y, i64 %i
  %a = load float, ptr addrspace(1) %px
  %b = load float, ptr addrspace(1) %py
  %s = fadd nsz float %a, %b
  %d = fmul nsz float %s, 2.0
  %m = call float @llvm.maxnum.f32(float %a, float %b)
  store float %d, ptr addrspace(1) %px
  store float %m, ptr addrspace(1) %py
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
declare float @llvm.maxnum.f32(float, float)
attributes #0 = {
  "amdgpu-ieee"="false" "amdgpu-dx10-clamp"="false" "amdgpu-flat-work-group-size"="64,64"
  "denormal-fp-math-f32"="preserve-sign,preserve-sign" "no-signed-zeros-fp-math"="true"
}
"""


@pytest.mark.rocm
@pytest.mark.parametrize("gpu", ["gfx942", "gfx90a", "gfx1100"])
def test_llvm_uses_factors_in_kernels_without_ieee_mode(tmp_path, gpu):
    """x becomes 2 * (x + y), and y the greater one, whatever NaN the other is."""
    source, unlinked, code = (tmp_path / f"f.{suffix}" for suffix in ("ll", "o", "hsaco"))
    source.write_text(_WITHOUT_IEEE)
    compiler = ("/usr/lib/llvm-19/bin/llc", f"-mcpu={gpu}", "-filetype=obj", source, "-o")
    linker = ("/usr/lib/llvm-19/bin/ld.lld", "-shared", unlinked, "-o", code)
    for command in ((*compiler, unlinked), linker):
        subprocess.run(command, check=True, timeout=60)
    device = make_gpu()
    loaded = device.load(code.read_bytes())
    mode = loaded.kernel("f").descriptor.float_mode
    assert not mode & (DX10_CLAMP | IEEE_NANS) and not mode & 0x30
    assert " mul:2" in disassembled(code.read_bytes())
    x, y = np.arange(64, dtype=np.float32), np.full(64, 0.5, np.float32)
    x.view(np.uint32)[:2] = (0x7F800001, 0x7FC00001)
    y[2] = -2  # the sum is zero, and not a negative one
    with np.errstate(invalid="ignore"):
        sums, greater = 2 * (x + y), np.fmax(x, y)
    assert not device.run(loaded, "f", (1, 1, 1), (64, 1, 1), [x, y]).findings
    np.testing.assert_array_equal(y, np.where(np.isnan(sums), np.float32(0.5), greater))
    np.testing.assert_array_equal(x, sums)
    assert x.view(np.uint32)[:2].tolist() == [0x7F800001, 0x7FC00001]


def test_integers_stop_at_the_ends_of_their_type():
    assert _result("v_add_i32 v0, v1, v1 clamp", np.int32(2**31 - 1), IEEE_MODE, "i32") == 2**31 - 1


def test_a_clamp_of_an_operation_that_has_none_is_refused():
    line = instruction("v_and_b32_e64 v0, v1, v1 clamp")
    with pytest.raises(Unsupported, match="does not support clamp of v_and_b32"):
        with_modifiers(line, VECTOR_INTEGERS["v_and_b32"])
