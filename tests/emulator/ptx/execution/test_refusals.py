"""Instructions that are refused by their names, with what to use in their place."""

import numpy as np
import pytest

from refcomp.foundation.errors import Unsupported
from tests.emulator.ptx.texts import kernel, run, words


@pytest.mark.parametrize(
    ("text", "name", "instead"),
    [
        ("wgmma.fence.sync.aligned;", "wgmma", "mma.sync"),
        (
            "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%rd1];",
            "tcgen05",
            "mma.sync",
        ),
        ("tex.1d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%rd1, {%f1}];", "tex", "ld.global"),
        ("suld.b.1d.b32.trap {%r1}, [%rd1, {%r1}];", "suld", "ld.global"),
        ("sust.b.1d.b32.trap [%rd1, {%r1}], {%r1};", "sust", "ld.global"),
        ("multimem.ld_reduce.add.u32 %r2, [%rd1];", "multimem", "add up"),
        ("alloca.u64 %rd2, 16;", "alloca", "a local array"),
        (
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];",
            "st.async",
            "shared memory of the block",
        ),
        ("st.bulk.shared::cta [%r1], 16, 0;", "st.bulk", "store zeros"),
    ],
)
def test_refused_instructions_are_named(text, name, instead):
    with pytest.raises(Unsupported, match=f"the instruction {name} is not emulated") as caught:
        run(kernel(f"{text} ret;"), [words(1), np.uint32(0)], block=1)
    assert instead in str(caught.value)


def test_a_refused_instruction_matters_only_where_it_runs():
    text = "setp.eq.u32 %p1, %r1, 0; @%p1 bra $end; wgmma.fence.sync.aligned; $end: ret;"
    assert run(kernel(text), [words(1), np.uint32(0)], block=1).findings == ()


def test_kernels_cannot_launch_kernels():
    before = ".extern .func (.param .b32 r) cudaLaunchDeviceV2 (.param .b64 a, .param .b64 b);\n"
    text = """
        .param .b32 r; .param .b64 a; .param .b64 b;
        call.uni (r), cudaLaunchDeviceV2, (a, b); ret;
    """
    with pytest.raises(Unsupported, match="the function cudaLaunchDeviceV2 has no body") as caught:
        run(kernel(text, before=before), [words(1), np.uint32(0)], block=1)
    assert "kernels cannot launch others" in str(caught.value)
