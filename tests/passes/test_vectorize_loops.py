from collections import Counter

import numpy as np
import pytest
from hypothesis import event, given, reject, settings
from hypothesis import strategies as st

from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.ir.buffer import Load
from refcomp.ir.expr import Expr, IntImm, Ramp
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import walk, with_fields
from refcomp.ir.stmt import VECTORIZED, For, Origin, Store
from refcomp.ir.verify import verify
from refcomp.oracle.interpreter.interpret import InterpretError
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes import vectorize_loops as module
from refcomp.passes.vectorize_loops import MAX_LANES, vectorize_loops
from tests.passes.docstring_examples import assert_docstring_holds
from tests.passes.kept_meaning import assert_meaning_is_kept
from tests.strategies.funcs import runnable_funcs
from tests.strategies.vectorized_loops import LENGTHS, vectorized_loops


def test_docstring():
    assert_docstring_holds(module, vectorize_loops)


def _vectorized(text, params="A: f32[n], B: f32[n] out"):
    func = parse_func(f"func f({params}) {{ {text} }}")
    verify(func, "flat")
    after = vectorize_loops(func)
    verify(after, "flat")
    return func, after


def _lines(text, params="A: f32[n], B: f32[n] out"):
    _, after = _vectorized(text, params)
    return [line.strip() for line in print_func(after).splitlines()[1:-1]]


def _is_serial(text, params="A: f32[n], B: f32[n] out"):
    func, after = _vectorized(text, params)
    nodes = list(walk(after.body))
    vector = any(isinstance(node, Expr) and node.dtype.lanes > 1 for node in nodes)
    assert not any(isinstance(node, For) and node.kind == VECTORIZED for node in nodes)
    assert vector or print_func(after) == print_func(func).replace(" vectorized", "")
    return not vector


# What vectors look like.


def test_contiguous_and_strided():
    assert _lines("for i in range(8) vectorized { B@[i] = A@[i * 3 + 1] }") == [
        "B@[ramp(0, 1, 8)] = A@[ramp(1, 3, 8)]"
    ]


def test_what_is_the_same_for_all_lanes_is_broadcast_late():
    params = "A: f32[n], B: f32[n] out, x: f32, k: i64"
    assert _lines("for i in range(4) vectorized { B@[i + k] = A@[k] * x + A@[i] }", params) == [
        "B@[ramp(k, 1, 4)] = broadcast(A@[k] * x, 4) + A@[ramp(0, 1, 4)]"
    ]


def test_casts_calls_and_selects():
    text = "for i in range(4) vectorized { B@[i] = select(i < 2, exp(A@[i]), f32(i) / 2.0f32) }"
    assert _lines(text) == [
        "B@[ramp(0, 1, 4)] = select(ramp(0, 1, 4) < broadcast(2, 4), exp(A@[ramp(0, 1, 4)]), "
        "f32x4(ramp(0, 1, 4)) / broadcast(2.0f32, 4))"
    ]


def test_gathers():
    params = "A: f32[n], B: f32[n] out, I: i64[n]"
    assert _lines("for i in range(4) vectorized { B@[i] = A@[I@[i] % n] }", params) == [
        "B@[ramp(0, 1, 4)] = A@[I@[ramp(0, 1, 4)] % broadcast(n, 4)]"
    ]


def test_an_index_that_moves_down_or_stands_still():
    assert _lines("for i in range(4) vectorized { B@[i] = A@[7 - i] + A@[i - i] }") == [
        "B@[ramp(0, 1, 4)] = A@[ramp(7, -1, 4)] + A@[broadcast(0, 4)]"
    ]


