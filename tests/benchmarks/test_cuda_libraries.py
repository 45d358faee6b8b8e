"""cuBLAS and cuDNN by their C signatures, against libraries of the same functions in C.

NVIDIA's own are not here. The C text has the order of arguments that NVIDIA documents.
"""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from benchmarks.cuda import libraries
from benchmarks.cuda.libraries import CuBlas, CuDnnConvolution, NotFound

_CUBLAS = """
static int handles, math = -1;
int cublasCreate_v2(void **h) { *h = &handles; handles++; return 0; }
int cublasDestroy_v2(void *h) { handles--; return h != &handles; }
int cublasGetVersion_v2(void *h, int *v) { *v = 130100; return 0; }
int cublasSetMathMode(void *h, int m) { math = m; return 0; }
static int multiply(int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                    int ldb, float beta, float *c, int ldc) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int l = 0; l < k; l++) sum += a[i + l * lda] * b[l + j * ldb];
            c[i + j * ldc] = alpha * sum + (beta ? beta * c[i + j * ldc] : 0);
        }
    return 0;
}
int cublasSgemm_v2(void *h, int ta, int tb, int m, int n, int k, const float *alpha,
                   const float *a, int lda, const float *b, int ldb, const float *beta, float *c,
                   int ldc) {
    if (h != &handles || ta || tb || math) return 13;
    return multiply(m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc);
}
int cublasGemmEx(void *h, int ta, int tb, int m, int n, int k, const float *alpha,
                 const void *a, int type_a, int lda, const void *b, int type_b, int ldb,
                 const float *beta, void *c, int type_c, int ldc, int compute, int algorithm) {
    if (type_a != 2 || type_b != 2 || type_c != 0 || compute != 68 || algorithm != -1) return 7;
    if (lda != n || ldb != n || ldc != n || *alpha != 1 || *beta != 0) return 7;
    *(float *)c = (float)((const char *)b - (const char *)a);  // which operand came first
    return 0;
}
"""

_CUDNN = """
#include <stddef.h>
typedef struct {
    int algo, status; float time; size_t memory; int determinism, math, rest[3];
} Perf;
typedef struct { int kind, values[8], math; } D;
static D made[8]; static int count;
static int make(void **d, int kind) { made[count].kind = kind; *d = &made[count++]; return 0; }
static int set(D *d, int n, const int *v) {
    for (int i = 0; i < n; i++) d->values[i] = v[i];
    return 0;
}
int cudnnCreate(void **h) { count = 0; return make(h, 1); }
int cudnnCreateTensorDescriptor(void **d) { return make(d, 2); }
int cudnnCreateFilterDescriptor(void **d) { return make(d, 3); }
int cudnnCreateConvolutionDescriptor(void **d) { return make(d, 4); }
static int destroy(D *d, int kind) { if (d->kind != kind) return 3; count--; return 0; }
int cudnnDestroy(void *d) { return destroy(d, 1) ? 3 : count; }
int cudnnDestroyTensorDescriptor(void *d) { return destroy(d, 2); }
int cudnnDestroyFilterDescriptor(void *d) { return destroy(d, 3); }
int cudnnDestroyConvolutionDescriptor(void *d) { return destroy(d, 4); }
int cudnnSetTensor4dDescriptor(D *d, int layout, int type, int n, int c, int h, int w) {
    return set(d, 6, (int[]){layout, type, n, c, h, w});
}
int cudnnSetFilter4dDescriptor(D *d, int type, int layout, int k, int c, int h, int w) {
    return set(d, 6, (int[]){type, layout, k, c, h, w});
}
int cudnnSetConvolution2dDescriptor(D *d, int py, int px, int sy, int sx, int dy, int dx, int mode,
                                    int type) {
    return set(d, 8, (int[]){py, px, sy, sx, dy, dx, mode, type});
}
int cudnnSetConvolutionMathType(D *d, int math) { d->math = math; return 0; }
static int wrong(void *h, D *x, D *w, D *how, D *y) {
    return ((D *)h)->kind != 1 || x->kind != 2 || w->kind != 3 || how->kind != 4 || y->kind != 2
        || x->values[3] != w->values[3] || y->values[3] != w->values[2] || how->values[6] != 1;
}
int cudnnFindConvolutionForwardAlgorithm(void *h, D *x, D *w, D *how, D *y, int most, int *found,
                                         Perf *p) {
    if (wrong(h, x, w, how, y) || most < 4) return 3;
    p[0] = (Perf){6, 0, 0.5f, 0, 0, 0};   // fastest, but with TF32
    p[1] = (Perf){5, 9, 0.1f, 0, 0, 3};   // failed
    p[2] = (Perf){1, 0, 2.0f, 64, 0, 3};
    p[3] = (Perf){0, 0, 3.0f, 0, 0, 3};
    *found = x->values[2] == 1 ? 2 : 4;   // of one image only those that do not count
    return 0;
}
int cudnnGetConvolutionForwardWorkspaceSize(void *h, D *x, D *w, D *how, D *y, int algo,
                                            size_t *n) {
    *n = 64 * algo;
    return wrong(h, x, w, how, y);
}
int cudnnConvolutionForward(void *h, const float *alpha, D *dx, const float *x, D *dw,
                            const float *w, D *how, int algo, void *space, size_t size,
                            const float *beta, D *dy, float *y) {
    if (wrong(h, dx, dw, how, dy) || algo != 1 || size != 64 || !space || how->math != 3) return 5;
    y[0] = *alpha * x[0] * w[0] + *beta;
    return 0;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with both libraries."""
    path = tmp_path_factory.mktemp("libraries")
    for name, text in (("libcublas", _CUBLAS), ("libcudnn", _CUDNN)):
        (path / f"{name}.c").write_text(text)
        command = [shutil.which("gcc"), "-shared", "-fPIC", f"{name}.c", "-o", f"{name}.so"]
        subprocess.run(command, cwd=path, check=True, timeout=60)
    return path


