"""Which types fit, and how the types of two branches join."""

from refcomp.foundation.dtype import F32, F64
from refcomp.graph.control.types import NodeType, unshaped
from refcomp.graph.graph import Value, ValueKind

TENSOR = NodeType(F32, ("N", 2))
SEQUENCE = NodeType(F32, (), ValueKind.SEQUENCE)


def test_a_tensor_fits_where_any_shape_does() -> None:
    assert TENSOR.fits(TENSOR)
    assert TENSOR.fits(unshaped(F32))
    assert not unshaped(F32).fits(TENSOR)
    assert not TENSOR.fits(unshaped(F64))
    assert not TENSOR.fits(SEQUENCE)
    assert not SEQUENCE.fits(unshaped(F32))


def test_what_an_optional_may_hold_fits_it() -> None:
    optional = NodeType(F32, (), ValueKind.OPTIONAL)
    optional_sequence = NodeType(F32, (), ValueKind.OPTIONAL_SEQUENCE)
    assert TENSOR.fits(optional) and unshaped(F32).fits(optional)
    assert SEQUENCE.fits(optional_sequence)
    assert not SEQUENCE.fits(optional) and not TENSOR.fits(optional_sequence)
    assert not optional.fits(TENSOR) and not optional_sequence.fits(SEQUENCE)
    assert TENSOR.joined(optional) == optional
    assert optional_sequence.joined(SEQUENCE) == optional_sequence
    assert optional.joined(optional_sequence) is None


def test_tensors_of_two_shapes_join_to_one_without() -> None:
    assert TENSOR.joined(TENSOR) == TENSOR
    assert TENSOR.joined(NodeType(F32, (3,))) == unshaped(F32)
    assert TENSOR.joined(NodeType(F64, ("N", 2))) is None
    assert TENSOR.joined(SEQUENCE) is None


def test_text_and_type_of_a_value() -> None:
    assert str(TENSOR) == "f32[N, 2]"
    assert str(SEQUENCE) == "seq(f32)"
    assert NodeType.of(Value("x", F32, ("N", 2))) == TENSOR