def test_lets_become_vectors_where_they_differ():
    text = """
    for i in range(4) vectorized {
      let t: i64 = i * 2 {
        let s: i64 = n * 2 { B@[i] = A@[t] + (let u: f32 = A@[s] in u * A@[i]) }
      }
    }
    """
    assert _lines(text)[:3] == [
        "let t: i64x4 = ramp(0, 2, 4) {",
        "let s: i64 = n * 2 {",
        "B@[ramp(0, 1, 4)] = A@[t] + (let u: f32 = A@[s] in broadcast(u, 4) * A@[ramp(0, 1, 4)])",
    ]


def test_an_inner_loop_is_kept_around_vectors():
    text = """
    for i in range(8) vectorized {
      B@[i] = 0.0f32
      for k in range(n) { B@[i] = B@[i] + A@[k * 8 + i] }
    }
    """
    assert _lines(text) == [
        "B@[ramp(0, 1, 8)] = broadcast(0.0f32, 8)",
        "for k in range(n) {",
        "B@[ramp(0, 1, 8)] = B@[ramp(0, 1, 8)] + A@[ramp(k * 8, 1, 8)]",
        "}",
    ]


def test_of_two_loops_the_inner_becomes_vectors():
    text = """
    for i in range(4) vectorized { for j in range(4) vectorized { B@[i * 4 + j] = A@[i * 4 + j] } }
    """
    assert _lines(text) == [
        "for i in range(4) {",
        "B@[ramp(i * 4, 1, 4)] = A@[ramp(i * 4, 1, 4)]",
        "}",
    ]


def test_memory_of_an_iteration_gets_a_copy_per_lane():
    text = """
    for i in range(4) vectorized {
      alloc T: f32[2] local {
        for k in range(2) { T@[k] = A@[i + k] }
        B@[i] = T@[0] * T@[i % 2]
      }
    }
    """
    assert _lines(text)[:5] == [
        "alloc T: f32[2, 4] local {",
        "for k in range(2) {",
        "T@[ramp(k * 4, 1, 4)] = A@[ramp(k, 1, 4)]",
        "}",
        "B@[ramp(0, 1, 4)] = T@[ramp(0, 1, 4)] * T@[ramp(0, 1, 4) % broadcast(2, 4)"
        " * broadcast(4, 4) + ramp(0, 1, 4)]",
    ]


# Masks.


def test_a_guard_becomes_masks_inside_a_test_of_the_first_lane():
    text = "for i in range(8) vectorized { if (i < n) { B@[i] = A@[i] * A@[0] } }"
    assert _lines(text) == [
        "let mask: boolx8 = ramp(0, 1, 8) < broadcast(n, 8) {",
        "if (0 < n) {",
        "B@[ramp(0, 1, 8)] = A@[ramp(0, 1, 8) if mask] * broadcast(A@[0], 8) if mask",
        "}",
        "}",
    ]


def test_a_guard_that_loses_its_first_lane_masks_every_read():
    text = "for i in range(8) vectorized { if (i >= n) { B@[i] = A@[i] * A@[0] } }"
    assert _lines(text) == [
        "let mask: boolx8 = ramp(0, 1, 8) >= broadcast(n, 8) {",
        "B@[ramp(0, 1, 8)] = A@[ramp(0, 1, 8) if mask] * A@[broadcast(0, 8) if mask] if mask",
        "}",
    ]


@pytest.mark.parametrize(
    ("guard", "head"),
    [
        ("i < n", "0 < n"),
        ("i + 3 <= n", "3 <= n"),
        ("n > i * 2", "n > 0"),
        ("n - i >= 4", "n >= 4"),
        ("n - i > i", "n > 0"),
        ("i < n and k < 2", "0 < n and k < 2"),
        ("i < n or k < 2", "0 < n or k < 2"),
        ("i > n", None),
        ("n < i", None),
        ("i - n >= 4", None),
        ("i == n", None),
        ("i < n and i > k", None),
        ("i * i < n", None),
        ("i * k < n", None),
    ],
)
def test_which_guards_lose_lanes_from_their_end_only(guard, head):
    text = f"for i in range(8) vectorized {{ if ({guard}) {{ B@[i] = A@[0] }} }}"
    lines = _lines(text, "A: f32[n], B: f32[n] out, k: i64")
    assert lines[1] == (
        f"if ({head}) {{" if head else "B@[ramp(0, 1, 8)] = A@[broadcast(0, 8) if mask] if mask"
    )


