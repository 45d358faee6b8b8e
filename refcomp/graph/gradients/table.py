"""For each operator, how it is differentiated: by a rule, by `vjp`, as zero, or not at all and why.

The convention: a function that is constant between its jumps, such as `floor` or `less`, has the
gradient 0. So a loss may count or compare. Operators that make indices, bit patterns, quantized
numbers or random choices are refused. Adjoints pass inputs of floats only. So an integer input,
such as the indices of `gather`, needs no gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from refcomp.foundation.names import checked_name
from refcomp.graph.gradients.rules import RULES
from refcomp.graph.gradients.vjp import STOP_GRADIENT, VJP


class Differentiability(StrEnum):
    """The way in which an operator is differentiated."""

    RULE = "rule"  # written in graph operators; `vjp` where the rule does not apply
    VJP = "vjp"  # te.gradient of its compute
    ZERO = "zero"  # its gradient is 0, or counts as 0
    NONE = "none"  # refused


@dataclass(frozen=True, slots=True)
class DifferentiabilityEntry:
    """The row of an operator: its kind, and the reason for `zero` and `none`."""

    kind: Differentiability
    reason: str = ""


_ZERO_BY_REASON = {
    "it is constant between its jumps": (
        "ceil floor floor_divide hardmax round sign trunc trunc_divide"
    ),
    "its truth values are constant between jumps": (
        "all any equal greater greater_equal isfinite isin isinf isnan less less_equal "
        "logical_and logical_not logical_or logical_xor not_equal"
    ),
    "only the shape of its input counts": (
        "full_like multibox_prior ones_like shape_of zeros_like"
    ),
    "it is made to count as a constant": STOP_GRADIENT,
}
_NONE_BY_REASON = {
    "it has no input": (
        "arange bartlett_window blackman_window eye full hamming_window hann_window linspace "
        "mel_weight_matrix ones threefry_key zeros"
    ),
    "it makes indices or counts": (
        "all_class_non_max_suppression argmax argmin argsort argwhere bucketize histogram "
        "invert_permutation nonzero searchsorted tree_leaves unravel_index"
    ),
    "it takes indices": "one_hot",
    "it works on bits": (
        "binarize_pack binary_dense bitcast bitpack bitserial_conv2d bitserial_dense "
        "bitwise_and bitwise_not bitwise_or bitwise_xor clz from_float4 from_float6 from_float8 "
        "from_float8_e8m0 left_shift pack_int4 popcount right_shift to_float4 to_float6 to_float8 "
        "to_float8_e8m0 unpack_int4"
    ),
    "it computes with quantized integers": (
        "conv2d_integer dynamic_quantize_linear matmul_integer qlinear_conv2d qlinear_matmul "
        "quantize quantized_conv2d_nchwc quantized_dense quantized_dense_pack "
        "quantized_depthwise_conv2d_nchwc requantize"
    ),
    "rounding hides its slope: choose one, x + stop_gradient(fake_quantize(x) - x)": (
        "fake_quantize"
    ),
    "second derivatives pass only operators that have a rule": VJP,
    "it eliminates in place, and its adjoint would need an inverse matrix": "det",
    "it makes random numbers from integer keys": (
        "philox random_gumbel random_integers random_normal random_permutation "
        "random_uniform threefry threefry_generate threefry_split"
    ),
    "its random choice does not depend smoothly on the probabilities": (
        "bernoulli multinomial"
    ),
}


def _by_name(rows: dict[str, str]) -> dict[str, str]:
    return {name: reason for reason, names in rows.items() for name in names.split()}


ZERO = _by_name(_ZERO_BY_REASON)
NONE = _by_name(_NONE_BY_REASON)


def differentiability(operator: str) -> DifferentiabilityEntry:
    """Return how an operator is differentiated.

    Args:
        operator: the name of an operator of the registry. One that is registered from outside is
            left to `vjp`.

    Raises:
        UserError: the operator is not given by its name.

    Example::

        >>> for name in ("relu", "gelu", "floor", "argmax"):
        ...     entry = rc.graph.differentiability(name)
        ...     print(f"{name}: {entry.kind}{entry.reason and ', ' + entry.reason}")
        relu: rule
        gelu: vjp
        floor: zero, it is constant between its jumps
        argmax: none, it makes indices or counts
    """
    checked_name(operator, "an operator")
    if operator in ZERO:
        return DifferentiabilityEntry(Differentiability.ZERO, ZERO[operator])
    if operator in NONE:
        return DifferentiabilityEntry(Differentiability.NONE, NONE[operator])
    if operator in RULES:
        return DifferentiabilityEntry(Differentiability.RULE)
    return DifferentiabilityEntry(Differentiability.VJP)
