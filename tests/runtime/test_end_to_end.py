"""From te to results on a device: what is built for OpenCL runs on PoCL as numpy computes it."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.runtime.module import Module
from refcomp.testing import assert_allclose

_OPENCL = pytest.param("opencl", marks=pytest.mark.pocl)


def _bind(stage: Any, **axes: Any) -> None:
    for name, axis in axes.items():
        kind, _, dim = name.partition("_")
        stage.bind(axis, refcomp.thread_axis(f"{kind}Idx.{dim}"))


def _vector_add(target: str) -> Module:
    n = refcomp.var("n")
    a, b = (refcomp.placeholder((n,), name=name) for name in "AB")
    c = refcomp.compute((n,), lambda i: a[i] + b[i], name="C")
    s = refcomp.create_schedule(c)
    group, item = s[c].split(c.op.axis[0], factor=64)
    _bind(s[c], block_x=group, thread_x=item)
    return refcomp.build(s, [a, b, c], target, name="add")


def _rows(target: str) -> Module:
    """Two kernels for each row, run by a loop of the host, with a workspace between them."""
    m, n = refcomp.var("m"), refcomp.var("n")
    a = refcomp.placeholder((m, n), name="A")
    b = refcomp.compute((m, n), lambda i, j: a[i, j] * 2.0, name="B")
    c = refcomp.compute((m, n), lambda i, j: b[i, n - 1 - j] + 1.0, name="C")
    s = refcomp.create_schedule(c)
    for tensor in (b, c):
        group, item = s[tensor].split(tensor.op.axis[1], factor=32)
        _bind(s[tensor], block_x=group, thread_x=item)
    return refcomp.build(s, [a, c], target, name="rows")


def _product(n: int, m: int, k: int, target: str) -> Module:
    """Tiles of 16 x 16, each of 8 x 8 threads; operands in shared memory, sums in registers."""
    a, b = refcomp.placeholder((n, k), name="A"), refcomp.placeholder((k, m), name="B")
    r = refcomp.reduce_axis((0, k), name="r")
    c = refcomp.compute((n, m), lambda i, j: refcomp.sum(a[i, r] * b[r, j], axis=r), name="C")
    s = refcomp.create_schedule(c)
    sums = s.cache_write(c, "local")
    tiles = [s.cache_read(tensor, "shared", [sums]) for tensor in (a, b)]
    by, bx, i, j = s[c].tile(*s[c].op.axis, 16, 16)
    ty, i = s[c].split(i, nparts=8)
    tx, j = s[c].split(j, nparts=8)
    s[c].reorder(by, bx, ty, tx, i, j)
    _bind(s[c], block_y=by, block_x=bx, thread_y=ty, thread_x=tx)
    s[sums].compute_at(s[c], tx)
    outer, inner = s[sums].split(s[sums].op.reduce_axis[0], factor=8)
    s[sums].reorder(outer, inner, *s[sums].op.axis)
    for tile in tiles:
        s[tile].compute_at(s[sums], outer)
        ty, rest = s[tile].split(s[tile].fuse(*s[tile].op.axis), nparts=8)
        tx, _ = s[tile].split(rest, nparts=8)
        _bind(s[tile], thread_y=ty, thread_x=tx)
    return refcomp.build(s, [a, b, c], target, name="product")


def _check_add(module: Module, n: int) -> None:
    device = module.entry.device
    a, b = np.random.default_rng(n).standard_normal((2, n), dtype=np.float32)
    out = refcomp.empty(n, "f32", device)
    module(refcomp.array(a, device), refcomp.array(b, device), out)
    assert_allclose(out, a + b, rtol=0, atol=0)


def _check_rows(module: Module, m: int, n: int) -> None:
    device = module.entry.device
    a = np.random.default_rng(m + n).standard_normal((m, n), dtype=np.float32)
    out = refcomp.empty((m, n), "f32", device)
    module(refcomp.array(a, device), out)
    assert_allclose(out, a[:, ::-1] * np.float32(2) + np.float32(1), rtol=0, atol=0)


@pytest.mark.pocl
class TestOnPocl:
    def test_vector_add_of_any_length(self) -> None:
        module = _vector_add("opencl")
        assert module.entry.device == refcomp.context("opencl", 0)
        for n in (0, 1, 63, 64, 65, 1000):
            _check_add(module, n)

    def test_arrays_of_the_host_are_refused(self) -> None:
        a = np.zeros(3, np.float32)
        with pytest.raises(UserError, match=r"refcomp.nd.array\(a, refcomp.opencl\(0\)\)"):
            _vector_add("opencl")(a, a, a)

    def test_a_loop_of_the_host_with_a_workspace(self) -> None:
        module = _rows("opencl")
        for m, n in ((0, 3), (3, 0), (1, 1), (3, 70), (5, 64)):
            _check_rows(module, m, n)

    @pytest.mark.parametrize("size", [(64, 64, 64), (16, 32, 8), (33, 50, 17)])
    def test_a_product_in_tiles(self, size: tuple[int, int, int]) -> None:
        n, m, k = size
        a = np.random.default_rng(0).standard_normal((n, k), dtype=np.float32)
        b = np.random.default_rng(1).standard_normal((k, m), dtype=np.float32)
        device = refcomp.opencl()
        out = refcomp.empty((n, m), "f32", device)
        module = _product(n, m, k, "opencl")
        module(refcomp.array(a, device), refcomp.array(b, device), out)
        assert_allclose(out, a @ b, rtol=1e-4, atol=1e-4)

    def test_calls_from_several_threads(self) -> None:
        module = _rows("opencl")
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda k: _check_rows(module, 1 + k % 3, 40 + k), range(24)))

    def test_timing(self) -> None:
        module, device = _vector_add("opencl"), refcomp.opencl()
        arrays = [refcomp.array(np.ones(8, np.float32), device) for _ in range(3)]
        result = module.time_evaluator("add", device, number=3, repeat=2)(*arrays)
        assert len(result.results) == 2
        assert arrays[2].asnumpy().tolist() == [2] * 8
        with pytest.raises(UserError, match="runs on opencl:0, not on cpu:0"):
            module.time_evaluator("add", refcomp.cpu())

    def test_a_block_as_large_as_a_row(self) -> None:
        m, n = refcomp.var("m"), refcomp.var("n")
        a = refcomp.placeholder((m, n), name="A")
        c = refcomp.compute((m, n), lambda i, j: a[i, j] + 1.0, name="C")
        s = refcomp.create_schedule(c)
        _bind(s[c], block_x=c.op.axis[0], thread_x=c.op.axis[1])
        module = refcomp.build(s, [a, c], "opencl")
        device = refcomp.opencl()
        x, y = (refcomp.array(np.ones((2, 9), np.float32), device) for _ in range(2))
        module(x, y)
        assert y.asnumpy().tolist() == [[2] * 9] * 2
        too_many = device.driver.limits(0).threads_per_axis[0] + 1
        x, y = (refcomp.empty((1, too_many), "f32", device) for _ in range(2))
        with pytest.raises(UserError) as caught:
            module(x, y)
        assert f"needs {too_many} threads in threadIdx.x" in str(caught.value)
        assert "threadIdx.x: stage C, axis" in str(caught.value)
        assert "test_end_to_end.py:" in str(caught.value)


@pytest.mark.parametrize("target", [_OPENCL, pytest.param("rocm", marks=pytest.mark.llvm)])
class TestFiles:
    def test_sources(self, target: str) -> None:
        module = _rows(target)
        assert module.get_source().count("launch ") == 2
        assert "alloc B" in module.get_source("loop_ir")
        (kernels,) = module.imported_modules
        language = {"opencl": "__kernel", "rocm": "amdgpu_kernel"}[target]
        assert kernels.get_source().count(language) == 2
        assert len(kernels.kernel_names) == 2

    def test_there_and_back(self, target: str, tmp_path: Path) -> None:
        module = _rows(target)
        module.save(tmp_path / "rows")
        loaded = refcomp.load_module(tmp_path / "rows")
        assert loaded.signatures == module.signatures
        assert loaded.get_source() == module.get_source()
        assert loaded.imported_modules[0].get_source() == module.imported_modules[0].get_source()
        if loaded.entry.device.exist:
            _check_rows(loaded, 3, 40)


@pytest.mark.llvm
def test_code_for_a_gpu_that_is_not_there() -> None:
    module = _vector_add("rocm")
    assert module.entry.device == refcomp.rocm(0)
    assert "s_endpgm" in module.imported_modules[0].get_source("asm")
    if not refcomp.rocm(0).exist:
        with pytest.raises(UserError, match="this machine has no device rocm:0"):
            refcomp.empty(3, "f32", refcomp.rocm(0))


@pytest.mark.pocl
def test_a_condition_that_lives_across_barriers_is_each_threads_own():
    """PoCL 3.1 took the last thread's for that of all, and left out the whole last group."""
    text = (Path(__file__).parent / "tail_of_a_group.txt").read_text(encoding="utf-8")
    func = refcomp.parse_func(text)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 4, (17, 3)).astype(np.int32) for _ in "ab")
    expected = np.zeros((2, 17), np.int32)
    refcomp.build(func, target="interp")(a, b, *expected)
    there = [refcomp.nd.array(x, refcomp.opencl()) for x in (a, b, *np.zeros((2, 17), np.int32))]
    refcomp.build(func, target="opencl")(*there)
    assert (there[2].asnumpy() == expected[0]).all()
    assert (there[3].asnumpy() == expected[1]).all()


