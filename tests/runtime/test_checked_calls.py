"""Calls of functions that check their accesses, on each target: what is refused, and what is not.

The arrays are small, and the wrong indices far beyond what is mapped, so that an access that is not
checked would end the process.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import refcomp
from refcomp.compiler import build_functions
from refcomp.driver.compile import compile_to_source
from refcomp.foundation.errors import OutOfBounds, UserError
from refcomp.ir.parser import parse_func

FAR = 1 << 40
HOSTS = [pytest.param("llvm", marks=pytest.mark.llvm), "interp"]
GPUS = [
    pytest.param("opencl", marks=pytest.mark.pocl),
    pytest.param("rocm -mcpu=gfx942", marks=pytest.mark.rocm),
]


def _device(target):
    if target.startswith("rocm"):
        return refcomp.rocm_emulator("gfx942")
    return refcomp.opencl(0) if target == "opencl" else refcomp.cpu()


def _build(text, target):
    with refcomp.build_options(check_bounds=True):
        return build_functions([parse_func(text)], target)


def _call(module, target, *arrays):
    """The arrays after a call."""
    device = _device(target)
    placed = [refcomp.array(a, device) if isinstance(a, np.ndarray) else a for a in arrays]
    module(*placed)
    return [a.asnumpy() if isinstance(a, refcomp.NDArray) else a for a in placed]


def _refused(module, target, *arrays):
    with pytest.raises(OutOfBounds) as caught:
        _call(module, target, *arrays)
    return caught.value


def _loop(target, extent, body):
    kind = " threadIdx.x" if target.startswith(("rocm", "opencl")) else ""
    return f"for i in range({extent}){kind} {{ {body} }}"


def _f32(*values):
    return np.array(values, np.float32)


@pytest.mark.parametrize("target", [*HOSTS, *GPUS])
class TestEachTarget:
    def test_a_gather(self, target):
        loop = _loop(target, "m", "B[i] = A[I[i]]")
        module = _build(f"func f(A: f32[n], I: i64[m], B: f32[m] out) {{ {loop} }}", target)
        a, b = _f32(1, 2, 3), np.zeros(4, np.float32)
        good = _call(module, target, a, np.array([0, 2, 1, 2]), b)
        assert good[2].tolist() == [1, 3, 2, 3]
        for wrong in (-1, 3, FAR, -FAR):
            error = _refused(module, target, a, np.array([0, 2, wrong, 1]), b)
            assert error.what == (
                f"f reads from A out of bounds: index {wrong} in dimension 0, "
                "which has 3 elements (n)"
            )
            assert (error.where, error.why) == ("B[i] = A[I[i]]", "the index is I[i]")

    def test_a_scatter(self, target):
        loop = _loop(target, "m", "B[I[i], 1] = A[i]")
        module = _build(f"func f(A: f32[m], I: i32[m], B: f32[n, 2] out) {{ {loop} }}", target)
        b = np.full((2, 2), 7, np.float32)
        good = _call(module, target, _f32(1, 2), np.array([1, 0], np.int32), b)
        assert good[2].tolist() == [[7, 2], [7, 1]]
        for wrong in (-1, 2, 2**31 - 1, -(2**31)):
            error = _refused(module, target, _f32(1, 2), np.array([1, wrong], np.int32), b)
            assert error.what.startswith(
                f"f writes to B out of bounds: index {wrong} in dimension 0"
            )

    def test_a_gather_through_a_gather(self, target):
        loop = _loop(target, "m", "B[i] = A[I[J[i]]]")
        text = f"func f(A: f32[n], I: i64[k], J: i64[m], B: f32[m] out) {{ {loop} }}"
        module, b = _build(text, target), np.zeros(2, np.float32)
        indices = np.array([1, FAR, 0])
        good = _call(module, target, _f32(5, 6), indices, np.array([0, 2]), b)
        assert good[3].tolist() == [6, 5]
        error = _refused(module, target, _f32(5, 6), indices, np.array([0, FAR]), b)
        assert error.what.startswith(f"f reads from I out of bounds: index {FAR}")
        error = _refused(module, target, _f32(5, 6), indices, np.array([0, 1]), b)
        assert error.what.startswith(f"f reads from A out of bounds: index {FAR}")

    def test_a_guarded_read_is_not_reported(self, target):
        value = "if_then_else(0 <= I[i] and I[i] < n, A[I[i]], -1.0f32)"
        loop = _loop(target, "m", f"B[i] = {value}")
        module = _build(f"func f(A: f32[n], I: i64[m], B: f32[m] out) {{ {loop} }}", target)
        indices = np.array([1, FAR, -1, 0])
        result = _call(module, target, _f32(5, 6), indices, np.zeros(4, np.float32))
        assert result[2].tolist() == [6, -1, -1, 5]

    def test_a_loop_that_is_too_long_by_one(self, target):
        loop = _loop(target, "65", "if (A[0] < 9.0f32) { B[i] = A[i] + 1.0f32 }")
        module = _build(f"func f(A: f32[n], B: f32[n] out) {{ {loop} }}", target)
        a, b = np.zeros(64, np.float32), np.zeros(64, np.float32)
        error = _refused(module, target, a, b)
        assert error.what == (
            "f reads from A out of bounds: index 64 in dimension 0, which has 64 elements (n)"
        )
        assert error.why == "the index is i"
        longer = _call(module, target, np.zeros(65, np.float32), np.zeros(65, np.float32))
        assert longer[1].tolist() == [1] * 65

    def test_a_buffer_of_the_function_that_is_too_small(self, target):
        """As a stage computed at the wrong loop would need it."""
        fill = "for k in range(5) { if (A[i] < 9.0f32) { T[k] = A[i] } }"
        loop = _loop(target, "n", f"alloc T: f32[4] local {{ {fill} B[i] = T[3] }}")
        module = _build(f"func f(A: f32[n], B: f32[n] out) {{ {loop} }}", target)
        error = _refused(module, target, _f32(1, 2), np.zeros(2, np.float32))
        assert error.what == (
            "f writes to T out of bounds: index 4 in dimension 0, which has 4 elements"
        )

    def test_a_row_of_a_sparse_matrix(self, target):
        loop = _loop(target, "m", "for k in range(P[i], extent=P[i + 1] - P[i]) { B[i] = V[k] }")
        text = f"func f(P: i64[m + 1], V: f32[n], B: f32[m] out) {{ {loop} }}"
        module = _build(text, target)
        values, b = _f32(1, 2, 3), np.zeros(2, np.float32)
        good = _call(module, target, np.array([0, 1, 3]), values, b)
        assert good[2].tolist() == [1, 3]
        error = _refused(module, target, np.array([0, 1, 5]), values, b)
        assert "reads from V out of bounds: index 4" in error.what or "index 3" in error.what

    def test_a_function_may_be_called_again_after_an_error(self, target):
        loop = _loop(target, "m", "B[i] = A[I[i]]")
        module = _build(f"func f(A: f32[n], I: i64[m], B: f32[m] out) {{ {loop} }}", target)
        device = _device(target)
        a, b = (refcomp.array(x, device) for x in (_f32(1, 2), np.zeros(1, np.float32)))
        good, bad = (refcomp.array(np.array([k]), device) for k in (1, 2))
        bound, wrong = module.entry.bind(a, good, b), module.entry.bind(a, bad, b)
        for _ in range(2):
            bound()
            assert b.asnumpy().tolist() == [2]
            with pytest.raises(OutOfBounds, match="index 2"):
                wrong()

    def test_calls_at_once_have_a_status_each(self, target):
        loop = _loop(target, "m", "B[i] = A[I[i]]")
        module = _build(f"func f(A: f32[n], I: i64[m], B: f32[m] out) {{ {loop} }}", target)

        def call(number):
            index = number % 3
            try:
                _call(module, target, _f32(1, 2), np.array([index]), np.zeros(1, np.float32))
            except OutOfBounds:
                return index == 2
            return index < 2

        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(call, range(12)))

    def test_who_calls_knows_nothing_of_the_status(self, target):
        loop = _loop(target, "m", "B[i] = A[I[i]]")
        module = _build(f"func f(A: f32[n], I: i64[m], B: f32[m] out) {{ {loop} }}", target)
        signature = module.entry.signature
        assert str(signature) == "f(A: f32[n], I: i64[m], B: f32[m] (output))"
        assert len(signature.checks) == 1
        with pytest.raises(UserError, match="f takes 3 arguments, not 1"):
            module(refcomp.array(_f32(1, 2), _device(target)))


def _scheduled(target, change):
    """B[i, j] = A[I[i], j], with rows and columns that 4 divides or not."""
    n, m = refcomp.var("n"), refcomp.var("m")
    a = refcomp.placeholder((n, 6), name="A")
    i = refcomp.placeholder((m,), "int64", "I")
    b = refcomp.compute((m, 6), lambda y, x: a[i[y], x] * 2, name="B")
    s = refcomp.create_schedule(b)
    change(s, a, i, b)
    with refcomp.build_options(check_bounds=True):
        return refcomp.build(s, [a, i, b], target, name="rows")


def _check_rows(module, target):
    a, b = np.arange(18, dtype=np.float32).reshape(3, 6), np.zeros((5, 6), np.float32)
    good = np.array([0, 2, 1, 2, 0])
    assert np.array_equal(_call(module, target, a, good, b)[2], a[good] * 2)
    for place in (0, 4):
        for wrong in (-1, 3, FAR):
            bad = good.copy()
            bad[place] = wrong
            error = _refused(module, target, a, bad, b)
            assert f"reads from A out of bounds: index {wrong} in dimension 0" in error.what
            assert "test_checked_calls.py" in error.where and "stage " in error.where


def _parallel(s, a, i, b):
    s[b].parallel(b.op.axis[0])


def _vectorized(s, a, i, b):
    s[b].vectorize(b.op.axis[1])


def _vectorized_rows(s, a, i, b):
    y, x = b.op.axis
    outer, inner = s[b].split(y, factor=4)
    s[b].reorder(outer, x, inner)
    s[b].vectorize(inner)


def _unrolled(s, a, i, b):
    _, inner = s[b].split(b.op.axis[0], factor=4)
    s[b].unroll(inner)


def _cached(s, a, i, b):
    copy = s.cache_read(i, "global", [b])
    s[copy].compute_at(s[b], s[b].split(b.op.axis[0], factor=4)[0])


def _written_by_cache(s, a, i, b):
    local = s.cache_write(b, "local")
    s[local].compute_at(s[b], b.op.axis[0])


@pytest.mark.search
@pytest.mark.parametrize("target", HOSTS)
@pytest.mark.parametrize(
    "change",
    [_parallel, _vectorized, _vectorized_rows, _unrolled, _cached, _written_by_cache],
)
def test_schedules_of_the_host(change, target):
    _check_rows(_scheduled(target, change), target)


def _bind(s, b):
    outer, inner = s[b].split(b.op.axis[0], factor=4)
    s[b].bind(outer, refcomp.thread_axis("blockIdx.x"))
    s[b].bind(inner, refcomp.thread_axis("threadIdx.x"))
    return outer, inner


def _bound(s, a, i, b):
    _bind(s, b)


def _shared_indices(s, a, i, b):
    copy = s.cache_read(i, "shared", [b])
    outer, _ = _bind(s, b)
    s[copy].compute_at(s[b], outer)
    s[copy].bind(copy.op.axis[0], refcomp.thread_axis("threadIdx.x"))


def _virtual_threads(s, a, i, b):
    _bind(s, b)
    s[b].bind(s[b].split(b.op.axis[1], nparts=2)[0], refcomp.thread_axis("vthread"))


def _vectors_in_threads(s, a, i, b):
    _bind(s, b)
    s[b].vectorize(s[b].split(b.op.axis[1], factor=2)[1])


@pytest.mark.parametrize("target", GPUS)
@pytest.mark.parametrize("change", [_bound, _shared_indices, _virtual_threads, _vectors_in_threads])
def test_schedules_of_kernels(change, target):
    _check_rows(_scheduled(target, change), target)


@pytest.mark.parametrize("target", GPUS)
def test_what_many_threads_found_is_told_in_a_fixed_way(target):
    body = "for i in range(8) threadIdx.x { B[b * 8 + i] = A[I[b * 8 + i]] }"
    loop = f"for b in range(8) blockIdx.x {{ {body} }}"
    module = _build(f"func f(A: f32[n], I: i64[64], B: f32[64] out) {{ {loop} }}", target)
    indices = np.arange(64) - 20
    error = _refused(module, target, _f32(1, 2), indices, np.zeros(64, np.float32))
    assert "index -20 in" in error.what and "wrong indices are from -20 to 43" in error.why


@pytest.mark.parametrize("target", GPUS)
def test_atomic_updates_are_checked(target):
    loop = "for i in range(m) threadIdx.x { atomic add B[I[i]] with 1i32 }"
    module = _build(f"func f(I: i64[m], B: i32[n] out) {{ {loop} }}", target)
    result = _call(module, target, np.array([1, 1, 0]), np.zeros(2, np.int32))
    assert result[1].tolist() == [1, 2]
    error = _refused(module, target, np.array([1, FAR, 0]), np.zeros(2, np.int32))
    assert error.what.startswith(f"f updates B out of bounds: index {FAR}")


@pytest.mark.llvm
def test_parallel_loops_tell_one_of_the_wrong_indices():
    loop = "for i in range(m) parallel { B[i] = A[I[i]] }"
    module = _build(f"func f(A: f32[n], I: i64[m], B: f32[m] out) {{ {loop} }}", "llvm")
    indices = np.full(1000, 1)
    indices[::7] = 1000 + np.arange(0, 1000, 7)
    error = _refused(module, "llvm", _f32(1, 2), indices, np.zeros(1000, np.float32))
    index = int(error.what.split("index ")[1].split()[0])
    assert index in indices[::7]


@pytest.mark.llvm
def test_an_address_that_a_function_gets_is_checked():
    text = "func f(A: i32[n], B: i32[4] out) { extern i32 memcpy(write(B[0]), read(A[7]), 4) }"
    module = _build(text, "llvm")
    b = np.full(4, 9, np.int32)
    module(np.arange(8, dtype=np.int32), b)
    assert b.tolist() == [7, 9, 9, 9]
    with pytest.raises(OutOfBounds, match="passes the address of an element of A out of bounds"):
        module(np.arange(7, dtype=np.int32), b)


# Files.


@pytest.mark.parametrize("target", [HOSTS[0], *GPUS])
def test_a_module_file_has_all_that_an_error_says(target, tmp_path, monkeypatch):
    _scheduled(target, _parallel if target == "llvm" else _bound).save(tmp_path / "f.module")
    if target.startswith("rocm"):
        monkeypatch.setenv("REFCOMP_ROCM", "emulator:gfx942")
    loaded = refcomp.load_module(tmp_path / "f.module")
    _check_rows(loaded, target)


@pytest.mark.llvm
def test_a_bare_shared_object_is_refused(tmp_path):
    module = _scheduled("llvm", _parallel)
    with pytest.raises(UserError, match=r"rows checks its accesses(.|\n)*save a module file"):
        module.export_library(tmp_path / "f.so")
    module.export_library(tmp_path / "f.module")


# What is proved costs nothing, and nobody pays who did not ask.


def _product():
    n = refcomp.var("n")
    a, b = refcomp.placeholder((n, n), name="A"), refcomp.placeholder((n, n), name="B")
    k = refcomp.reduce_axis((0, n), "k")
    c = refcomp.compute((n, n), lambda i, j: refcomp.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = refcomp.create_schedule(c)
    i, j = c.op.axis
    s[c].parallel(s[c].split(i, factor=8)[0])
    s[c].vectorize(s[c].split(j, factor=8)[1])
    return refcomp.lower(s, [a, b, c], "product")


@pytest.mark.llvm
def test_a_matrix_product_is_proved_and_stays_as_it_is():
    func = _product()
    plain = compile_to_source([func], "llvm").text
    with refcomp.build_options(check_bounds=True):
        assert compile_to_source([func], "llvm").text == plain
        assert build_functions([func], "llvm").entry.signature.checks == ()


@pytest.mark.llvm
def test_both_ways_to_build_a_function_live_side_by_side():
    func = parse_func(
        "func f(A: f32[n], I: i64[m], B: f32[m] out) { for i in range(m) { B[i] = A[I[i]] } }"
    )
    plain, a, b = build_functions([func]), _f32(1, 2), np.zeros(1, np.float32)
    with refcomp.build_options(check_bounds=True):
        checked = build_functions([func])
    again = build_functions([func])
    assert plain.get_source("llvm") == again.get_source("llvm") != checked.get_source("llvm")
    with pytest.raises(OutOfBounds):
        checked(a, np.array([2]), b)
    for module in (plain, checked, again):
        module(a, np.array([1]), b)
        assert b.tolist() == [2]


@pytest.mark.llvm
def test_the_environment_asks_for_checks(monkeypatch):
    monkeypatch.setenv("REFCOMP_CHECK_BOUNDS", "1")
    func = parse_func("func f(A: f32[n] out, I: i64[1]) { A[I[0]] = 1.0f32 }")
    with pytest.raises(OutOfBounds, match="f writes to A out of bounds: index 4"):
        build_functions([func])(np.zeros(3, np.float32), np.array([4]))


@pytest.mark.llvm
@pytest.mark.parametrize("target", ["llvm", "interp"])
def test_certified_builds_may_be_checked_too(target):
    with refcomp.build_options(certify=True):
        _check_rows(_scheduled(target, _unrolled), target)


@pytest.mark.parametrize("target", ["interp", GPUS[0]])
def test_a_buffer_that_is_filled_ahead_is_checked_once_for_each_filling(target):
    n = refcomp.var("n")
    a, i = refcomp.placeholder((n,), name="A"), refcomp.placeholder((8, 8), "int64", "I")
    g = refcomp.compute((8, 8), lambda k, t: a[i[k, t]], name="G")
    k = refcomp.reduce_axis((0, 8), "k")
    b = refcomp.compute((8,), lambda t: refcomp.sum(g[k, 7 - t], axis=k), name="B")
    s = refcomp.create_schedule(b)
    s[g].set_scope("shared")
    s[b].bind(b.op.axis[0], refcomp.thread_axis("threadIdx.x"))
    s[g].compute_at(s[b], b.op.reduce_axis[0])
    s[g].bind(g.op.axis[1], refcomp.thread_axis("threadIdx.x"))
    s[g].double_buffer()
    with refcomp.build_options(check_bounds=True):
        module = refcomp.build(s, [a, i, b], target, name="sums")
    values, out = np.arange(5, dtype=np.float32), np.zeros(8, np.float32)
    good = np.arange(64).reshape(8, 8) % 5
    assert np.array_equal(_call(module, target, values, good, out)[2], values[good].sum(0)[::-1])
    for place in ((0, 0), (7, 3)):
        bad = good.copy()
        bad[place] = FAR
        assert (
            f"reads from A out of bounds: index {FAR}"
            in _refused(module, target, values, bad, out).what
        )