def test_else_guards_inside_guards_and_scalar_conditions():
    text = """
    for i in range(8) vectorized {
      if (k > 3) {
        if (i < n) { if (i < k) { B@[i] = A@[0] } } else { B@[i] = A@[1] }
      } else { C@[0] = 1.0f32 }
    }
    """
    assert _lines(text, "A: f32[n], B: f32[n] out, C: f32[n] out, k: i64") == [
        "if (k > 3) {",
        "let mask: boolx8 = ramp(0, 1, 8) < broadcast(n, 8) {",
        "if (0 < n) {",
        "let mask_1: boolx8 = ramp(0, 1, 8) < broadcast(k, 8) {",
        "if (0 < k) {",
        "B@[ramp(0, 1, 8)] = broadcast(A@[0], 8) if mask and mask_1",
        "}",
        "}",
        "}",
        "B@[ramp(0, 1, 8)] = A@[broadcast(1, 8) if not mask] if not mask",
        "}",
        "} else {",
        "C@[0] = 1.0f32",
        "}",
    ]


def test_a_lazy_choice_becomes_a_select_of_masked_loads():
    text = "for i in range(8) vectorized { B@[i] = if_then_else(i > 0, A@[i - 1], A@[0]) }"
    assert _lines(text) == [
        "B@[ramp(0, 1, 8)] = (let mask: boolx8 = ramp(0, 1, 8) > broadcast(0, 8) in "
        "select(mask, A@[ramp(-1, 1, 8) if mask], A@[broadcast(0, 8) if not mask]))"
    ]


def test_a_lazy_choice_by_a_scalar_stays_lazy():
    text = "for i in range(8) vectorized { B@[i] = if_then_else(n > 8, A@[i + 8], 0.0f32) }"
    assert _lines(text) == [
        "B@[ramp(0, 1, 8)] = if_then_else(n > 8, A@[ramp(8, 1, 8)], broadcast(0.0f32, 8))"
    ]


def test_a_choice_without_loads_needs_no_name():
    text = "for i in range(4) vectorized { B@[i] = if_then_else(i > 1, 1.0f32, 2.0f32) }"
    assert _lines(text) == [
        "B@[ramp(0, 1, 4)] = select(ramp(0, 1, 4) > broadcast(1, 4), "
        "broadcast(1.0f32, 4), broadcast(2.0f32, 4))"
    ]


def test_predicates_that_are_there_already_are_kept():
    text = "for i in range(4) vectorized { if (i > n) { B@[i] = A@[0 if n > 2] if n > 3 } }"
    masks = "mask and broadcast({}, 4)"
    assert _lines(text)[1] == (
        f"B@[ramp(0, 1, 4)] = A@[broadcast(0, 4) if {masks.format('n > 2')}] "
        f"if {masks.format('n > 3')}"
    )


def test_a_masked_lane_reads_nothing_out_of_range():
    """The interpreter refuses any read out of range; so these hold with the least arrays."""
    text = """
    for i in range(8) vectorized {
      if (i < n) { B@[i] = if_then_else(i > 0, A@[i - 1], if_then_else(n > 1, A@[1], 0.0f32)) }
    }
    """
    func, after = _vectorized(text)
    for n in range(4):
        a, b, expected = (np.arange(first, first + n, dtype=np.float32) for first in (1, 0, 0))
        interpret(func, [a, expected])
        interpret(after, [a, b])
        assert b.tolist() == expected.tolist()


