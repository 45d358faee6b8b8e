"""Executors with the classic methods run as those of `refcomp.graph`."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.classic import contrib, nnvm
from refcomp.foundation.errors import UserError

graph_runtime = contrib.graph_runtime
debug_runtime = contrib.debugger.debug_runtime


def built(opt_level: int = 3):
    """Return a built network with two outputs: exp(x), and relu(exp(x) - 1)."""
    e = nnvm.sym.exp(nnvm.sym.Variable("x"), name="e")
    net = nnvm.sym.Group([e, nnvm.sym.relu(e - 1, name="r")])
    with nnvm.compiler.build_config(opt_level=opt_level):
        graph, lib, _ = nnvm.compiler.build(net, "interp", {"x": (2,)})
    return graph, lib


def test_outputs_are_counted_and_functions_have_names() -> None:
    module = graph_runtime.create(*built(), rc.cpu(0))
    assert isinstance(module, rc.GraphExecutor)
    assert (module.get_num_inputs(), module.get_num_outputs()) == (1, 2)
    module["set_input"]("x", np.zeros(2, "float32"))
    module.module["run"]()
    assert module["get_output"](1).asnumpy().tolist() == [0, 0]
    with pytest.raises(UserError, match="the runtime has no function 'runn'") as info:
        module["runn"]
    assert "did you mean run?" in str(info.value)


def test_numpy_arrays_of_another_dtype_are_converted() -> None:
    module = graph_runtime.create(*built(), [rc.cpu()])
    module.set_input("x", np.zeros(2))
    module.run()
    assert module.get_output(0).asnumpy().tolist() == [1, 1]
    module.set_input(0, np.zeros(2, "float16"))
    with pytest.raises(UserError, match="input 'x' is f32, but the array is f64"):
        module.set_input(x=rc.array(np.zeros(2)))
    with pytest.raises(UserError, match="the graph has no input 'y'"):
        module.set_input(y=np.zeros(2))


def test_integers_are_not_made_of_floats() -> None:
    x = nnvm.sym.Variable("x")
    graph, lib, _ = nnvm.compiler.build(x + x, "interp", {"x": (2,)}, dtype="int32")
    module = graph_runtime.create(graph, lib)
    module.set_input("x", np.array([1, 2]))
    assert module.run()[0].asnumpy().tolist() == [2, 4]
    with pytest.raises(UserError, match="input 'x' is i32, but the array is f64"):
        module.set_input("x", np.array([1.5, 2]))


def test_runs_are_measured() -> None:
    module = graph_runtime.create(*built(), rc.cpu())
    module.set_input("x", np.zeros(2))
    times = module.module.time_evaluator("run", rc.cpu(), number=1, repeat=2)()
    assert len(times.results) == 2
    assert times.min > 0
    with pytest.raises(UserError, match="the function 'get_input' of a network cannot be measured"):
        module.module.time_evaluator("get_input", rc.cpu())
    with pytest.raises(UserError, match="the network runs on cpu"):
        module.module.time_evaluator("run", rc.opencl(0))


def test_a_network_runs_on_one_device() -> None:
    with pytest.raises(UserError, match="2 devices are given for one network"):
        graph_runtime.create(*built(), [rc.cpu(), rc.opencl(0)])
    with pytest.raises(UserError, match="a value of type int is not a compiled graph"):
        graph_runtime.create(3, None)


def test_the_name_of_a_device_is_no_device() -> None:
    with pytest.raises(UserError, match="'cpu' is not a device"):
        graph_runtime.create(*built(), "cpu")


def test_a_debug_runtime_returns_outputs_of_nodes() -> None:
    module = debug_runtime.create(*built(opt_level=0), rc.cpu())
    module.set_input("x", np.zeros(2))
    assert module.debug_get_output("e").asnumpy().tolist() == [1, 1]
    assert module.debug_get_output(0, rc.nd.empty((2,))).asnumpy().tolist() == [1, 1]
    assert set(module.outputs) >= {"e", "r"}
    with pytest.raises(UserError, match="no kernel makes the output 'nothing'") as info:
        module.debug_get_output("nothing")
    assert "build at opt_level=0" in str(info.value)
    with pytest.raises(UserError, match="a debug runtime writes no files by itself"):
        debug_runtime.create(*built(), rc.cpu(), dump_root="/tmp")


def test_a_runtime_says_which_runtime_has_outputs_of_nodes() -> None:
    module = graph_runtime.create(*built(), rc.cpu())
    with pytest.raises(AttributeError, match="create the runtime by `debug_runtime.create`"):
        module.debug_get_output("e")
