"""Graphs: operators on tensors of symbolic shapes, the passes over them, and the executor.

Reading order::

    graph.py, builder.py, parser.py   values and nodes; graphs from calls; graphs from text
    control/                          sequences, optionals, and operators with subgraphs
    infer.py, narrow.py               types of values; extents that only a run determines
    structure.py, verify.py           which nodes are equal; the rules of graphs
    evaluate.py                       the meaning of a graph, by numpy
    optimize.py, passes/              graphs to graphs
    random_graphs.py, equivalence.py  trying passes; pass_mutants.py: what that notices
    kernels.py, lower.py, compile.py  one function for each node, and their module
    constants.py, weights.py          memory of constants; weights as inputs or mapped files
    gradients/                        gradients of graphs, as graphs
    training/                         training steps, as graphs; optimizers
    memory_plan.py, placement.py      memory of all other values; which are parts of others
    plan.py, executor.py, stages/     runs; stages/ for graphs that a run has to decide on
    debug/                            runs node by node, comparisons, profiles

Operators on tensors are registered in `refcomp.topi.operator`.

Example::

    >>> builder = rc.graph.GraphBuilder("net")
    >>> x = builder.input("x", "float32", ("N", 4))
    >>> net = builder.finish([builder.node("relu", [x])])
    >>> print(net)
    graph net(x: f32[N, 4]) -> (relu) {
      relu: f32[N, 4] = relu(x)
    }
    >>> executor = rc.graph.GraphExecutor(rc.graph.compile_graph(net, "interp"))
    >>> (y,) = executor.run(x=np.array([[1, -1, 2, -2]], "float32"))
    >>> print(y.asnumpy())
    [[1. 0. 2. 0.]]
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from refcomp.graph.builder import GraphBuilder
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.gradients import vjp as _vjp  # noqa: F401  (registers its operators)
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.optimize import optimize, optimized_steps
from refcomp.graph.parser import parse_condition, parse_graph
from refcomp.graph.passes.convert_quantized import convert_quantized
from refcomp.graph.passes.mixed_precision import mixed_precision
from refcomp.graph.tracing import trace_graph
from refcomp.graph.verify import verify_graph
from refcomp.topi.operator import (
    AttributeSpec,
    Operator,
    find_operator,
    operator_names,
    register_operator,
)

if TYPE_CHECKING:
    from refcomp.graph.building import build, build_config
    from refcomp.graph.compile import GraphModule, compile_graph
    from refcomp.graph.compiled import CompiledGraph
    from refcomp.graph.debug.executor import DebugExecutor
    from refcomp.graph.executor import GraphExecutor
    from refcomp.graph.gradients.gradient import gradient
    from refcomp.graph.gradients.table import differentiability
    from refcomp.graph.params import load_param_dict, save_param_dict
    from refcomp.graph.stages.executor import StagedExecutor, executor_for
    from refcomp.graph.training.optimizers import Adam, Sgd
    from refcomp.graph.training.step import TrainingStep, training_step
    from refcomp.graph.training.trainer import Trainer
    from refcomp.graph.weights import (
        constants_to_inputs,
        inputs_to_constants,
        map_weights,
        save_weights,
    )

# These import schedules and the cache, which looking at a graph does not need.
_ON_FIRST_USE = {
    "build": "refcomp.graph.building",
    "build_config": "refcomp.graph.building",
    "CompiledGraph": "refcomp.graph.compiled",
    "load_param_dict": "refcomp.graph.params",
    "save_param_dict": "refcomp.graph.params",
    "GraphModule": "refcomp.graph.compile",
    "compile_graph": "refcomp.graph.compile",
    "GraphExecutor": "refcomp.graph.executor",
    "DebugExecutor": "refcomp.graph.debug.executor",
    "gradient": "refcomp.graph.gradients.gradient",
    "differentiability": "refcomp.graph.gradients.table",
    "Sgd": "refcomp.graph.training.optimizers",
    "Adam": "refcomp.graph.training.optimizers",
    "TrainingStep": "refcomp.graph.training.step",
    "training_step": "refcomp.graph.training.step",
    "Trainer": "refcomp.graph.training.trainer",
    "StagedExecutor": "refcomp.graph.stages.executor",
    "executor_for": "refcomp.graph.stages.executor",
    "constants_to_inputs": "refcomp.graph.weights",
    "inputs_to_constants": "refcomp.graph.weights",
    "map_weights": "refcomp.graph.weights",
    "save_weights": "refcomp.graph.weights",
}

# Modules whose members have no other name here, such as `executor.create`.
_MODULES = ("debug", "executor", "symbol", "testing")

# fmt: off
__all__ = [
    "Graph", "GraphNode", "Value", "GraphBuilder", "parse_graph", "parse_condition",
    "Operator", "AttributeSpec", "find_operator", "operator_names", "register_operator",
    "verify_graph", "evaluate_graph", "trace_graph", "optimize", "optimized_steps",
    "mixed_precision", "convert_quantized",
    "compile_graph", "GraphModule", "GraphExecutor", "StagedExecutor", "executor_for",
    "DebugExecutor", "gradient", "differentiability",
    "training_step", "TrainingStep", "Trainer", "Sgd", "Adam",
    "constants_to_inputs", "inputs_to_constants", "map_weights", "save_weights",
    "build", "build_config", "CompiledGraph", "save_param_dict", "load_param_dict",
]
# fmt: on


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"refcomp.graph.{name}")
    if name not in _ON_FIRST_USE:
        # Python suggests a near name of the module.
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}",
            name=name,
            obj=sys.modules[__name__],
        )
    return getattr(import_module(_ON_FIRST_USE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
