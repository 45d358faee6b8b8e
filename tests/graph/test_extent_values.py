"""Which elements of small tensors follow from extents."""

import numpy as np
import pytest

from refcomp.graph.extent_values import MAX_FOLLOWED, are_equal
from refcomp.graph.folding import FoldingBuilder


@pytest.fixture
def builder():
    return FoldingBuilder("g")


@pytest.fixture
def shape(builder):
    """The shape of a tensor of N x 6 x M elements."""
    return builder.node("shape_of", [builder.input("x", "float32", ("N", 6, "M"))])


def vector(builder, *numbers):
    return builder.constant("c", np.array(numbers, np.int64))


def test_moves(builder, shape):
    picked = builder.node("take", [shape, vector(builder, 2, 0)], {"axis": 0, "mode": "wrap"})
    joined = builder.node("concatenate", [picked, vector(builder, -1)], {"axis": 0})
    assert builder.extents_in(joined) == ("M", "N", -1)
    first, rest = builder.nodes("split", [joined], {"axis": 0, "sizes": (1, 2)})
    assert builder.extents_in(rest) == ("N", -1)
    scalar = builder.node("squeeze", [first])
    assert scalar.shape == ()
    assert builder.extents_in(builder.node("expand_dims", [scalar], {"axis": 0})) == ("M",)


def test_an_extent_without_symbols_becomes_a_constant(builder, shape):
    six = builder.node("strided_slice", [shape], {"begin": (1,), "end": (2,)})
    assert builder.elements(six).tolist() == [6]
    assert not builder.elements(six).flags.writeable


def test_arithmetic(builder, shape):
    two = vector(builder, 2)
    doubled = builder.node("multiply", [shape, two])
    assert builder.extents_in(doubled) == (("mul", "N", 2), 12, ("mul", "M", 2))
    assert builder.extents_in(builder.node("divide", [doubled, two])) == ("N", 6, "M")
    less = builder.node("subtract", [shape, two])
    assert builder.extents_in(less) == (("add", "N", -2), 4, ("add", "M", -2))
    # A negative number is rounded towards zero, which an extent cannot say.
    assert builder.extents_in(builder.node("divide", [less, two])) is None
    assert builder.extents_in(builder.node("divide", [shape, shape])) is None


def test_a_choice_by_what_is_known(builder, shape):
    wanted = vector(builder, -1, 6, -1)
    is_open = builder.node("equal", [wanted, vector(builder, -1)])
    chosen = builder.node("where", [is_open, shape, wanted])
    assert builder.extents_in(chosen) == ("N", 6, "M")
    never = builder.node("equal", [shape, vector(builder, -1)])
    assert builder.elements(never).tolist() == [False] * 3
    unknown = builder.node("equal", [shape, vector(builder, 3)])
    assert builder.elements(unknown) is None
    other = builder.node("where", [unknown, shape, wanted])
    assert builder.extents_in(other) is None


def test_what_is_not_followed(builder, shape):
    x = builder.input("y", "int64", (2,))
    assert builder.extents_in(x) is None
    assert builder.extents_in(builder.node("add", [x, vector(builder, 1, 2)])) is None
    floats = builder.node("cast", [shape], {"dtype": "float32"})
    assert builder.extents_in(floats) is None
    index = builder.node("take", [x, shape], {"axis": 0, "mode": "wrap"})
    assert builder.extents_in(index) is None
    many = vector(builder, *range(MAX_FOLLOWED + 1))
    assert builder.extents_in(many) is None
    assert builder.extents_in(builder.constant("f", np.zeros(2, np.float32))) is None


def test_a_renamed_value_keeps_its_elements(builder, shape):
    renamed = builder.rename(shape, "shape")
    assert builder.extents_in(renamed) == ("N", 6, "M")


def test_equal_products():
    assert are_equal(("mul", "N", ("mul", "M", 2)), ("mul", ("mul", "M", "N"), 2))
    assert not are_equal(("mul", "N", 2), ("mul", "N", 3))
    assert not are_equal("N", ("add", "N", 1))
