"""Networks in the classic forms: graphs of symbols, ONNX models, builds and their options."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import refcomp as rc
from refcomp.classic import contrib, nnvm
from refcomp.foundation.errors import UserError


def network() -> rc.sym.Symbol:
    return nnvm.symbol.dense(nnvm.symbol.Variable("x"), units=3, use_bias=False, name="fc")


def test_a_graph_of_a_symbol_is_written_and_read() -> None:
    graph = nnvm.graph.create(network())
    read = nnvm.graph.load_json(graph.json())
    assert read.symbol.list_input_names() == ["x", "fc_weight"]
    assert "Op:dense, Name=fc" in read.ir()
    with pytest.raises(UserError, match="a str is not a network"):
        nnvm.graph.create("fc")
    with pytest.raises(UserError, match="cannot be read from JSON"):
        nnvm.graph.load_json('{"format": 3}')


def test_shapes_and_dtypes_are_inferred() -> None:
    inferred = nnvm.compiler.graph_util
    shapes = ([(2, 5), (3, 5)], [(2, 3)])
    assert inferred.infer_shape(nnvm.graph.create(network()), x=(2, 5)) == shapes
    assert inferred.infer_shape(network(), x=(2, 5)) == shapes
    assert inferred.infer_dtype(network(), x="float64")[1] == ["float64"]


def test_a_graph_is_built_saved_and_loaded() -> None:
    x = np.arange(5, dtype="float32")[None]
    params = {"fc_weight": np.ones((3, 5), "float32")}
    made = nnvm.compiler.build(nnvm.graph.create(network()), "interp", {"x": (1, 5)}, params=params)
    graph, lib, weights = made
    loaded = nnvm.graph.load_json(graph.json())
    for one in (graph, graph.json(), loaded):
        module = contrib.graph_runtime.create(one, lib, rc.cpu())
        module.set_input(**weights)
        module.run(x=x)
        assert module.get_output(0).asnumpy().tolist() == [[10, 10, 10]]


def onnx_model():
    weight = np.arange(6, dtype="float32").reshape(3, 2)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2])
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    graph = helper.make_graph(nodes, "net", [x], [y], [numpy_helper.from_array(weight, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


@pytest.mark.parametrize("form", ["model", "bytes", "path"])
def test_an_onnx_model_is_a_network_and_its_parameters(form: str, tmp_path) -> None:
    model = onnx_model()
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    forms = {"model": model, "bytes": model.SerializeToString(), "path": str(path)}
    net, params = nnvm.frontend.from_onnx(forms[form])
    assert (net.list_input_names(), net.list_output_names()) == (["x", "w"], ["y"])
    assert "matmul(x, w)" in net.debug_str()
    x = np.ones((2, 3), "float32")
    graph, lib, weights = nnvm.compiler.build(net, "interp", {"x": x.shape}, params=params)
    module = contrib.graph_runtime.create(graph, lib, rc.cpu())
    module.set_input("x", x)
    module.set_input(**weights)
    module.run()
    np.testing.assert_array_equal(module.get_output(0).asnumpy(), x @ params["w"].asnumpy())


def test_shapes_of_an_imported_network_are_checked() -> None:
    net, params = nnvm.frontend.from_onnx(onnx_model())
    for shape in ((2, 4), (3,)):
        with pytest.raises(UserError, match=r"input x: f32\[N, 3\] cannot have the shape") as info:
            nnvm.compiler.build(net, "interp", {"x": shape}, params=params)
        assert "what to do: give an array of that shape" in str(info.value)
    with pytest.raises(UserError, match="the graph has no input 'data'"):
        nnvm.compiler.build(net, "interp", {"data": (2, 3)}, params=params)
    with pytest.raises(UserError, match="a dict is not an ONNX model"):
        nnvm.frontend.from_onnx({})


def test_a_network_is_not_built_for_two_devices() -> None:
    with pytest.raises(UserError, match="one network cannot be built for cpu and opencl"):
        nnvm.compiler.build(network(), {"cpu": "llvm", "opencl": "opencl"}, {"x": (1, 5)})


def test_classic_passes_are_added_by_their_names() -> None:
    with nnvm.compiler.build_config(opt_level=0, add_pass=["OpFusion", "PrecomputePrune"]) as made:
        assert {"fuse_operators", "fold_constants"} <= set(made.passes())
    with nnvm.compiler.build_config(0, "FoldScaleAxis") as made:
        assert "fold_scale_axis" in made.passes()
    with pytest.raises(UserError, match="no graph pass is called 3"):
        nnvm.compiler.build_config(add_pass=3).__enter__()
    with nnvm.compiler.build_config(opt_level=1) as made:
        assert "fold_constants" not in made.passes()
    misspelt = nnvm.compiler.build_config(add_pass="OpFussion")
    with pytest.raises(UserError, match="no graph pass is called 'OpFussion'"), misspelt:
        pass
