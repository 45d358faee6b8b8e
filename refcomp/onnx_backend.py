"""ONNX's backend interface: run models and single nodes by refcomp.

The functions are those of `onnx.backend.base.Backend`, so that ONNX's own test runner takes this
module as a backend. It needs the optional package `onnx`.

Devices: `CPU` compiles by LLVM, `INTERP` interprets the loop IR, `OPENCL` runs on the first OpenCL
device, and `EMULATOR:gfx942` emulates the machine code of an AMD GPU. Any target of refcomp, such
as `rocm -mcpu=gfx90a`, is a device too.

Example::

    >>> rc.onnx_backend.supports_device("EMULATOR:gfx1100")
    True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from refcomp.driver.devices import rocm_emulator
from refcomp.foundation.errors import RefcompError, UserError
from refcomp.foundation.near_misses import advise
from refcomp.foundation.target import Target, as_target
from refcomp.frontend.onnx.element_types import restored, stored
from refcomp.frontend.onnx.importer import from_onnx
from refcomp.frontend.onnx.reading import onnx_package
from refcomp.graph.graph import Graph
from refcomp.graph.stages.executor import executor_for
from refcomp.runtime.arrays.ndarray import NDArray
from refcomp.runtime.device import Device

__all__ = ["OnnxModel", "prepare", "run_model", "run_node", "supports_device"]

_EMULATOR = "EMULATOR"
_DEVICES = {"CPU": "llvm", "INTERP": "interp", "OPENCL": "opencl"}


class OnnxModel:
    """A model that is ready to run, which `prepare` returns.

    Attributes:
        graph: the graph that `from_onnx` read.
        target: the target that it is compiled for.

    Args:
        model: an `onnx.ModelProto`.
        target: what to compile for.
        device: the device that runs it; None for the first one of the target's kind.

    Example::

        >>> from onnx import TensorProto, helper
        >>> info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
        >>> node = helper.make_node("Relu", ["x"], ["y"])
        >>> model = helper.make_model(helper.make_graph([node], "net", info[:1], info[1:]))
        >>> prepared = rc.onnx_backend.prepare(model, "INTERP")
        >>> prepared.run([np.array([1, -1], "float32")])[0].tolist()
        [1.0, 0.0]
        >>> prepared.launches
        1
    """

    def __init__(self, model: Any, target: Target, device: Device | None) -> None:
        self.graph: Graph = from_onnx(model.SerializeToString())
        self.target = target
        self._executor = executor_for(self.graph, target, device)
        self._inputs = {one.name: _element_code(one.type) for one in model.graph.input}
        self._outputs = [_element_code(one.type) for one in model.graph.output]

    @property
    def launches(self) -> int:
        """Return the number of kernels that all runs have launched."""
        return self._executor.launches

    def run(self, inputs: Sequence[Any] | Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the outputs of a run.

        Args:
            inputs: arrays in the order of the model's inputs, or by name. A sequence is a list, an
                absent optional is None.

        Returns:
            A numpy array for each output; a list of arrays for a sequence, None for an absent
            optional.

        Raises:
            UserError: an input is unknown or missing, or does not fit.
        """
        names = [value.name for value in self.graph.inputs]
        if isinstance(inputs, Mapping):
            given = dict(inputs)
        elif len(inputs) <= len(names):
            given = dict(zip(names, inputs, strict=False))
        else:
            raise UserError(
                f"{len(inputs)} inputs are given, but the model has {len(names)}",
                remedy=f"give {', '.join(map(repr, names))}",
            )
        feeds = {
            name: _held(value, self._inputs.get(name, 0))
            for name, value in given.items()
        }
        made = self._executor.run(feeds)
        return tuple(
            _returned(value, code)
            for value, code in zip(made, self._outputs, strict=True)
        )


def prepare(model: Any, device: str = "CPU", **options: Any) -> OnnxModel:
    """Return a model that is compiled for a device, and can be run.

    Args:
        model: an `onnx.ModelProto`.
        device: `CPU`, `INTERP`, `OPENCL`, `EMULATOR:GPU`, or a target of refcomp.
        **options: taken for the interface's sake; none has a meaning.

    Raises:
        UserError: the device is unknown, or the model is damaged.
        Unsupported: operators or attributes that refcomp cannot run. The error counts all of them.

    Source: ONNX, onnx.backend.base.Backend.

    Example::

        >>> from onnx import TensorProto, helper
        >>> info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
        >>> node = helper.make_node("Neg", ["x"], ["y"])
        >>> model = helper.make_model(helper.make_graph([node], "net", info[:1], info[1:]))
        >>> rc.onnx_backend.prepare(model, "INTERP").run([np.ones(2, "float32")])[0].tolist()
        [-1.0, -1.0]
    """
    if not isinstance(model, onnx_package().ModelProto):
        raise UserError(
            f"a {type(model).__name__} is not a model",
            remedy="give an onnx.ModelProto: onnx.load(path)",
        )
    return OnnxModel(model, *_place(device))


