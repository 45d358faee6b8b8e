"""The host's schedule of sums of products: which it recognises, its tiles, and their results."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import refcomp
from refcomp.driver.compile import compile_to_source
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Allocate, For
from refcomp.lowering.lower import lower
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.te.tensor import var
from refcomp.toolchain import compile_source
from refcomp.topi.contraction.dense import gemm, gemm_numpy, matmul, matmul_numpy
from refcomp.topi.contraction.einsum import einsum
from refcomp.topi.contraction.packed_dense import dense_pack, dense_pack_numpy
from refcomp.topi.convolution.conv2d import conv2d, conv2d_nhwc, conv2d_numpy
from refcomp.topi.elementwise.activations import relu
from refcomp.topi.schedules.host_products import (
    RegisterTile,
    choose_register_tile,
    find_host_product,
)
from refcomp.topi.schedules.llvm import schedule_llvm, stored_tensors
from refcomp.topi.schedules.vector_registers import AVX2, AVX512, NEON, SSE
from tests.strategies.operands import integers, seeds, tensors


def _axes(output):
    """The names of the axes that the product of `output` has in vectors, columns and rows."""
    found = find_host_product(output.op)
    places = (found.lanes, found.column, found.row)
    return [None if place is None else output.op.axis[place].var.name for place in places]


def test_rows_columns_and_vectors_are_found_in_any_layout() -> None:
    a, b = tensors((3, 4, 8), (3, 8, 16))
    assert _axes(matmul(a, b)) == ["i2", None, "i1"]
    image, weight = tensors((1, 4, 8, 8), (6, 4, 3, 3))
    assert _axes(conv2d(image, weight)) == ["x", "y", "o"]
    image, weight = tensors((1, 8, 8, 4), (3, 3, 4, 6))
    assert _axes(conv2d_nhwc(image, weight)) == ["o", None, "x"]


def test_a_symbolic_extent_is_no_part_of_a_tile() -> None:
    a, b = tensors((var("n"), 8), (8, 16))
    assert _axes(matmul(a, b)) == ["i1", None, None]
    a, b = tensors((4, 8), (8, var("n")))
    assert find_host_product(matmul(a, b).op) is None


def test_what_is_not_read_in_vectors_is_left_to_others() -> None:
    a, b = tensors((4, 8), (16, 8))
    assert find_host_product(gemm(a, b, trans_b=True).op) is None
    image, weight = tensors((1, 4, 9, 9), (6, 4, 3, 3))
    assert _axes(conv2d(image, weight, strides=(2, 2)))[0] == "x"
    assert find_host_product(conv2d(image, weight, strides=(3, 3)).op) is None
    # Each channel has weights of its own: nothing is read for several rows.
    image, weight = tensors((1, 4, 8, 8), (4, 1, 3, 3))
    assert _axes(conv2d(image, weight, groups=4))[2] is None
    k = refcomp.reduce_axis((0, 8), name="k")
    (data,) = tensors((8, 16))
    summed = refcomp.compute((16,), lambda j: refcomp.sum(data[k, j], axis=k))
    assert find_host_product(summed.op) is None


def _tile(output, registers=AVX512):
    return choose_register_tile(find_host_product(output.op), registers)


def test_tiles_fit_the_registers_and_divide_short_axes() -> None:
    a, b = tensors((512, 64), (64, 512))
    assert _tile(matmul(a, b)) == RegisterTile(rows=4, columns=1, vectors=4, lanes=16)
    # 14 lanes leave no guards in rows of 56 or of 14 pixels; several rows fill the registers.
    for size, tile in ((56, (8, 1, 2, 14)), (14, (8, 2, 1, 14)), (7, (8, 1, 1, 7))):
        image, weight = tensors((1, 8, size, size), (64, 8, 3, 3))
        output = conv2d(image, weight, padding=(1, 1, 1, 1))
        assert _tile(output) == RegisterTile(*tile)
    a, b = tensors((3, 8), (8, 2))
    assert _tile(matmul(a, b)) == RegisterTile(rows=3, columns=1, vectors=1, lanes=2)


def _products():
    for rows, depth, columns in ((512, 64, 512), (509, 515, 521), (1, 64, 1000), (3, 8, 2)):
        a, b = tensors((rows, depth), (depth, columns))
        yield matmul(a, b)
    for size, stride in ((56, 1), (28, 1), (13, 1), (7, 1), (28, 2)):
        image, weight = tensors((1, 8, size, size), (64, 8, 3, 3))
        yield conv2d(image, weight, strides=(stride, stride), padding=(1, 1, 1, 1))


_ALL = pytest.mark.parametrize("registers", [SSE, AVX2, AVX512, NEON], ids=str)


@_ALL
def test_sums_and_operands_of_a_step_fit_the_registers_of_each_processor(registers) -> None:
    for output in _products():
        tile = _tile(output, registers)
        across = tile.columns * tile.vectors
        assert tile.lanes <= registers.lanes(4)
        assert tile.rows * across + across + 1 <= registers.count


def test_tiles_of_16_registers_hide_latency_and_mask_nothing() -> None:
    a, b = tensors((512, 64), (64, 512))
    assert _tile(matmul(a, b), AVX2) == RegisterTile(rows=6, columns=1, vectors=2, lanes=8)
    for size, tile in ((56, (4, 3, 1, 8)), (14, (6, 1, 2, 7)), (7, (6, 2, 1, 7))):
        image, weight = tensors((1, 8, size, size), (512, 8, 3, 3))
        output = conv2d(image, weight, padding=(1, 1, 1, 1))
        assert _tile(output, AVX2) == RegisterTile(*tile)


@pytest.mark.parametrize(
    ("width", "across"), [(24, 24), (8, 8), (6, 6), (64, 16), (7, 7), (11, 1)], ids=str
)
def test_tiles_do_not_cross_panels(width, across) -> None:
    a, panels = tensors((64, 40), (3, 40, width))
    product = find_host_product(dense_pack(a, panels).op)
    assert product.panel == width
    tile = choose_register_tile(product, AVX2)
    assert tile.vectors * tile.lanes == across


def test_other_quotients_and_remainders_are_not_panels() -> None:
    a, panels = tensors((64, 40), (3, 40, 8))
    k = refcomp.reduce_axis((0, 40), name="k")

    def summed(first, last):
        def element(i, j):
            return refcomp.sum(a[i, k] * panels[first(j), k, last(j)], axis=k)

        return find_host_product(refcomp.compute((64, 24), element).op)

    assert summed(lambda j: j // 8, lambda j: j % 8).panel == 8
    assert summed(lambda j: j // 8, lambda j: j % 4) is None
    assert summed(lambda j: (j + 1) // 8 % 3, lambda j: (j + 1) % 8) is None


@pytest.mark.llvm
@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(("rows", "units"), [(13, 70), (1, 72), (29, 49)])
def test_products_with_panels_are_right_on_this_machine(level, rows, units) -> None:
    shapes = ((rows, 33), (3, 33, 24), (units,))
    inputs = tensors(*shapes)
    output = relu(dense_pack(*inputs, units=units))
    schedule = schedule_llvm([output], f"llvm -mcpu={level}")
    arrays = [integers(k, *shape) for k, shape in enumerate(shapes)]
    result = np.full((rows, units), np.nan, np.float32)
    refcomp.build(schedule, [*inputs, output], "llvm")(*arrays, result)
    expected = np.maximum(dense_pack_numpy(*arrays, units=units), 0)
    np.testing.assert_array_equal(result, expected)


def _copied(inputs, output, level):
    schedule = schedule_llvm([output], f"llvm -mcpu=x86-64-{level}")
    assert stored_tensors(schedule) == ()
    func = lower(schedule, [*inputs, output], "f")
    allocated = [node.buffer for node in walk(func.body) if isinstance(node, Allocate)]
    return {
        buffer.name: [extent.value for extent in buffer.shape]
        for buffer in allocated
        if buffer.scope == "global"
    }


def test_narrow_columns_are_packed_for_tiles_that_share_them() -> None:
    a, b = tensors((64, 40), (40, 64))
    assert _copied([a, b], matmul(a, b), "v3") == {f"{b.op.name}.global": [4, 40, 16]}
    assert _copied([a, b], matmul(a, b), "v4") == {}  # a row of a tile has four lines
    a, b = tensors((64, 40), (40, 1024))  # each row begins on a page of its own
    assert _copied([a, b], matmul(a, b), "v4") == {f"{b.op.name}.global": [4, 40, 64]}
    a, b = tensors((64, 40), (40, 1040))
    assert _copied([a, b], matmul(a, b), "v4") == {}
    a, b = tensors((8, 40), (40, 64))
    assert _copied([a, b], matmul(a, b), "v3") == {}  # too few tiles read a copy
    (a,) = tensors((64, 64))
    assert _copied([a], matmul(a, a), "v3") == {}  # a copy would hold the other factor, too


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [("ik,j->ij", ((64, 5), (1024,))), ("imk,mj->imj", ((64, 3, 5), (3, 1024)))],
    ids=["row", "rows of the result"],
)
def test_a_vector_factor_without_the_reduction_is_not_copied(equation, shapes) -> None:
    inputs = tensors(*shapes)
    assert _copied(inputs, einsum(*inputs, equation=equation), "v3") == {}


@pytest.mark.parametrize(
    ("depth", "columns", "panels"),
    [(512, 512, 4), (1024, 1024, 4), (512, 777, 7), (512, 496, 1), (4099, 512, 1)],
    ids=str,
)
def test_panels_of_a_block_divide_all_and_stay_in_the_second_cache(depth, columns, panels) -> None:
    a, b = tensors((64, depth), (depth, columns))
    copies = {f"{b.op.name}.global": [panels, depth, 16]}
    assert _copied([a, b], matmul(a, b), "v3") == copies


def test_rows_are_multiplied_by_all_panels_of_a_block_in_turn() -> None:
    a, b = tensors((64, 40), (40, 128))
    product = matmul(a, b)
    func = lower(schedule_llvm([product], "llvm -mcpu=x86-64-v3"), [a, b, product], "f")
    names = [node.var.name for node in walk(func.body) if isinstance(node, For)]
    order = [name for name in names if name in ("i1.outer.outer", "i0.outer", "i1.outer.inner")]
    assert order == ["i1.outer.outer", "i0.outer", "i1.outer.inner"]


_DEEP = pytest.mark.parametrize(
    ("batch", "has_panels", "follows"),
    [((), False, False), ((2,), False, True), ((), True, False), ((), True, True)],
    ids=str,
)


def _deep_product(batch, has_panels, follows):
    """Return the inputs, the output, its operands, and what a product of 4096 steps is."""
    rows, depth, columns = 26, 4096, 42
    given = integers(0, *batch, rows, depth), integers(1, *batch, depth, columns)
    expected = matmul_numpy(*given)
    a, b = tensors((*batch, rows, depth), (3, depth, 16) if has_panels else given[1].shape)
    output = dense_pack(a, b, units=columns) if has_panels else matmul(a, b)
    if has_panels:
        padded = np.pad(given[1], ((0, 0), (0, 6))).reshape(depth, 3, 16)
        given = given[0], np.ascontiguousarray(padded.transpose(1, 0, 2))
    if follows:
        output = relu(output)
        expected = np.maximum(expected, 0)
    return [a, b], output, given, expected


@pytest.mark.llvm
@_DEEP
def test_deep_products_are_right(batch, has_panels, follows) -> None:
    inputs, output, given, expected = _deep_product(batch, has_panels, follows)
    target = "llvm -mcpu=x86-64-v3"
    module = refcomp.build(schedule_llvm([output], target), [*inputs, output], target)
    result = np.full(expected.shape, np.nan, np.float32)
    module(*given, result)
    np.testing.assert_array_equal(result, expected)


@_DEEP
def test_parts_of_deep_products_are_added_up_in_registers(batch, has_panels, follows) -> None:
    inputs, output, _, _ = _deep_product(batch, has_panels, follows)
    schedule = schedule_llvm([output], "llvm -mcpu=x86-64-v3")
    assert stored_tensors(schedule) == ()
    func = lower(schedule, [*inputs, output], "f")
    buffers = [node.buffer for node in walk(func.body) if isinstance(node, Allocate)]
    shapes = {b.scope: [extent.value for extent in b.shape] for b in buffers}
    assert np.prod(shapes["local"]) == 6 * 16  # the sums of a tile, whatever its sides are
    totals = buffers[0]
    assert totals.scope == "global"
    assert [extent.value for extent in totals.shape][-2:] == [26, 42]
    serial = [n.extent.value for n in walk(func.body) if isinstance(n, For) and n.kind == "serial"]
    assert serial.count(4096) == 0 and 8 in serial and 512 in serial


@pytest.mark.llvm
def test_errors_of_deep_products_do_not_grow_with_all_steps() -> None:
    """Errors of a few hundred steps in turn have a root mean square of 1e-6 of the terms' sizes."""
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(s, dtype=np.float32) for s in ((64, 32768), (32768, 64))]
    a, b = tensors((64, 32768), (32768, 64))
    output = matmul(a, b)
    result = np.empty((64, 64), np.float32)
    target = "llvm -mcpu=x86-64-v3"
    refcomp.build(schedule_llvm([output], target), [a, b, output], target)(*given, result)
    exact = given[0].astype(np.float64) @ given[1].astype(np.float64)
    # One sum of all steps errs by 6e-4 on average, as measured.
    assert np.sqrt(np.mean((result - exact) ** 2)) < 2e-4


