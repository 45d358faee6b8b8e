"""Building networks of symbols: parameters, levels of passes, and refusals."""

from pathlib import Path

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.graph.building import GraphConfig, build, build_config
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.optimize import OPTIONAL_STEPS, STEPS

X = rc.sym.Variable("x")


def network() -> rc.sym.Symbol:
    """Return a network of a convolution, a batch norm and a dense layer."""
    net = rc.sym.conv2d(X, channels=4, kernel_size=(3, 3), use_bias=False, name="conv")
    net = rc.sym.relu(rc.sym.batch_norm(net, name="bn"), name="r")
    net = rc.sym.dense(rc.sym.flatten(net, name="flat"), units=5, name="fc")
    return rc.sym.softmax(net, name="probabilities")


NET = network()
SHAPE = {"x": (2, 3, 6, 6)}
DATA = np.random.default_rng(1).uniform(-1, 1, SHAPE["x"]).astype("float32")


def weights() -> dict[str, np.ndarray]:
    draws = np.random.default_rng(0)
    shapes = dict(zip(NET.list_input_names(), NET.infer_shape(**SHAPE)[0], strict=True))
    del shapes["x"]
    return {n: draws.uniform(0.1, 0.5, s).astype("float32") for n, s in shapes.items()}


WEIGHTS = weights()
(EXPECTED,) = evaluate_graph(NET.to_graph(SHAPE), {"x": DATA, **WEIGHTS})


def run(target: str, **options: object) -> np.ndarray:
    graph, lib, params = build(NET, target, SHAPE, params=WEIGHTS, **options)
    executor = rc.graph.executor.create(graph, lib)
    executor.set_input(**params)
    (made,) = executor.run(x=DATA)
    return made.asnumpy()


@pytest.mark.parametrize("level", range(4))
def test_network_means_the_same_at_each_level(level: int) -> None:
    with build_config(opt_level=level):
        np.testing.assert_allclose(run("interp"), EXPECTED, rtol=1e-5)


@pytest.mark.llvm
@pytest.mark.parametrize("level", [0, 3])
def test_compiled_network_means_the_same(level: int) -> None:
    with build_config(opt_level=level):
        np.testing.assert_allclose(run("llvm", target_host="llvm"), EXPECTED, rtol=1e-5)


@pytest.mark.llvm
def test_network_is_run_from_files(tmp_path: Path) -> None:
    graph, lib, params = build(NET, "llvm", SHAPE, params=WEIGHTS)
    (tmp_path / "net.json").write_text(graph.json(), encoding="utf-8")
    lib.export_library(tmp_path / "net.module")
    (tmp_path / "net.params").write_bytes(rc.graph.save_param_dict(params))
    executor = rc.graph.executor.create(
        (tmp_path / "net.json").read_text(encoding="utf-8"),
        rc.load_module(tmp_path / "net.module"),
        rc.cpu(0),
    )
    executor.load_params((tmp_path / "net.params").read_bytes())
    (made,) = executor.run(x=DATA)
    np.testing.assert_array_equal(made.asnumpy(), run("llvm"))


CLASSIC = """
import refcomp as rc
from refcomp.graph import symbol as sym

x = sym.Variable("data")
y = sym.conv2d(
    data=x, channels=32, kernel_size=(3, 3), padding=(1, 1), name="conv1", use_bias=False
)
y = sym.batch_norm(y, name="bn1")
y = sym.relu(y)
y = sym.flatten(y)
y = sym.dense(y, units=10, name="fc")
y = sym.softmax(y)
graph, lib, params = rc.graph.build(
    y, target=target, shape={"data": (1, 3, 32, 32)}, dtype="float32", params=params
)
m = rc.graph.executor.create(graph, lib, rc.cpu(0))
m.set_input("data", array)
m.set_input(**params)
m.run()
out = m.get_output(0)
"""


