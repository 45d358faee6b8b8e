"""Operators with classic arguments compute what numpy does."""

from itertools import pairwise

import numpy as np
import pytest

import refcomp as rc
from refcomp.classic import topi
from refcomp.classic.operators import arrays
from refcomp.foundation.errors import UserError
from refcomp.oracle import evaluate

a = np.random.default_rng(1).permutation(24).reshape(2, 3, 4).astype("float32")
b = np.random.default_rng(2).permutation(24).reshape(2, 3, 4).astype("float32")
A = rc.placeholder(a.shape, name="A")
B = rc.placeholder(b.shape, name="B")
v = np.array([2, 0], "int32")
V = rc.placeholder(v.shape, "int32", name="V")
m = np.random.default_rng(3).standard_normal((4, 5)).astype("float32")
M = rc.placeholder(m.shape, name="M")
OFF = topi.full((2, 2), "int32", 9)

CASES = {
    "transpose": (topi.transpose(A), a.T),
    "transpose, axes": (topi.transpose(A, (0, 2, 1)), a.transpose(0, 2, 1)),
    "reshape": (topi.reshape(A, (A.shape[0], -1)), a.reshape(2, -1)),
    "concatenate": (topi.concatenate([A, B], 1), np.concatenate([a, b], 1)),
    "concatenate, default": (topi.concatenate((A, B)), np.concatenate([a, b])),
    "stack": (topi.stack([A, B], 1), np.stack([a, b], 1)),
    "squeeze": (topi.squeeze(topi.expand_dims(A, 0)), a),
    "expand_dims": (topi.expand_dims(A, 1, 2), a[:, None, None]),
    "expand_dims, last": (topi.expand_dims(A, -1, num_newaxis=2), a[..., None, None]),
    "expand_like": (
        topi.expand_like(V, topi.full((2, 3), "int32", 0), [1]),
        np.repeat(v[:, None], 3, 1),
    ),
    "expand_like, a number": (
        topi.expand_like(topi.full((1,), "int32", 7), V, [0]),
        np.full(2, 7, "int32"),
    ),
    "flip": (topi.flip(A), a[::-1]),
    "strided_slice": (topi.strided_slice(A, [0, 1], [2, 3]), a[0:2, 1:3]),
    "strided_slice, steps": (
        topi.strided_slice(A, [0, 2, 0], [2, 0, 4], [1, -1, 2]),
        a[0:2, 2:0:-1, ::2],
    ),
    "take": (topi.take(A, V, 1), a.take(v, 1)),
    "take, flat": (topi.take(A, V), a.ravel().take(v)),
    "repeat": (topi.repeat(A, 2, 1), a.repeat(2, 1)),
    "tile": (topi.tile(A, (1, 2, 1)), np.tile(a, (1, 2, 1))),
    "broadcast_to": (topi.broadcast_to(V, (3, 2)), np.broadcast_to(v, (3, 2))),
    "layout_transform": (topi.layout_transform(M, "NC", "CN"), m.T),
    "shape": (topi.shape(A), np.array([2, 3, 4], "int32")),
    "full": (topi.full((2,), "float32", 1.5), np.full(2, 1.5, "float32")),
    "full_like": (topi.full_like(V, 3), np.full(2, 3, "int32")),
    "arange": (topi.arange(3), np.arange(3, dtype="float32")),
    "arange, three": (topi.arange(1, 7, 2, "int32"), np.arange(1, 7, 2, "int32")),
    "one_hot": (
        topi.one_hot(V, 5, -1, 3, -1, "int32"),
        np.where(np.eye(3, dtype=bool)[v], 5, -1).astype("int32"),
    ),
    "sequence_mask": (
        topi.sequence_mask(topi.full((3, 2), "int32", 1), V, 9, 0),
        np.array([[1, 9], [1, 9], [9, 9]], "int32"),
    ),
    "cast": (topi.cast(A, "int8"), a.astype("int8")),
    "reinterpret": (topi.reinterpret(A, "int32"), a.view("int32")),
    "floor_divide, a number": (topi.floor_divide(V, -2), v // -2),
    "mod, a number": (topi.mod(topi.subtract(V, 1), 2), np.fmod(v - 1, 2)),
    "floor_mod, a number": (topi.floor_mod(topi.subtract(V, 1), 2), (v - 1) % 2),
    "clip": (topi.clip(A, a_min=2, a_max=9), a.clip(2, 9)),
    "sum": (topi.sum(A, 1, True), a.sum(1, keepdims=True)),
    "sum of all": (topi.sum(A), a.sum()),
    "prod": (topi.prod(V, 0), np.int32(0)),
    "max": (topi.max(A, (0, 2)), a.max((0, 2))),
    "min": (topi.min(A, 1), a.min(1)),
    "all": (topi.all(topi.greater(A, 0), 1), (a > 0).all(1)),
    "any": (topi.any(topi.less(A, 4), 1), (a < 4).any(1)),
    "argmax": (topi.argmax(A, 1), a.argmax(1).astype("int32")),
    "argmin": (topi.argmin(A, 2, True), a.argmin(2)[..., None].astype("int32")),
    "argsort": (topi.argsort(A), a.argsort().astype("float32")),
    "argsort, descending": (
        topi.argsort(A, axis=1, is_ascend=0, dtype="int32"),
        (-a).argsort(1).astype("int32"),
    ),
    "topk": (topi.topk(A, 2, 2, "values"), np.sort(a)[..., :-3:-1]),
    "topk, positions": (
        topi.topk(A, 2, 2, "indices", True, "int32"),
        a.argsort()[..., :2].astype("int32"),
    ),
    "elemwise_sum": (topi.elemwise_sum([A, B, A]), a + b + a),
    "add a number": (topi.add(A, 1), a + 1),
    "subtract from a number": (topi.subtract(1.5, A), np.float32(1.5) - a),
    "multiply by an expression": (topi.multiply(A, rc.const(2.0)), a * 2),
    "maximum": (topi.maximum(A, 5), np.maximum(a, 5)),
    "equal": (topi.equal(V, 2), v == 2),
    "shift": (topi.left_shift(V, 1), v << 1),
    "broadcast": (topi.divide(A, topi.full((4,), "float32", 2.0)), a / 2),
    "gather_nd": (
        topi.gather_nd(A, topi.reshape(V, (2, 1))),
        a[v[0:1].clip(0, 1), v[1:2]],
    ),
    "tensordot, a count": (topi.tensordot(A, M, 1), np.tensordot(a, m, 1)),
    "tensordot, an axis of each": (topi.tensordot(M, A, (0, 2)), np.tensordot(m, a, (0, 2))),
    "tensordot, lists": (
        topi.tensordot(A, B, ((1, 2), (1, 2))),
        np.tensordot(a, b, ((1, 2), (1, 2))),
    ),
    "matmul": (topi.matmul(M, M, False, True), m @ m.T),
    "where": (topi.where(topi.less(A, B), A, B), np.minimum(a, b)),
    "where, numbers": (topi.where(topi.mod(A, 2.0), A, B), np.where(a % 2, a, b)),
    "where, rows": (topi.where(V, A, B), np.where(v[:, None, None], a, b)),
    "where, square": (
        topi.where(V, topi.full((2, 2), "int32", 3), OFF),
        np.array([[3, 3], [9, 9]], "int32"),
    ),
    "broadcast_mul": (topi.broadcast_mul(A, B), a * b),
}


@pytest.mark.parametrize("case", CASES)
def test_a_classic_call_computes_what_numpy_does(case: str) -> None:
    tensor, expected = CASES[case]
    (result,) = evaluate([tensor], {A: a, B: b, V: v, M: m})
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_every_operator_has_a_case() -> None:
    plain = {"left_shift", "less", "greater", "equal", "divide", "multiply", "subtract", "add"}
    others = {"maximum", "power", "minimum", "right_shift"}
    others |= {"not_equal", "greater_equal", "less_equal", "split"}
    called = {case.partition(",")[0].partition(" ")[0] for case in CASES}
    functions = {
        name
        for name, value in vars(arrays).items()
        if callable(value) and value.__module__ == arrays.__name__ and name[0] != "_"
    }
    assert functions - called - plain - others == set()


@pytest.mark.parametrize(
    ("sections", "bounds"), [(3, [0, 1, 2, 3]), ([1], [0, 1, 3]), ((1, 1), [0, 1, 1, 3])]
)
def test_split_takes_a_number_of_parts_or_positions(sections, bounds) -> None:
    parts = evaluate(topi.split(A, sections, axis=1), {A: a})
    expected = [a[:, i:j] for i, j in pairwise(bounds)]
    assert [part.tolist() for part in parts] == [part.tolist() for part in expected]


def test_split_refuses_parts_that_are_not_equal() -> None:
    with pytest.raises(UserError, match="an axis of 3 elements cannot be split into 2") as info:
        topi.split(A, 2, 1)
    assert info.value.remedy == ("give a divisor of the extent, or the list of positions to cut at")


def test_topk_returns_both_results() -> None:
    values, positions = evaluate(topi.topk(A, 1), {A: a})
    assert values.tolist() == a.max(-1, keepdims=True).tolist()
    assert positions.dtype == "int64"
    with pytest.raises(UserError, match="the type of the results of topk is 'value'"):
        topi.topk(A, 1, ret_type="value")


def test_take_refuses_the_mode_without_checks() -> None:
    with pytest.raises(UserError, match="fast"):
        topi.take(A, V, 1, "fast")


def test_reshape_refuses_a_symbolic_size() -> None:
    with pytest.raises(UserError, match="the new shape has the size n"):
        topi.reshape(A, (rc.var("n"), 4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: topi.split(A, 2, 5), "split: axis 5 is out of range for 3 dimensions"),
        (lambda: topi.sum(A, "x"), "sum: axis 'x' is not a number"),
        (lambda: topi.tensordot(A, B, (0,)), r"tensordot cannot pair the axes \(0,\)"),
        (lambda: topi.tensordot(A, B, "ab"), "tensordot cannot pair the axes 'ab'"),
        (lambda: topi.transpose(A, 1), "the order of the axes is 1"),
        (lambda: topi.strided_slice(A, 0, 1), "the list of begins is 0"),
        (lambda: topi.expand_dims(A, "x"), "the axis has the size 'x'"),
    ],
)
def test_arguments_of_another_form_are_refused(call, message: str) -> None:
    with pytest.raises(UserError, match=message):
        call()