def test_panels_without_masks_may_be_wider_than_the_matrix() -> None:
    a, b = tensors((128, 256), (256, 77))
    assert _tile(matmul(a, b), AVX2) == RegisterTile(rows=6, columns=1, vectors=2, lanes=8)


@pytest.mark.llvm
@pytest.mark.parametrize("shape", [(25, 33, 77), (24, 8, 97), (2, 26, 17, 50)], ids=str)
def test_products_by_copied_panels_are_right(shape) -> None:
    *batch, rows, depth, columns = shape
    a, b = tensors((*batch, rows, depth), (*batch, depth, columns))
    output = relu(matmul(a, b))
    given = integers(0, *batch, rows, depth), integers(1, *batch, depth, columns)
    for level in ("x86-64", "x86-64-v3"):
        target = f"llvm -mcpu={level}"
        module = refcomp.build(schedule_llvm([output], target), [a, b, output], target)
        result = np.full((*batch, rows, columns), np.nan, np.float32)
        module(*given, result)
        np.testing.assert_array_equal(result, np.maximum(matmul_numpy(*given), 0))


@pytest.mark.llvm
@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])  # others call fmaf
@pytest.mark.parametrize("has_panels", [False, True])
def test_sums_of_a_product_stay_in_registers_on_each_processor(level, has_panels) -> None:
    a, b = tensors((64, 40), (2, 40, 48) if has_panels else (40, 96))
    output = dense_pack(a, b) if has_panels else matmul(a, b)
    target = f"llvm -mcpu={level}"
    func = lower(schedule_llvm([output], target), [a, b, output], "f")
    with refcomp.build_options(contract=True):
        source = compile_to_source([func], target)
        options = dict(refcomp.as_target(target).options)
        listing = compile_source(source, options, "asm").data.decode()
    spilled = [line for line in listing.splitlines() if "Spill" in line and "mm" in line]
    assert not spilled
    assert "vfmadd" in listing


