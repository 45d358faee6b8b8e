import pytest
from hypothesis import given

from refcomp.foundation.errors import UserError
from refcomp.ir.parser import parse_func
from refcomp.ir.rewrite import walk, with_fields
from refcomp.ir.stmt import Barrier, For, IfThenElse, Origin
from refcomp.passes import launch_parallel_loops as module
from refcomp.passes.insert_barriers import insert_barriers
from refcomp.passes.launch_parallel_loops import launch_parallel_loops
from tests.passes.docstring_examples import assert_docstring_holds
from tests.passes.kept_meaning import assert_meaning_is_kept
from tests.strategies.funcs import runnable_funcs


def _func(body):
    return parse_func(f"func f(N: i64[1], A: i64[n] out) {{ {body} }}")


def _loops(func):
    return [(node.kind, str(node.extent)) for node in walk(func.body) if isinstance(node, For)]


def test_docstring():
    assert_docstring_holds(module, launch_parallel_loops)


@pytest.mark.parametrize(
    ("extent", "groups", "threads", "guards"),
    [(1, 1, 1, 0), (7, 1, 7, 0), (64, 1, 64, 0), (65, 2, 64, 1), (128, 2, 64, 0), (0, 0, 1, 0)],
)
def test_a_group_has_64_threads_or_as_many_as_there_are_iterations(extent, groups, threads, guards):
    after = launch_parallel_loops(
        _func(f"for i in range({extent}) parallel {{ for j in range(n) parallel {{ A[j] = i }} }}")
    )
    first, second, inner = _loops(after)
    assert (first, second) == (("blockIdx.x", str(groups)), ("threadIdx.x", str(threads)))
    assert inner == ("parallel", "n")
    assert sum(isinstance(node, IfThenElse) for node in walk(after.body)) == guards


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(n) { A[i] = 1 }",
        "for b in range(2) blockIdx.x { for i in range(n) parallel { A[i] = b } }",
        "for i in range(4) parallel { for b in range(2) blockIdx.x { A[b] = i } }",
        "for i in range(N[0]) parallel { A[i] = 1 }",
        "for i in range(4) parallel { packed g(i) }",
    ],
)
def test_left_alone(body):
    func = _func(body)
    assert launch_parallel_loops(func) is func


def test_loops_of_the_host_stay_around_launches_and_origins_are_kept():
    func = _func("for k in range(3) { for i in range(1, extent=5) parallel { A[i] = k } }")
    origin = Origin("A", "i", "parallel")
    inner = with_fields(func.body.body, origin=origin)
    after = launch_parallel_loops(func.with_body(with_fields(func.body, body=inner)))
    assert [kind for kind, _ in _loops(after)] == ["serial", "blockIdx.x", "threadIdx.x"]
    assert after.body.body.origin is origin


def test_memory_of_an_iteration_is_local():
    text = "for i in range(4) parallel {{ alloc T: i64[2] {} {{ T[0] = i A[i] = T[0] }} }}"
    assert _loops(launch_parallel_loops(_func(text.format("local"))))[0][0] == "blockIdx.x"
    with pytest.raises(UserError, match="parallel loop i allocates T in global memory") as caught:
        launch_parallel_loops(_func(text.format("")))
    assert "outside of the loop" in caught.value.remedy


def _tried(func):
    try:
        return launch_parallel_loops(func)
    except UserError:
        return func


@pytest.mark.search
@given(runnable_funcs("nested"))
def test_functions_of_all_kinds(drawn):
    assert_meaning_is_kept(_tried, *drawn, "nested")


@pytest.mark.parametrize("n", [0, 1, 63, 64, 130])
def test_each_iteration_runs_once(n):
    func = _func("for i in range(1, extent=n - 1) parallel { A[i] = A[i] + i * N[0] }")
    assert_meaning_is_kept(launch_parallel_loops, func, {func.symbols[0]: n}, "nested")


def test_independent_threads_get_no_barriers():
    text = """
    for i in range(4) parallel {
      A[i] = 0
      for k in range(N[0]) { if (A[i] < 3) { A[i] = A[i] + k } }
    }
    """
    assert not any(isinstance(node, Barrier) for node in _with_barriers(text))
    other = text.replace("A[i] < 3", "A[3 - i] < 3")
    assert not any(isinstance(node, Barrier) for node in _with_barriers(other))


def _with_barriers(text):
    return walk(insert_barriers(launch_parallel_loops(_func(text))).body)
