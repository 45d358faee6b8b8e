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


def test_tensors_of_two_shapes_join_to_one_without() -> None:
    assert TENSOR.joined(TENSOR) == TENSOR
    assert TENSOR.joined(NodeType(F32, (3,))) == unshaped(F32)
    assert TENSOR.joined(NodeType(F64, ("N", 2))) is None
    assert TENSOR.joined(SEQUENCE) is None


def test_text_and_type_of_a_value() -> None:
    assert str(TENSOR) == "f32[N, 2]"
    assert str(SEQUENCE) == "seq(f32)"
    assert NodeType.of(Value("x", F32, ("N", 2))) == TENSOR
