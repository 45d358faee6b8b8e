import numpy as np
import pytest

from refcomp.ir.parser import parse_program
from refcomp.ir.stmt import THREAD_TAGS
from refcomp.oracle.interpreter.interpret import InterpretError, interpret_program
from tests.oracle.programs import run_text

I64 = np.int64


def _zeros(*shape, dtype=I64):
    return np.zeros(shape, dtype)


# What kernels compute.


def test_every_thread_of_all_six_tags_runs_once():
    loops = "".join(f"for v{k} in range(2) {tag} {{ " for k, tag in enumerate(THREAD_TAGS))
    a = _zeros(2, 2, 2, 2, 2, 2)
    store = "A[v0, v1, v2, v3, v4, v5] = A[v0, v1, v2, v3, v4, v5] + v0 * 10 + v5 + 1"
    run_text(f"func f(A: i64[2, 2, 2, 2, 2, 2] out) {{ {loops} {store} {'} ' * 6} }}", a)
    assert a[1, 0, 1, 0, 1, 0] == 11
    assert a[0, 1, 0, 1, 0, 1] == 2
    assert a.all()


REVERSE = """
func reverse(A: i64[n], B: i64[n] out) {
  for g in range(n // 4) blockIdx.x {
    for t in range(4) threadIdx.x {
      alloc T: i64[4] shared {
        T[t] = A[g * 4 + t]
        barrier
        B[g * 4 + t] = T[3 - t]
      }
    }
  }
}
"""


def test_a_group_shares_memory_across_a_barrier():
    b = _zeros(12)
    run_text(REVERSE, np.arange(12), b)
    assert b.tolist() == [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8]


def test_without_the_barrier_it_reads_what_is_not_yet_there():
    with pytest.raises(InterpretError, match="element . of T is read, never written") as caught:
        run_text(REVERSE.replace("barrier", ""), np.arange(12), _zeros(12))
    assert caught.value.why == "another thread may write it, but no barrier says that it has"


def test_shared_memory_is_fresh_for_each_group():
    text = """
    func f(B: i64[3] out) {
      for g in range(3) blockIdx.x {
        alloc T: i64[1] shared {
          if (g == 1) { T[0] = 5 }
          B[g] = T[0]
        }
      }
    }
    """
    with pytest.raises(InterpretError, match="element 0 of T is read, never written") as caught:
        run_text(text, _zeros(3))
    assert caught.value.where == "B[g] = T[0] with g = 0"  # g = 1 came before


def test_local_memory_is_a_thread_s_own():
    text = """
    func f(B: i64[4] out) {
      for t in range(4) threadIdx.x {
        alloc R: i64[1] local {
          R[0] = t
          barrier
          R[0] = R[0] * 10
          B[t] = R[0]
        }
      }
    }
    """
    b = _zeros(4)
    run_text(text, b)
    assert b.tolist() == [0, 10, 20, 30]


def test_local_memory_of_the_host_is_not_there_for_a_thread():
    text = """
    func f(B: i64[4] out) {
      alloc R: i64[1] local {
        R[0] = 1
        for t in range(4) threadIdx.x { B[t] = R[0] }
      }
    }
    """
    with pytest.raises(InterpretError, match="buffer R is used where it is not bound"):
        run_text(text, _zeros(4))


TREE_SUM = """
func total(A: i32[n, 8], S: i32[n] out) {
  for g in range(n) blockIdx.y {
    for t in range(8) threadIdx.y {
      alloc T: i32[8] shared {
        T[t] = A[g, t]
        for k in range(3) {
          barrier
          if (t < 4 >> k) { T[t] = T[t] + T[t + (4 >> k)] }
        }
        if (t == 0) { S[g] = T[0] }
      }
    }
  }
}
"""


def test_barriers_in_a_loop():
    a, s = np.arange(24, dtype=np.int32).reshape(3, 8), _zeros(3, dtype=np.int32)
    run_text(TREE_SUM, a, s)
    assert s.tolist() == a.sum(axis=1).tolist()


