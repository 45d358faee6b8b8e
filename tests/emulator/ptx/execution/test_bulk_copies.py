"""Copies of many bytes by one thread."""

import numpy as np
import pytest

from refcomp.foundation.errors import Unsupported
from tests.emulator.ptx.texts import OWN_PLACE, kernel, kinds, run, words

_COPY = f"""
    {OWN_PLACE}
    .shared .align 16 .b8 tile[256]; .shared .align 8 .b8 ready[8];
    mov.u32 %r4, tile; shl.b32 %r3, %r1, 2; add.u32 %r4, %r4, %r3;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared.b64 [ready], 1;
    @!%p1 bra $all;
    mov.u32 %r5, tile; mov.u32 %r6, ready;
    mbarrier.arrive.expect_tx.shared.b64 _, [ready], 256;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%rd1], 256, [%r6];
$all:
    bar.sync 0;
$wait:
    mbarrier.try_wait.parity.shared.b64 %p3, [ready], 0;
    @!%p3 bra $wait;
    ld.shared.u32 %r2, [%r4];
    add.u32 %r2, %r2, 1;
    st.shared.u32 [%r4], %r2;
    bar.sync 0;
    @!%p1 ret;
    cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r5], 256;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
    ret;
"""


def _run(body, size=64, block=64, **options):
    data = np.arange(size, dtype=np.uint32)
    return run(kernel(body), [data, np.uint32(0)], block=block, **options), data


def test_a_thread_copies_a_tile_and_back():
    report, data = _run(_COPY, hazards=True)
    assert report.findings == ()
    assert data.tolist() == list(range(1, 65))


def test_reads_without_a_wait_are_found():
    report, _ = _run(
        _COPY.replace("@!%p3 bra $wait;", "").replace(
            "$wait:\n    mbarrier.try_wait.parity.shared.b64 %p3, [ready], 0;", ""
        )
    )
    assert kinds(report)[0] == "wait"
    assert "an asynchronous copy writes, without a wait" in report.findings[0].what


def test_a_copy_out_of_bounds_is_found():
    report, _ = _run(_COPY, size=60)
    assert set(kinds(report)) == {"out of bounds"}
    wrong = _COPY.replace("[%r5], [%rd1], 256", "[%r5+16], [%rd1], 256").replace("[256]", "[240]")
    report, _ = _run(wrong)
    assert "out of bounds" in kinds(report)


def test_bytes_that_never_come_are_found():
    report, _ = _run(_COPY.replace("[ready], 256", "[ready], 272"), steps=3000)
    assert kinds(report) == ["endless"]


def test_sizes_are_multiples_of_sixteen():
    report, _ = _run(_COPY.replace("[%rd1], 256, [%r6]", "[%rd1], 250, [%r6]"), steps=3000)
    assert "misaligned" in kinds(report)
    assert "copies 250 bytes, which is not a multiple of 16" in str(report.findings[0])


def test_tensor_maps_are_refused_by_name():
    text = """
        cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        [%r1], [%rd1, {%r1}], [%r1]; ret;
    """
    with pytest.raises(Unsupported, match="tensor") as caught:
        run(kernel(text), [words(1), np.uint32(0)], block=1)
    assert "copy by cp.async" in str(caught.value)


@pytest.mark.parametrize("size", [4096, 2**32 - 16])
def test_copy_larger_than_the_memory_of_a_block_is_out_of_bounds(size):
    """The 4 GiB are not copied piece by piece."""
    report, _ = _run(_COPY.replace("[%rd1], 256, [%r6]", f"[%rd1], {size}, [%r6]"), steps=3000)
    assert kinds(report)[0] == "out of bounds"


def test_copy_of_no_bytes_does_nothing():
    text = _COPY.replace("[ready], 256", "[ready], 0").replace("[%rd1], 256,", "[%rd1], 0,")
    report, data = _run(text.replace("[%rd1], [%r5], 256", "[%rd1], [%r5], 0"))
    assert set(kinds(report)) <= {"undefined"}
    assert data.tolist() == list(range(64))
