#!/usr/bin/env python3
"""A network in the words of NNVM: symbols become a graph, a module and parameters, and files.

Only the imports say that this is refcomp. Needs LLVM. It prints the network as symbols, as a graph
before and after the passes, and how many kernels each level of optimization leaves. Then it saves
the result in three files, runs it from these files, and compares with the numpy meaning.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import refcomp as rc
from refcomp.graph import symbol as sym
from refcomp.graph import testing

SHAPE = {"data": (1, 3, 32, 32)}


def describe() -> sym.Symbol:
    """Return a small network for images: a convolution, a residual block, ten classes."""
    x = sym.Variable("data")
    y = sym.conv2d(
        data=x, channels=16, kernel_size=(3, 3), padding=(1, 1), use_bias=False, name="conv1"
    )
    y = sym.relu(sym.batch_norm(y, name="bn1"), name="relu1")
    z = sym.conv2d(y, channels=16, kernel_size="(3, 3)", padding="(1, 1)", name="conv2")
    y = sym.max_pool2d(y + z, pool_size=(2, 2), strides=(2, 2), name="pool")
    y = sym.dense(sym.flatten(y, name="flat"), units=10, name="fc")
    return sym.softmax(y, name="probabilities")


def show(title: str, text: str) -> None:
    """Print a text under a title."""
    print(f"\n----- {title} -----\n{text.rstrip()}")


def show_parameters(net: sym.Symbol) -> None:
    """Print the variables of the network, whose shapes follow from that of the data."""
    variables, outputs = net.infer_shape(**SHAPE)
    pairs = zip(net.list_input_names(), variables, strict=True)
    show("variables", "\n".join(f"{name}: {shape}" for name, shape in pairs))
    print(f"{net.list_output_names()[0]}: {outputs[0]}")


def show_levels(net: sym.Symbol, params: dict[str, rc.NDArray]) -> None:
    """Print how many kernels each level of optimization leaves."""
    for level in range(4):
        with rc.graph.build_config(opt_level=level):
            graph, *_ = rc.graph.build(net, "interp", SHAPE, params=params)
        names = [kernel.name.split("_", 1)[1] for kernel in graph.module.kernels]
        print(f"level {level}: {len(names)} kernels: {', '.join(names)}")


def save(folder: Path, net: sym.Symbol, params: dict[str, rc.NDArray]) -> None:
    """Compile the network, and write the graph, the module and the parameters to a folder."""
    graph, lib, params = rc.graph.build(net, "llvm", shape=SHAPE, dtype="float32", params=params)
    show("graph after all passes", str(graph))
    (folder / "net.json").write_text(graph.json(), encoding="utf-8")
    lib.export_library(folder / "net.module")
    (folder / "net.params").write_bytes(rc.graph.save_param_dict(params))


def run(folder: Path, image: np.ndarray) -> np.ndarray:
    """Return the probabilities that the saved network computes."""
    graph = (folder / "net.json").read_text(encoding="utf-8")
    lib = rc.load_module(folder / "net.module")
    m = rc.graph.executor.create(graph, lib, rc.cpu(0))
    m.load_params((folder / "net.params").read_bytes())
    m.set_input("data", image)
    m.run()
    return m.get_output(0).asnumpy()


def main() -> None:
    """Describe, compile, save, load, run, compare."""
    net, params = testing.create_workload(describe(), 1, (3, 32, 32))
    show("symbols", net.debug_str())
    show_parameters(net)
    plain = net.to_graph(SHAPE)
    show("graph before all passes", str(plain))
    show("levels of optimization", "fewer kernels, less memory traffic:")
    show_levels(net, params)
    image = np.random.default_rng(0).uniform(size=SHAPE["data"]).astype("float32")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        net.save(folder / "symbols.json")
        assert sym.load(folder / "symbols.json").json() == net.json()
        save(folder, net, params)
        show("files", "")
        for file in sorted(folder.iterdir()):
            print(f"{file.name}: {file.stat().st_size} bytes")
        made = run(folder, image)
    feeds = {key: array.asnumpy() for key, array in params.items()}
    (expected,) = rc.graph.evaluate_graph(plain, {"data": image, **feeds})
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-6)
    show("result", f"class {made.argmax()}; largest difference from numpy within 1e-4")


if __name__ == "__main__":
    try:
        main()
    except rc.RefcompError as error:
        sys.exit(f"network_from_symbols.py: {error}")