ROUNDS = """
func f(B: i64[2, 3] out) {
  for t in range(2) threadIdx.x {
    for k in range(3) {
      alloc T: i64[2] shared {
        T[t] = t + k
        FIRST
        B[t, k] = T[USED]
        LAST
      }
    }
  }
}
"""


def _rounds(first, used, last):
    b = _zeros(2, 3)
    run_text(ROUNDS.replace("FIRST", first).replace("USED", used).replace("LAST", last), b)
    return b.tolist()


def test_memory_shared_in_a_loop_is_the_same_each_time():
    """So what one thread writes in the second round, another may still read in the first one."""
    assert _rounds("barrier", "1 - t", "barrier") == [[1, 2, 3], [0, 1, 2]]
    with pytest.raises(InterpretError, match="a race on element . of T"):
        _rounds("barrier", "1 - t", "")


def test_a_thread_may_enter_the_next_round_before_the_others_leave():
    assert _rounds("", "t", "") == [[0, 1, 2], [1, 2, 3]]


def test_what_was_written_in_an_earlier_round_is_gone():
    text = ROUNDS.replace("T[t] = t + k", "if (k == 0) { T[t] = 1 }").replace("LAST", "")
    with pytest.raises(InterpretError, match="element . of T is read, never written") as caught:
        run_text(text.replace("FIRST", "").replace("USED", "t"), _zeros(2, 3))
    assert caught.value.where.endswith("k = 1")


def test_kernels_one_after_another_see_each_other_s_results():
    text = """
    func f(B: i64[n] out) {
      alloc W: i64[n] {
        for s in range(2) {
          for g in range(n) blockIdx.x { W[g] = g + s }
          for t in range(n) threadIdx.x { B[t] = B[t] + W[n - 1 - t] }
        }
      }
    }
    """
    b = _zeros(4)
    run_text(text, b)
    assert b.tolist() == [7, 5, 3, 1]


def test_a_workspace_that_no_kernel_wrote():
    text = """
    func f(B: i64[n] out) {
      alloc W: i64[n] {
        for g in range(n - 1) blockIdx.x { W[g] = g }
        for t in range(n) threadIdx.x { B[t] = W[t] }
      }
    }
    """
    with pytest.raises(InterpretError, match="element 3 of W is read, never written") as caught:
        run_text(text, _zeros(4))
    assert caught.value.where == "B[t] = W[t] with n = 4, t = 3"


def test_an_empty_grid_or_block_runs_nothing():
    for groups, threads in ((0, 2), (2, 0), (-1, 2), (2, -1)):
        text = f"""
        func f(A: i64[n] out) {{
          for g in range({groups}) blockIdx.x {{
            for t in range({threads}) threadIdx.x {{ A[g + t] = 1 }}
          }}
        }}
        """
        a = _zeros(4)
        run_text(text, a)
        assert not a.any()


# Atomic updates.


@pytest.mark.parametrize(
    ("operator", "dtype", "start", "values", "result"),
    [
        ("add", "f32", 2.0**24, [1.0, 1.0, 1.0], 2.0**24),
        ("add", "u8", 250, [3, 3, 3], 3),
        ("add", "i32", 2**31 - 1, [1, 0, 0], -(2**31)),
        ("add", "f64", 0.5, [1, 2, 3], 6.5),
        ("min", "i64", 5, [7, -3, 4], -3),
        ("min", "f32", 5, [7, -3, np.nan], np.nan),
        ("max", "f16", 5, [7, -3, 4], 7),
        ("max", "u32", 5, [7, 2**31, 4], 2**31),
        ("and", "i32", -1, [6, 3, -1], 2),
        ("or", "u16", 1, [4, 8, 0], 13),
        ("xor", "i8", 1, [3, -128, 0], -126),
    ],
)
def test_atomic_updates_combine_what_all_threads_give(operator, dtype, start, values, result):
    text = f"""
    func f(A: {dtype}[1] out, V: {dtype}[3]) {{
      for g in range(3) blockIdx.x {{ atomic {operator} A[0] with V[g] }}
    }}
    """
    numpy_dtype = {"f": "float", "u": "uint", "i": "int"}[dtype[0]] + dtype[1:]
    a = np.array([start], numpy_dtype)
    run_text(text, a, np.array(values, numpy_dtype))
    np.testing.assert_array_equal(a, np.array([result], numpy_dtype))


