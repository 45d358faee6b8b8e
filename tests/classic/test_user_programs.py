"""Programs in the classic language, as users wrote them in 2018 and 2019, run and agree with numpy.

They use classic names only. The tutorials of MIGRATION.md are other programs.
"""

from collections.abc import Callable

import numpy as np
import pytest

import refcomp as rc
from refcomp import classic as tvm
from refcomp.classic import topi

HOSTS = ["interp", pytest.param("llvm", marks=pytest.mark.llvm)]
GPUS = [
    "interp",
    pytest.param("opencl", marks=pytest.mark.pocl),
    pytest.param("rocm -mcpu=gfx942", marks=pytest.mark.rocm),
]
RNG = np.random.RandomState(0)


def uniform(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype("float32")


def call(function: Callable[..., None], target: str, *arrays: object) -> list[np.ndarray]:
    """Call a function on the device of a target. A shape and dtype stands for an output."""
    contexts = {"opencl": tvm.opencl, "rocm -mcpu=gfx942": lambda _: rc.rocm_emulator("gfx942")}
    ctx = contexts.get(target, tvm.cpu)(0)
    outputs = [tvm.nd.empty(*each, ctx=ctx) if isinstance(each, tuple) else each for each in arrays]
    placed = [tvm.nd.array(each, ctx) if isinstance(each, np.ndarray) else each for each in outputs]
    function(*placed)
    return [p.asnumpy() for p, a in zip(placed, arrays, strict=True) if isinstance(a, tuple)]


def convolved(data: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Return a 3x3 convolution [n, c, h, w] without padding."""
    height, width = data.shape[2] - 2, data.shape[3] - 2
    windows = [
        np.einsum("ncyx,kc->nkyx", data[:, :, i : i + height, j : j + width], kernel[:, :, i, j])
        for i in range(3)
        for j in range(3)
    ]
    return sum(windows)


def const_matrix(matrix: list[list[float]], name: str) -> rc.te.Tensor:
    """Return a compute whose elements are constants, by which users wrote transforms."""
    rows, columns = len(matrix), len(matrix[0])

    def element(i, j):
        now = tvm.const(0.0, "float32")
        for row in range(rows):
            for column in range(columns):
                here = tvm.all(i.equal(row), j.equal(column))
                now = tvm.select(here, tvm.const(matrix[row][column], "float32"), now)
        return now

    return tvm.compute((rows, columns), element, name=name, attrs={"const_matrix": True})


@pytest.mark.parametrize("target", HOSTS)
def test_depthwise_convolution(target: str) -> None:
    C, H, W = 4, 6, 8
    A = tvm.placeholder((1, C, H, W), name="A")
    F = tvm.placeholder((C, 1, 3, 3), name="F")
    padded = tvm.compute(
        (1, C, H + 2, W + 2),
        lambda n, c, y, x: tvm.if_then_else(
            tvm.all(y >= 1, y < H + 1, x >= 1, x < W + 1),
            A[n, c, y - 1, x - 1],
            tvm.const(0.0, "float32"),
        ),
        name="padded",
    )
    dy, dx = tvm.reduce_axis((0, 3), "dy"), tvm.reduce_axis((0, 3), "dx")
    Out = tvm.compute(
        (1, C, H, W),
        lambda n, c, y, x: tvm.sum(padded[n, c, y + dy, x + dx] * F[c, 0, dy, dx], axis=[dy, dx]),
        name="O",
        tag="depthwise_conv2d_nchw",
    )
    s = tvm.create_schedule(Out.op)
    s[padded].compute_inline()
    n, c, _, x = Out.op.axis
    s[Out].parallel(s[Out].fuse(n, c))
    s[Out].vectorize(x)
    a, w = uniform(1, C, H, W), uniform(C, 1, 3, 3)
    (o,) = call(tvm.build(s, [A, F, Out], target), target, a, w, ((1, C, H, W),))
    around = np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1)))
    diagonal = np.eye(C, dtype="float32")[:, :, None, None] * w
    np.testing.assert_allclose(o, convolved(around, diagonal), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", HOSTS)
def test_winograd_convolution_with_constant_matrices(target: str) -> None:
    C, K, H = 3, 4, 6
    tiles = (H - 2) // 2
    D = tvm.placeholder((C, H, H), name="D")
    F = tvm.placeholder((K, C, 3, 3), name="F")
    G = const_matrix([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]], "G")
    B = const_matrix([[1, 0, 0, 0], [0, 1, -1, 1], [-1, 1, 1, 0], [0, 0, 0, -1]], "B")
    A = const_matrix([[1, 0], [1, 1], [1, -1], [0, -1]], "A")
    r = [tvm.reduce_axis((0, 3), f"r{i}") for i in range(2)]
    U = tvm.compute(
        (4, 4, C, K),
        lambda e, n, c, k: tvm.sum(F[k, c, r[0], r[1]] * G[e, r[0]] * G[n, r[1]], axis=r),
        name="U",
    )
    a = [tvm.reduce_axis((0, 4), f"a{i}") for i in range(2)]
    V = tvm.compute(
        (4, 4, C, tiles * tiles),
        lambda e, n, c, p: tvm.sum(
            D[c, (p // tiles) * 2 + a[0], (p % tiles) * 2 + a[1]] * B[a[0], e] * B[a[1], n],
            axis=a,
        ),
        name="V",
    )
    c = tvm.reduce_axis((0, C), "c")
    M = tvm.compute(
        (4, 4, K, tiles * tiles),
        lambda e, n, k, p: tvm.sum(U[e, n, c, k] * V[e, n, c, p], axis=c),
        name="M",
    )
    b = [tvm.reduce_axis((0, 4), f"b{i}") for i in range(2)]
    Y = tvm.compute(
        (K, tiles * tiles, 2, 2),
        lambda k, p, y, x: tvm.sum(M[b[0], b[1], k, p] * A[b[0], y] * A[b[1], x], axis=b),
        name="Y",
    )
    Out = tvm.compute(
        (K, H - 2, H - 2),
        lambda k, y, x: Y[k, (y // 2) * tiles + x // 2, y % 2, x % 2],
        name="O",
    )
    s = tvm.create_schedule(Out.op)
    for matrix in (G, B, A):
        s[matrix].compute_inline()
    for stage, axes in ((U, r), (V, a), (Y, b)):
        for axis in axes:
            s[stage].unroll(axis)
    d, w = uniform(C, H, H), uniform(K, C, 3, 3)
    (o,) = call(tvm.build(s, [D, F, Out], target), target, d, w, ((K, H - 2, H - 2),))
    np.testing.assert_allclose(o, convolved(d[None], w)[0], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("target", GPUS)
def test_softmax_with_rfactor_across_threads(target: str) -> None:
    n, m = 3, 40
    A = tvm.placeholder((n, m), name="A")
    k = tvm.reduce_axis((0, m), "k")
    largest = tvm.compute((n,), lambda i: tvm.max(A[i, k], axis=k), name="largest")
    power = tvm.compute((n, m), lambda i, j: tvm.exp(A[i, j] - largest[i]), name="power")
    k2 = tvm.reduce_axis((0, m), "k2")
    total = tvm.compute((n,), lambda i: tvm.sum(power[i, k2], axis=k2), name="total")
    Out = tvm.compute((n, m), lambda i, j: power[i, j] / total[i], name="O")
    s = tvm.create_schedule(Out.op)
    block, thread = tvm.thread_axis("blockIdx.x"), tvm.thread_axis((0, 16), "threadIdx.x")
    s[largest].bind(largest.op.axis[0], block)
    outer, inner = s[power].split(s[power].fuse(*power.op.axis), factor=16)
    s[power].bind(outer, block)
    s[power].bind(inner, thread)
    _, inner = s[total].split(total.op.reduce_axis[0], factor=16)
    partial = s.rfactor(total, inner)
    s[total].bind(s[total].op.axis[0], block)
    s[total].bind(s[total].op.reduce_axis[0], thread)
    s[partial].compute_at(s[total], s[total].op.reduce_axis[0])
    s[total].set_store_predicate(thread.var.equal(0))
    _, inner = s[Out].split(Out.op.axis[1], factor=16)
    s[Out].bind(Out.op.axis[0], block)
    s[Out].bind(inner, thread)
    a = uniform(n, m)
    (o,) = call(tvm.build(s, [A, Out], target), target, a, ((n, m),))
    powers = np.exp(a - a.max(1, keepdims=True))
    np.testing.assert_allclose(o, powers / powers.sum(1, keepdims=True), rtol=1e-4)


@pytest.mark.parametrize("target", GPUS)
def test_argmax_across_threads_for_any_number_of_rows(target: str) -> None:
    def combine(x, y):
        is_left = x[1] >= y[1]
        return tvm.select(is_left, x[0], y[0]), tvm.select(is_left, x[1], y[1])

    def identity(index_type, value_type):
        return tvm.const(-1, index_type), tvm.min_value(value_type)

    argmax = tvm.comm_reducer(combine, identity, name="argmax")
    n, m = tvm.var("n"), 64
    V = tvm.placeholder((n, m), name="V")
    Index = tvm.compute((n, m), lambda i, j: j.astype("int32"), name="I")
    k = tvm.reduce_axis((0, m), "k")
    X, Y = tvm.compute((n,), lambda i: argmax((Index[i, k], V[i, k]), axis=k), name="T")
    s = tvm.create_schedule(X.op)
    s[Index].compute_inline()
    s[X].bind(X.op.axis[0], tvm.thread_axis("blockIdx.x"))
    _, inner = s[X].split(k, factor=16)
    s[X].bind(inner, tvm.thread_axis("threadIdx.x"))
    v = np.random.RandomState(2).permutation(5 * 64).reshape(5, 64).astype("float32")
    x, y = call(tvm.build(s, [V, X, Y], target), target, v, ((5,), "int32"), ((5,),))
    np.testing.assert_array_equal(x, v.argmax(1))
    np.testing.assert_array_equal(y, v.max(1))


@pytest.mark.parametrize("target", GPUS)
def test_matrix_product_with_double_buffers_in_shared_memory(target: str) -> None:
    n = 32
    A, B = (tvm.placeholder((n, n), name=name) for name in "AB")
    k = tvm.reduce_axis((0, n), "k")
    C = tvm.compute((n, n), lambda i, j: tvm.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = tvm.create_schedule(C.op)
    shared = [s.cache_read(T, "shared", [C]) for T in (A, B)]
    local = s.cache_write(C, "local")
    bi, bj, ti, tj = s[C].tile(*C.op.axis, 8, 8)
    ty, tx = tvm.thread_axis((0, 8), "threadIdx.y"), tvm.thread_axis((0, 8), "threadIdx.x")
    s[C].bind(bi, tvm.thread_axis("blockIdx.y"))
    s[C].bind(bj, tvm.thread_axis("blockIdx.x"))
    s[C].bind(ti, ty)
    s[C].bind(tj, tx)
    s[local].compute_at(s[C], tj)
    outer, _ = s[local].split(s[local].op.reduce_axis[0], factor=8)
    for T in shared:
        s[T].compute_at(s[local], outer)
        s[T].bind(s[T].op.axis[0], ty)
        s[T].bind(s[T].op.axis[1], tx)
        s[T].double_buffer()
    a, b = uniform(n, n), uniform(n, n)
    (c,) = call(tvm.build(s, [A, B, C], target), target, a, b, ((n, n),))
    np.testing.assert_allclose(c, a @ b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("target", GPUS)
def test_transpose_through_aligned_shared_memory(target: str) -> None:
    n = 16
    A = tvm.placeholder((n, n), name="A")
    B = tvm.compute((n, n), lambda i, j: A[j, i], name="B")
    s = tvm.create_schedule(B.op)
    shared = s.cache_read(A, "shared", [B])
    bi, bj, ti, tj = s[B].tile(*B.op.axis, 8, 8)
    ty, tx = tvm.thread_axis("threadIdx.y"), tvm.thread_axis("threadIdx.x")
    s[B].bind(bi, tvm.thread_axis("blockIdx.y"))
    s[B].bind(bj, tvm.thread_axis("blockIdx.x"))
    s[B].bind(ti, ty)
    s[B].bind(tj, tx)
    s[shared].compute_at(s[B], bj)
    s[shared].bind(s[shared].op.axis[0], ty)
    s[shared].bind(s[shared].op.axis[1], tx)
    s[shared].storage_align(s[shared].op.axis[0], 8, 1)
    a = uniform(n, n)
    (b,) = call(tvm.build(s, [A, B], target), target, a, ((n, n),))
    np.testing.assert_array_equal(b, a.T)


@pytest.mark.parametrize("target", GPUS)
def test_virtual_threads_share_a_block(target: str) -> None:
    A = tvm.placeholder((128,), name="A")
    B = tvm.compute((128,), lambda i: A[i] * 2.0, name="B")
    s = tvm.create_schedule(B.op)
    block, rest = s[B].split(B.op.axis[0], nparts=2)
    virtual, rest = s[B].split(rest, nparts=2)
    thread, rest = s[B].split(rest, nparts=8)
    s[B].reorder(block, virtual, thread, rest)
    s[B].bind(block, tvm.thread_axis("blockIdx.x"))
    s[B].bind(virtual, tvm.thread_axis("vthread", name="vx"))
    s[B].bind(thread, tvm.thread_axis("threadIdx.x"))
    a = uniform(128)
    (b,) = call(tvm.build(s, [A, B], target), target, a, ((128,),))
    np.testing.assert_array_equal(b, a * 2)


@pytest.mark.parametrize("target", HOSTS)
def test_scan_of_an_lstm_with_two_states(target: str) -> None:
    T, N, H = 4, 2, 5
    X = tvm.placeholder((T, N, 4, H), name="X")
    Wh = tvm.placeholder((4, H, H), name="Wh")
    state_h, state_c = tvm.placeholder((T, N, H)), tvm.placeholder((T, N, H))
    init_h = tvm.compute((1, N, H), lambda *i: 0.0, name="init_h")
    init_c = tvm.compute((1, N, H), lambda *i: 0.0, name="init_c")
    k = tvm.reduce_axis((0, H), "k")
    product = tvm.compute(
        (T, N, 4, H),
        lambda t, i, x, j: tvm.sum(state_h[t - 1, i, k] * Wh[x, j, k], axis=k),
        name="product",
    )
    gates = tvm.compute((T, N, 4, H), lambda *i: X(*i) + product(*i), name="gates")
    shape = (T, N, H)
    in_gate = tvm.compute(shape, lambda t, i, j: tvm.sigmoid(gates[t, i, 0, j]), name="in_gate")
    change = tvm.compute(shape, lambda t, i, j: tvm.tanh(gates[t, i, 1, j]), name="change")
    forget = tvm.compute(shape, lambda t, i, j: tvm.sigmoid(gates[t, i, 2, j]), name="forget")
    out = tvm.compute(shape, lambda t, i, j: tvm.sigmoid(gates[t, i, 3, j]), name="out")
    next_c = tvm.compute(
        shape,
        lambda t, i, j: forget[t, i, j] * state_c[t - 1, i, j] + in_gate[t, i, j] * change[t, i, j],
        name="next_c",
    )
    next_h = tvm.compute(
        shape, lambda t, i, j: out[t, i, j] * tvm.tanh(next_c[t, i, j]), name="next_h"
    )
    scan_h, scan_c = tvm.scan(
        [init_h, init_c], [next_h, next_c], [state_h, state_c], inputs=[X], name="lstm"
    )
    s = tvm.create_schedule(scan_h.op)
    x, w = uniform(T, N, 4, H), uniform(4, H, H)
    f = tvm.build(s, [X, Wh, scan_h, scan_c], target)
    hidden, cell = call(f, target, x, w, (shape,), (shape,))

    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    h, c = np.zeros((N, H), "float32"), np.zeros((N, H), "float32")
    for t in range(1, T):
        g = x[t] + np.einsum("bk,xjk->bxj", h, w)
        c = sigmoid(g[:, 2]) * c + sigmoid(g[:, 0]) * np.tanh(g[:, 1])
        h = sigmoid(g[:, 3]) * np.tanh(c)
        np.testing.assert_allclose(hidden[t], h, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(cell[t], c, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("target", HOSTS)
def test_hybrid_suppression_of_boxes(target: str) -> None:
    @tvm.hybrid.script
    def suppress(boxes, threshold):
        keep = output_tensor((boxes.shape[0],), "int32")  # noqa: F821
        for i in range(boxes.shape[0]):
            keep[i] = 1
        for i in range(boxes.shape[0]):
            if keep[i] > 0:
                for j in range(boxes.shape[0]):
                    if j > i and keep[j] > 0:
                        w = min(boxes[i, 2], boxes[j, 2]) - max(boxes[i, 0], boxes[j, 0])
                        h = min(boxes[i, 3], boxes[j, 3]) - max(boxes[i, 1], boxes[j, 1])
                        overlap = max(w, 0.0) * max(h, 0.0)
                        one = (boxes[i, 2] - boxes[i, 0]) * (boxes[i, 3] - boxes[i, 1])
                        two = (boxes[j, 2] - boxes[j, 0]) * (boxes[j, 3] - boxes[j, 1])
                        if overlap > threshold[0] * (one + two - overlap):
                            keep[j] = 0
        return keep

    boxes = tvm.placeholder((12, 4), name="boxes")
    threshold = tvm.placeholder((1,), name="threshold")
    kept = suppress(boxes, threshold)
    f = tvm.build(tvm.create_schedule(kept.op), [boxes, threshold, kept], target)
    b = np.random.RandomState(1).rand(12, 4).astype("float32")
    b[:, 2:] += b[:, :2] + 0.5
    t = np.array([0.3], "float32")
    (k,) = call(f, target, b, t, ((12,), "int32"))
    np.testing.assert_array_equal(k, suppress(b, t))  # the same function, run by Python
    assert 0 < k.sum() < 12


@pytest.mark.parametrize("target", HOSTS)
def test_sort_by_the_ir_builder(target: str) -> None:
    n = 10

    def bubble_sort(ins, outs):
        ib = tvm.ir_builder.create()
        data, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        kept = ib.allocate("float32", (1,), name="kept", scope="local")
        with ib.for_range(0, n, name="i") as i:
            out[i] = data[i]
        rounds, pairs = ib.for_range(0, n, name="i"), ib.for_range(0, n - 1, name="j")
        with rounds, pairs as j, ib.if_scope(out[j] > out[j + 1]):
            kept[0] = out[j]
            out[j] = out[j + 1]
            out[j + 1] = kept[0]
        return ib.get()

    A = tvm.placeholder((n,), name="A")
    B = tvm.extern((n,), [A], bubble_sort, name="B", dtype="float32")
    a = uniform(n)
    (b,) = call(tvm.build(tvm.create_schedule(B.op), [A, B], target), target, a, ((n,),))
    np.testing.assert_array_equal(b, np.sort(a))


@pytest.mark.llvm
def test_packed_function_in_a_saved_module() -> None:
    @tvm.register_func("test_user_programs.matmul", override=True)
    def matmul(a, b, c):
        tvm.nd.array(a.asnumpy() @ b.asnumpy()).copyto(c)

    A = tvm.placeholder((4, 5), name="A")
    B = tvm.placeholder((5, 6), name="B")
    bias = tvm.var("bias", "float32")
    C = tvm.extern(
        (4, 6),
        [A, B],
        lambda ins, outs: tvm.call_packed("test_user_programs.matmul", *ins, *outs),
        name="C",
        dtype="float32",
    )
    D = tvm.compute(C.shape, lambda i, j: C[i, j] + bias, name="D")
    f = tvm.build(tvm.create_schedule(D.op), [A, B, D, bias], "llvm", name="biased")
    temp = tvm.contrib.util.tempdir()
    path = temp.relpath("biased.refcomp")
    f.save(path)
    a, b = uniform(4, 5), uniform(5, 6)
    loaded = tvm.module.load(path).get_function("biased")
    (d,) = call(loaded, "llvm", a, b, ((4, 6),), 2.0)
    np.testing.assert_allclose(d, a @ b + 2, rtol=1e-4, atol=1e-5)


@pytest.mark.llvm
@pytest.mark.clang
def test_matrix_vector_product_by_a_tensor_intrinsic_in_c() -> None:
    rows, columns, depth = 4, 16, 8
    A = tvm.placeholder((rows, depth), name="A")
    B = tvm.placeholder((columns, depth), name="B")
    k = tvm.reduce_axis((0, depth), "k")
    C = tvm.compute((rows, columns), lambda i, j: tvm.sum(A[i, k] * B[j, k], axis=k), name="C")
    s = tvm.create_schedule(C.op)
    x, y = C.op.axis
    outer, inner = s[C].split(y, factor=4)
    s[C].reorder(x, outer, inner, C.op.reduce_axis[0])
    a, b = tvm.placeholder((depth,), name="a"), tvm.placeholder((4, depth), name="b")
    m = tvm.reduce_axis((0, depth), "m")
    c = tvm.compute((4,), lambda i: tvm.sum(a[m] * b[i, m], axis=m), name="c")
    stride = tvm.var("stride")
    views = {
        a: tvm.decl_buffer(a.shape, a.dtype, name="a", offset_factor=1, strides=[1]),
        b: tvm.decl_buffer(b.shape, b.dtype, name="b", offset_factor=1, strides=[stride, 1]),
        c: tvm.decl_buffer(c.shape, c.dtype, name="c", offset_factor=1, strides=[1]),
    }

    def gemv(ins, outs):
        ib = tvm.ir_builder.create()
        aa, bb = ins
        cc = outs[0]
        step = bb.strides[0].astype("int32")  # variables are int64 in refcomp
        operands = [cc.access_ptr("w"), aa.access_ptr("r"), bb.access_ptr("r")]
        ib.emit(tvm.call_extern("int32", "gemv_update", *operands, 4, depth, step))
        return ib.get()

    with tvm.build_config(offset_factor=1):
        intrin = tvm.decl_tensor_intrin(c.op, gemv, binds=views)
    s[C].tensorize(inner, intrin)
    s[C].pragma(
        x,
        "import_c",
        """
        int gemv_update(float* c, float* a, float* b, int m, int l, int stride) {
          for (int i = 0; i < m; ++i) {
            c[i] = 0;
            for (int j = 0; j < l; ++j) c[i] += a[j] * b[i * stride + j];
          }
          return 0;
        }
        """,
    )
    p, q = uniform(rows, depth), uniform(columns, depth)
    (r,) = call(tvm.build(s, [A, B, C], "llvm"), "llvm", p, q, ((rows, columns),))
    np.testing.assert_allclose(r, p @ q.T, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", HOSTS)
def test_residual_block_of_topi_operators(target: str) -> None:
    X = tvm.placeholder((1, 4, 6, 6), name="X")
    W = tvm.placeholder((4, 4, 3, 3), name="W")
    scale, shift = (tvm.placeholder((4,), name=name) for name in ("scale", "shift"))
    with tvm.target.create("llvm"):
        conv = topi.nn.conv2d(X, W, 1, 1, 1, "NCHW", "float32")
        activated = topi.nn.relu(topi.nn.scale_shift_nchw(conv, scale, shift))
        added = topi.add(activated, X)
        pooled = topi.nn.global_pool(added, "avg")
        flat = topi.nn.flatten(topi.multiply(pooled, 0.5))
        s = topi.generic.schedule_conv2d_nchw([flat])
    f = tvm.build(s, [X, W, scale, shift, flat], target)
    x, w = uniform(1, 4, 6, 6), uniform(4, 4, 3, 3)
    two, one = np.full(4, 2, "float32"), np.ones(4, "float32")
    (o,) = call(f, target, x, w, two, one, ((1, 4),))
    around = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    expected = np.maximum(convolved(around, w) * 2 + 1, 0) + x
    np.testing.assert_allclose(o, expected.mean((2, 3)) / 2, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", HOSTS)
def test_prefix_sums_of_any_length_by_a_condition(target: str) -> None:
    n = tvm.var("n")
    A = tvm.placeholder((n,), name="A")
    k = tvm.reduce_axis((0, n), "k")
    B = tvm.compute((n,), lambda i: tvm.sum(A[k], axis=k, where=k <= i), name="B")
    s = tvm.create_schedule(B.op)
    outer, _ = s[B].split(B.op.axis[0], factor=4)
    s[B].parallel(outer)
    a = uniform(11)
    (b,) = call(tvm.build(s, [A, B], target), target, a, ((11,),))
    np.testing.assert_allclose(b, a.cumsum(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", GPUS)
def test_convolution_whose_padding_is_inlined_into_shared_memory(target: str) -> None:
    """Copy an inlined stage, so that the copy computes the border while it fills a block."""
    size, channels, filters, batch = 4, 4, 8, 2
    A = tvm.placeholder((size, size, channels, batch), name="A")
    W = tvm.placeholder((3, 3, channels, filters), name="W")
    padded = tvm.compute(
        (size + 2, size + 2, channels, batch),
        lambda y, x, c, n: tvm.select(
            tvm.all(y >= 1, y - 1 < size, x >= 1, x - 1 < size),
            A[y - 1, x - 1, c, n],
            tvm.const(0.0),
        ),
        name="padded",
    )
    c = tvm.reduce_axis((0, channels), name="c")
    dy, dx = tvm.reduce_axis((0, 3), name="dy"), tvm.reduce_axis((0, 3), name="dx")
    B = tvm.compute(
        (size, size, filters, batch),
        lambda y, x, f, n: tvm.sum(
            padded[y + dy, x + dx, c, n] * W[dy, dx, c, f], axis=[dy, dx, c]
        ),
        name="B",
    )
    s = tvm.create_schedule(B.op)
    s[padded].compute_inline()
    shared = s.cache_read(padded, "shared", [B])
    weights = s.cache_read(W, "shared", [B])
    sums = s.cache_write(B, "local")
    thread = tvm.thread_axis((0, 4), "threadIdx.x")
    y, x, f, n = B.op.axis
    place = s[B].fuse(y, x)
    s[B].bind(place, tvm.thread_axis("blockIdx.x"))
    virtual, f = s[B].split(f, nparts=2)
    f, inner = s[B].split(f, nparts=4)
    s[B].reorder(place, virtual, f, inner, n)
    s[B].bind(virtual, tvm.thread_axis((0, 2), "vthread"))
    s[B].bind(f, thread)
    s[sums].compute_at(s[B], f)
    ry, rx, rc_ = s[sums].op.reduce_axis
    s[sums].reorder(ry, rx, rc_, *s[sums].op.axis)
    for copy in (shared, weights):
        s[copy].compute_at(s[sums], rx)
        s[copy].bind(s[copy].op.axis[2], thread)
    a, w = uniform(size, size, channels, batch), uniform(3, 3, channels, filters)
    function = tvm.build(s, [A, W, B], target, name="convolution")
    (b,) = call(function, target, a, w, ((size, size, filters, batch),))
    around = np.pad(a, ((1, 1), (1, 1), (0, 0), (0, 0)))
    expected = convolved(around.transpose(3, 2, 0, 1), w.transpose(3, 2, 0, 1))
    np.testing.assert_allclose(b, expected.transpose(2, 3, 1, 0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", GPUS)
def test_hybrid_sums_with_memory_before_the_threads(target: str) -> None:
    @tvm.hybrid.script
    def row_sums(a):
        c = output_tensor((a.shape[0],), a.dtype)  # noqa: F821
        total = allocate((1,), a.dtype, "local")  # noqa: F821
        for i in bind("threadIdx.x", a.shape[0]):  # noqa: F821
            total[0] = 0.0
            for k in const_range(a.shape[1]):  # noqa: F821
                total[0] += a[i, k]
            c[i] = total[0]
        return c

    A = tvm.placeholder((8, 4), name="A")
    C = row_sums(A)
    a = uniform(8, 4)
    (c,) = call(tvm.build(tvm.create_schedule(C.op), [A, C], target), target, a, ((8,),))
    np.testing.assert_allclose(c, a.sum(1), rtol=1e-5)


def test_devices_are_tried_one_after_the_other() -> None:
    """Skip targets and devices that this machine lacks, as every classic test does."""
    A = tvm.placeholder((16,), name="A")
    B = tvm.compute((16,), lambda i: A[i] + 1.0, name="B")
    ran = []
    for target in ("interp", "metal", "vulkan", "opengl", "stackvm"):
        if not tvm.module.enabled(target) or not tvm.context(target, 0).exist:
            continue
        a = uniform(16)
        function = tvm.build(tvm.create_schedule(B.op), [A, B], target)
        (b,) = call(function, target, a, ((16,),))
        np.testing.assert_allclose(b, a + 1)
        ran.append(target)
    assert ran == ["interp"]


def test_loops_of_lowered_functions_are_found_by_their_classic_names() -> None:
    A = tvm.placeholder((16, 4), name="A")
    B = tvm.compute((16, 4), lambda i, j: A[i, j] * 2.0, name="B")
    s = tvm.create_schedule(B.op)
    s[B].parallel(B.op.axis[0])
    func = tvm.lower(s, [A, B], name="f")
    loops = []
    tvm.ir_pass.PostOrderVisit(
        func.body, lambda node: loops.append(node) if isinstance(node, tvm.stmt.For) else None
    )
    inner, outer = loops
    assert (func.name, len(func.args)) == ("f", 2)
    assert (outer.loop_var.name, outer.extent.value, outer.min.value) == ("i", 16, 0)
    assert (outer.kind, inner.kind, inner.extent.value) == ("parallel", "serial", 4)
    with pytest.raises(AttributeError, match="write `loop.kind`"):
        outer.for_type  # noqa: B018
