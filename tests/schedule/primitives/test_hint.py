"""Pragmas, prefetches, double buffers and strides: what they make, and what is refused."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.schedule.schedule import replay
from tests.quotations import quoted_call


def two_stages(n=12):
    a = rc.placeholder((n, 8), name="A")
    t = rc.compute((n, 8), lambda i, j: a[i, j] * 2.0, name="T")
    b = rc.compute((n, 8), lambda i, j: t[i, j] + a[i, j], name="B")
    return a, t, b, rc.create_schedule(b)


def lowered(s, *args):
    text = rc.print_func(rc.lower(s, list(args)))
    again = replay(s.outputs, s.steps)
    assert rc.print_func(rc.lower(again, list(args))) == text
    return text


def agrees(s, a, b, target="llvm"):
    x = np.arange(96, dtype=np.float32).reshape(12, 8)
    y = np.zeros((12, 8), np.float32)
    rc.build(s, [a, b], target)(x, y)
    return bool((y == 3 * x).all())


@pytest.mark.llvm
def test_a_pragma_stands_around_its_loop_and_unrolls():
    a, t, b, s = two_stages()
    s[t].compute_inline()
    i, j = b.op.axis
    s[b].pragma(i, "auto_unroll_max_step", 16)
    assert "pragma auto_unroll_max_step 16 {\n    for i in range(12)" in lowered(s, a, b)
    assert str(s.steps[-1]) == "s[B].pragma(i, auto_unroll_max_step, 16)"
    assert agrees(s, a, b)
    assert s[b].stage.loops.pragmas[0].axis is i
    assert j in s[b].leaf_iter_vars


@pytest.mark.llvm
def test_a_prefetch_asks_for_what_a_later_iteration_reads_first():
    a, t, b, s = two_stages()
    s[t].compute_inline()
    i, _ = b.op.axis
    s[b].prefetch(a, i, 2)
    text = lowered(s, a, b)
    assert "prefetch A[i + 2, 0]" in text
    assert text.index("for i in") < text.index("prefetch") < text.index("for j in")
    assert agrees(s, a, b)
    assert "llvm.prefetch" in rc.build(s, [a, b]).get_source("llvm")


@pytest.mark.llvm
def test_a_prefetch_of_an_attached_stage_counts_from_its_region():
    a, t, b, s = two_stages()
    i, j = b.op.axis
    s[t].compute_at(s[b], i)
    s[b].prefetch(t, j, 1)
    assert "prefetch T[0, j + 1]" in lowered(s, a, b)
    assert agrees(s, a, b)


@pytest.mark.llvm
def test_a_double_buffer_is_filled_one_iteration_ahead():
    a, t, b, s = two_stages()
    s[t].compute_at(s[b], b.op.axis[0])
    s[t].double_buffer()
    assert "pragma double_buffer 1 {\n      alloc T: f32[1, 8]" in lowered(s, a, b)
    assert agrees(s, a, b)
    assert "x 1" not in rc.build(s, [a, b]).get_source("loop_ir")


def test_a_double_buffer_at_the_root_is_refused_when_it_is_built():
    a, t, b, s = two_stages()
    s[t].double_buffer()
    with pytest.raises(UserError, match="T cannot be double-buffered") as caught:
        rc.build(s, [a, b])
    assert "it is not allocated in a serial loop" in caught.value.why


@pytest.mark.llvm
@pytest.mark.parametrize(
    ("factor", "offset", "row"), [(8, 1, 9), (8, 0, 8), (16, 4, 20), (3, 2, 8)]
)
def test_rows_are_made_longer_until_the_stride_is_right(factor, offset, row):
    a, t, b, s = two_stages()
    s[t].compute_at(s[b], s[b].split(b.op.axis[0], factor=4)[0])
    s[t].storage_align(t.op.axis[0], factor, offset)
    assert f"alloc T: f32[4, {row}]" in lowered(s, a, b)
    assert agrees(s, a, b)


def test_strides_that_no_padding_gives_are_refused():
    a = rc.placeholder((4, 4, 4), name="A")
    t = rc.compute((4, 4, 4), lambda i, j, k: a[i, j, k], name="T")
    b = rc.compute((4, 4, 4), lambda i, j, k: t[i, j, k], name="B")
    s = rc.create_schedule(b)
    s[t].storage_align(t.op.axis[0], 8, 1)
    with pytest.raises(UserError, match="cannot align dimension 0 of stage T") as caught:
        rc.lower(s, [a, b])
    assert "no multiple of 4 leaves 1" in caught.value.why


def test_strides_of_unknown_dimensions_are_refused():
    n = rc.var("n")
    a = rc.placeholder((4, n), name="A")
    t = rc.compute((4, n), lambda i, j: a[i, j], name="T")
    b = rc.compute((4, n), lambda i, j: t[i, j], name="B")
    s = rc.create_schedule(b)
    s[t].storage_align(t.op.axis[0], 8, 1)
    with pytest.raises(UserError, match="no constant extents"):
        rc.lower(s, [a, b])


CASES = {
    "key": (lambda s, a, t, b: s[b].pragma(b.op.axis[0], "magic", 1), "'magic' is not a known"),
    "value": (
        lambda s, a, t, b: s[b].pragma(b.op.axis[0], "unroll_explicit", 2),
        "unroll_explicit is 2",
    ),
    "near": (
        lambda s, a, t, b: s[b].pragma(b.op.axis[0], "parallel_stride_patern"),
        "'parallel_stride_patern' is not a known pragma",
    ),
    "one value": (
        lambda s, a, t, b: s[b].pragma(b.op.axis[0], "parallel_stride_pattern", 0),
        "parallel_stride_pattern is 0",
    ),
    "launch": (
        lambda s, a, t, b: s[b].pragma(b.op.axis[0], "parallel_launch_point"),
        "threads are launched by each parallel loop",
    ),
    "skip": (
        lambda s, a, t, b: s[b].pragma(b.op.axis[0], "debug_skip_region"),
        "it would leave memory unwritten",
    ),
    "C": (
        lambda s, a, t, b: s[b].pragma(b.op.axis[0], "import_c", 3),
        "import_c is 3, which does not define a function",
    ),
    "import": (
        lambda s, a, t, b: s[b].pragma(b.op.axis[0], "import_llvm", "micro.ll"),
        "import_llvm is 'micro.ll', which does not define a function",
    ),
    "axis": (lambda s, a, t, b: s[b].pragma(t.op.axis[0], "unroll_explicit", 0), "not an axis of"),
    "tensor": (lambda s, a, t, b: s[t].prefetch(b, t.op.axis[0], 1), "does not read B"),
    "offset": (lambda s, a, t, b: s[b].prefetch(a, b.op.axis[0], -1), "the offset is -1"),
    "output": (lambda s, a, t, b: s[b].double_buffer(), "its memory is the caller's"),
    "given": (lambda s, a, t, b: s[a].double_buffer(), "a placeholder"),
    "stride of an output": (
        lambda s, a, t, b: s[b].storage_align(b.op.axis[0], 8, 1),
        "the stage is an output",
    ),
    "innermost": (
        lambda s, a, t, b: s[t].storage_align(t.op.axis[1], 8, 1),
        "it is the innermost",
    ),
    "factor": (lambda s, a, t, b: s[t].storage_align(t.op.axis[0], 0, 1), "the factor is 0"),
    "stranger": (lambda s, a, t, b: s[t].storage_align(b.op.axis[0], 8, 1), "not an axis of the"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_refused(case):
    a, t, b, s = two_stages()
    act, why = CASES[case]
    with pytest.raises(UserError) as caught:
        act(s, a, t, b)
    assert why in caught.value.why
    assert caught.value.remedy
    assert quoted_call(caught.value).startswith("s[")
    assert s.steps == []


def test_what_the_loop_itself_computes_is_not_there_to_be_asked_for():
    a, t, b, s = two_stages()
    i, j = b.op.axis
    s[t].compute_at(s[b], j)
    s[b].prefetch(t, i, 1)
    assert "prefetch" not in lowered(s, a, b)
    s[t].compute_inline()
    assert "prefetch" not in lowered(s, a, b)


def test_a_prefetch_of_a_copy_is_replayed():
    a, _, b, s = two_stages()
    copy = s.cache_read(a, "global", [b])
    s[b].prefetch(copy, b.op.axis[0], 1)
    assert "prefetch A.global[i + 1, 0]" in lowered(s, a, b)
    with pytest.raises(UserError, match="cannot prefetch 3: it is not a tensor"):
        s[b].prefetch(3, b.op.axis[0], 1)


def test_tensors_computed_together_are_not_double_buffered():
    a = rc.placeholder((4, 8), name="A")
    p, q = rc.compute((4, 8), lambda i, j: (a[i, j], a[i, j] * 2.0), name="P")
    b = rc.compute((4, 8), lambda i, j: p[i, j] + q[i, j], name="B")
    s = rc.create_schedule(b)
    with pytest.raises(Unsupported, match="cannot double-buffer stage P") as caught:
        s[p].double_buffer()
    assert "together" in caught.value.why


def test_what_to_write_in_place_of_a_pragma():
    _, _, b, s = two_stages()
    remedies = {
        ("parallel_stride_patern", 1): "did you mean parallel_stride_pattern? use one of",
        ("parallel_stride_pattern", 0): "use 1, or leave the pragma out",
        ("parallel_launch_point", 1): "mark the inner loops parallel",
        ("debug_skip_region", 1): "with a placeholder in place of this tensor",
    }
    for (key, value), remedy in remedies.items():
        with pytest.raises(UserError) as caught:
            s[b].pragma(b.op.axis[0], key, value)
        assert remedy in caught.value.remedy
