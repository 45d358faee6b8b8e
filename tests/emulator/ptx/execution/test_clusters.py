"""A cluster of one block."""

import numpy as np

from tests.emulator.ptx.texts import OWN_PLACE, kernel, run, words


def test_a_cluster_is_a_block():
    text = kernel(f"""
        {OWN_PLACE}
        .shared .align 4 .b8 tile[256];
        mapa.shared::cluster.u32 %r2, tile, 0;
        mov.u32 %r3, %cluster_ctarank; mov.u32 %r4, %cluster_nctarank;
        shl.b32 %r5, %r1, 2; add.u32 %r2, %r2, %r5;
        mapa.shared::cluster.u32 %r6, %r2, %r3;
        st.shared::cluster.u32 [%r6], %r1;
        barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
        sub.u32 %r7, 252, %r5; mov.u32 %r8, tile; add.u32 %r7, %r7, %r8;
        ld.shared.u32 %r9, [%r7];
        getctarank.shared::cluster.u32 %r10, %r7;
        add.u32 %r9, %r9, %r10; add.u32 %r9, %r9, %r4;
        createpolicy.fractional.L2::evict_first.b64 %rd3, 1.0;
        st.global.L2::cache_hint.u32 [%rd2], %r9, %rd3;
        ret;
    """)
    data = words(64)
    assert run(text, [data, np.uint32(0)], block=64, hazards=True).findings == ()
    assert data.tolist() == list(range(64, 0, -1))