@pytest.mark.llvm
@pytest.mark.parametrize("level", ["native", "x86-64", "x86-64-v3", "x86-64-v4"])
def test_products_scheduled_for_any_processor_are_right_on_this_one(level) -> None:
    a, b, c = tensors((29, 33), (33, 77), (29, 77))
    output = relu(gemm(a, b, c))
    schedule = schedule_llvm([output], f"llvm -mcpu={level}")
    arrays = [integers(k, *shape) for k, shape in enumerate(((29, 33), (33, 77), (29, 77)))]
    result = np.full((29, 77), np.nan, np.float32)
    refcomp.build(schedule, [a, b, c, output], "llvm")(*arrays, result)
    np.testing.assert_array_equal(result, np.maximum(gemm_numpy(*arrays), 0))


def test_sums_are_local_and_what_follows_reads_them_there() -> None:
    image, weight, bias = tensors((1, 8, 14, 14), (16, 8, 1, 1), (16,))
    output = relu(conv2d(image, weight, bias))
    schedule = schedule_llvm([output], "llvm -mcpu=x86-64-v4")
    assert stored_tensors(schedule) == ()
    func = lower(schedule, [image, weight, bias, output], "f")
    (sums,) = [node.buffer for node in walk(func.body) if isinstance(node, Allocate)]
    assert sums.scope == "local"
    assert [extent.value for extent in sums.shape] == [1, 8, 2, 14]


