"""The table of host operators: what it holds, and that refcomp and its peers compute the same."""

import numpy as np
import pytest

from benchmarks.host_operators.pairs import PAIRS, OnnxNode
from benchmarks.host_operators.workload import onnx_call, time_pair
from refcomp.topi.operator import operator_names


def test_the_table_has_sixty_pairs_of_operators_of_topi() -> None:
    assert len({pair.title for pair in PAIRS}) == len(PAIRS) == 60
    assert {pair.operator for pair in PAIRS} <= set(operator_names())
    assert all(pair.by_numpy is not None or pair.onnx is not None for pair in PAIRS)


@pytest.mark.llvm
@pytest.mark.parametrize("operator", ["sigmoid", "prod"])
def test_contenders_agree_before_they_are_timed(operator) -> None:
    numbers = [number for number, pair in enumerate(PAIRS) if pair.operator == operator]
    times = time_pair(numbers[-1], is_quick=True)
    assert set(times) <= {"refcomp", "numpy", "onnxruntime"} and len(times) >= 2
    assert {len(seconds) for seconds in times.values()} == {3}


def test_a_model_of_one_node_holds_weights_and_integers() -> None:
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    result = np.empty(3, np.float32)
    onnx_call(OnnxNode("ReduceSum", {"keepdims": 0}, ((1,),)), [data], result)()
    assert result.tolist() == [6, 22, 38]
    result = np.empty((3, 3), np.float32)
    onnx_call(OnnxNode("Gemm", {"transB": 1}, weights=(1,)), [data, data], result)()
    np.testing.assert_array_equal(result, data @ data.T)
