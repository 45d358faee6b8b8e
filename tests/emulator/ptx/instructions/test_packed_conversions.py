import ml_dtypes
import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from tests.emulator.ptx.instructions.edges import float_bits
from tests.emulator.ptx.instructions.worded import bits, rule, run, undefined

GIVEN = np.array(float_bits("f32"), np.uint32)


@pytest.mark.parametrize("mode", ["rn", "rz", "rn.relu", "rz.satfinite"])
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_first_source_is_the_upper_half(kind: str, mode: str) -> None:
    other = GIVEN[::-1].copy()
    high = np.array(run(f"cvt.{mode}.{kind}.f32 d, a", GIVEN)).view(np.uint16).astype(np.uint32)
    low = np.array(run(f"cvt.{mode}.{kind}.f32 d, a", other)).view(np.uint16).astype(np.uint32)
    found = run(f"cvt.{mode}.{kind}x2.f32 d, a, b", GIVEN, other)
    assert bits(found) == (low | high << np.uint32(16)).tolist()


@pytest.mark.parametrize(
    ("kind", "dtype"), [("e4m3", ml_dtypes.float8_e4m3fn), ("e5m2", ml_dtypes.float8_e5m2)]
)
def test_small_floats(kind: str, dtype: type) -> None:
    a = np.array([0.3, -1.7, 2.0**-9], np.float32)
    b = np.array([7.1, 0.0, -100], np.float32)
    high, low = (x.astype(dtype).view(np.uint8).astype(np.uint16) for x in (a, b))
    both = low | high << np.uint16(8)
    assert bits(run(f"cvt.rn.satfinite.{kind}x2.f32 d, a, b", a, b)) == both.tolist()
    found = run(f"cvt.rn.f16x2.{kind}x2 d, a", both)
    halves = np.array([low, high]).astype(np.uint8).view(dtype).astype(np.float16).view(np.uint16)
    words = halves[0].astype(np.uint32) | halves[1].astype(np.uint32) << np.uint32(16)
    assert bits(found) == words.tolist()
    again = run(f"cvt.rn.satfinite.{kind}x2.f16x2 d, a", words)
    assert bits(again) == both.tolist()
    relu = run(f"cvt.rn.satfinite.relu.{kind}x2.f32 d, a, b", [-1.0], [np.nan])
    assert bits(relu) == [0x007F]


def test_powers_of_two() -> None:
    assert bits(run("cvt.rp.ue8m0x2.f32 d, a, b", [1.0], [3.0])) == [127 << 8 | 129]
    assert bits(run("cvt.rz.satfinite.ue8m0x2.bf16x2 d, a", [0x3F804040])) == [127 << 8 | 128]
    assert bits(run("cvt.rn.bf16x2.ue8m0x2 d, a", [127 << 8 | 128])) == [0x3F804000]


def test_tf32() -> None:
    assert bits(run("cvt.rna.tf32.f32 d, a", np.array([0x3F801000], np.uint32))) == [0x3F802000]
    assert bits(run("cvt.rn.tf32.f32 d, a", np.array([0x3F801000], np.uint32))) == [0x3F800000]
    far = np.array([np.inf, -np.inf, np.nan], np.float32)
    found = run("cvt.rna.satfinite.tf32.f32 d, a", far)
    assert bits(found) == [0x7F7FE000, 0xFF7FE000, 0x7FFFFFFF]
    assert bits(run("cvt.rn.relu.tf32.f32 d, a", [-1.0])) == [0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cvt.rm.f16x2.f32 d, a, b", "cvt needs one of .rn, .rz"),
        ("cvt.rn.e4m3x2.f32 d, a, b", "cvt needs one of .satfinite"),
        ("cvt.rn.satfinite.e4m3x2.f64 d, a, b", "cvt does not make .e4m3x2 of .f64"),
        ("cvt.f16x2.e4m3x2 d, a", "cvt needs one of .rn"),
    ],
)
def test_forms_that_ptx_lacks_are_refused(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        rule(text)


def test_each_part_of_a_packed_result_depends_on_its_own_source():
    assert undefined("cvt.rn.f16x2.f32 d, a, b", [0, 0], [0, 4]) == 0xFFFF
    assert undefined("cvt.rn.f16x2.f32 d, a, b", [0, 0], [4, 0]) == 0xFFFF0000
    assert undefined("cvt.rn.satfinite.e4m3x2.f32 d, a, b", [0, 0], [4, 0]) == 0xFF00
    assert undefined("cvt.rn.satfinite.e4m3x2.f16x2 d, a", [0], [0x10000]) == 0xFF00
    assert undefined("cvt.rn.f16x2.e5m2x2 d, a", [0], [0x80]) == 0xFFFF
    assert undefined("cvt.rz.ue8m0x2.bf16x2 d, a", [0], [1]) == 0xFF