@pytest.mark.llvm
def test_classic_program_runs_but_for_its_imports() -> None:
    shapes = {
        "conv1_weight": (32, 3, 3, 3),
        **{f"bn1_{name}": (32,) for name in ("gamma", "beta", "moving_mean", "moving_var")},
        "fc_weight": (10, 32 * 32 * 32),
        "fc_bias": (10,),
    }
    draws = np.random.default_rng(0)
    # Sums of positive products would be so large that softmax shows their rounding.
    drawn = {
        name: draws.normal(0, 0.05, shape) if "weight" in name else draws.uniform(0.01, 0.1, shape)
        for name, shape in shapes.items()
    }
    params = {name: rc.nd.array(array.astype("float32")) for name, array in drawn.items()}
    given = {"target": "llvm", "params": params}
    given["array"] = draws.uniform(size=(1, 3, 32, 32)).astype("float32")
    exec(CLASSIC, given)  # noqa: S102  (the text above)
    net, feeds = given["y"], {name: array.asnumpy() for name, array in params.items()}
    graph = net.to_graph({"data": (1, 3, 32, 32)})
    (expected,) = evaluate_graph(graph, {"data": given["array"], **feeds})
    np.testing.assert_allclose(given["out"].asnumpy(), expected, rtol=1e-4)


def test_levels_choose_passes() -> None:
    assert GraphConfig(0).passes() == [
        *("remove_dead_nodes", "remove_identities", "simplify_inference")
    ]
    assert GraphConfig(1).passes()[-1] == "fuse_operators"
    assert "fold_batch_norm" not in GraphConfig(2).passes()
    assert "fold_constants" in GraphConfig(2).passes()
    assert GraphConfig().passes() == [step.name for step in STEPS]
    with build_config(opt_level=0, add_pass="fuse_operators") as config:
        assert config.passes()[-1] == "fuse_operators"


def test_optional_passes_run_at_their_places() -> None:
    names = [step.name for step in OPTIONAL_STEPS]
    with build_config(add_pass=names) as config:
        passes = config.passes()
    assert len(passes) == len(STEPS) + len(OPTIONAL_STEPS)
    assert passes.index("convert_quantized") < passes.index("fold_constants")
    assert passes.index("mixed_precision") > passes.index("fold_scale_axis")
    with build_config(add_pass="mixed_precision"):
        graph, lib, params = build(NET, "interp", SHAPE, params=WEIGHTS)
    assert "f16" in str(graph)
    executor = rc.graph.executor.create(graph, lib)
    executor.set_input(**params)
    # Products of f16: 11 bits of each factor.
    np.testing.assert_allclose(executor.run(x=DATA)[0].asnumpy(), EXPECTED, rtol=2**-6)


def test_scopes_of_options_nest() -> None:
    def kernels() -> int:
        return len(build(NET, "interp", SHAPE, params=WEIGHTS)[0].module.kernels)

    fused = kernels()
    with build_config(opt_level=0):
        plain = kernels()
        with build_config(opt_level=3):
            assert kernels() == fused
        assert kernels() == plain
    assert kernels() == fused < plain


def test_without_parameters_they_stay_inputs() -> None:
    graph, lib, params = build(NET, "interp", SHAPE)
    assert params == {}
    executor = rc.graph.executor.create(graph, lib)
    assert list(executor.input_names) == NET.list_input_names()
    executor.set_input(**{name: rc.array(array) for name, array in WEIGHTS.items()})
    (made,) = executor.run(x=DATA)
    np.testing.assert_allclose(made.asnumpy(), EXPECTED, rtol=1e-5)


def test_parameters_may_be_ndarrays_of_several_dtypes() -> None:
    indices = rc.sym.Variable("indices")
    net = rc.sym.take(X, indices, axis=0)
    graph, lib, params = build(
        net,
        "interp",
        {"x": (20, 2)},
        dtype="float16",
        params={"indices": rc.array(np.arange(10, dtype="int32"))},
    )
    executor = rc.graph.executor.create(graph, lib)
    executor.set_input(**params)
    data = np.arange(40, dtype="float16").reshape(20, 2)
    (made,) = executor.run(x=data)
    np.testing.assert_array_equal(made.asnumpy(), data[:10])


