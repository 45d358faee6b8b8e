"""Sizes of shape variables follow from the shapes of arrays, in the oracle's own words."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr, Var
from refcomp.ir.parser import parse_func
from refcomp.oracle.floats.error_bounds import bound_errors
from refcomp.oracle.interpreter.failure import InterpretError
from refcomp.oracle.interpreter.interpret import evaluate_expr, interpret
from refcomp.oracle.interpreter.symbols import solve_symbols, unknown_symbol
from refcomp.oracle.tensors.evaluate import EvaluateError, evaluate

N, M, K = (rc.var(name) for name in "nmk")


def solved(*pairs: tuple[Expr, int], known: dict[Var, int] | None = None) -> dict[str, int]:
    shapes = [(rc.placeholder((dim,), name="A"), (size,)) for dim, size in pairs]
    return {var.name: size for var, size in solve_symbols(shapes, known or {}).items()}


@pytest.mark.parametrize(
    ("dim", "extent", "size"),
    [
        (N, 7, 7),
        (N - 2, 7, 9),
        (2 * N, 8, 4),
        ((N + 1) * 3, 12, 3),
        (10 - N, 7, 3),
        (3 * N - N, 8, 4),
        (2 * N, 9, 4),
        (2 - N, 5, 0),
    ],
)
def test_one_linear_extent_determines_a_symbol(dim: Expr, extent: int, size: int) -> None:
    assert solved((dim, extent)) == {"n": size}


@pytest.mark.parametrize("dim", [N // 2, rc.maximum(N, 2), N + M, N * N])
def test_other_extents_determine_nothing(dim: Expr) -> None:
    assert solved((dim, 4)) == {}


def test_plain_extents_come_first_and_found_sizes_help() -> None:
    assert solved((N + 1, 8), (N, 5)) == {"n": 5}
    assert solved((N * M, 12), (N - K, 1), (K, 3)) == {"n": 4, "m": 3, "k": 3}
    assert solved((N, 5), known={N: 4}) == {"n": 4}


def test_the_first_unknown_symbol_of_a_shape() -> None:
    tensor = rc.placeholder((N, M - 1), name="A")
    assert unknown_symbol(tensor, {}) is N
    assert unknown_symbol(tensor, {N: 1}) is M
    assert unknown_symbol(tensor, {N: 1, M: 1}) is None


_LEAVES = st.sampled_from([N, M, K]) | st.integers(-3, 3)
_DIMS = st.recursive(
    _LEAVES,
    lambda dims: st.tuples(st.sampled_from("+-*/"), dims, dims).map(
        lambda t: {
            "+": lambda a, b: a + b,
            "-": lambda a, b: a - b,
            "*": lambda a, b: a * b,
            "/": lambda a, b: a // b if not isinstance(b, int) or b else a,
        }[t[0]](t[1], t[2])
    ),
    max_leaves=4,
)


@pytest.mark.search
@given(dims=st.lists(_DIMS, max_size=4), truth=st.tuples(*[st.integers(0, 9)] * 3))
def test_what_is_solved_is_the_truth(dims: list, truth: tuple[int, int, int]) -> None:
    dims = [dim for dim in dims if isinstance(dim, Expr)]
    sizes = dict(zip((N, M, K), truth, strict=True))
    extents = [int(evaluate_expr(dim, sizes)) for dim in dims]
    assume(all(extent >= 0 for extent in extents))
    found = solved(*zip(dims, extents, strict=True))
    names = {var.name: size for var, size in sizes.items()}
    assert found == {name: names[name] for name in found}


def test_evaluation_and_bounds_solve_compound_extents():
    a = rc.placeholder((N - 2,), name="A")
    b = rc.compute((2 * N,), lambda i: rc.if_then_else(i < N - 2, a[i], 0.0), name="B")
    given_a = np.float32([1, 2, 3])
    wanted = np.float32([1, 2, 3, 0, 0, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(evaluate([b], {a: given_a})[0], wanted)
    np.testing.assert_array_equal(bound_errors([b], {a: given_a})[0].nearest, wanted)


@pytest.mark.parametrize("run", [evaluate, bound_errors])
def test_a_symbol_that_nothing_determines_is_asked_for(run):
    a = rc.placeholder((N // 2,), name="A")
    b = rc.compute((N // 2,), lambda i: a[i] + i, name="B")
    with pytest.raises(UserError) as caught:
        run([b], {a: np.float32([1, 2])})
    assert str(caught.value) == (
        "the shape of A needs the size of n, which is not known\n"
        "  where: A: f32[n // 2]\n"
        "  why: no array that is given determines n\n"
        "  what to do: give it among the scalars: {n: 10}"
    )
    (found,) = run([b], {a: np.float32([1, 2])}, {N: 5})
    assert (found if run is evaluate else found.nearest).tolist() == [1, 3]


@pytest.mark.parametrize("run", [evaluate, bound_errors])
def test_a_compound_extent_that_no_size_fits_is_refused(run):
    a, b = rc.placeholder((N,), name="A"), rc.placeholder((2 * N, 3), name="B")
    c = rc.compute((N,), lambda i: a[i] + b[i, 0], name="C")
    with pytest.raises(UserError) as caught:
        run([c], {a: np.zeros(2, np.float32), b: np.zeros((5, 3), np.float32)})
    assert str(caught.value) == (
        "B has shape (4, 3), (5, 3) given\n"
        "  where: B: f32[2 * n, 3]\n"
        "  why: n is 2\n"
        "  what to do: give arrays whose shapes agree"
    )


@pytest.mark.parametrize("run", [evaluate, bound_errors])
def test_a_shape_of_an_output_alone_is_asked_for_too(run):
    b = rc.compute((N,), lambda i: i * 2, name="B")
    with pytest.raises(UserError, match="the shape of B needs the size of n, which is not known"):
        run([b], {})
    (found,) = run([b], {}, {N: 3})
    assert (found if run is evaluate else found.nearest).tolist() == [0, 2, 4]


@pytest.mark.parametrize("run", [evaluate, bound_errors])
def test_the_range_of_an_axis_without_a_size_is_named(run):
    k = rc.reduce_axis((0, N), name="k")
    b = rc.compute((4,), lambda i: rc.sum(i + k, axis=k), name="B")
    with pytest.raises(EvaluateError, match=r"variable n has no value in the range of axis k$"):
        run([b], {})


_COPY = "func f(A: f32[{dim}], B: f32[{dim}] out) {{ for i in range({dim}) {{ B[i] = A[i] }} }}"


def test_the_interpreter_solves_compound_extents():
    result = np.zeros(3, np.float32)
    interpret(parse_func(_COPY.format(dim="n - 2")), [np.float32([1, 2, 3]), result])
    assert result.tolist() == [1, 2, 3]


def test_the_interpreter_asks_for_what_nothing_determines():
    func, result = parse_func(_COPY.format(dim="n // 2")), np.zeros(2, np.float32)
    with pytest.raises(InterpretError) as caught:
        interpret(func, [np.float32([1, 2]), result])
    assert str(caught.value) == (
        "the shape of A needs the size of n, which is not known\n"
        "  why: no array that is given determines n\n"
        "  what to do: give it: symbols={n: 10}"
    )
    interpret(func, [np.float32([1, 2]), result], symbols={func.symbols[0]: 5})
    assert result.tolist() == [1, 2]
