"""Each law of a reduction, broken; and combiners that keep them."""

import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError

A = rc.placeholder((4, 8), name="A")
I = rc.placeholder((4, 8), "int32", name="I")  # noqa: E741


def reduced(fcombine, fidentity, *sources):
    k = rc.reduce_axis((0, 8), name="k")
    reducer = rc.comm_reducer(fcombine, fidentity, name="mine")
    values = tuple(source(k) for source in sources)
    return rc.compute((4,), lambda i: reducer(tuple(v(i) for v in values), axis=k), name="C")


def read(tensor):
    return lambda k: lambda i: tensor[i, k]


def number():
    return lambda k: lambda i: k


@pytest.mark.parametrize(
    ("combine", "identity", "what"),
    [
        (lambda x, y: (x[0] - y[0],), 0, r"f\(identity, x\) is -3 one way and 3 the other"),
        (lambda x, y: (x[0] + y[0],), 1, r"f\(x, identity\) is 4 one way and 3 the other"),
        (lambda x, y: (x[0] + y[0] * y[0],), 0, r"f\(identity, x\) is 9 one way and 3"),
        (lambda x, y: (x[0] + y[0] + x[0] * x[0] * y[0],), 0, r"f\(3, 1\) is 13 one way and 7"),
        (lambda x, y: (x[0] + y[0] + x[0] * y[0] * 2 * (x[0] + y[0]),), 0, r"f\(f\(3, 1\), 2\)"),
    ],
)
@pytest.mark.parametrize("tensor", [A, I])
def test_a_combiner_that_breaks_a_law_is_refused(combine, identity, what, tensor):
    def as_tuple(x, y):
        return combine((x,), (y,))[0]

    with pytest.raises(UserError, match=what) as caught:
        reduced(as_tuple, lambda t: rc.const(identity, t), read(tensor))
    assert "schedules split, reorder" in caught.value.why
    assert "associative and commutative" in caught.value.remedy


def test_components_of_tuples_are_shown_together():
    with pytest.raises(UserError, match=r"f\(\(3, 1\), \(1, 2\)\) is \(3, 3\) one way and \(1, 3"):
        reduced(
            lambda x, y: (
                rc.select(y[1] == 0, x[0], rc.select(x[1] == 0, y[0], x[0])),
                x[1] + y[1],
            ),
            lambda a, b: (rc.const(0, a), rc.const(0, b)),
            read(I),
            read(I),
        )


@pytest.mark.parametrize(
    ("combine", "identity", "sources"),
    [
        (lambda x, y: x * y, lambda t: rc.const(1, t), (read(A),)),
        (lambda x, y: x | y, lambda t: rc.const(0, t), (read(I),)),
        (lambda x, y: rc.log(rc.exp(x) + rc.exp(y)), lambda t: rc.const(-1e9, t), (read(A),)),
        (
            lambda x, y: (
                rc.select(x[1] >= y[1], x[0], y[0]),
                rc.select(x[1] >= y[1], x[1], y[1]),
            ),
            lambda a, b: (rc.const(-1, a), rc.min_value(b)),
            (number(), read(A)),
        ),
    ],
)
def test_what_keeps_the_laws_is_taken(combine, identity, sources):
    if len(sources) == 1:
        assert reduced(lambda x, y: combine(x, y), identity, *sources)
    else:
        assert reduced(combine, identity, *sources)


def test_a_maximum_whose_identity_is_0_is_refused_for_dtypes_with_negative_numbers():
    def largest(tensor):
        return reduced(rc.maximum, lambda t: rc.const(0, t), read(tensor))

    with pytest.raises(UserError, match=r"f\(x, identity\) is 0 one way and -5 the other"):
        largest(A)
    with pytest.raises(UserError, match=r"f\(x, identity\) is 0 one way and -5"):
        largest(I)
    largest(rc.placeholder((4, 8), "uint8", name="U"))
