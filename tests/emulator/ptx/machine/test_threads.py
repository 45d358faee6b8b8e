"""Threads: special registers, and registers that some of them write."""

import numpy as np
import pytest

from refcomp.foundation.errors import Unsupported
from tests.emulator.ptx.texts import OWN_PLACE, kernel, run, words


@pytest.mark.parametrize(
    ("register", "value"),
    [
        ("%tid.x", lambda x, y, z, n: x),
        ("%tid.y", lambda x, y, z, n: y),
        ("%tid.z", lambda x, y, z, n: z),
        ("%ntid.y", lambda x, y, z, n: 4),
        ("%nctaid.x", lambda x, y, z, n: 2),
        ("%ctaid.x", lambda x, y, z, n: 1),
        ("%laneid", lambda x, y, z, n: n % 32),
        ("%warpid", lambda x, y, z, n: n // 32),
        ("%lanemask_lt", lambda x, y, z, n: (1 << n % 32) - 1),
        ("%lanemask_le", lambda x, y, z, n: (2 << n % 32) - 1),
        ("%lanemask_eq", lambda x, y, z, n: 1 << n % 32),
        ("%lanemask_gt", lambda x, y, z, n: 2**32 - (2 << n % 32)),
        ("%lanemask_ge", lambda x, y, z, n: 2**32 - (1 << n % 32)),
        ("%dynamic_smem_size", lambda x, y, z, n: 8),
    ],
)
def test_special_registers(register, value):
    """Of the second block, of 3 x 4 x 5 threads."""
    text = kernel(f"""
        mov.u32 %r2, %tid.y; mad.lo.u32 %r2, %r2, 3, %r1;
        mov.u32 %r3, %tid.z; mad.lo.u32 %r2, %r3, 12, %r2;
        mov.u32 %r4, %ctaid.x; setp.eq.u32 %p1, %r4, 0; @%p1 ret;
        mul.wide.u32 %rd2, %r2, 4; add.s64 %rd2, %rd1, %rd2;
        mov.u32 %r5, {register}; st.global.u32 [%rd2], %r5;
        ret;
    """)
    data = words(60)
    report = run(text, [data, np.uint32(0)], grid=2, block=(3, 4, 5), shared_bytes=8)
    assert report.findings == ()
    assert data.tolist() == [value(n % 3, n // 3 % 4, n // 12, n) for n in range(60)]


def test_a_write_by_some_threads_changes_no_other_register():
    """Two registers hold the same value, and then one of them changes in some threads."""
    text = kernel(f"""
        {OWN_PLACE}
        mov.u32 %r2, 7; mov.u32 %r3, %r2; mov.u32 %r4, %r1; mov.u32 %r5, %r4;
        setp.lt.u32 %p1, %r1, 4;
        @%p1 add.u32 %r3, %r3, 1; @%p1 add.u32 %r5, %r5, 100;
        mad.lo.u32 %r6, %r2, 1000, %r3; mad.lo.u32 %r6, %r4, 100000, %r6;
        mad.lo.u32 %r6, %r5, 1000000, %r6;
        st.global.u32 [%rd2], %r6;
        ret;
    """)
    data = words(8)
    assert run(text, [data, np.uint32(0)], block=8).findings == ()
    assert data.tolist() == [
        (7000 + 7 + (i < 4) + 100000 * i + 1000000 * (i + 100 * (i < 4))) % 2**32 for i in range(8)
    ]


def test_clocks_go_on():
    text = kernel("""
        mov.u64 %rd2, %clock64; add.u32 %r2, %r1, 1; mov.u64 %rd3, %clock64;
        sub.s64 %rd3, %rd3, %rd2; st.global.u64 [%rd1], %rd3;
        bar.sync 0; mov.u64 %rd4, %clock64; setp.gt.u64 %p1, %rd4, %rd2;
        selp.u32 %r3, 1, 0, %p1; st.global.u32 [%rd1+8], %r3;
        ret;
    """)
    data = words(4)
    assert run(text, [data, np.uint32(0)], block=1).findings == ()
    assert data[2] == 1


def test_registers_that_are_not_emulated_are_refused():
    with pytest.raises(Unsupported, match="the register %envreg1 is not emulated"):
        run(kernel("mov.b32 %r2, %envreg1; ret;"), [words(1), np.uint32(0)], block=1)
