"""Which conversions are printed by way of f32."""

import pytest

from refcomp.codegen.half_conversions import is_between_half_and_integer
from refcomp.foundation.dtype import as_dtype


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("float16", "int32", True),
        ("uint64", "float16", True),
        ("float16", "float32", False),
        ("float64", "float16", False),
        ("float32", "int32", False),
        ("int8", "int64", False),
        ("float16", "bool", False),
        ("bool", "float16", True),
        ("float16x4", "int32x4", True),
    ],
)
def test_only_conversions_between_f16_and_integers(source, target, expected):
    assert is_between_half_and_integer(as_dtype(source), as_dtype(target)) == expected