def test_dtypes_are_given_by_name_or_stand_at_variables() -> None:
    graph, *_ = build(NET, "interp", SHAPE, {"x": "float64"})
    assert {str(value.dtype) for value in graph.graph.inputs} == {"f64"}
    x = rc.sym.Variable("x", shape=(2,), dtype="int32")
    graph, *_ = build(rc.sym.elemwise_add(x, x), "interp")
    assert str(graph.graph.inputs[0]) == "x: i32[2]"
    graph, *_ = build(rc.sym.elemwise_add(x, x), "interp", {"x": (3,)})
    assert str(graph.graph.inputs[0]) == "x: i32[3]"


def test_graphs_of_frontends_are_built_too() -> None:
    graph, lib, params = build(NET.to_graph(SHAPE), "interp", params=WEIGHTS)
    assert graph.symbol is None
    executor = rc.graph.executor.create(graph, lib)
    executor.set_input(**params)
    np.testing.assert_allclose(executor.run(x=DATA)[0].asnumpy(), EXPECTED, rtol=1e-5)


def without(name: str) -> dict[str, np.ndarray]:
    return {key: array for key, array in WEIGHTS.items() if key != name}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: build(NET, "interp", SHAPE, params={**WEIGHTS, "fc_weights": DATA}),
            r"the network has no parameters 'fc_weights'\n(.|\n)*did you mean fc_weight",
        ),
        (
            lambda: build(NET, "interp", SHAPE, params=without("bn_beta")),
            r"no parameters are given for 'bn_beta'\n(.|\n)*add them to params, or give their sh",
        ),
        (
            lambda: build(NET, "interp", SHAPE, params={**WEIGHTS, "x": DATA}),
            r"'x' are inputs with a shape, and parameters, too",
        ),
        (
            lambda: build(
                NET, "interp", SHAPE, params={**WEIGHTS, "fc_weight": np.ones((5, 5), "f4")}
            ),
            r"fc_weight: f32\[5, 5\]",
        ),
        (lambda: build(NET, "interp"), "the shape of the variable 'x' is unknown"),
        (lambda: build(NET, "interp", (1, 2)), r"\(1, 2\) does not give the shapes of inputs by n"),
        (lambda: build(NET, "interp", {"data": (1,)}), "the symbol has no variable 'data'"),
        (lambda: build(3, "interp"), "a int is not a network\n(.|\n)*pass a symbol"),
        (lambda: build(NET, "llmv", SHAPE), "unknown target 'llmv'"),
        (
            lambda: build(NET, "interp", SHAPE, target_host="opencl"),
            "cannot be compiled for opencl",
        ),
        (
            lambda: build(NET, "interp", SHAPE, target_host="llvm -system-lib"),
            "target interp has no option '-system-lib'",
        ),
        (lambda: build(NET, "interp", SHAPE, layout=3), "3 is not a layout"),
        (lambda: build(NET, "interp", SHAPE, "float99"), "unknown dtype 'float99'"),
        (lambda: build(NET, "interp", SHAPE, params=3), "parameters are a int, not arrays by name"),
    ],
)
def test_what_does_not_fit_is_refused(call: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        call()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"opt_level": 4}, "opt_level cannot be 4\n(.|\n)*give 0 to 3"),
        ({"opt_level": True}, "opt_level cannot be True"),
        ({"add_pass": "fold_constant"}, "no graph pass is called 'fold_constant'\n(.|\n)*did you"),
        ({"add_pass": [3]}, "no graph pass is called 3"),
        ({"add_pass": 3}, "no graph pass is called 3"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message), build_config(**options):
        pass
