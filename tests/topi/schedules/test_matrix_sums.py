"""Matrix sums: what does not fit stays, and tiles waste few rows."""

import pytest

import refcomp
from refcomp.topi.convolution.conv2d import conv2d_nhwc
from refcomp.topi.schedules.matrix_sums import MatrixTile, digits_of, find_matrix_sum
from refcomp.topi.schedules.window_walk import Digit


def _tensor(*shape, name="x", dtype="float32"):
    return refcomp.placeholder(shape, dtype, name)


def _product(rows=64, depth=64, columns=64, dtype="float32"):
    a, b = _tensor(rows, depth, name="a", dtype=dtype), _tensor(depth, columns, dtype=dtype)
    return refcomp.topi.matmul(a, b)


def _softmax_behind():
    return refcomp.topi.softmax(_product())


def _two_products():
    return refcomp.topi.add(_product(), _product())


def _reversed_behind():
    return refcomp.topi.transpose(_product(), axes=(1, 0))


@pytest.mark.parametrize(
    "output",
    [
        _product(rows=8),
        _product(depth=40),
        _product(columns=24),
        _product(dtype="float64"),
        _product(rows=refcomp.var("n")),
        _softmax_behind(),
        _two_products(),
        _reversed_behind(),
        refcomp.topi.relu(_tensor(64, 64)),
        conv2d_nhwc(_tensor(1, 8, 8, 5), _tensor(3, 3, 5, 64, name="w")),
        conv2d_nhwc(_tensor(1, 8, 8, 3), _tensor(3, 3, 3, 24, name="w")),
        conv2d_nhwc(_tensor(1, 8, 16, 3), _tensor(3, 9, 3, 64, name="w")),
        conv2d_nhwc(_tensor(1, 8, 8, 64), _tensor(3, 3, 32, 64, name="w"), groups=2),
    ],
    ids=lambda output: output.name,
)
def test_what_does_not_fit_is_no_matrix_sum(output) -> None:
    assert find_matrix_sum(output) is None


@pytest.mark.parametrize(
    ("rows", "depth", "columns", "tile"),
    [
        (3136, 64, 64, MatrixTile(112, 64, 32)),
        (196, 1024, 256, MatrixTile(112, 128, 32)),
        (49, 512, 2048, MatrixTile(64, 128, 32)),
        (2916, 48, 16, MatrixTile(64, 16, 16)),
    ],
)
def test_tile_wastes_few_rows(rows, depth, columns, tile) -> None:
    found = find_matrix_sum(_product(rows, depth, columns))
    assert found is not None
    assert found.tile() == tile


@pytest.mark.parametrize(
    ("tile", "waves", "blocks"),
    [
        (MatrixTile(112, 128, 32), (1, 4), (7, 2)),
        (MatrixTile(64, 32, 32), (2, 2), (2, 1)),
        (MatrixTile(64, 16, 16), (4, 1), (1, 1)),
    ],
)
def test_waves_share_the_blocks_of_a_tile(tile, waves, blocks) -> None:
    assert (tile.wave_rows, tile.wave_columns) == waves
    assert tile.blocks == blocks


def test_parts_of_a_convolution_are_found() -> None:
    x, w = _tensor(1, 8, 8, 32), _tensor(3, 3, 32, 64, name="w")
    y = conv2d_nhwc(x, w, padding=(1, 1, 1, 1))
    found = find_matrix_sum(refcomp.topi.relu(y))
    assert found is not None
    assert found.sums is y and found.output is not y
    assert [axis.name for axis in found.rows] == ["y", "x"]
    assert [axis.name for axis in found.window] == ["ry", "rx"]
    assert (found.column.name, found.deep.name) == ("o", "rc")
    assert found.inputs == [found.left.tensor, w]  # an image with its border
    assert found.walk(16) == [Digit(3, 10 * 32), Digit(3, 32), Digit(2, 16)]


@pytest.mark.parametrize(("width", "pixels"), [(3, 4), (4, 4), (7, 8)])
def test_image_of_few_channels_has_steps_of_pixels(width, pixels) -> None:
    x, w = _tensor(1, 20, 20, 3), _tensor(5, width, 3, 64, name="w")
    found = find_matrix_sum(conv2d_nhwc(x, w))
    assert found is not None
    assert found.pixels == pixels
    assert [axis.name for axis in (*found.window, found.deep)] == ["ry", "rx", "rc"]
    assert found.is_stored and found.stored_shape == [1, 20, 21, 4]
    depth = found.tile().depth
    assert (depth, found.steps(depth)) == (4 * pixels, 5)
    assert found.walk(depth) == [Digit(5, 21 * 4)]


@pytest.mark.parametrize(
    ("rows", "depth", "columns", "parts"),
    [
        (196, 64, 64, 1),  # too few steps
        (49, 2048, 512, 4),
        (196, 1024, 256, 2),
        (50176, 2048, 64, 1),  # enough tiles
        (49, 16 * 37, 16, 1),  # a prime number of steps
    ],
)
def test_few_tiles_share_a_long_depth(rows, depth, columns, parts) -> None:
    found = find_matrix_sum(_product(rows, depth, columns))
    assert found is not None
    assert found.parts() == parts


def test_inputs_of_a_sum_and_of_what_follows() -> None:
    x, w = _tensor(1, 8, 8, 32), _tensor(1, 1, 32, 64, name="w")
    y = conv2d_nhwc(x, w)
    other = _tensor(1, 8, 8, 64, name="other")
    found = find_matrix_sum(refcomp.topi.relu(refcomp.topi.add(y, other)))
    assert found is not None
    assert found.inputs_of_sums == [x, w]
    assert found.inputs_behind == [other]
    assert found.inputs == [x, w, other]


def test_tensors_in_memory_are_inputs() -> None:
    x, w = _tensor(1, 8, 8, 32), _tensor(1, 1, 32, 64, name="w")
    found = find_matrix_sum(conv2d_nhwc(refcomp.topi.relu(x), w))
    assert found is not None
    assert found.inputs == [x, w]


def test_digits_are_those_of_the_fused_loop() -> None:
    axes = [refcomp.reduce_axis((0, extent), name) for extent, name in ((3, "a"), (4, "b"))]
    number = refcomp.var("n", "int64")
    found = [str(value) for value in digits_of(number, axes).values()]
    assert found == ["truncmod(n, 4)", "n // 4"]
    assert digits_of(number, []) == {}
