"""Products on AMD's matrix cores: numpy's results without hazards, and other targets."""

import numpy as np
import pytest

import refcomp
from refcomp.foundation.target import as_target
from refcomp.topi.convolution.conv2d import conv2d_nhwc, conv2d_nhwc_numpy
from refcomp.topi.schedules.matrix_cores import on_matrix_cores

_GFX942 = "rocm -mcpu=gfx942"


def _tensor(*shape, name="x", dtype="float32"):
    return refcomp.placeholder(shape, dtype, name)


def _shape(tensor):
    return [extent.value for extent in tensor.shape]


def _integers(tensors):
    """Return small integers for each tensor, so that all sums are exact."""
    random = np.random.default_rng(0)
    return [random.integers(-3, 4, _shape(tensor)).astype(np.float32) for tensor in tensors]


def _run(inputs, output, given, gpu="gfx942"):
    """Return the result on an emulated GPU, and the instructions by class."""
    target = f"rocm -mcpu={gpu}"
    (made,) = on_matrix_cores([output], as_target(target))
    assert made is not output
    module = refcomp.build(refcomp.create_schedule(made), [*inputs, made], target, name="f")
    profile = refcomp.Profile()
    device = refcomp.rocm_emulator(gpu, hazards=True, profile=profile)
    result = refcomp.empty(_shape(output), device=device)
    module(*(refcomp.array(array, device) for array in given), result)
    return result.asnumpy(), profile.kernels[-1].by_class()


@pytest.mark.rocm
@pytest.mark.parametrize("gpu", ["gfx942", "gfx90a"])
@pytest.mark.parametrize(
    ("size", "channels", "filters", "kernel", "stride"),
    [
        (7, 16, 16, 1, 1),  # a step, and fewer vectors of weights than threads
        (8, 48, 32, 1, 1),
        (9, 32, 48, 3, 1),
        (7, 32, 64, 3, 2),
        (12, 64, 128, 1, 2),
        (15, 16, 64, 3, 1),
        (9, 3, 16, 3, 1),  # steps of four pixels
        (20, 3, 64, 7, 2),  # steps of eight pixels
    ],
)
def test_convolution_with_all_that_follows(gpu, size, channels, filters, kernel, stride) -> None:
    border = kernel // 2
    window = {"strides": (stride,) * 2, "padding": (border,) * 4}
    x = _tensor(1, size, size, channels)
    w, bias = _tensor(kernel, kernel, channels, filters, name="w"), _tensor(filters, name="bias")
    y = conv2d_nhwc(x, w, bias, **window)
    other = _tensor(*_shape(y), name="other")
    inputs = [x, w, bias, other]
    given = _integers(inputs)
    found, counts = _run(inputs, refcomp.topi.relu(refcomp.topi.add(y, other)), given, gpu)
    expected = np.maximum(conv2d_nhwc_numpy(*given[:3], **window) + given[3], 0)
    np.testing.assert_array_equal(found, expected)
    assert counts["MFMA"] > 0


@pytest.mark.rocm
@pytest.mark.parametrize("channels", [2, 4])
def test_pixels_behind_the_window_do_not_count(channels) -> None:
    x, w = _tensor(2, 6, 7, channels), _tensor(2, 3, channels, 16, name="w")
    window = {"strides": (2, 1)}
    data, weights = _integers([x, w])
    data[0, 1, 5, 0] = np.inf
    found, counts = _run([x, w], conv2d_nhwc(x, w, **window), [data, abs(weights) + 1])
    expected = conv2d_nhwc_numpy(data, abs(weights) + 1, **window)
    np.testing.assert_array_equal(found, expected)
    assert counts["MFMA"] > 0


@pytest.mark.rocm
def test_several_images_and_a_window_that_begins_inside() -> None:
    x, w = _tensor(2, 6, 5, 16), _tensor(2, 3, 16, 16, name="w")
    window = {"padding": (0, 1, 1, 0), "dilation": (2, 1)}
    given = _integers([x, w])
    found, _ = _run([x, w], conv2d_nhwc(x, w, **window), given)
    np.testing.assert_array_equal(found, conv2d_nhwc_numpy(*given, **window))


