"""Kernels have symbols of their own where their arguments do not determine those of the graph."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.artifacts import evaluate_dim, names_in_dim
from refcomp.foundation.symbol_sizes import solvable_symbols
from refcomp.graph.dims import substitute
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.kernel_extents import with_own_symbols

HALF = ("add", ("floordiv", ("add", "H", -1), 2), 1)
QUARTER = ("add", ("floordiv", ("floordiv", ("add", "H", -1), 2), 2), 1)
CASES = [
    [("N", HALF)],
    [(HALF,), (("add", HALF, 2),)],
    [(QUARTER,), (HALF,)],
    [(("add", "H", "W"), 3), (("add", "H", "W"),)],
    [(("floordiv", "H", 2), ("floordiv", "W", 2)), (("min", "H", "W"),)],
    [(("floordiv", ("mul", "H", "W"), 4), "extent0")],
    [(("floormod", ("add", "H", "W"), 4), ("floordiv", ("add", "H", "W"), 4))],
]


@pytest.mark.parametrize("shapes", CASES)
def test_the_shapes_determine_their_symbols_and_mean_what_they_meant(shapes) -> None:
    made, meanings = with_own_symbols(shapes)
    dims = [dim for shape in made for dim in shape]
    names = {name for dim in dims for name in names_in_dim(dim)}
    assert names <= solvable_symbols(dims)
    assert not {*meanings} & {name for shape in shapes for d in shape for name in names_in_dim(d)}
    sizes = {"H": 37, "W": 23, "N": 5, "extent0": 7}
    for shape, own in zip(shapes, made, strict=True):
        for dim, other in zip(shape, own, strict=True):
            meant = substitute(other, meanings)
            assert evaluate_dim(meant, sizes) == evaluate_dim(dim, sizes)


def test_shapes_that_determine_their_symbols_stay_as_they_are() -> None:
    for shapes in ([("N", "H"), (HALF,)], [(("mul", "H", 2), 3)], [(2, 3)], []):
        assert with_own_symbols(shapes) == (tuple(shapes), {})


def test_relations_of_extents_are_kept() -> None:
    (shape, padded), _ = with_own_symbols([(HALF,), (("add", HALF, 2),)])
    assert (shape, padded) == ((("add", "extent0", 1),), (("add", ("add", "extent0", 1), 2),))
    (half, quarter), _ = with_own_symbols([(HALF,), (QUARTER,)])
    assert half == (("add", "extent0", 1),)
    assert quarter == (("add", ("floordiv", "extent0", 2), 1),)


@pytest.mark.llvm
def test_kernels_behind_convolutions_with_strides_run_for_any_size() -> None:
    builder = rc.graph.GraphBuilder("net")
    x = builder.input("x", "float32", ("N", 2, "H", "W"))
    weights = [
        builder.constant(f"w{k}", np.random.default_rng(k).standard_normal((2, 2, 3, 3), "f"))
        for k in range(3)
    ]
    strided = {"strides": (2, 2), "padding": (1, 1, 1, 1)}
    half = builder.node("conv2d", [x, weights[0]], strided)
    same = builder.node("conv2d", [half, weights[1]], {"padding": (1, 1, 1, 1)})
    quarter = builder.node("conv2d", [builder.node("add", [half, same]), weights[2]], strided)
    net = builder.finish([builder.node("softmax", [quarter], {"axis": 3}), same])
    executor = rc.GraphExecutor(rc.compile_graph(net))
    for height, width in ((7, 12), (1, 1), (8, 5)):
        image = np.random.default_rng(9).standard_normal((2, 2, height, width), np.float32)
        found = executor.run(x=image)
        for one, expected in zip(found, evaluate_graph(net, {"x": image}), strict=True):
            np.testing.assert_allclose(one.asnumpy(), expected, rtol=1e-4, atol=1e-5)
