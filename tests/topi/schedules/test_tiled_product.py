"""Tiles of products: what is one, which tile it gets, and that no tile changes the result.

How the machine code of full sizes looks is judged in tests/codegen/cuda/test_machine_code.py.
"""

import numpy as np
import pytest

from refcomp.driver.pipeline import run_pipeline
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Allocate
from refcomp.lowering.lower import lower
from refcomp.oracle.lockstep.interpret import interpret_program
from refcomp.schedule.schedule import create_schedule
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.reducer import sum as sum_over
from refcomp.te.tensor import var
from refcomp.topi.contraction.dense import gemm, gemm_numpy, matmul, matmul_numpy
from refcomp.topi.convolution.conv2d import conv2d, conv2d_nhwc, conv2d_nhwc_numpy
from refcomp.topi.elementwise.activations import relu
from refcomp.topi.schedules.blocked_convolution import elementwise_follower
from refcomp.topi.schedules.tiled_product import (
    TILES,
    choose_tile,
    find_product,
    schedule_product,
)
from tests.codegen.cuda.host_kernels import HostKernels
from tests.strategies.operands import integers, tensors

_SAME = {"padding": (1, 1, 1, 1)}


def tile_of(output):
    product = find_product(output.op)
    return product and choose_tile(product)


def names(tile):
    return f"{tile.rows}x{tile.columns}"


def scheduled(inputs, output, tile, name):
    """The program of `output` for the target cuda, whose product has `tile`."""
    schedule = create_schedule(output)
    (stage,) = [s for s in schedule.stages if getattr(s.op, "reduce_axis", ())]
    last = elementwise_follower(schedule, stage.op)
    schedule_product(schedule, find_product(stage.op), tile, last)
    return run_pipeline(lower(schedule, [*inputs, output], name), "cuda")


def cases():
    """Tensors, output, its meaning, and the tile: each tile, and each kind of product."""
    for tile in TILES:
        a, b = tensors((tile.rows, 32), (32, tile.columns))
        yield f"gemm_{names(tile)}", [a, b], gemm(a, b), gemm_numpy, tile
    smallest = TILES[-1]
    a, b, c = tensors((2, 32, 32), (2, 32, 32), (32,))
    yield "batch", [a, b], matmul(a, b), matmul_numpy, smallest
    a, b, c = tensors((64, 48), (48, 64), (64,))
    yield "biased", [a, b, c], gemm(a, b, c), gemm_numpy, smallest
    data, weight, bias = tensors((2, 4, 4, 32), (3, 3, 32, 32), (32,))

    def convolution(x, w, z):
        return conv2d_nhwc_numpy(x, w, z, **_SAME)

    output = conv2d_nhwc(data, weight, bias, **_SAME)
    yield "convolution", [data, weight, bias], output, convolution, smallest


CASES = list(cases())


def operands(inputs):
    """Small whole numbers, whose sums are exact in any order."""
    return [integers(5 + k, *(d.value for d in t.shape)) for k, t in enumerate(inputs)]


def memory(output):
    return np.full([d.value for d in output.shape], np.nan, np.float32)


@pytest.mark.gcc
def test_no_tile_changes_the_result():
    programs = [scheduled(inputs, out, tile, name) for name, inputs, out, _, tile in CASES]
    kernels = [program.kernels[0] for program in programs]
    assert all(len(program.kernels) == 1 for program in programs), "the border has no kernel"
    built = HostKernels(kernels)
    for kernel, (name, inputs, output, meaning, _) in zip(kernels, CASES, strict=True):
        arrays, result = operands(inputs), memory(output)
        known = {t.name: a for t, a in zip(inputs, arrays, strict=True)}
        known[output.name] = result
        built.call(kernel, [known[param.name] for param in kernel.params])
        np.testing.assert_array_equal(result, meaning(*arrays), err_msg=name)


@pytest.mark.search
@pytest.mark.parametrize("case", CASES[4:6] + CASES[-1:], ids=lambda case: case[0])
def test_the_interpreter_finds_no_race_and_the_same_result(case):
    name, inputs, output, meaning, tile = case
    arrays, result = operands(inputs), memory(output)
    interpret_program(scheduled(inputs, output, tile, name), [*arrays, result])
    np.testing.assert_array_equal(result, meaning(*arrays))


@pytest.mark.parametrize(
    ("rows", "columns", "tile"),
    [(4096, 4096, "128x128"), (2048, 2048, "128x64"), (1024, 1024, "32x64"), (96, 32, "32x32")],
)
def test_tiles_shrink_until_there_are_enough_groups(rows, columns, tile):
    a, b = tensors((rows, 64), (64, columns))
    assert names(tile_of(gemm(a, b))) == tile


@pytest.mark.parametrize(
    ("size", "channels", "tile", "factors"),
    [
        (56, 64, "128x64", [2, 8, 8]),
        (28, 128, "128x64", [8, 4, 4]),
        (14, 256, "64x64", [16, 2, 2]),
        (7, 512, "32x64", [32, 1, 1]),
    ],
)
def test_tiles_of_convolutions_span_images(size, channels, tile, factors):
    data, weight = tensors((32, size, size, channels), (3, 3, channels, channels))
    product = find_product(conv2d_nhwc(data, weight, **_SAME).op)
    chosen = choose_tile(product)
    assert (names(chosen), product.factors(chosen)) == (tile, factors)
    assert product.groups(chosen) >= 384


@pytest.mark.parametrize(
    "output",
    [
        gemm(*tensors((33, 32), (32, 32))),
        gemm(*tensors((32, 32), (32, 33))),
        gemm(*tensors((32, 8), (8, 32))),
        gemm(*tensors((var("n"), 32), (32, 32))),
        gemm(*tensors((32, 32), (32, 32)), trans_a=True),
        gemm(*tensors((32, 32), (32, 32)), trans_b=True),
        conv2d(*tensors((1, 32, 32, 32), (32, 32, 1, 1))),
    ],
    ids=["rows", "columns", "depth", "symbol", "left", "right", "channels first"],
)
def test_what_no_tile_fits_is_not_tiled(output):
    assert find_product(output.op) is None


def test_other_reductions_are_not_tiled():
    a, b = tensors((32, 32), (32, 32))
    k = reduce_axis(32, "k")
    sums = compute((32, 32), lambda i, j: sum_over(a[i, k] + b[k, j], k))
    square = compute((32, 32), lambda i, j: sum_over(a[i, k] * a[k, j], k))
    some = compute((32, 32), lambda i, j: sum_over(a[i, k] * b[k, j], k, where=k.var > 3))
    scaled = compute((32, 32), lambda i, j: sum_over(a[i, k] * 2.0, k))
    for output in (sums, square, some, scaled, relu(a)):
        assert find_product(output.op) is None


def test_shared_rows_are_padded_and_filled_one_step_ahead():
    a, b = tensors((128, 64), (64, 128))
    output = gemm(a, b)
    schedule = create_schedule(output)
    schedule_product(schedule, find_product(output.op), TILES[0])
    func = lower(schedule, [a, b, output], "f")
    shapes = {n.buffer.name: n.buffer.shape for n in walk(func.body) if isinstance(n, Allocate)}
    assert [d.value for d in shapes[f"{a.name}.shared"]] == [128, 20]
    assert str(func).count("pragma double_buffer") == 2