@pytest.mark.rocm
@pytest.mark.parametrize(("rows", "depth", "columns"), [(16, 16, 16), (100, 80, 192)])
def test_product_of_matrices(rows, depth, columns) -> None:
    a, b = _tensor(rows, depth, name="a"), _tensor(depth, columns, name="b")
    given = _integers([a, b])
    found, _ = _run([a, b], refcomp.topi.matmul(a, b), given)
    np.testing.assert_array_equal(found, given[0] @ given[1])


@pytest.mark.rocm
def test_factors_are_computed_on_the_way_to_shared_memory() -> None:
    x, w = _tensor(1, 16, 6, 6), _tensor(3, 3, 16, 16, name="w")
    last = refcomp.topi.transpose(refcomp.topi.relu(x), axes=(0, 2, 3, 1))
    given = _integers([x, w])
    found, _ = _run([x, w], conv2d_nhwc(last, w, padding=(1, 1, 1, 1)), given)
    data = np.maximum(given[0], 0).transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(found, conv2d_nhwc_numpy(data, given[1], padding=(1, 1, 1, 1)))


def test_a_border_has_a_kernel_of_its_own() -> None:
    x, w = _tensor(1, 5, 5, 16), _tensor(3, 3, 16, 16, name="w")
    y = conv2d_nhwc(x, w, padding=(1, 1, 1, 1))
    (made,) = on_matrix_cores([y], as_target(_GFX942))
    border, weights = made.op.inputs
    assert weights is w and _shape(border) == [7 * 7 * 16]


def test_a_border_of_channels_stays() -> None:
    x, w = _tensor(1, 5, 5, 16), _tensor(1, 1, 32, 16, name="w")
    wider = refcomp.compute(
        (1, 5, 5, 32),
        lambda n, y, x_, c: refcomp.if_then_else(c < 16, x[n, y, x_, c], 0.0),
        tag="pad",
    )
    output = conv2d_nhwc(wider, w)
    assert on_matrix_cores([output], as_target(_GFX942)) == [output]


def test_an_image_that_is_also_read_behind_the_sum_keeps_its_border() -> None:
    x, w = _tensor(1, 5, 5, 16), _tensor(1, 1, 16, 16, name="w")
    padded = refcomp.topi.pad(x, pad_before=(0, 1, 1, 0))
    output = refcomp.topi.add(conv2d_nhwc(padded, w), padded)
    assert on_matrix_cores([output], as_target(_GFX942)) == [output]


def test_images_of_more_channels_than_the_sum_stay() -> None:
    x, w = _tensor(1, 8, 8, 4), _tensor(3, 3, 3, 16, name="w")
    down, across, deep = (refcomp.reduce_axis((0, 3)) for _ in range(3))
    output = refcomp.compute(
        (1, 6, 6, 16),
        lambda n, i, j, o: refcomp.sum(
            x[n, i + down, j + across, deep] * w[down, across, deep, o],
            axis=[down, across, deep],
        ),
    )
    assert on_matrix_cores([output], as_target(_GFX942)) == [output]


def test_the_interpreter_agrees() -> None:
    a, b = _tensor(18, 16, name="a"), _tensor(16, 16, name="b")
    product = refcomp.topi.relu(refcomp.topi.matmul(a, b))
    (made,) = on_matrix_cores([product], as_target(_GFX942))
    given = _integers([a, b])
    result = np.zeros((18, 16), np.float32)
    schedule = refcomp.create_schedule(made)
    refcomp.build(schedule, [a, b, made], "interp")(*given, result)
    np.testing.assert_array_equal(result, np.maximum(given[0] @ given[1], 0))


def _product(rows=64, depth=64, columns=64, dtype="float32"):
    a, b = _tensor(rows, depth, name="a", dtype=dtype), _tensor(depth, columns, dtype=dtype)
    return refcomp.topi.matmul(a, b)


@pytest.mark.parametrize("target", ["llvm", "opencl", "rocm -mcpu=gfx1100", "rocm"])
def test_other_targets_keep_their_computes(target) -> None:
    output = _product()
    assert on_matrix_cores([output], as_target(target)) == [output]


def test_several_outputs_stay() -> None:
    outputs = [_product(), _product()]
    assert on_matrix_cores(outputs, as_target(_GFX942)) == outputs