_PASSED_BY = """
func passed_by(A: i32[3, n, m], B: i32[3] out) {
  for t in range(3) threadIdx.x {
    alloc S: i32[3] shared {
      B[t] = 0i32
      for k in range(4) {
        for i in range(n) {
          if (i < 2) {
            for j in range(m) {
              S[t] = A[t, i, j] + i32(k)
              B[t] = B[t] + S[2 - t]
            }
          }
        }
      }
    }
  }
}
"""


def _run_passed_by(target: str) -> list[list[int]]:
    """What comes out where the loops run, and where they do not."""
    device = refcomp.opencl() if target == "opencl" else refcomp.cpu()
    function = refcomp.build(refcomp.parse_func(_PASSED_BY), target=target)
    results = []
    for n, m in ((3, 2), (3, 0), (0, 2)):
        a = np.arange(3 * n * m, dtype=np.int32).reshape(3, n, m)
        args = [refcomp.array(x, device) for x in (a, np.full(3, 7, np.int32))]
        function(*args)
        results.append(args[1].asnumpy().tolist())
    return results


@pytest.mark.pocl
def test_a_barrier_may_be_passed_by() -> None:
    """PoCL 3.1 never left a loop when an iteration passed without the barrier that is in it. In a
    process of its own, as nothing else ends what hangs in there."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        found = pool.apply_async(_run_passed_by, ["opencl"]).get(timeout=120)
    assert found == _run_passed_by("interp")
    assert found[1] == found[2] == [0, 0, 0] and 0 not in found[0]
