"""The programs whose compilation is timed: they mean what they say, and their curve is told."""

import numpy as np
import pytest

import refcomp
from benchmarks.lowering.corners import describe_corners
from benchmarks.lowering.workload import (
    chain_of_stages,
    compile_described,
    compile_to_text,
    curve_of,
    unrolled_bodies,
)
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import PARALLEL, VECTORIZED, For
from refcomp.te.operation import ComputeOp


def corners(image):
    """The response by slices."""
    height, width = image.shape

    def at(array, y, x):
        return array[y : y + array.shape[0] - 2, x : x + array.shape[1] - 2]

    ix = sum(w * (at(image, k, 2) - at(image, k, 0)) for k, w in enumerate((1, 2, 1)))
    iy = sum(w * (at(image, 2, k) - at(image, 0, k)) for k, w in enumerate((1, 2, 1)))
    xx, xy, yy = (
        sum(at(product, k // 3, k % 3) for k in range(9)) for product in (ix * ix, ix * iy, iy * iy)
    )
    assert xx.shape == (height - 4, width - 4)
    return xx * yy - xy * xy - 0.04 * (xx + yy) * (xx + yy)


@pytest.mark.search
def test_the_pipeline_computes_corners_in_nine_stages():
    schedule, args = describe_corners(39, 23)
    assert sum(isinstance(stage.op, ComputeOp) for stage in schedule.stages) == 9
    loops = [node for node in walk(refcomp.lower(schedule, args).body) if isinstance(node, For)]
    assert sum(loop.kind == PARALLEL for loop in loops) == 1
    assert sum(loop.kind == VECTORIZED for loop in loops) == 9
    image = np.random.default_rng(0).integers(-2, 3, (39, 23)).astype(np.float32)
    response = np.zeros((35, 19), np.float32)
    refcomp.build(schedule, args, "interp")(image, response)
    np.testing.assert_array_equal(response, corners(image))


@pytest.mark.parametrize("describe", [chain_of_stages, unrolled_bodies])
def test_programs_of_the_curve_have_as_many_statements(describe):
    small, large = (compile_described(describe, size).count("  store ") for size in (4, 12))
    assert (small, large) == (4, 12)


@pytest.mark.search
def test_the_pipeline_is_compiled_to_vectors():
    assert "<16 x float>" in compile_to_text(*describe_corners(64, 64))


def test_the_curve_is_told_in_one_line():
    told = curve_of({10: 0.02, 1000: 1.5})
    assert told == "milliseconds a statement: 2.00 at 10, 1.50 at 1,000"
