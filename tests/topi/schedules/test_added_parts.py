"""Parts of a sum: their kernel computes what follows the sum, on every kind of output."""

import numpy as np
import pytest

import refcomp
from refcomp.foundation.target import as_target
from refcomp.topi.convolution.conv2d import conv2d_nhwc, conv2d_nhwc_numpy
from refcomp.topi.schedules.added_parts import add_parts
from refcomp.topi.schedules.matrix_cores import on_matrix_cores
from refcomp.topi.schedules.matrix_sums import find_matrix_sum


def _tensor(*shape, name="x"):
    return refcomp.placeholder(shape, name=name)


def _shape(tensor):
    return [extent.value for extent in tensor.shape]


def _integers(tensors):
    random = np.random.default_rng(0)
    return [random.integers(-3, 4, _shape(tensor)).astype(np.float32) for tensor in tensors]


def _run(inputs, made, given, gpu="gfx942"):
    target = f"rocm -mcpu={gpu}"
    module = refcomp.build(refcomp.create_schedule(made), [*inputs, made], target, name="f")
    device = refcomp.rocm_emulator(gpu, hazards=True)
    result = refcomp.empty(_shape(made), device=device)
    module(*(refcomp.array(array, device) for array in given), result)
    return result.asnumpy()


@pytest.mark.rocm
@pytest.mark.parametrize("rows", [64, 50])
def test_parts_are_added_before_all_that_follows(rows) -> None:
    a, b = _tensor(rows, 32, name="a"), _tensor(32, 48, name="b")
    bias = _tensor(48, name="bias")
    output = refcomp.topi.relu(refcomp.topi.add(refcomp.topi.matmul(a, b), bias))
    found = find_matrix_sum(output)
    assert found is not None
    parts = _tensor(3, rows, 48, name="parts")
    inputs = [bias, parts]
    given = _integers(inputs)
    result = _run(inputs, add_parts(found, parts), given)
    expected = np.maximum((given[1][0] + given[1][1]) + given[1][2] + given[0], 0)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.rocm
@pytest.mark.parametrize("gpu", ["gfx942", "gfx90a"])
@pytest.mark.parametrize(("kernel", "channels"), [(3, 128), (1, 1024)])
def test_groups_share_the_depth_of_a_convolution(gpu, kernel, channels) -> None:
    border = kernel // 2
    x = _tensor(1, 6, 5, channels)
    w = _tensor(kernel, kernel, channels, 32, name="w")
    window = {"padding": (border,) * 4}
    y = conv2d_nhwc(x, w, **window)
    other = _tensor(*_shape(y), name="other")
    output = refcomp.topi.add(y, other)
    found = find_matrix_sum(output)
    assert found is not None and found.parts() > 1
    (made,) = on_matrix_cores([output], as_target(f"rocm -mcpu={gpu}"))
    given = _integers([x, w, other])
    result = _run([x, w, other], made, given, gpu)
    np.testing.assert_array_equal(result, conv2d_nhwc_numpy(*given[:2], **window) + given[2])


def test_the_interpreter_agrees() -> None:
    output = refcomp.topi.matmul(_tensor(18, 16, name="a"), _tensor(16, 16, name="b"))
    found = find_matrix_sum(output)
    assert found is not None
    parts = _tensor(2, 18, 16, name="parts")
    made = add_parts(found, parts)
    given = np.random.default_rng(0).random((2, 18, 16), np.float32)
    result = np.zeros((18, 16), np.float32)
    refcomp.build(refcomp.create_schedule(made), [parts, made], "interp")(given, result)
    np.testing.assert_array_equal(result, given[0] + given[1])
