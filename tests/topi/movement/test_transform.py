"""Operators that only move elements: te against their numpy meaning."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.arith import simplify
from refcomp.foundation.errors import UserError
from refcomp.te.extents import extents as extents_of
from refcomp.te.tensor import var
from refcomp.topi.movement import transform
from tests.strategies.operands import (
    assert_same,
    batches,
    extents,
    integers,
    run_te,
    seeds,
    tensors,
)

ranks = st.lists(extents, max_size=3)


@st.composite
def reshapes(draw):
    """A shape with a batch, and what `reshape` is asked for."""
    rest = draw(ranks)
    total = int(np.prod(rest))
    first = draw(st.sampled_from([d for d in range(1, total + 1) if total % d == 0]))
    target = draw(
        st.sampled_from([(0, first, -1), (0, -1), (-1, total), (0, total // first, first)])
    )
    return rest, target


@pytest.mark.search
@given(batches, reshapes(), seeds)
def test_reshape_is_its_meaning(n, shapes, seed):
    rest, target = shapes
    data = integers(seed, n, *rest)
    assert_same(
        run_te(transform.reshape, data, shape=target), transform.reshape_numpy(data, shape=target)
    )


@pytest.mark.search
@given(batches, ranks, st.data(), seeds)
def test_flatten_is_its_meaning(n, rest, data, seed):
    axis = data.draw(st.integers(-len(rest) - 1, len(rest) + 1))
    array = integers(seed, n, *rest)
    assert_same(
        run_te(transform.flatten, array, axis=axis), transform.flatten_numpy(array, axis=axis)
    )


@pytest.mark.search
@given(batches, ranks, st.data(), seeds)
def test_transpose_is_its_meaning(n, rest, data, seed):
    axes = tuple(data.draw(st.permutations(range(len(rest) + 1))))
    array = integers(seed, n, *rest)
    assert_same(
        run_te(transform.transpose, array, axes=axes), transform.transpose_numpy(array, axes=axes)
    )


@pytest.mark.search
@given(extents, ranks, st.lists(st.integers(0, 3), min_size=1, max_size=4), st.data(), seeds)
def test_concatenate_and_split_are_their_meanings(n, rest, sizes, data, seed):
    axis = data.draw(st.integers(-len(rest) - 1, len(rest)))
    place = axis % (len(rest) + 1)
    shapes = [[*[n, *rest][:place], size, *[n, *rest][place + 1 :]] for size in sizes]
    arrays = [integers(seed + k, *shape) for k, shape in enumerate(shapes)]
    whole = transform.concatenate_numpy(*arrays, axis=axis)

    assert_same(run_te(transform.concatenate, *arrays, is_symbolic=False, axis=axis), whole)
    parts = run_te(transform.split, whole, is_symbolic=False, axis=axis, sizes=sizes)
    meant = transform.split_numpy(whole, axis=axis, sizes=sizes)
    for part, meaning, array in zip(parts, meant, arrays, strict=True):
        assert_same(part, array)
        assert_same(meaning, array)


@pytest.mark.parametrize(
    ("shape", "target", "read"),
    [
        ((68, 4, 14), (272, 14), "i0 // 4, i0 % 4, i1"),  # all axes behind a divided one stay
        ((3, 196), (3, 1, 14, 14), "i0, i2 * 14 + i3"),
        ((1, 6), (2, 3, 1), "0, i0 * 3 + i1"),
        ((1, 1), (1,), "i0, 0"),
        ((4, 6), (8, 3), "(i0 * 3 + i1) // 6, (i0 * 3 + i1) % 6"),
        (("n", 4, 6), ("n", 24), "i0, i1 // 6, i1 % 6"),
        ((4, "n", 6), (2, 2, "n", 6), "i0 * 2 + i1, i2, i3"),
    ],
)
def test_reshape_divides_only_the_axes_that_change(shape, target, read) -> None:
    n = var("n")
    (data,) = tensors(tuple(n if e == "n" else e for e in shape))
    result = transform.reshape_to(data, [n if e == "n" else e for e in target], "reshape")
    (body,) = result.op.body
    assert str(simplify(body)) == f"TensorRead(p0, {read})"


@pytest.mark.parametrize("shape", [(0, 0, -1), (0, -1, 6), (-1, 4, 6), (0, -1)])
def test_reshape_infers_an_extent_of_a_tensor_without_elements(shape) -> None:
    data = np.zeros((0, 4, 6), np.float32)
    meaning = transform.reshape_numpy(data, shape=shape)
    assert meaning.shape == ((0, 24) if shape == (0, -1) else (0, 4, 6))
    assert_same(run_te(transform.reshape, data, shape=shape), meaning)


def test_symbolic_batch_is_kept_by_reshape() -> None:
    n = var("n")
    (data,) = tensors((n, 4, 6))
    assert extents_of(transform.reshape(data, shape=(0, -1)))[0] is n
    assert extents_of(transform.reshape(data, shape=(-1, 24)))[0] is n
    assert extents_of(transform.flatten(data))[1] == 24


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((-1, -1), "reshape cannot make the shape"),
        ((0, 5), "cannot make n [*] 5 elements of n [*] 4"),
        ((-1, 3), "cannot find an integer extent for -1"),
        ((0, 0, 0), "cannot keep an extent for each 0"),
    ],
)
def test_ill_formed_reshapes_are_refused(shape, message):
    with pytest.raises(UserError, match=message):
        transform.reshape(*tensors((var("n"), 4)), shape=shape)


def test_other_ill_formed_calls_are_refused() -> None:
    (data,) = tensors((2, 3))
    with pytest.raises(UserError, match=r"transpose cannot order 2 axes by \(0, 0\)"):
        transform.transpose(data, axes=(0, 0))
    with pytest.raises(UserError, match="axis 3 is out of range"):
        transform.flatten(data, axis=3)
    with pytest.raises(UserError, match="extent 1 of operand 1 is 4 instead of 3"):
        transform.concatenate(*tensors((2, 3), (2, 4)), axis=0)
    with pytest.raises(UserError, match="cannot join f32 of 1 dimensions .operand 1. to f32 of 2"):
        transform.concatenate(*tensors((2, 3), (2,)), axis=0)
    with pytest.raises(UserError, match="the extent of axis 1 is 3 instead of 4"):
        transform.split(data, axis=1, sizes=(2, 2))
    with pytest.raises(UserError, match="the joined extent must be a constant"):
        transform.concatenate(*tensors((var("n"),), (3,)), axis=0)
    with pytest.raises(UserError, match="concatenate is applied to a tuple, not to a tensor"):
        transform.concatenate(tuple(tensors((2,), (3,))), axis=0)
    with pytest.raises(UserError, match="concatenate is applied to no tensors"):
        transform.concatenate(axis=0)
