import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.dtype import I32
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import IntImm, Let
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import walk, with_fields
from refcomp.ir.stmt import UNROLLED, Allocate, Block, For, LetStmt, Origin, Store
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes import unroll_loops as module
from refcomp.passes.flatten_storage import flatten_storage
from refcomp.passes.unroll_loops import MAX_COPIES, MAX_NODES, unroll_loops
from tests.passes.docstring_examples import assert_docstring_holds
from tests.passes.kept_meaning import assert_meaning_is_kept
from tests.strategies.funcs import runnable_funcs


def test_docstring():
    assert_docstring_holds(module, unroll_loops)


def _lines(text, level="flat"):
    func = unroll_loops(parse_func(text))
    verify(func, level)
    return [line.strip() for line in print_func(func).splitlines()[1:-1]]


def test_nested_level_and_a_minimum_that_is_no_constant():
    text = (
        "func f(A: f32[9] out, m: i64) { for i in range(m, extent=2) unrolled { A[i] = 0.0f32 } }"
    )
    assert _lines(text, "nested") == ["A[m] = 0.0f32", "A[m + 1] = 0.0f32"]


def test_loops_inside_each_other():
    text = """
    func f(A: i64[6] out) {
      for i in range(2) unrolled { for j in range(1, extent=3) unrolled { A@[i * 3 + j - 1] = i } }
    }
    """
    lines = _lines(text)
    assert len(lines) == 6
    assert lines[0] == "A@[0] = 0"
    assert lines[-1] == "A@[5] = 1"


def test_arithmetic_on_integers_alone_is_done():
    text = """
    func f(A: f32[9] out, n: i64) {
      for i in range(4, extent=1) unrolled {
        if (i < 3) { A@[i // 0] = 1.0f32 }
        A@[i * n + i * 2] = 1.0f32 + 2.0f32 * f32(i + 1)
      }
    }
    """
    assert _lines(text) == [
        "if (false) {",
        "A@[0] = 1.0f32",
        "}",
        "A@[4 * n + 8] = 1.0f32 + 2.0f32 * f32(5)",
    ]


def test_arithmetic_of_narrow_integers_wraps():
    text = """
    func f(A: i32[4] out) {
      for i: i32 in range(i32(1000000), extent=i32(1)) { A@[0] = i * i }
    }
    """
    func = parse_func(text)
    constants = {"minimum": IntImm(10**6, I32), "extent": IntImm(1, I32)}
    func = func.with_body(with_fields(func.body, kind=UNROLLED, **constants))
    (store,) = [node for node in walk(unroll_loops(func).body) if isinstance(node, Store)]
    assert isinstance(store.value, IntImm)
    assert store.value.value == 10**12 % 2**32 - 2**32


@pytest.mark.parametrize("kind", ["serial", "parallel", "vectorized"])
def test_other_kinds_are_left_alone(kind):
    func = parse_func("func f(A: i64[4] out) { for i in range(4) { A@[i] = i } }")
    func = func.with_body(with_fields(func.body, kind=kind))
    assert unroll_loops(func) is func


def test_an_empty_loop_leaves_nothing():
    assert _lines("func f(A: i64[4] out) { for i in range(0) unrolled { A@[i] = i } }") == []


def test_every_copy_binds_names_of_its_own():
    text = """
    func f(A: i64[n] out) {
      for i in range(3) unrolled {
        alloc T: i64[i + 2] {
          for j in range(i + 1) {
            let t: i64 = i * j { T@[j] = (let u: i64 = t + 1 in u * u) }
          }
          A@[i] = T@[i]
        }
      }
    }
    """
    before = parse_func(text)
    after = unroll_loops(before)
    verify(after, "flat")
    nodes = list(walk(after.body))
    for binders, of in ((For, "var"), (Let, "var"), (LetStmt, "var"), (Allocate, "buffer")):
        bound = [id(getattr(node, of)) for node in nodes if isinstance(node, binders)]
        assert len(set(bound)) == len(bound) == 3
    data = np.zeros(3, np.int64)
    interpret(after, [data])
    assert data.tolist() == [1, 4, 25]
    assert "alloc T: i64[2] {" in print_func(after)


