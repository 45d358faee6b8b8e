"""Operators whose inputs have extents, or even ranks, that only a run knows."""

import pytest

from tests.frontend.onnx.converters import (
    test_activations,
    test_casts,
    test_creation,
    test_elementwise,
    test_extremes,
    test_logic,
    test_powers,
    test_quantization,
    test_random_numbers,
)
from tests.frontend.onnx.converters.cases import check_in_a_run, last_of_each

FAMILIES = (
    test_activations,
    test_casts,
    test_creation,
    test_elementwise,
    test_extremes,
    test_logic,
    test_powers,
    test_quantization,
    test_random_numbers,
)
CASES = [case for family in FAMILIES for case in last_of_each(family.CASES)]


@pytest.mark.parametrize("has_rank", [True, False])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case, has_rank):
    check_in_a_run(case, has_rank=has_rank)