def test_atomic_updates_count_dimensions_or_elements():
    for target in ("A[1, 2]", "A[5]"):
        a = _zeros(2, 3)
        run_text(f"func f(A: i64[2, 3] out) {{ atomic add {target} with 7 }}", a)
        assert a.tolist() == [[0, 0, 0], [0, 0, 7]]


def test_an_atomic_update_of_what_nothing_wrote():
    text = """
    func f() {
      for t in range(2) threadIdx.x {
        alloc T: i64[2] shared { atomic add T[1] with 1 }
      }
    }
    """
    with pytest.raises(InterpretError, match="element 1 of T is read, never written"):
        run_text(text)


def test_an_atomic_update_out_of_range():
    with pytest.raises(InterpretError, match="element 4 of A is out of range"):
        run_text("func f(A: i64[2, 2] out) { atomic add A[4] with 1 }", _zeros(2, 2))


# What is refused.


def _diverging(body):
    return f"func f() {{ for g in range(2) blockIdx.x {{ for t in range(3) threadIdx.x {body} }} }}"


def test_a_barrier_that_a_thread_passes_by():
    with pytest.raises(InterpretError) as caught:
        run_text(_diverging("{ for k in range(t) { barrier } }"))
    assert str(caught.value).splitlines() == [
        "not all threads of a group reach a barrier: "
        "thread (blockIdx.x = 1, threadIdx.x = 1) is at it, "
        "thread (blockIdx.x = 1, threadIdx.x = 0) has ended",
        "  where: barrier with g = 1, t = 1, k = 0",
    ]


def test_threads_at_two_barriers():
    with pytest.raises(InterpretError) as caught:
        run_text(_diverging("{ if (t == 0) { barrier } else { let x: i64 = g * 2 { barrier } } }"))
    assert caught.value.what == (
        "not all threads of a group reach a barrier: "
        "thread (blockIdx.x = 1, threadIdx.x = 1) is at it, "
        "thread (blockIdx.x = 1, threadIdx.x = 0) is at barrier with g = 1, t = 0"
    )
    assert caught.value.where == "barrier with g = 1, t = 1, x = 2"


def test_a_condition_that_only_groups_differ_in_is_no_divergence():
    run_text(_diverging("{ if (g == 1) { barrier } }"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("barrier", "a barrier lies outside a kernel"),
        ("alloc T: i64[2] shared { T[0] = 1 }", "T is shared, but allocated outside a kernel"),
        (
            "for g in range(2) blockIdx.x { alloc T: i64[2] { T[0] = 1 } }",
            "T is global, but allocated within a kernel",
        ),
        (
            "for g in range(1, extent=2) blockIdx.x { }",
            "the loop bound to blockIdx.x does not begin at 0",
        ),
        (
            "for g in range(2) blockIdx.x { for h in range(2) blockIdx.x { } }",
            "two loops of a kernel are bound to blockIdx.x",
        ),
        (
            "for g in range(2) blockIdx.x { if (g == 0) { for t in range(8) threadIdx.x { } } }",
            "a loop bound to threadIdx.x lies deeper in a kernel, not at its top",
        ),
        (
            "for g in range(2) blockIdx.x { for t in range(g) threadIdx.x { } }",
            "variable g is used where it is not bound",
        ),
        (
            "for t in range(2) threadIdx.x { alloc T: i64[t + 1] shared { T[0] = 1 } }",
            r"shared T has shape \(2,\) once and \(1,\) then",
        ),
    ],
)
def test_what_is_no_kernel(body, message):
    with pytest.raises(InterpretError, match=message) as caught:
        run_text(f"func f() {{ {body} }}")
    assert caught.value.where


# Programs.


