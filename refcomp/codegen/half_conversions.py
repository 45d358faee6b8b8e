"""Conversions between f16 and integers, which printers print by way of f32."""

from __future__ import annotations

from refcomp.foundation.dtype import DType


def is_between_half_and_integer(source: DType, target: DType) -> bool:
    """Return True between f16 (or bf16) and an integer, in either direction; False for bools.

    Not every device converts between the two. By way of f32 the result is the same: an integer that
    f32 must round lies beyond the range of f16.
    """
    half = source if source.is_float else target
    other = target if source.is_float else source
    is_half = half.is_float and half.bits == 16
    return is_half and not other.is_float and not target.is_bool