def test_a_condition_is_evaluated_before_the_branch_changes_what_it_reads():
    text = "for i in range(4) vectorized { if (B@[i] < 1.0f32) { B@[i] = 5.0f32 A@[i] = B@[i] } }"
    func, after = _vectorized(text, "A: f32[4] out, B: f32[4] out")
    assert any(isinstance(node, Ramp) for node in walk(after.body))
    for version in (func, after):
        a, b = np.zeros(4, np.float32), np.array([0, 1, 0, 2], np.float32)
        interpret(version, [a, b])
        assert (a.tolist(), b.tolist()) == ([5, 0, 5, 0], [5, 1, 5, 2])


# What stays serial.


@pytest.mark.parametrize(
    "text",
    [
        "for i in range(0) vectorized { B@[i] = A@[i] }",
        "for i in range(1) vectorized { B@[i] = A@[i] }",
        f"for i in range({MAX_LANES + 1}) vectorized {{ B@[i] = A@[i] }}",
        "for i in range(4) vectorized { for k in range(i) { B@[i] = A@[k] } }",
        "for i in range(4) vectorized { alloc T: f32[i + 1] { T@[i] = A@[i] B@[i] = T@[i] } }",
        "for i in range(4) vectorized { B@[0] = B@[0] + A@[i] }",
        "for i in range(4) vectorized { B@[i + 1] = B@[i] }",
        "for i in range(4) vectorized { B@[i] = B@[i + 1] }",
        "for i in range(4) vectorized { B@[3 - i] = B@[i] }",
        "for i in range(4) vectorized { B@[i] = A@[i] B@[i + 1] = 0.0f32 }",
        "for i in range(4) vectorized { B@[i * 2] = 1.0f32 B@[i * 3] = 2.0f32 }",
        "for i in range(4) vectorized { for k in range(3) { B@[i + k] = A@[k] } }",
        "for i in range(4) vectorized { B@[i % 2] = B@[i % 2] + 1.0f32 }",
        "for i in range(4) vectorized { for k in range(3) { B@[i * i] = A@[k] } }",
        "for i in range(4) vectorized { B@[i * n] = B@[i * n] + 1.0f32 }",
        "for i in range(4) vectorized { if (B@[0] > 0.0f32) { B@[i] = A@[i] } }",
        "for i in range(4) vectorized { if (i < n) { for b in range(1) blockIdx.x "
        "{ B@[i] = A@[i] } } }",
        "for i in range(4) vectorized { let k: i64 = n - i { for b in range(1) blockIdx.x "
        "{ B@[i] = A@[k] } } }",
    ],
)
def test_stays_serial(text):
    assert _is_serial(text)


@pytest.mark.parametrize(
    "text",
    [
        f"for i in range({MAX_LANES}) vectorized {{ B@[i] = A@[i] }}",
        "for i in range(4) vectorized { B@[i] = B@[i] + 1.0f32 }",
        "for i in range(4) vectorized { B@[i * 2] = B@[i * 2 + 1] }",
        "for i in range(4) vectorized { B@[i] = B@[i + 4] }",
        "for i in range(4) vectorized { for k in range(n) { B@[k * 4 + i] = B@[k * 4 + i] } }",
        "for i in range(4) vectorized { B@[i // 2] = A@[i] }",
        "for i in range(4) vectorized { B@[1] = A@[i] }",
        "for i in range(4) vectorized { B@[1] = A@[2] + f32(i) }",
        "for i in range(4) vectorized { for b in range(1) blockIdx.x { B@[i] = A@[i] } }",
        "for b in range(1) blockIdx.x { for i in range(4) vectorized { if (i < n) "
        "{ B@[i] = A@[i] } } }",
    ],
)
def test_becomes_vectors(text):
    assert not _is_serial(text)


def test_other_loops_are_left_alone():
    func, after = _vectorized("for i in range(n) parallel { B@[i] = A@[i] }")
    assert after is func