def test_origins_are_kept():
    func = parse_func("func f(A: i64[4] out) { for i in range(2) unrolled { A@[i] = i } }")
    origin = Origin("A", "i")
    func = func.with_body(with_fields(func.body, body=with_fields(func.body.body, origin=origin)))
    stores = [node for node in walk(unroll_loops(func).body) if isinstance(node, Store)]
    assert [store.origin for store in stores] == [origin, origin]


def _kinds(func):
    return [node.kind for node in walk(func.body) if isinstance(node, For)]


def test_too_many_copies_stay_a_loop():
    text = "func f(A: i64[n] out) {{ for i in range({}) unrolled {{ A@[i] = i }} }}"
    assert _kinds(unroll_loops(parse_func(text.format(MAX_COPIES)))) == []
    assert _kinds(unroll_loops(parse_func(text.format(MAX_COPIES + 1)))) == ["serial"]


def test_copies_that_are_too_large_stay_a_loop():
    text = """
    func f(A: i64[n] out) {
      for i in range(200) unrolled { for j in range(100) unrolled { A@[i * 100 + j] = i + j } }
    }
    """
    after = unroll_loops(parse_func(text))
    assert _kinds(after) == ["serial"]
    assert sum(1 for _ in walk(after.body)) < MAX_NODES


def test_extents_that_are_refused():
    func = parse_func("func f(A: i64[n] out) { for i in range(2) unrolled { A@[i] = i } }")
    (n,) = func.symbols
    for extent, message in ((n, "loop i, n, is not a constant"), (n * 0 - 2, "is not a constant")):
        with pytest.raises(UserError, match=message):
            unroll_loops(func.with_body(with_fields(func.body, extent=extent)))
    with pytest.raises(UserError, match="loop i, -2, is negative"):
        unroll_loops(func.with_body(with_fields(func.body, extent=IntImm(-2, n.dtype))))


@pytest.mark.search
@given(st.data(), st.lists(st.integers(0, 3), min_size=1, max_size=3))
def test_the_meaning_is_kept(data, extents):
    """Each iteration appends to what came before, so that order and count both matter."""
    kinds = data.draw(st.lists(st.sampled_from(["", UNROLLED]), min_size=3, max_size=3))
    text = "H[0] = H[0] * 3 + {} + (let u: i64 = {} in u * u)".format(
        *[" + ".join(f"i{d} * {d + 2}" for d in range(len(extents)))] * 2
    )
    for d, extent in reversed(list(enumerate(extents))):
        text = f"for i{d} in range({d}, extent={extent}) {kinds[d]} {{ {text} T[0] = H[0] }}"
    func = parse_func(f"func f(H: i64[1] out) {{ alloc T: i64[1] {{ {text} }} }}")
    results = []
    for version in (func, unroll_loops(func), unroll_loops(flatten_storage(func))):
        hashed = np.ones(1, np.int64)
        interpret(version, [hashed])
        results.append(hashed[0])
    assert UNROLLED not in _kinds(unroll_loops(func))
    assert results == [results[0]] * 3


def test_a_variable_bound_at_two_places_is_bound_in_each_copy():
    text = "for k in range(2) unrolled { for i in range(3) { A@[i + k] = i } }"
    func = parse_func(f"func f(A: i64[9] out) {{ {text} }}")
    inner = func.body.body
    again = with_fields(inner, body=with_fields(inner.body, value=inner.var * 2))
    after = unroll_loops(func.with_body(with_fields(func.body, body=Block((inner, again)))))
    data = np.zeros(9, np.int64)
    interpret(after, [data])
    assert data.tolist() == [0, 0, 2, 4, 0, 0, 0, 0, 0]


@pytest.mark.search
@given(runnable_funcs("nested"))
def test_functions_of_all_kinds(drawn):
    assert_meaning_is_kept(unroll_loops, *drawn, "nested")


def test_what_threads_do_together_is_copied():
    text = """
    func f(A: i64[9] out) {
      for t in range(4) threadIdx.x {
        alloc S: i64[4] shared {
          for i in range(2) unrolled { S@[t] = i barrier atomic add A[i] with S@[3 - t] barrier }
        }
      }
    }
    """
    lines = _lines(text)
    assert lines.count("barrier") == 4
    assert "atomic add A[0] with S@[3 - t]" in lines and "atomic add A[1] with S@[3 - t]" in lines
