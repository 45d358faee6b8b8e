"""Operands for tests of operators, and how te and numpy are compared.

Never made here: NaN, infinities, and integers so large that f32 sums of products are inexact.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from refcomp.oracle.tensors.evaluate import evaluate
from refcomp.te.operation import placeholder
from refcomp.te.tensor import Tensor, var

extents = st.integers(1, 5)
# The batch of a network: symbolic in the compute, and possibly empty.
batches = st.integers(0, 3)
seeds = st.integers(0, 2**32 - 1)
pairs = st.tuples(st.integers(1, 2), st.integers(1, 2))
kernels = st.tuples(st.integers(1, 3), st.integers(1, 3))


def integers(seed: int, *shape: int) -> np.ndarray:
    """Small integers as f32: sums and products of them are exact."""
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32)


def floats(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def run_te(
    operator: Callable[..., Any],
    *arrays: np.ndarray | None,
    is_symbolic: bool = True,
    **attributes: Any,
) -> Any:
    """What the te compute gives for `arrays`; the first extent of the first one is symbolic."""
    tensors = [_as_placeholder(array, k, is_symbolic) for k, array in enumerate(arrays)]
    made = operator(*tensors, **attributes)
    feeds = {t: a for t, a in zip(tensors, arrays, strict=True) if t is not None}
    results = evaluate(made if isinstance(made, list) else [made], feeds)
    return results if isinstance(made, list) else results[0]


def _as_placeholder(array: np.ndarray | None, place: int, is_symbolic: bool) -> Tensor | None:
    if array is None:
        return None
    shape: list[Any] = list(array.shape)
    if is_symbolic and place == 0 and shape:
        shape[0] = var("n")
    return placeholder(shape, array.dtype, name=f"p{place}")


def assert_same(actual: np.ndarray, expected: np.ndarray, tolerance: float = 0.0) -> None:
    """Equal dtype and shape; elements equal, or within `tolerance`, absolute and relative."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def tensors(*shapes: Sequence[Any], dtype: str = "float32") -> list[Tensor]:
    """Placeholders of the shapes given."""
    return [placeholder(shape, dtype, name=f"p{k}") for k, shape in enumerate(shapes)]