def run_model(
    model: Any,
    inputs: Sequence[Any] | Mapping[str, Any],
    device: str = "CPU",
    **options: Any,
) -> tuple[Any, ...]:
    """Return the outputs of a model, which is compiled and run once.

    Args:
        model: an `onnx.ModelProto`.
        inputs: arrays in order, or by name.
        device: as for `prepare`.
        **options: as for `prepare`.

    Raises:
        UserError: as for `prepare`, or an input does not fit.
        Unsupported: as for `prepare`.

    Source: ONNX, onnx.backend.base.Backend.

    Example::

        >>> from onnx import TensorProto, helper
        >>> info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
        >>> node = helper.make_node("Abs", ["x"], ["y"])
        >>> model = helper.make_model(helper.make_graph([node], "net", info[:1], info[1:]))
        >>> rc.onnx_backend.run_model(model, [np.array([-1, 2], "float32")], "INTERP")[0].tolist()
        [1.0, 2.0]
    """
    return prepare(model, device, **options).run(inputs)


def run_node(
    node: Any,
    inputs: Sequence[Any],
    device: str = "CPU",
    outputs_info: Sequence[Any] | None = None,
    **options: Any,
) -> tuple[Any, ...]:
    """Return the outputs of one node.

    Args:
        node: an `onnx.NodeProto`.
        inputs: an array for each input that the node names.
        device: as for `prepare`.
        outputs_info: not needed; types are inferred.
        **options: `opset_version` is the version of ONNX's operators; default the newest.

    Raises:
        UserError: as for `run_model`.
        Unsupported: as for `run_model`.

    Source: ONNX, onnx.backend.base.Backend.

    Example::

        >>> from onnx import helper
        >>> node = helper.make_node("Add", ["a", "b"], ["c"])
        >>> a = np.array([1, 2], "float32")
        >>> rc.onnx_backend.run_node(node, [a, a], "INTERP")[0].tolist()
        [2.0, 4.0]
    """
    onnx = onnx_package()
    names = [name for name in node.input if name]
    if len(names) != len(inputs):
        raise UserError(
            f"the node reads {len(names)} values, but {len(inputs)} are given",
            remedy="give an array for each input that it names",
        )
    types = [
        onnx.helper.make_tensor_value_info(
            name,
            onnx.helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype),
            np.shape(array),
        )
        for name, array in zip(names, inputs, strict=True)
    ]
    made = [onnx.helper.make_empty_tensor_value_info(n) for n in node.output if n]
    version = options.get("opset_version", onnx.defs.onnx_opset_version())
    model = onnx.helper.make_model(
        onnx.helper.make_graph([node], "node", types, made),
        opset_imports=[onnx.helper.make_opsetid(node.domain, version)],
    )
    return run_model(model, inputs, device)


def supports_device(device: str) -> bool:
    """Return True if models can be compiled for a device.

    Args:
        device: `CPU`, `INTERP`, `OPENCL`, `EMULATOR:GPU`, or a target of refcomp.

    Source: ONNX, onnx.backend.base.Backend.

    Example::

        >>> rc.onnx_backend.supports_device("CPU"), rc.onnx_backend.supports_device("TPU")
        (True, False)
    """
    try:
        _place(device)
    except RefcompError:
        return False
    return True


def _place(name: object) -> tuple[Target, Device | None]:
    """Return the target of a device, and the device unless the target's usual one is meant."""
    if not isinstance(name, str):
        raise UserError(
            f"{name!r} is not a device", remedy=f"give one of {', '.join(_DEVICES)}"
        )
    kind, _, rest = name.partition(":")
    try:
        if kind in _DEVICES:
            return as_target(_DEVICES[kind]), None
        if kind == _EMULATOR:
            return as_target(f"rocm -mcpu={rest}"), rocm_emulator(rest)
        return as_target(name), None
    except RefcompError as error:
        known = [*_DEVICES, f"{_EMULATOR}:gfx942"]
        raise UserError(
            f"no device is called {name!r}",
            why=error.what,
            remedy=advise(name, known, f"devices: {', '.join(known)}"),
        ) from error


def _element_code(kind: Any) -> int:
    """Return the number of the element type in a TypeProto; 0 if it has none."""
    while True:
        field = kind.WhichOneof("value")
        if field == "tensor_type":
            return int(kind.tensor_type.elem_type)
        if field not in ("sequence_type", "optional_type"):
            return 0
        kind = getattr(kind, field).elem_type


def _held(value: Any, code: int) -> Any:
    """Return an input as the graph takes it."""
    if value is None or not code:
        return value
    if isinstance(value, list | tuple):
        return [_held(one, code) for one in value]
    return stored(np.asarray(value), code)


def _returned(value: Any, code: int) -> Any:
    """Return an output as a user gets it."""
    if isinstance(value, tuple):
        return [_returned(one, code) for one in value]
    array = value.asnumpy() if isinstance(value, NDArray) else value
    if array is None or not code:
        return array
    return restored(array, code)
