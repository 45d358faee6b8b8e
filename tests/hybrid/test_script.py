"""Hybrid functions: what is compiled computes what Python does."""

# ruff: noqa: F821, F841

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.hybrid import HybridFunction, script

SCALE, SIZES = 3, (2, 5)


@script
def outer(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), "float32")
    for i in range(a.shape[0]):
        for j in parallel(b.shape[0]):
            c[i, j] = a[i] * b[j]
    return c


@script
def branches(a, b):
    n = len(a)
    c = output_tensor((n,), "int32")
    d = output_tensor((n, 2), "float32")
    for i in range(n):
        if a[i] > 1.0 and b[0] < a[i]:
            c[i] = 1
        elif 0.0 <= a[i] < 1.0 or not a[i] < 0.5:
            c[i] = int32(a[i] * 2.0) % SCALE
        else:
            c[i] = -7 // 2
        d[i, 0] = a[i] if i % 2 == 0 else -a[i]
        d[i, 1] = max(a[i], b[0], float32(i)) + min(1.0, a[i]) + abs(a[i])
    return c, d


@script
def locals_of_many_kinds(a, b):
    c = output_tensor((a.shape[0],), "float32")
    total = float32(0)
    for i in range(a.shape[0]):
        t = allocate((4,), "float32", "local")
        best = a[0]
        for u in const_range(4):
            t[u] = a[i] * u
        for u in unroll(1, 4, 2):
            best = max(best, t[u])
            total += t[u]
        step = total * 2.0
        for j in vectorize(0, 4):
            t[j] += step
        c[i] = best + t[3] - total
    return c


@script
def steps(a, b):
    c = output_tensor(SIZES, "int64")
    for i in range(SIZES[0]):
        for j in range(1, SIZES[1], 2):
            c[i, j] = (i + 1 << j) & 0x1F | 64 ^ j
        for j in range(0, SIZES[1], 2):
            c[i, j] = ~(i * j) >> 1
    return c


@script
def maths(a, b):
    c = output_tensor((a.shape[0],), "float32")
    for i in range(a.shape[0]):
        c[i] = sqrt(abs(a[i])) + floor(a[i]) + float32(round(a[i] * 2.0))
        c[i] = c[i] + select(a[i] > 0.0, 1.0, 2.0) + exp(a[i] * 0.0) + abs(a[i]) ** 2.0
    return c


FUNCTIONS = [outer, branches, locals_of_many_kinds, steps, maths]


def inputs(n=5, m=3):
    return np.array([-1.5, 0.25, 1.0, 2.5, 0.75, 3.0])[:n].astype(np.float32), np.ones(
        m, np.float32
    )


