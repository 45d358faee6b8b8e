"""Tiles in shared memory and registers: what has tiles, their sizes, and that results stay."""

import numpy as np
import pytest

import refcomp
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.reducer import sum as sum_over
from refcomp.te.tensor import var
from refcomp.topi.contraction.dense import gemm, matmul
from refcomp.topi.convolution.conv1d import conv1d
from refcomp.topi.convolution.conv2d import conv2d, conv2d_nhwc
from refcomp.topi.elementwise.activations import relu
from refcomp.topi.schedules.cuda import schedule_cuda
from refcomp.topi.schedules.register_tiles import find_tiles
from tests.strategies.operands import tensors
from tests.topi.schedules.scheduled import EVERYWHERE, check, conflicts, profiled

_SAME = {"padding": (1, 1, 1, 1)}


def sizes(output):
    """Lanes, registers and vectors of each axis of rows, and of columns."""
    found = find_tiles(output.op)
    return [
        [(tile.lanes, tile.registers, tile.vector) for tile in tiles]
        for tiles in (found.rows, found.columns)
    ]


def by_rows(a, b):
    """The product of A and the transpose of B: both are read along the reduction."""
    k = reduce_axis(a.shape[1], "k")
    return compute(
        (a.shape[0], b.shape[0]), lambda i, j: sum_over(a[i, k] * b[j, k], k), name="by_rows"
    )


def widened(a, b):
    """A product of bytes that is summed in i32."""
    k = reduce_axis(a.shape[1], "k")
    return compute(
        (a.shape[0], b.shape[1]),
        lambda i, j: sum_over(a[i, k].astype("int32") * b[k, j].astype("int32"), k),
        name="widened",
    )


def test_tiles_of_a_product_have_pairs_of_columns():
    a, b = tensors((128, 64), (64, 256))
    assert sizes(matmul(a, b)) == [[(8, 8, 1)], [(32, 2, 2)]]


def test_columns_that_are_not_read_side_by_side_are_not_paired():
    a, b = tensors((128, 64), (256, 64))
    assert sizes(by_rows(a, b)) == [[(8, 8, 1)], [(32, 4, 1)]]


def test_tiles_of_images_divide_their_rows():
    data, weight = tensors((1, 64, 56, 56), (64, 64, 3, 3))
    output = conv2d(data, weight, **_SAME)
    assert sizes(output) == [[(8, 4, 1)], [(1, 2, 1), (28, 2, 1)]]
    last, kernel = tensors((1, 14, 14, 256), (3, 3, 256, 256))
    output = conv2d_nhwc(last, kernel, **_SAME)
    assert sizes(output) == [[(1, 2, 1), (7, 2, 1)], [(32, 2, 2)]]


def test_an_axis_without_divisors_has_guards():
    a, b = tensors((37, 32), (32, 41))
    assert sizes(matmul(a, b)) == [[(8, 5, 1)], [(32, 2, 1)]]


@pytest.mark.parametrize(
    "shapes",
    [((128, 7), (7, 128)), ((4, 64), (64, 8)), ((var("n"), 64), (64, 64))],
    ids=["shallow", "small", "symbolic"],
)
def test_small_and_symbolic_products_have_no_tiles(shapes):
    assert find_tiles(matmul(*tensors(*shapes)).op) is None


def test_wide_elements_have_no_tiles():
    a, b = tensors((128, 64), (64, 128), dtype="float64")
    assert find_tiles(matmul(a, b).op) is None


def test_other_sums_have_no_tiles():
    a, b = tensors((128, 64), (64, 128))
    k = reduce_axis(64, "k")
    added = compute((128, 128), lambda i, j: sum_over(a[i, k] + b[k, j], k))
    squared = compute((128, 64), lambda i, j: sum_over(a[i, k] * a[i, k], k))
    both = compute((128,), lambda i: sum_over(a[i, k] * b[k, i], k))
    for output in (added, squared, both, relu(a)):
        assert find_tiles(output.op) is None


def test_registers_are_fewer_where_a_long_step_needs_the_room():
    data, weight = tensors((1, 64, 56, 56), (64, 64, 3, 3))
    found = find_tiles(conv2d(data, weight, **_SAME).op)
    assert (found.step, found.rows[0].registers) == (32, 4)
    assert found.shared_bytes(32) <= 47 << 10


def test_a_step_shrinks_until_shared_memory_has_room():
    data, weight = tensors((1, 64, 56, 56), (64, 64, 5, 5))
    found = find_tiles(conv2d(data, weight, **_SAME).op)
    assert found.step == 8
    assert found.shared_bytes(8) <= 47 << 10 < found.shared_bytes(16)