PROGRAM = """
func host(A: i64[n], B: i64[n] out) {
  alloc W: i64[n] {
    for s in range(2) {
      let m: i64 = n // 4 {
        launch twice (A, W, n, m, s) grid (m, 1, 1) block (4, 1, 1) shared_bytes (32)
      }
      launch copy (W, B, n, s) grid (1, 1, 1) block (1, n * s, 1)
    }
  }
}
func twice(A: i64[n], W: i64[n] out, n: i64, m: i64, s: i64) {
  for g in range(m) blockIdx.x {
    for t in range(4) threadIdx.x {
      alloc T: i64[n // m] shared {
        T[t] = A[g * 4 + t] * 2 + s
        barrier
        W[g * 4 + t] = T[3 - t]
      }
    }
  }
}
func copy(W: i64[n], B: i64[n] out, n: i64, s: i64) {
  for t in range(n * i64(s)) threadIdx.y { B[t] = W[t] }
}
"""


def _run_program(text, a, b):
    interpret_program(parse_program(text), [a, b])


def test_a_program_launches_its_kernels():
    b = _zeros(8)
    _run_program(PROGRAM, np.arange(8), b)
    assert b.tolist() == [7, 5, 3, 1, 15, 13, 11, 9]


def test_an_empty_grid_is_skipped():
    _run_program(PROGRAM.replace("n // 4", "n"), np.arange(0), _zeros(0))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("launch twice", "launch thrice", "no kernel is called thrice"),
        (
            "grid (m, 1, 1)",
            "grid (1, m, 1)",
            r"twice is launched with grid and block \[1, 2, 1, 4, 1, 1\], "
            r"it needs \[2, 1, 1, 4, 1, 1\]",
        ),
        (
            "block (1, n * s, 1)",
            "block (1, n, 1)",
            r"copy is launched with grid and block \[1, 1, 1, 1, 8, 1\], "
            r"it needs \[1, 1, 1, 1, 0, 1\]",
        ),
        (
            "shared_bytes (32)",
            "shared_bytes (16)",
            r"twice is launched with shared bytes \[16\], it needs \[32\]",
        ),
        ("shared_bytes (32)", "", r"twice is launched with shared bytes \[\], it needs \[32\]"),
        ("(W, B, n, s)", "(W, B, n)", "copy takes 4 arguments, 3 given"),
        ("(W, B, n, s)", "(W, n, B, s)", "n is given for B of copy"),
        ("out, n: i64, s: i64)", "out, n: i64, s: i32)", "s of copy has dtype i32, i64 given"),
        ("(W, B, n, s)", "(W, B, s, n)", r"W has shape \(1,\), \(8,\) given"),
        (
            "for t in range(n * i64(s)) threadIdx.y { B[t] = W[t] }",
            "if (s == 1) { for t in range(n) threadIdx.y { B[t] = W[t] } }",
            "kernel copy does not begin with a bound loop",
        ),
    ],
)
def test_launches_that_do_not_fit(old, new, message):
    assert PROGRAM.count(old) == 1
    with pytest.raises(InterpretError, match=message) as caught:
        _run_program(PROGRAM.replace(old, new), np.arange(8), _zeros(8))
    assert caught.value.where.startswith("launch ")


def test_a_kernel_knows_its_parameters_only():
    text = PROGRAM.replace("(W, B, n, s) grid", "(W, B, s) grid").replace(
        "n: i64, s: i64) {\n  for t in range(n * i64(s))", "s: i64) {\n  for t in range(n * i64(s))"
    )
    with pytest.raises(InterpretError, match="variable n is used where it is not bound"):
        _run_program(text, np.arange(8), _zeros(8))


def test_a_failure_in_a_launched_kernel_is_told():
    with pytest.raises(InterpretError, match="element . of T is read, never written") as caught:
        _run_program(PROGRAM.replace("barrier", ""), np.arange(8), _zeros(8))
    assert caught.value.where.startswith("W[g * 4 + t] = T[3 - t] with n = 8, m = 2, s = 0, g = ")