@pytest.mark.llvm
@pytest.mark.parametrize("target", ["interp", "llvm"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_compiled_and_run_by_python(function, target):
    arrays = inputs()
    n, m = refcomp.var("n"), refcomp.var("m")
    a, b = refcomp.placeholder((n,), name="a"), refcomp.placeholder((m,), name="b")
    wanted = function(*arrays)
    tensors = function(a, b)
    assert isinstance(tensors, tuple) == isinstance(wanted, tuple)
    tensors, wanted = (x if isinstance(x, tuple) else (x,) for x in (tensors, wanted))
    got = [np.zeros(w.shape, w.dtype) for w in wanted]
    s = refcomp.create_schedule(tensors[0])
    module = refcomp.build(s, [a, b, *tensors], target=target)
    module(*arrays, *got)
    for mine, theirs in zip(got, wanted, strict=True):
        assert mine.dtype == theirs.dtype
        assert np.array_equal(mine, theirs), (mine, theirs)


def test_a_hybrid_tensor_is_one_of_a_program():
    a, b = refcomp.placeholder((4,), name="a"), refcomp.placeholder((3,), name="b")
    double = refcomp.compute((4,), lambda i: a[i] * 2.0, name="double")
    c = outer(double, b)
    d = refcomp.compute((4, 3), lambda i, j: c[i, j] + 1.0, name="d")
    assert (c.op.tag, c.name) == ("hybrid", "outer")
    given, got = inputs(4, 3), np.zeros((4, 3), np.float32)
    refcomp.build(refcomp.create_schedule(d), [a, b, d], target="interp")(*given, got)
    assert np.array_equal(got, np.outer(given[0] * 2, given[1]) + 1)


def test_scalars_and_tuples_are_arguments():
    @script
    def scaled(a, k, pair):
        c = output_tensor((a.shape[0],), "float32")
        for i in range(a.shape[0]):
            c[i] = a[i] * k + pair[1]
        return c

    k = refcomp.var("k", "float32")
    a = refcomp.placeholder((4,), name="a")
    c = scaled(a, k, (1, 2))
    got = np.zeros(4, np.float32)
    build = refcomp.build(refcomp.create_schedule(c), [a, k, c], target="interp")
    build(np.arange(4, dtype=np.float32), 3.0, got)
    assert got.tolist() == [2, 5, 8, 11]
    assert scaled(np.arange(4), 3.0, (1, 2)).tolist() == [2, 5, 8, 11]


def test_threads():
    @script
    def add(a):
        c = output_tensor((a.shape[0],), "float32")
        for t in bind("threadIdx.x", 4):
            for b in bind("blockIdx.x", (a.shape[0] + 3) // 4):
                if b * 4 + t < a.shape[0]:
                    c[b * 4 + t] = a[b * 4 + t] + 1.0
        return c

    a = refcomp.placeholder((10,), name="a")
    c = add(a)
    func = refcomp.lower(refcomp.create_schedule(c), [a, c])
    assert (func.body.kind, func.body.body.kind) == ("blockIdx.x", "threadIdx.x")
    given, got = np.arange(10, dtype=np.float32), np.zeros(10, np.float32)
    refcomp.build(func, target="interp")(given, got)
    assert np.array_equal(got, add(given)) and got[9] == 10


def test_its_loops_are_axes():
    a, b = refcomp.placeholder((4,), name="a"), refcomp.placeholder((3,), name="b")
    c = outer(a, b)
    assert [str(axis) for axis in c.op.axis] == ["data_parallel axis i", "data_parallel axis j"]
    schedule = refcomp.create_schedule(c)
    schedule[c].unroll(c.op.axis[0])
    text = refcomp.print_func(refcomp.lower(schedule, [a, b, c]))
    assert "for i in range(4) unrolled {" in text
    assert "for j in range(3) parallel {" in text
    with pytest.raises(UserError, match="it is parallel already") as caught:
        schedule[c].vectorize(c.op.axis[1])
    # The message points to the loop in the hybrid function.
    assert f"test_script.py:{outer.source.first_line + 4}" in str(caught.value)


@pytest.mark.parametrize("move", ["compute_at", "compute_inline"])
def test_upstream_of_other_stages_it_stays_at_the_root(move):
    a, b = refcomp.placeholder((4,), name="a"), refcomp.placeholder((3,), name="b")
    c = outer(a, b)
    d = refcomp.compute((4, 3), lambda i, j: c[i, j] + 1.0, name="d")
    schedule = refcomp.create_schedule(d)
    args = (schedule[d], d.op.axis[0]) if move == "compute_at" else ()
    with pytest.raises(UserError, match="it is a hybrid function(.|\n)*leave it at the root"):
        getattr(schedule[c], move)(*args)
    schedule[d].parallel(d.op.axis[0])  # what reads it is scheduled as usual
    assert "outer[i, j] + 1.0f32" in str(refcomp.lower(schedule, [a, b, d]).body)


def test_what_it_reads_stays_at_the_root():
    a, b = refcomp.placeholder((4,), name="a"), refcomp.placeholder((3,), name="b")
    doubled = refcomp.compute((4,), lambda i: a[i] * 2.0, name="doubled")
    c = outer(doubled, b)
    schedule = refcomp.create_schedule(c)
    with pytest.raises(UserError, match="a hybrid function, which reads and writes whole tensors"):
        schedule[doubled].compute_at(schedule[c], c.op.axis[0])
    with pytest.raises(UserError, match="stage outer is a hybrid function, which reads its memory"):
        schedule[doubled].compute_inline()
    copy = schedule.cache_read(doubled, "global", [c])
    outside, _ = schedule[c].split(c.op.axis[0], 2)
    schedule[copy].vectorize(copy.op.axis[0])
    result = refcomp.compute((4,), lambda i: outer(doubled, b)[i, 0] + doubled[i], name="result")
    assert outside.name == "i.outer"
    assert "doubled.global[i.outer * 2 + i.inner] * b[j]" in str(
        refcomp.lower(schedule, [a, b, c]).body
    )
    given = np.arange(4, dtype=np.float32), np.ones(3, np.float32)
    whole = refcomp.create_schedule(result)
    got = np.zeros(4, np.float32)
    refcomp.build(whole, [a, b, result], "interp")(*given, got)
    assert got.tolist() == [0, 4, 8, 12]


def test_statements_tell_their_lines():
    a, b = refcomp.placeholder((4,), name="a"), refcomp.placeholder((3,), name="b")
    line = outer.source.first_line
    loop = outer(a, b).op.body
    assert loop.origin.line.endswith(f"test_script.py:{line + 3}")
    assert loop.body.body.origin.line.endswith(f"test_script.py:{line + 5}")


def test_arrays_of_refcomp_run_in_python():
    a, b = (refcomp.array(x) for x in inputs(2, 2))
    assert outer(a, b).tolist() == outer.run_in_python(a, b).tolist() == [[-1.5] * 2, [0.25] * 2]


def test_what_is_decorated():
    assert isinstance(outer, HybridFunction) and outer.__name__ == "outer"
    with pytest.raises(UserError, match="hybrid function max has no source"):
        script(max)
    with pytest.raises(UserError, match="is not a function definition"):
        script(lambda a: a)
    with pytest.raises(UserError, match="its parameters must be plain names"):

        @script
        def f(*args):
            return args


def test_arguments():
    a = refcomp.placeholder((4,), name="a")
    with pytest.raises(UserError, match="outer takes 2 arguments, 1 given"):
        outer(a)
    with pytest.raises(UserError, match="argument b of hybrid function outer is a dict"):
        outer(a, {})


def test_outputs_are_returned():
    @script
    def nothing(a):
        c = output_tensor((4,), "float32")

    @script
    def half(a):
        c = output_tensor((4,), "float32")
        d = output_tensor((4,), "float32")
        return c

    a = refcomp.placeholder((4,), name="a")
    with pytest.raises(UserError, match="nothing: it returns nothing"):
        nothing(a)
    with pytest.raises(UserError, match="half: it does not return its output d"):
        half(a)
