"""Products of matrices by whole warps, as nvcc prints them for CUDA's own interface."""

import subprocess

import numpy as np
import pytest

from refcomp.emulator.ptx.run import EmulatedNvidiaGpu
from refcomp.foundation.errors import UserError
from refcomp.toolchain import find_tools, load_description
from tests.emulator.ptx.texts import kernel, kinds, run, words

_WMMA = """
#include <mma.h>
using namespace nvcuda::wmma;
extern "C" __global__ void product(const half *a, const half *b, float *c) {
    __shared__ half near[256];
    for (int i = threadIdx.x; i < 256; i += 32) near[i] = a[i];
    __syncwarp();
    fragment<matrix_a, 16, 16, 16, half, row_major> x;
    fragment<matrix_b, 16, 16, 16, half, col_major> y;
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(sum, 1.0f);
    load_matrix_sync(x, near, 16);
    load_matrix_sync(y, b, 16);
    mma_sync(sum, x, y, sum);
    store_matrix_sync(c, sum, 16, mem_row_major);
}
"""


@pytest.mark.nvcc
def test_products_by_wmma(tmp_path):
    (tmp_path / "product.cu").write_text(_WMMA)
    nvcc = find_tools(load_description("cuda")).paths["nvcc"]
    command = [nvcc, "-ptx", "-arch=sm_80", "product.cu"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120, capture_output=True)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 9, (16, 16)).astype(np.float16) for _ in range(2))
    c = np.zeros((16, 16), np.float32)
    gpu = EmulatedNvidiaGpu(size=4 << 20, hazards=True)
    loaded = gpu.load((tmp_path / "product.ptx").read_text())
    assert gpu.run(loaded, "product", (1, 1, 1), (32, 1, 1), [a, b, c]).findings == ()
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.T.astype(np.float32) + 1)


# Matrices of 8 rows of 8 halves: loaded by a row for each lane, transposed, and stored.
_MOVED = """
    .shared .align 16 .b8 tile[512];
    mul.wide.u32 %rd2, %r1, 16; add.s64 %rd3, %rd1, %rd2;
    ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd3];
    mov.u32 %r6, tile; shl.b32 %r7, %r1, 4; add.u32 %r7, %r6, %r7;
    st.shared.v4.u32 [%r7], {%r2, %r3, %r4, %r5};
    bar.warp.sync -1;
    ldmatrix.sync.aligned.m8n8.x4.TRANSshared.b16 {%r2, %r3, %r4, %r5}, [%r7];
    mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r2; st.global.u32 [%rd3+128], %r3;
    st.global.u32 [%rd3+256], %r4; st.global.u32 [%rd3+384], %r5;
    ret;
"""


@pytest.mark.parametrize("transposed", [False, True])
def test_rows_are_loaded_as_fragments(transposed):
    rows = np.arange(256, dtype=np.uint16).reshape(4, 8, 8)
    data = rows.copy()
    text = kernel(_MOVED.replace("TRANS", "trans." if transposed else ""))
    assert run(text, [data, np.uint32(0)]).findings == ()
    expected = rows.swapaxes(1, 2) if transposed else rows
    # Lane i holds two neighbours of row i / 4.
    np.testing.assert_array_equal(data.reshape(4, 8, 8), expected)


def test_rows_are_stored_transposed():
    rows = np.arange(64, dtype=np.uint16).reshape(8, 8)
    data = rows.copy()
    text = kernel("""
        .shared .align 16 .b8 tile[128];
        mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; ld.global.u32 %r2, [%rd3];
        mov.u32 %r6, tile; shl.b32 %r7, %r1, 4; add.u32 %r7, %r6, %r7;
        stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r7], {%r2};
        bar.warp.sync -1;
        shl.b32 %r7, %r1, 2; add.u32 %r7, %r6, %r7; ld.shared.u32 %r2, [%r7];
        st.global.u32 [%rd3], %r2;
        ret;
    """)
    assert run(text, [data, np.uint32(0)]).findings == ()
    np.testing.assert_array_equal(data, rows.T)


_MMA = """
    mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r2, [%rd3]; ld.global.u32 %r3, [%rd3+128]; ld.global.u32 %r4, [%rd3+256];
    mov.f32 %f1, 0f00000000;
    mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32
        {%f2, %f3, %f4, %f5}, {%r2, %r3}, {%r4}, {%f1, %f1, %f1, %f1};
    mul.wide.u32 %rd2, %r1, 8; add.s64 %rd3, %rd1, %rd2;
    st.global.v2.f32 [%rd3+384], {%f2, %f3}; st.global.v2.f32 [%rd3+640], {%f4, %f5};
    ret;
"""


def test_products_by_mma():
    rng = np.random.default_rng(0)
    a = rng.integers(-8, 9, (16, 8)).astype(np.float16)
    b = rng.integers(-8, 9, (8, 8)).astype(np.float16)  # [column, depth]
    data = words(96 + 128)
    data[:64] = a.reshape(-1).view(np.uint32)
    data[64:96] = b.reshape(-1).view(np.uint32)
    assert run(kernel(_MMA), [data, np.uint32(0)]).findings == ()
    found = data[96:].view(np.float32).reshape(16, 8)
    np.testing.assert_array_equal(found, a.astype(np.float32) @ b.T.astype(np.float32))


def test_undefined_fragments_are_stored_as_undefined():
    """By wmma; a use of what was stored is found."""
    text = kernel("""
        .shared .align 32 .b8 tile[1024];
        mov.u32 %r2, tile;
        wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%r2],
            {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8};
        bar.warp.sync -1;
        ld.shared.u32 %r3, [%r2];
        setp.eq.u32 %p1, %r3, 5;
        @%p1 st.global.u32 [%rd1], 1;
        ret;
    """)
    assert kinds(run(text, [words(1), np.uint32(0)])) == ["undefined"]
    zeros = " ".join(f"mov.f32 %f{n}, 0f00000000;" for n in range(1, 9))
    defined = text.replace("mov.u32 %r2", f"{zeros} mov.u32 %r2", 1)
    assert kinds(run(defined, [words(1), np.uint32(0)])) == []


def test_a_warp_without_all_of_its_threads_is_found():
    report = run(
        kernel(
            _MMA.replace("mov.f32", "setp.gt.u32 %p1, %r1, 20; @%p1 bar.sync 0; mov.f32").replace(
                "mma.sync", "@!%p1 mma.sync"
            )
        ),
        [words(224), np.uint32(0)],
    )
    assert "barrier" in kinds(report)


def test_fragments_of_the_wrong_size_are_refused():
    with pytest.raises(UserError, match="mma has fragments of 4, 3, 1, 4 registers"):
        run(kernel(_MMA.replace("{%r2, %r3}", "{%r2, %r3, %r4}")), [words(224), np.uint32(0)])
