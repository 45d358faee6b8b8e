"""Operands of all kinds, and bits that nothing wrote."""

import numpy as np
import pytest

from refcomp.foundation.errors import Unsupported
from tests.emulator.ptx.texts import OWN_PLACE, kernel, kinds, run, words


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("mov.u32 %r9, -3;", 2**32 - 3),
        ("mov.f32 %f1, 0f40490FDB; mov.b32 %r9, %f1;", 0x40490FDB),
        (
            "mov.f64 %fd1, 0d3FF0000000000000; cvt.rn.f32.f64 %f1, %fd1; mov.b32 %r9, %f1;",
            0x3F800000,
        ),
        ("mov.b64 %rd9, {7, 9}; mov.b64 {%r8, %r9}, %rd9;", 9),
        ("mov.b64 %rd9, {7, 9}; mov.b64 {%r9, _}, %rd9;", 7),
        ("setp.lt.u32 %p1|%p2, %r1, 5; selp.u32 %r9, 1, 0, %p2;", 0),
        ("setp.lt.and.u32 %p1, %r1, 5, !%p3; selp.u32 %r9, 1, 0, %p1;", 1),
        ("add.cc.u32 %r8, -1, 1; addc.u32 %r9, 4, 0;", 5),
        ("cvt.s16.s32 %rs1, -5; cvt.s32.s16 %r9, %rs1;", 2**32 - 5),
        ("cvt.u16.u32 %rs1, 70000; cvt.u32.u16 %r9, %rs1;", 70000 - 65536),
    ],
)
def test_operands(body, value):
    before = "setp.ne.u32 %p3, %r1, %r1;"
    data = words(1)
    text = kernel(f"{OWN_PLACE} {before} {body} st.global.u32 [%rd2], %r9; ret;")
    assert run(text, [data, np.uint32(0)], block=1).findings == ()
    assert data[0] == value


@pytest.mark.parametrize(
    ("body", "is_found"),
    [
        ("and.b32 %r8, %r9, 0xff; shr.u32 %r7, %r8, 8;", False),
        ("and.b32 %r8, %r9, 0xff; shr.u32 %r7, %r8, 7;", True),
        ("add.u32 %r7, %r9, 1;", True),
        ("mov.b64 %rd9, {%r1, %r9}; mov.b64 {%r7, %r8}, %rd9;", False),
        ("mov.b64 %rd9, {%r1, %r9}; mov.b64 {%r8, %r7}, %rd9;", True),
        ("selp.b32 %r7, %r9, %r1, %p1;", False),
    ],
)
def test_what_depends_on_bits_that_nothing_wrote(body, is_found):
    """%r9 was not written. %p1 is false."""
    text = kernel(
        f"setp.ne.u32 %p1, %r1, %r1; {body} setp.eq.u32 %p2, %r7, 1; @%p2 bra $end; $end: ret;"
    )
    report = run(text, [words(1), np.uint32(0)], block=1)
    assert kinds(report) == (["undefined"] if is_found else [])


def test_operands_that_are_no_values_are_refused():
    with pytest.raises(Unsupported, match="add cannot write to 5"):
        run(kernel("add.u32 5, %r1, 1; ret;"), [words(1), np.uint32(0)])
