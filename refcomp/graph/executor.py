"""Run a compiled graph: launch its kernels in order.

For each set of values of the graph's symbols there is one plan (`refcomp.graph.plan`). A run copies
the inputs in, launches the kernels, and copies the outputs out. It computes nothing itself. Where
an extent depends on data, it reads a count, and goes on with a plan for this count. An
executor may be used by several threads: its runs take turns. On the host, executors share the
memory of the graph's constants, which nothing writes.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from refcomp.foundation.errors import UserError
from refcomp.foundation.target import Target, kind_of
from refcomp.graph.compile import GraphModule
from refcomp.graph.constants import constant_on
from refcomp.graph.feeds import check_feeds, check_name, check_type, form_of
from refcomp.graph.plan import Plan, make_plan, recent_plan
from refcomp.runtime.arrays.ndarray import NDArray, array
from refcomp.runtime.device import Device, checked_device, cpu


class GraphExecutor:
    """A runner of a compiled graph. Attribute `launches` counts the kernels that it has launched.

    For each set of values of the symbols it plans the memory once. Threads may share it: their runs
    take turns.

    Args:
        module: what `compile_graph` returned.
        device: the device; None is number 0 of the kind that the module's target means.

    Raises:
        UserError: `module` is not a compiled graph.

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
        self._kept: dict[str, NDArray] = {}  # by `set_input`
        self._results: list[NDArray] = []  # of the last run
        self._constants = {
            value: constant_on(self.device, elements)
            for value, elements in module.graph.constants.items()
        }

    @property
    def input_names(self) -> tuple[str, ...]:
        """Return the names of the inputs for `run` and `set_input`."""
        return tuple(value.name for value in self.module.graph.inputs)

    @property
    def num_outputs(self) -> int:
        """Return the number of arrays that `run` returns."""
        return len(self.module.graph.outputs)

    def set_input(self, name: str, value: object) -> None:
        """Keep a copy of an input for later runs that do not provide it.

        Args:
            name: the name of the input.
            value: an NDArray or a numpy array of the input's dtype and shape.

        Raises:
            UserError: the name is unknown, or the value does not fit.
        """
        check_type(check_name(self.module.graph, name), *form_of(name, value))
        with self._lock:
            self._kept[name] = array(value, self.device)

    def get_output(self, index: int = 0) -> NDArray:
        """Return an output of the last run.

        Args:
            index: the number of the output, from 0.

        Raises:
            UserError: no such output exists, or the graph has not been run.
        """
        results = self._results
        if not 0 <= index < len(results):
            remedy = (
                f"ask for 0 to {len(results) - 1}" if results else "call run() first"
            )
            raise UserError(f"the last run has no output {index}", remedy=remedy)
        return results[index]

    def run(
        self, feeds: Mapping[str, object] | None = None, /, **inputs: object
    ) -> list[NDArray]:
        """Run the graph and return its outputs as new arrays.

        Args:
            feeds: inputs by name, also for names that are not Python identifiers.
            **inputs: NDArrays or numpy arrays by name.

        Raises:
            UserError: a name is unknown or missing, or an input has another dtype or shape.
        """
        with self._lock:
            given = {**self._kept, **(feeds or {}), **inputs}
            forms = {name: form_of(name, value) for name, value in given.items()}
            plan = self.plan_for(check_feeds(self.module.graph, forms))
            for name, place in plan.inputs.items():
                place.copyfrom(given[name])
            self._launch_all(plan)
            while plan.pause is not None:
                plan = plan.pause.resume()
                self._launch_all(plan)
            # Copies, since the next run overwrites the plan's memory.
            self._results = [result.copyto(self.device) for result in plan.outputs]
            return list(self._results)

    def _launch_all(self, plan: Plan) -> None:
        for launch in plan.launches:
            launch()
            self.launches += 1

    def plan_for(self, symbols: Mapping[str, int]) -> Plan:
        """Return the plan of a run: its memory and its launches. The last 8 plans are kept.

        It ends before the first node whose extent only a run determines.

        Args:
            symbols: the value of each symbol of the graph, by name.
        """
        return recent_plan(
            self._plans,
            tuple(symbols.values()),
            lambda: make_plan(self.module, symbols, self._constants, self.device),
        )


def device_of(target: Target) -> Device:
    """Return device number 0 of the kind that runs code for `target`."""
    if kind_of(target).device == cpu().kind:
        return cpu()
    # Here, since it imports the emulator of GPUs.
    from refcomp.driver.devices import device_for  # noqa: PLC0415

    return device_for(target)