def test_origins_are_kept():
    func = parse_func("func f(B: f32[n] out) { for i in range(4) vectorized { B@[i] = 1.0f32 } }")
    origin = Origin("B", "i")
    func = func.with_body(with_fields(func.body, body=with_fields(func.body.body, origin=origin)))
    (store,) = (node for node in walk(vectorize_loops(func).body) if isinstance(node, Store))
    assert store.origin is origin


def test_extents_that_are_refused():
    func = parse_func("func f(B: f32[n] out) { for i in range(4) vectorized { B@[i] = 1.0f32 } }")
    for extent, message in (
        (func.symbols[0], "is not a constant"),
        (IntImm(-1, I64), "is negative"),
    ):
        with pytest.raises(UserError, match=f"vectorized loop i, .*, {message}"):
            vectorize_loops(func.with_body(with_fields(func.body, extent=extent)))


def test_one_vector_load_per_load():
    text = """
    for i in range(8) vectorized {
      for k in range(n) { if (i + k < n) { B@[i] = B@[i] + A@[i + k] * A@[k] } }
    }
    """
    _, after = _vectorized(text)
    lanes = Counter(node.dtype.lanes for node in walk(after.body) if isinstance(node, Load))
    assert lanes == {8: 2, 1: 1}


# Whatever is drawn, vectors mean what the serial loop means.


def _outcome(func, m):
    arrays = [np.arange(length) * 5 + 1 for length in LENGTHS]
    args = [*arrays[:3], m, *arrays[3:]][: len(func.params)]
    interpret(func, args)
    return [array.tolist() for array in arrays]


@pytest.mark.search
@settings(max_examples=4 * settings.default.max_examples)  # most guards protect only some values
@given(vectorized_loops(), st.integers(0, 7))
def test_the_meaning_is_kept(text, m):
    func = parse_func(text)
    try:
        expected = _outcome(func, m)
    except InterpretError:  # a read that no guard protects
        reject()
    after = vectorize_loops(func)
    verify(after, "flat")
    event(f"vectors: {any(isinstance(node, Ramp) for node in walk(after.body))}")
    assert _outcome(after, m) == expected


@pytest.mark.search
@given(runnable_funcs("flat"))
def test_functions_of_all_kinds(drawn):
    assert_meaning_is_kept(vectorize_loops, *drawn, "flat")


@pytest.mark.parametrize(
    ("hint", "left"),
    [("A[i + 8]", "prefetch A[8]"), ("A[3]", "prefetch A[3]"), ("A[i * i]", None)],
)
def test_a_prefetch_is_done_for_the_first_lane(hint, left):
    func = parse_func(
        "func f(A: f32[16], B: f32[4] out) { for i in range(4) vectorized {"
        f" prefetch {hint} pragma key 1 {{ B@[i] = A@[i] }} }} }}"
    )
    text = print_func(vectorize_loops(func))
    assert "vectorized" not in text
    assert "B@[ramp(0, 1, 4)] = A@[ramp(0, 1, 4)]" in text
    assert ("prefetch" not in text) if left is None else (left in text)


def test_a_prefetch_of_memory_with_a_copy_for_each_lane_names_the_copy():
    func = parse_func(
        "func f(A: f32[16], B: f32[4] out) { for i in range(4) vectorized { alloc T: f32[2] {"
        " T@[0] = A@[i] prefetch T[1] B@[i] = T@[0] } } }"
    )
    vectors = vectorize_loops(func)
    verify(vectors, "flat")
    assert "alloc T: f32[2, 4]" in print_func(vectors)
    assert "prefetch T[4]" in print_func(vectors)


@pytest.mark.parametrize("stmt", ["barrier", "atomic add B[0] with A@[i]"])
def test_what_threads_do_together_stays_a_loop(stmt):
    loop = f"for i in range(4) vectorized {{ {stmt} B@[i] = 1f32 }}"
    assert _is_serial(f"for t in range(4) threadIdx.x {{ {loop} }}")
