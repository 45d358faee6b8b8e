"""What a command is given to look at, as functions of the loop IR.

A Python program of the user's is run as such: a function in it (by default `computation`) returns
(schedule, args), a PrimFunc, or a list of such. An ONNX model gives its kernels. Anything else is
loop-IR text. Refuses, by UserError, what is none of these, and tells where a program failed.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from refcomp.cli.texts import read_funcs
from refcomp.foundation.errors import RefcompError, UserError
from refcomp.foundation.target import Target
from refcomp.frontend.onnx import from_onnx
from refcomp.graph.compile import lower_node
from refcomp.graph.optimize import optimize
from refcomp.ir.func import PrimFunc
from refcomp.lowering.lower import lower
from refcomp.schedule.schedule import Schedule

_DEFAULT_NAME = "computation"


@dataclass(frozen=True, slots=True)
class LoweredFunction:
    """One function, and the schedule and arguments it was lowered from where there are such."""

    func: PrimFunc
    schedule: Schedule | None = None
    args: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class LoweredProgram:
    """Functions, and for a model the texts of its graph, by name."""

    pieces: tuple[LoweredFunction, ...]
    graphs: tuple[tuple[str, str], ...] = ()


def load_program(given: str, target: Target | str = "llvm") -> LoweredProgram:
    """What `given` (SCRIPT.py[:NAME], MODEL.onnx, a text file or -) stands for; a model is
    scheduled for `target`."""
    path, name = _split_name(given)
    if path.endswith(".py"):
        return LoweredProgram(tuple(run_script(path, name)))
    if path.endswith(".onnx"):
        return _load_model(path, target)
    return LoweredProgram(tuple(map(LoweredFunction, read_funcs(given))))


def _split_name(given: str) -> tuple[str, str]:
    path, colon, name = given.rpartition(":")
    return (path, name) if colon and path.endswith(".py") else (given, _DEFAULT_NAME)


def run_script(path: str, name: str) -> list[LoweredFunction]:
    """Run a Python program, then its function `name`. What it prints goes to stderr."""
    if not os.path.isfile(path):
        raise UserError(f"{path} cannot be read", why="there is no such file")
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    with contextlib.redirect_stdout(sys.stderr):
        variables = _guarded(path, lambda: runpy.run_path(path))
        function = variables.get(name)
        if not callable(function):
            raise UserError(
                f"{path} defines no function {name!r}",
                remedy="define it, or name another: SCRIPT.py:NAME",
            )
        result = _guarded(path, function)
    if not isinstance(result, list):
        return [_to_piece(result, name)]
    return [_to_piece(item, f"{name}_{number}") for number, item in enumerate(result)]


def _guarded(path: str, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except RefcompError:
        raise
    except (Exception, SystemExit) as error:
        frames = [
            f for f in traceback.extract_tb(error.__traceback__) if f.filename == path
        ]
        line = getattr(error, "lineno", None) or (frames[-1].lineno if frames else 0)
        raise UserError(
            f"the program failed: {type(error).__name__}: {error}",
            where=f"{path}:{line}",
            remedy="see more of it by `refcomp --traceback ...`",
        ) from error


def _to_piece(value: Any, name: str) -> LoweredFunction:
    match value:
        case PrimFunc():
            return LoweredFunction(value)
        case (Schedule() as schedule, list() | tuple() as args):
            return LoweredFunction(lower(schedule, args, name), schedule, tuple(args))
        case (Schedule() as schedule, list() | tuple() as args, str(own_name)):
            return LoweredFunction(
                lower(schedule, args, own_name), schedule, tuple(args)
            )
    raise UserError(
        f"{name}() returned a {type(value).__name__}",
        remedy="return (schedule, [arguments]), (schedule, [arguments], name), a PrimFunc, "
        "or a list of such",
    )


def _load_model(path: str, target: Target | str) -> LoweredProgram:
    graph = from_onnx(path)
    optimized = optimize(graph)
    nodes = enumerate(optimized.nodes)
    kernels = [lower_node(node, number, target)[0] for number, node in nodes]
    graphs = (("graph", f"{graph}\n"), ("optimized-graph", f"{optimized}\n"))
    return LoweredProgram(tuple(map(LoweredFunction, kernels)), graphs)