def _interpreted(inputs, output, arrays):
    func = lower(schedule_llvm([output]), [*inputs, output], "f")
    result = np.full([extent.value for extent in output.shape], np.nan, np.float32)
    interpret(func, [*arrays, result])
    return result


@settings(max_examples=10)
@given(st.integers(1, 20), st.integers(1, 70), st.integers(0, 3), seeds)
def test_any_extents_are_right(rows, columns, depth, seed):
    a, b = tensors((rows, depth), (depth, columns))
    arrays = [integers(seed, rows, depth), integers(seed + 1, depth, columns)]
    result = _interpreted([a, b], matmul(a, b), arrays)
    np.testing.assert_array_equal(result, matmul_numpy(*arrays))


@settings(max_examples=10)
@given(st.integers(1, 9), st.integers(1, 20), st.integers(1, 9), seeds)
def test_any_image_is_right(height, width, filters, seed):
    image, weight = tensors((2, 3, height, width), (filters, 3, 2, 3))
    arrays = [integers(seed, 2, 3, height, width), integers(seed + 1, filters, 3, 2, 3)]
    padding = (1, 1, 0, 1)
    result = _interpreted([image, weight], conv2d(image, weight, padding=padding), arrays)
    np.testing.assert_array_equal(result, conv2d_numpy(*arrays, padding=padding))


