"""Index equations: what is solved, what remains to go over, and that readers are found exactly."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.arith import simplify
from refcomp.foundation.dtype import I64
from refcomp.ir.expr import IntImm, Var
from refcomp.ir.rewrite import substitute
from refcomp.te.gradients.preimages import find_preimage
from refcomp.te.maths import floordiv, floormod
from refcomp.te.operation import placeholder
from refcomp.te.reducer import reduce_axis


def _number(expr, values) -> int:
    found = simplify(substitute(expr, {var: IntImm(value, I64) for var, value in values.items()}))
    assert isinstance(found, IntImm), found
    return found.value


def _all(axes):
    ranges = [range(a.minimum.value, a.minimum.value + a.extent.value) for a in axes]
    for point in itertools.product(*ranges):
        yield dict(zip([a.var for a in axes], point, strict=True))


def _found(preimage, axes, element, place):
    """Return the iterations that the preimage gives for an element of the tensor."""
    found = []
    for rest in _all(preimage.remaining):
        known = rest | dict(zip(element, place, strict=True))
        if all(_number(c, known) for c in preimage.conditions):
            solved = {v: _number(e, known) for v, e in preimage.values.items()}
            point = rest | solved
            found.append(tuple(point[a.var] for a in axes))
    return sorted(found)


def _check(indices, shape, axes):
    """Return the preimage, after comparing it with a search over all iterations."""
    element = [Var(f"a{k}", I64) for k in range(len(shape))]
    dims = [IntImm(extent, I64) for extent in shape]
    preimage = find_preimage(indices, element, dims, axes)
    for place in itertools.product(*map(range, shape)):
        expected = [
            tuple(point.values())
            for point in _all(axes)
            if tuple(_number(index, point) for index in indices) == place
        ]
        assert _found(preimage, axes, element, place) == expected
    return preimage


def _axes(*extents):
    return [reduce_axis(extent, f"i{k}") for k, extent in enumerate(extents)]


def test_an_axis_alone_is_the_index() -> None:
    i, j = _axes(4, 3)
    preimage = _check([j.var, i.var], (3, 4), [i, j])
    assert preimage.remaining == () and preimage.conditions == ()


def test_a_window_leaves_its_short_axis() -> None:
    y, k = _axes(8, 3)
    preimage = _check([y.var * 2 + k.var], (17,), [y, k])
    assert preimage.remaining == (k,)


def test_digits_leave_nothing() -> None:
    y, k = _axes(5, 4)
    assert _check([y.var * 4 + k.var], (20,), [y, k]).remaining == ()


def test_a_reshape_leaves_nothing() -> None:
    (i,) = _axes(24)
    indices = [floordiv(i.var, 8), floormod(floordiv(i.var, 2), 4), floormod(i.var, 2)]
    assert _check(indices, (3, 4, 2), [i]).remaining == ()


def test_a_sum_leaves_all_axes_but_those_of_the_element() -> None:
    i, k = _axes(4, 3)
    assert _check([k.var], (3,), [i, k]).remaining == (i,)


def test_an_axis_of_one_iteration_never_remains() -> None:
    i, k = _axes(1, 3)
    assert _check([k.var], (3,), [i, k]).remaining == ()


def test_what_is_not_linear_stays_a_condition() -> None:
    (i,) = _axes(5)
    preimage = _check([i.var * i.var], (17,), [i])
    assert preimage.remaining == (i,) and len(preimage.conditions) == 1


def test_a_diagonal_is_a_condition_on_the_element() -> None:
    (i,) = _axes(4)
    preimage = _check([i.var, i.var], (4, 4), [i])
    assert preimage.remaining == () and preimage.conditions


@pytest.mark.search
@given(
    st.lists(st.integers(-3, 3), min_size=3, max_size=3),
    st.lists(st.integers(1, 4), min_size=3, max_size=3),
    st.sampled_from(["sum", "quotient", "remainder", "both"]),
    st.integers(1, 4),
)
def test_exactly_the_readers_are_found(factors, extents, form, divisor):
    axes = _axes(*extents)
    total = sum((a.var * f for a, f in zip(axes, factors, strict=True)), IntImm(9, I64))
    quotient, remainder = floordiv(total, divisor), floormod(total, divisor)
    indices = {"sum": [total], "quotient": [quotient], "remainder": [remainder]}.get(
        form, [quotient, remainder]
    )
    # Every index is at least 9 - 3 * 3 * 3.
    shifted = [index + 20 if place == 0 else index for place, index in enumerate(indices)]
    shape = [60, divisor][: len(indices)] if form != "remainder" else [20 + divisor]
    _check(shifted, tuple(shape), axes)


def test_a_remainder_of_another_tensors_elements_stays_a_condition():
    places = placeholder((4,), "int64", name="places")
    n, k = reduce_axis(4, "n"), reduce_axis(2, "k")
    place = Var("a0", I64)
    indices = [floormod(places[n.var] + k.var, 3)]
    preimage = find_preimage(indices, [place], [IntImm(3, I64)], [n, k])
    # Its quotients by 3 would be some 2**62 iterations.
    assert preimage.remaining == (n, k)
    assert len(preimage.conditions) == 1
