"""Reductions of whole channels: the divisor of symbolic extents."""

import numpy as np

from refcomp.oracle.tensors.evaluate import evaluate
from refcomp.te.operation import placeholder
from refcomp.te.tensor import var
from refcomp.topi.draws import Draws
from refcomp.topi.pooling.whole_channels import global_average, sample_whole


def test_average_over_a_symbolic_extent() -> None:
    data = placeholder((1, 1, var("w")), name="X")
    mean = global_average("pool", data, 1, "NCW")
    assert mean.shape[2].value == 1
    (result,) = evaluate([mean], {data: np.array([[[1, 2, 6]]], np.float32)})
    assert result.tolist() == [[[3]]]


def test_samples_have_the_rank_of_their_layout() -> None:
    layout, data = sample_whole(Draws(0), 3, "float32")
    assert layout in ("NCDHW", "NDHWC")
    assert data.ndim == 5
