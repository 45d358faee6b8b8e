"""Atomic updates of integers in translated kernels; those of floats are interpreted."""

import numpy as np
import pytest

from refcomp.emulator.code.findings import OUT_OF_BOUNDS
from tests.emulator.ptx.texts import OWN_PLACE, kernel, kinds, words
from tests.emulator.ptx.translation.both import run_both

_SHARED = ".shared .align 8 .b8 s[512];\n"


@pytest.mark.llvm
@pytest.mark.parametrize("space", ["global", "shared"])
def test_updates_by_many_threads(space):
    updates = ["add.u32", "min.s32", "max.s32", "min.u32", "max.u32", "and.b32", "or.b32"]
    updates += ["xor.b32", "add.u64", "min.s64"]
    base = "%rd4" if space == "shared" else "%rd1"
    steps = []
    for number, update in enumerate(updates):
        value = "%rd5" if update.endswith("64") else "%r3"
        steps.append(f"red.{space}.{update} [{base}+{8 * number}], {value};")
    body = f"""mov.u64 %rd4, s; mul.wide.u32 %rd2, %r1, 8; add.s64 %rd3, %rd4, %rd2;
    mul.lo.u32 %r2, %r1, 0x1234567; cvt.s64.s32 %rd5, %r2; st.shared.u64 [%rd3], %rd5;
    mad.lo.u32 %r3, %r1, -77, 1000; cvt.s64.s32 %rd5, %r3; bar.sync 0;
    {" ".join(steps)}
    bar.sync 0; ld.shared.u64 %rd6, [%rd3];
    add.s64 %rd3, %rd1, %rd2; st.global.u64 [%rd3+512], %rd6; ret;"""
    data = np.arange(128, dtype=np.uint64) * 1000003
    found = run_both(kernel(body, ".param .u64 data", before=_SHARED), [data], block=64)
    assert (found.counts.blocks, found.counts.refused) == (1, {})


@pytest.mark.llvm
def test_what_an_update_found_is_returned():
    # Each thread updates a place of its own, so that the order does not matter.
    body = f"""{OWN_PLACE}
    atom.global.exch.b32 %r2, [%rd2], 5; atom.global.cas.b32 %r3, [%rd2], 5, 40;
    atom.global.cas.b32 %r4, [%rd2], 5, 41; atom.global.inc.u32 %r5, [%rd2], 40;
    atom.global.inc.u32 %r6, [%rd2], 40; atom.global.dec.u32 %r7, [%rd2], 30;
    atom.global.dec.u32 %r8, [%rd2], 30;
    atom.acq_rel.gpu.global.add.s32 %r9, [%rd2], %r1;
    st.global.v4.u32 [%rd3], {{%r2, %r3, %r4, %r5}};
    st.global.v4.u32 [%rd3+16], {{%r6, %r7, %r8, %r9}};
    ret;"""
    body = f"mul.wide.u32 %rd3, %r1, 32; add.s64 %rd3, %rd1, %rd3; add.s64 %rd3, %rd3, 128; {body}"
    found = run_both(kernel(body, ".param .u64 data"), [np.arange(288, dtype=np.uint32)])
    assert found.counts.blocks == 1
    own = found.arguments[0][32 + 8 * 3 :][:8].tolist()
    assert own == [3, 5, 40, 40, 0, 1, 0, 30]


@pytest.mark.llvm
def test_an_update_is_checked():
    found = run_both(
        kernel(f"{OWN_PLACE} red.global.add.u32 [%rd2+4], 1; ret;"), [words(32), np.uint32(0)]
    )
    assert kinds(found.report) == [OUT_OF_BOUNDS] and found.counts.stops == 1


def test_sums_of_floats_depend_on_the_order_and_are_interpreted():
    text = kernel("red.global.add.f32 [%rd1], 0f3F800000; ret;", ".param .u64 data")
    assert run_both(text, [words(1)]).counts.refused == {"k": "line 10: red.global.add.f32"}