@pytest.fixture
def there(folder, monkeypatch):
    monkeypatch.setattr(libraries, "_candidates", lambda names: [str(folder / names[-1])])


def addresses(*arrays):
    return [array.ctypes.data for array in arrays]


@pytest.mark.gcc
def test_cublas_multiplies_matrices_in_rows(there):
    a, b = np.random.default_rng(2).integers(-9, 9, (2, 5, 5)).astype(np.float32)
    out, blas = np.ones((5, 5), np.float32), CuBlas()
    blas.product(5, *addresses(a, b, out))
    np.testing.assert_array_equal(out, a @ b)
    assert blas.version == "cuBLAS 130100"
    blas.product_of_halves(4, *addresses(a, b, out))
    assert out[0, 0] == np.float32(a.ctypes.data - b.ctypes.data)
    blas.close()


@pytest.mark.gcc
def test_a_status_is_an_error(there):
    blas = CuBlas()
    blas._handle = ctypes.c_void_p(1)
    with pytest.raises(RuntimeError, match="cublasSgemm_v2 returned 13"):
        blas.product(1, 0, 0, 0)


@pytest.mark.gcc
@pytest.mark.parametrize("layout", libraries.LAYOUTS)
def test_cudnn_takes_the_fastest_algorithm_without_tf32(there, layout):
    convolution = CuDnnConvolution(layout, 2, 7, 16)
    assert convolution.find() == pytest.approx(2e-3)
    assert (convolution.algorithm, convolution.workspace_bytes) == (1, 64)
    x, w, y, space = (np.full(16, value, np.float32) for value in (3, 5, 0, 0))
    convolution.run(*addresses(x, w, y, space))
    assert y[0] == 15
    convolution.close()


@pytest.mark.gcc
def test_default_mathematics_count_only_where_tf32_is_off(there, monkeypatch):
    convolution = CuDnnConvolution("NHWC", 1, 7, 16)
    monkeypatch.delenv("NVIDIA_TF32_OVERRIDE", raising=False)
    with pytest.raises(RuntimeError, match="no algorithm without TF32"):
        convolution.find()
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    assert convolution.find() == pytest.approx(5e-4)
    convolution.close()


def test_a_library_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(libraries, "_candidates", lambda names: ["nowhere.so"])
    with pytest.raises(NotFound, match="cuBLAS not found: sought libcublas.so.13, "):
        CuBlas()
    with pytest.raises(NotFound, match="cuDNN not found: sought libcudnn.so.9, "):
        CuDnnConvolution("NCHW", 1, 7, 16)


def test_libraries_are_sought_in_the_toolkit_and_in_wheels(tmp_path, monkeypatch):
    there = tmp_path / "nvidia" / "cu13" / "lib" / "libcublas.so.13"
    there.parent.mkdir(parents=True)
    there.touch()
    monkeypatch.setattr(libraries.sys, "path", [str(tmp_path)])
    assert str(there) in [*libraries._candidates(libraries._CUBLAS)]
