"""Loads the input of a command as functions of the loop IR.

The input is one of three. A Python program is run; then a function of it (by default `computation`)
returns (schedule, arguments), a PrimFunc, or a list of such. An ONNX model gives its kernels. Any
other file is loop-IR text.

Raises UserError for anything else, and with the line where a program failed.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from refcomp.cli.arrays import GivenArrays, add_sizes, chosen_sizes
from refcomp.cli.texts import read_funcs
from refcomp.foundation.artifacts import TensorParam
from refcomp.foundation.errors import RefcompError, UserError
from refcomp.foundation.names import UniqueNames
from refcomp.foundation.near_misses import advise
from refcomp.foundation.snippets import Snippet
from refcomp.foundation.target import Target, as_target
from refcomp.frontend.onnx import from_onnx
from refcomp.graph.debug.memory import MemoryMap, map_memory
from refcomp.graph.graph import Graph
from refcomp.graph.kernels import NodeKernel, schedule_graph
from refcomp.graph.lower import lower_kernel
from refcomp.graph.optimize import optimized_steps
from refcomp.graph.stages.stages import has_stages
from refcomp.ir.expr import Var
from refcomp.ir.func import PrimFunc
from refcomp.lowering.lower import lower
from refcomp.schedule.schedule import Schedule
from refcomp.te.tensor import Tensor

GRAPH_PASS = (
    "graph-pass:"  # and the name of a pass: the stage of a model after the pass
)
_DEFAULT_NAME = "computation"
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class LoweredFunction:
    """One function, and where it comes from."""

    func: PrimFunc
    schedule: Schedule | None = None  # None unless it was lowered from one
    args: tuple[Tensor | Var, ...] = ()  # the arguments that it was lowered with


@dataclass(frozen=True, slots=True)
class LoweredProgram:
    """All functions of an input."""

    pieces: tuple[LoweredFunction, ...]
    # Of a model: pairs of a stage (graph, graph-pass:PASS, optimized-graph) and its text.
    graphs: tuple[tuple[str, str], ...] = ()
    # Of a model: maps its memory, given sizes of symbols; the others have size 1.
    map_memory: Callable[[Mapping[str, int]], MemoryMap] | None = None


def load_program(given: str, target: Target | str = "llvm") -> LoweredProgram:
    """Load `given`: SCRIPT.py[:NAME], MODEL.onnx, a text file, or - for stdin.

    The kernels of a model are scheduled for `target`.
    """
    path, _, name = given.rpartition(":")
    if path.endswith(".py"):
        return LoweredProgram(tuple(run_script(path, name)))
    if given.endswith(".py"):
        return LoweredProgram(tuple(run_script(given, _DEFAULT_NAME)))
    if not given.endswith(".onnx"):
        return LoweredProgram(tuple(map(LoweredFunction, read_funcs(given))))
    graph = from_onnx(given)
    if has_stages(graph):  # its kernels depend on what a run meets
        return LoweredProgram((), (("graph", f"{graph}\n"),))
    steps = optimized_steps(graph, target=target)
    optimized = steps[-1][1] if steps else graph
    functions, kernels = schedule_graph(optimized, target)
    chosen = as_target(target)
    pieces = [LoweredFunction(lower_kernel(one, chosen)) for one in functions]
    names = UniqueNames(separator=".", first=2)  # some passes run twice
    graphs = (
        ("graph", f"{graph}\n"),
        *((f"{GRAPH_PASS}{names.take(name)}", f"{made}\n") for name, made in steps),
        ("optimized-graph", f"{optimized}\n"),
    )
    return LoweredProgram(
        tuple(pieces), graphs, partial(_map_memory, optimized, kernels, chosen)
    )


def _map_memory(
    graph: Graph,
    kernels: Sequence[NodeKernel],
    target: Target,
    symbols: Mapping[str, int],
) -> MemoryMap:
    params = [TensorParam(v.name, v.dtype, v.shape) for v in graph.inputs]
    sizes = chosen_sizes(params, symbols)
    add_sizes(sizes, [GivenArrays(params, {})])
    return map_memory(graph, kernels, sizes.values, target)


def run_script(path: str, name: str) -> list[LoweredFunction]:
    """Run a Python program, then its function `name`. Their output goes to stderr."""
    if not os.path.isfile(path):
        raise UserError(f"{path} cannot be read", why="no such file exists")
    # As `python path` does, so that the program finds its own modules.
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    # stdout is for the command's own output, which another command may read.
    with contextlib.redirect_stdout(sys.stderr):
        variables = _guarded(path, lambda: runpy.run_path(path))
        function = variables.get(name)
        if not callable(function):
            # Without what the program imports.
            own = [
                key
                for key, value in variables.items()
                if getattr(value, "__module__", None) == variables.get("__name__")
            ]
            remedy = "define it, or name another: SCRIPT.py:NAME"
            raise UserError(
                f"{path} defines no function {name!r}",
                remedy=advise(name, own, remedy),
            )
        result = _guarded(path, function)
    if not isinstance(result, list):
        return [_to_piece(result, name)]
    return [_to_piece(item, f"{name}_{number}") for number, item in enumerate(result)]


def _guarded(path: str, call: Callable[[], _Result]) -> _Result:
    """Return the result of `call`. Turn its exceptions into a UserError with the line in `path`."""
    try:
        return call()
    except RefcompError:
        raise
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == path]
        # A SyntaxError has a line of its own, and no frame.
        line = getattr(error, "lineno", None) or (lines[-1] if lines else 0)
        raise UserError(
            f"the program failed: {type(error).__name__}: {error}",
            remedy="see more of it by `refcomp --traceback ...`",
            at=Snippet(f"{path}:{line}"),
        ) from error


def _to_piece(value: object, name: str) -> LoweredFunction:
    match value:
        case PrimFunc():
            return LoweredFunction(value)
        case (Schedule() as schedule, list() | tuple() as args):
            return _lowered(schedule, args, name)
        case (Schedule() as schedule, list() | tuple() as args, str(own_name)):
            return _lowered(schedule, args, own_name)
    raise UserError(
        f"{name}() returned a {type(value).__name__}",
        remedy="return (schedule, [arguments]), (schedule, [arguments], name), a PrimFunc, "
        "or a list of such",
    )


def _lowered(
    schedule: Schedule, args: Sequence[Tensor | Var], name: str
) -> LoweredFunction:
    return LoweredFunction(lower(schedule, args, name), schedule, tuple(args))