@pytest.mark.llvm
def test_machine_code_agrees_on_whole_and_partial_tiles() -> None:
    a, b, c = tensors((13, 5), (5, 75), (13, 75))
    output = relu(gemm(a, b, c))
    built = refcomp.build(schedule_llvm([output]), [a, b, c, output], "llvm")
    arrays = [integers(k, *shape) for k, shape in enumerate(((13, 5), (5, 75), (13, 75)))]
    result = np.full((13, 75), np.nan, np.float32)
    built(*arrays, result)
    np.testing.assert_array_equal(result, np.maximum(gemm_numpy(*arrays), 0))


def test_output_that_follows_two_products_has_the_loops_of_one() -> None:
    a, b = (refcomp.placeholder((8, 32), name=name) for name in "AB")
    first = refcomp.topi.matmul(a, b, trans_a=True)
    second = refcomp.topi.matmul(b, a, trans_a=True)
    total = refcomp.topi.add(first, second)
    arrays = [np.random.default_rng(k).integers(-8, 9, (8, 32)) for k in range(2)]
    feeds = dict(zip((a, b), (array.astype(np.float32) for array in arrays), strict=True))
    func = refcomp.lower(refcomp.topi.schedule_llvm([total]), [a, b, total], "two_products")
    module = refcomp.build_functions([func], target="interp")
    result = refcomp.array(np.zeros((32, 32), np.float32))
    module["two_products"](*(refcomp.array(array) for array in feeds.values()), result)
    x, y = feeds.values()
    np.testing.assert_array_equal(result.asnumpy(), x.T @ y + y.T @ x)