def test_strides_between_threads_are_odd_whatever_lies_inside():
    data, weight = tensors((1, 8, 13, 13), (32, 8, 4, 2))
    found = find_tiles(conv2d(data, weight).op)
    assert found.tile_shape(found.by_row, found.step) == [32, 8, 4, 2]
    assert found.uneven(found.by_row) == range(0, 3)  # the tile has 9 x 5 x 3 elements in a row
    assert found.uneven(found.by_column) == range(3, 3)
    plain, padded = (found.shared_bytes(found.step, is_padded=p) for p in (False, True))
    assert padded - plain == 32 * (9 * 5 * 3 - 8 * 4 * 2) * 4
    a, b = tensors((128, 64), (64, 256))
    found = find_tiles(matmul(a, b).op)
    assert [found.uneven(read) for read in (found.by_row, found.by_column)] == [
        range(0, 1),
        range(1, 1),
    ]


def test_nvidia_gpus_have_tiles_where_no_product_tile_fits():
    a, b = tensors((50, 64), (64, 70))
    names = [stage.name for stage in schedule_cuda([matmul(a, b)]).stages]
    assert "p0.shared" in names


def cases():
    a, b, c = tensors((64, 48), (48, 64), (64,))
    yield "product", [a, b, c], relu(gemm(a, b, c))
    a, b = tensors((37, 20), (20, 41))
    yield "guarded", [a, b], matmul(a, b)
    a, b = tensors((2, 32, 40), (2, 40, 33))
    yield "batch", [a, b], matmul(a, b)
    a, b = tensors((32, 40), (40, 40))
    yield "by_rows", [a, b], by_rows(a, b)
    a, b = tensors((32, 64), (64, 32), dtype="int8")
    yield "widened", [a, b], widened(a, b)
    a, b = tensors((32, 32), (32, 64), dtype="float16")
    yield "half", [a, b], matmul(a, b)
    data, weight, bias = tensors((2, 16, 14, 14), (32, 16, 3, 3), (32,))
    yield "channels_first", [data, weight, bias], relu(conv2d(data, weight, bias, **_SAME))
    yield "strided", [data, weight], conv2d(data, weight, strides=(2, 2), **_SAME)
    data, weight = tensors((1, 9, 15, 8), (3, 3, 8, 32))
    yield "channels_last", [data, weight], conv2d_nhwc(data, weight, **_SAME)
    yield "apart", [data, weight], conv2d_nhwc(relu(data), weight, strides=(2, 1))
    data, weight = tensors((1, 3, 24, 24), (32, 3, 7, 7))
    yield "stem", [data, weight], conv2d(data, weight, strides=(2, 2), padding=(3, 3, 3, 3))
    data, weight = tensors((1, 64, 7, 7), (32, 64, 1, 1))
    yield "single", [data, weight], conv2d(data, weight)
    data, weight = tensors((1, 8, 13, 13), (32, 8, 4, 2))
    yield "even_windows", [data, weight], conv2d(data, weight)
    data, weight = tensors((1, 1, 160), (66, 1, 64))
    yield "long_windows", [data, weight], conv1d(data, weight, strides=(8,))


CASES = list(cases())
NAMES = [name for name, _, _ in CASES]


def test_all_cases_have_tiles():
    for name, _, output in CASES:
        op = output.op if output.op.reduce_axis else None
        assert op is None or find_tiles(op), name


@pytest.mark.parametrize("way", EVERYWHERE)
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_results_stay(case, way):
    check(way, case[1], case[2])


@pytest.mark.rocm
@pytest.mark.parametrize("gpu", ["gfx942", "gfx1100"])
def test_a_convolution_multiplies_and_uses_all_that_it_brings(gpu):
    data, weight = tensors((1, 2, 56, 64), (3, 3, 64, 64))
    with refcomp.build_options(contract=True):
        _, reports = profiled([data, weight], conv2d_nhwc(data, weight, **_SAME), gpu)
    (report,) = reports
    counts = report.counts.by_class()
    multiplying = counts["VALU FMA"] / (counts["VALU FMA"] + counts["other VALU"])
    assert multiplying >= 0.7
    assert report.efficiency >= 0.9
    assert conflicts(report) == 0


@pytest.mark.parametrize("schedule", [refcomp.topi.schedule_gpu, schedule_cuda])
def test_output_that_follows_two_sums_has_the_loops_of_one(schedule):
    a, b = tensors((64, 64), (64, 64))
    total = refcomp.topi.add(matmul(a, b), matmul(b, a))
    func = refcomp.lower(schedule([total]), [a, b, total], "two_products")
    module = refcomp.build_functions([func], target="interp")
    x, y = (np.random.default_rng(k).integers(-8, 9, (64, 64)) for k in range(2))
    arrays = [refcomp.array(array.astype(np.float32)) for array in (x, y, 0 * x)]
    module["two_products"](*arrays)
    np.testing.assert_array_equal(arrays[2].asnumpy(), x @ y + y @ x)
