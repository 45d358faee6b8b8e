"""Run a compiled graph: launch its kernels in order.

For each set of values of the graph's symbols there is one plan (`refcomp.graph.plan`). A run copies
the inputs in, launches the kernels, and copies the outputs out. On the host, one call of C launches
all kernels of a plan. An executor computes nothing itself. Where an extent depends on data, it
reads a count, and goes on with a plan for this count. An executor may be used by several threads:
its runs take turns. On the host, executors share the memory of the graph's constants, which nothing
writes.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.foundation.target import Target, kind_of
from refcomp.graph.compile import GraphModule
from refcomp.graph.compiled import CompiledGraph
from refcomp.graph.constants import constant_on
from refcomp.graph.feeds import check_feeds, check_name, check_type, form_of
from refcomp.graph.graph import Value
from refcomp.graph.params import load_param_dict
from refcomp.graph.plan import MemoryPool, Plan, make_plan, recent_plan
from refcomp.graph.verify import check_files
from refcomp.runtime.arrays.ndarray import NDArray, array
from refcomp.runtime.device import Device, checked_device, cpu
from refcomp.runtime.module import Module


class GraphExecutor:
    """A runner of a compiled graph. Attribute `launches` counts the kernels that it has launched.

    For each set of values of the symbols it plans the memory once. Threads may share it: their runs
    take turns.

    Args:
        module: what `compile_graph` returned.
        device: the device; None is number 0 of the kind that the module's target means.

    Raises:
        UserError: `module` is not a compiled graph, or the file of its weights has changed.

    Source: TVM, graph_executor.GraphModule.

    Example::

        >>> builder = rc.graph.GraphBuilder("net")
        >>> x = builder.input("x", "float32", ("N", 2))
        >>> net = builder.finish([builder.node("relu", [x])])
        >>> executor = rc.GraphExecutor(rc.compile_graph(net, target="interp"))
        >>> executor.input_names, executor.num_outputs
        (('x',), 1)
        >>> (y,) = executor.run(x=np.array([[-1, 2]], "float32"))
        >>> print(y.asnumpy())
        [[0. 2.]]
        >>> executor.set_input("x", np.array([[3, -4], [5, -6]], "float32"))
        >>> _ = executor.run()
        >>> print(executor.get_output(0).asnumpy())
        [[3. 0.]
         [5. 0.]]
        >>> executor.plan_for({"N": 2}).outputs[0].shape
        (2, 2)
    """

    def __init__(self, module: GraphModule, device: Device | None = None) -> None:
        if not isinstance(module, GraphModule):
            raise UserError(
                f"{module!r} is not a compiled graph",
                remedy="pass what refcomp.compile_graph returned",
            )
        self.module = module
        self.device = (
            device_of(module.target) if device is None else checked_device(device)
        )
        self.launches = 0  # kernels launched by all runs
        self._lock = threading.Lock()
        # By the values of the symbols; the least recently used plan is the first.
        self._plans: dict[tuple[int, ...], Plan] = {}
        self._pool = MemoryPool()
        self._kept: dict[str, NDArray] = {}  # by `set_input`
        self._results: list[NDArray] = []  # of the last run
        check_files(module.graph)
        self._constants = {
            value: constant_on(self.device, elements)
            for value, elements in module.graph.constants.items()
            if value not in module.parameters
        }

    @property
    def input_names(self) -> tuple[str, ...]:
        """Return the names of the inputs for `run` and `set_input`."""
        return tuple(value.name for value in self.module.graph.inputs)

    @property
    def num_outputs(self) -> int:
        """Return the number of arrays that `run` returns."""
        return len(self.module.graph.outputs)

    def set_input(
        self, key: str | int | None = None, value: object = None, /, **inputs: object
    ) -> None:
        """Keep copies of inputs for later runs that do not provide them.

        The name of a constant is allowed, too: the copy replaces its elements.

        Args:
            key: the name of an input or its number, from 0.
            value: an NDArray or a numpy array of the input's dtype and shape.
            **inputs: more arrays, by name.

        Raises:
            UserError: the name is unknown, or the value does not fit.
        """
        given = dict(inputs)
        if key is not None:
            given[self._name_of(key)] = value
        for name, elements in given.items():
            constant = self._constant(name)
            declared = constant or self._input(name)
            dtype, shape = form_of(name, elements)
            check_type(declared, dtype, shape)
            if constant is not None and shape != constant.shape:
                raise UserError(
                    f"constant {constant} cannot have the shape {shape}",
                    remedy="pass the parameters that build returned",
                )
            with self._lock:
                if constant is None:
                    self._kept[name] = array(elements, self.device)
                else:
                    self._constants[constant] = array(elements, self.device)
                    self._plans.clear()  # their launches are bound to the old array

    def _name_of(self, key: object) -> str:
        """Return the name of an input, given the name itself or a number."""
        names = self.input_names
        if isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(names):
            return names[key]
        if not isinstance(key, str):
            raise UserError(
                f"the graph has no input {key!r}",
                remedy=f"give a name, or a number below {len(names)}",
            )
        return key

    def _constant(self, name: str) -> Value | None:
        constants = self.module.graph.constants
        return next((value for value in constants if value.name == name), None)

    def _input(self, name: str) -> Value:
        if self.module.parameters and name not in self.input_names:
            known = [value.name for value in self.module.parameters]
            raise UserError(
                f"the graph has no input or parameter {name!r}",
                why="build folds parameters into each other, and renames them",
                remedy=advise(
                    name,
                    [*self.input_names, *known],
                    "pass the parameters that build returned",
                ),
            )
        return check_name(self.module.graph, name)

    def load_params(self, data: bytes | bytearray) -> None:
        """Set parameters that are given as bytes.

        Args:
            data: what `save_param_dict` returned, for example a whole file.

        Raises:
            UserError: the bytes are damaged, or a parameter is unknown or does not fit.

        Example::

            >>> net = rc.sym.relu(rc.sym.Variable("x"))
            >>> graph, lib, _ = rc.graph.build(net, "interp", shape={"x": (2,)})
            >>> executor = rc.graph.executor.create(graph, lib)
            >>> executor.load_params(rc.graph.save_param_dict({"x": np.ones(2, "float32")}))
            >>> executor.get_input("x").asnumpy().tolist()
            [1.0, 1.0]
        """
        self.set_input(**load_param_dict(data))

    def get_input(self, key: str | int, out: NDArray | None = None) -> NDArray:
        """Return the array that later runs read, as `set_input` kept it.

        Args:
            key: the name of an input or a constant, or the number of an input.
            out: an array that gets a copy, and is returned instead; None for none.

        Raises:
            UserError: the name is unknown, or no array has been set.

        Example::

            >>> net = rc.graph.parse_graph("graph a(x: f32[2]) -> (y) { y: f32[2] = relu(x) }")
            >>> executor = rc.GraphExecutor(rc.compile_graph(net, "interp"))
            >>> executor.set_input("x", np.ones(2, "float32"))
            >>> executor.get_input(0).asnumpy().tolist()
            [1.0, 1.0]
        """
        name = self._name_of(key)
        constant = self._constant(name)
        if constant is not None:
            found = self._constants.get(constant)
        else:
            found = self._kept.get(self._input(name).name)
        if found is None:
            raise UserError(
                f"the input {name!r} has not been set", remedy="call set_input first"
            )
        return found if out is None else out.copyfrom(found)

    def get_output(self, index: int = 0, out: NDArray | None = None) -> NDArray:
        """Return an output of the last run.

        Args:
            index: the number of the output, from 0.
            out: an array that gets a copy, and is returned instead; None for none.

        Raises:
            UserError: no such output exists, or the graph has not been run.
        """
        results = self._results
        if not isinstance(index, int) or not 0 <= index < len(results):
            remedy = (
                f"ask for 0 to {len(results) - 1}" if results else "call run() first"
            )
            raise UserError(f"the last run has no output {index!r}", remedy=remedy)
        return results[index] if out is None else out.copyfrom(results[index])

    def run(
        self, feeds: Mapping[str, object] | None = None, /, **inputs: object
    ) -> list[NDArray]:
        """Run the graph and return its outputs as new arrays.

        On a host, all kernels of a run are one call of C. So Ctrl-C raises KeyboardInterrupt only
        when the whole run has ended.

        Args:
            feeds: inputs by name, also for names that are not Python identifiers.
            **inputs: NDArrays or numpy arrays by name.

        Raises:
            UserError: a name is unknown or missing, or an input has another dtype or shape.
        """
        missing = [v.name for v in self.module.parameters if v not in self._constants]
        if missing:
            raise UserError(
                f"the parameters {', '.join(missing)} have no elements",
                remedy="call set_input(**params) or load_params(data) first",
            )
        with self._lock:
            given = {**self._kept, **(feeds or {}), **inputs}
            forms = {name: form_of(name, value) for name, value in given.items()}
            symbols = check_feeds(self.module.graph, forms)
            self._results = self._run(given, symbols)
            return list(self._results)

    def _run(
        self, given: Mapping[str, object], symbols: Mapping[str, int]
    ) -> list[NDArray]:
        """Return the outputs for checked inputs, in memory that no later run writes."""
        plan = self.plan_for(symbols)
        for name, place in plan.inputs.items():
            place.copyfrom(given[name])
        self._launch_all(plan)
        while plan.pause is not None:
            plan = plan.pause.resume()
            self._launch_all(plan)
        # Copies, since the next run overwrites the plan's memory.
        return [result.copyto(self.device) for result in plan.outputs]

    def _launch_all(self, plan: Plan) -> None:
        plan.run()
        self.launches += len(plan.launches)

    def plan_for(self, symbols: Mapping[str, int]) -> Plan:
        """Return the plan of a run: its memory and its launches. The last 8 plans are kept.

        It ends before the first node whose extent only a run determines.

        Args:
            symbols: the value of each symbol of the graph, by name.
        """
        return recent_plan(
            self._plans,
            tuple(symbols.values()),
            lambda: make_plan(
                self.module, symbols, self._constants, self.device, self._pool
            ),
        )


def create(
    graph: CompiledGraph | str, lib: Module | None, device: Device | None = None
) -> GraphExecutor:
    """Return an executor of a compiled graph, whose weights are set by `set_input`.

    Args:
        graph: what `refcomp.graph.build` returned, or its JSON form.
        lib: the module that `build` or `refcomp.load_module` returned.
        device: the device; None is number 0 of the kind that the graph's target means.

    Raises:
        UserError: the JSON form is damaged, or the module does not belong to the graph.

    Source: TVM, graph_runtime.create.

    Example::

        >>> net = rc.sym.dense(rc.sym.Variable("x"), units=3, use_bias=False, name="fc")
        >>> weights = {"fc_weight": np.ones((3, 4), "float32")}
        >>> shape = {"x": (1, 4)}
        >>> graph, lib, params = rc.graph.build(net, "interp", shape=shape, params=weights)
        >>> executor = rc.graph.executor.create(graph.json(), lib, rc.cpu())
        >>> executor.set_input("x", np.array([[1, 2, 3, 4]], "float32"))
        >>> executor.set_input(**params)
        >>> _ = executor.run()
        >>> executor.get_output(0).asnumpy().tolist()
        [[10.0, 10.0, 10.0]]
    """
    compiled = CompiledGraph.from_json(graph) if isinstance(graph, str) else graph
    if not isinstance(compiled, CompiledGraph):
        raise UserError(
            f"a {type(graph).__name__} is not a compiled graph",
            remedy="pass what refcomp.graph.build returned, or its JSON form",
        )
    return GraphExecutor(compiled.with_code(lib), device)


def device_of(target: Target) -> Device:
    """Return device number 0 of the kind that runs code for `target`."""
    if kind_of(target).device == cpu().kind:
        return cpu()
    # Here, since it imports the emulator of GPUs.
    from refcomp.driver.devices import device_for  # noqa: PLC0415

    return device_for(target)
