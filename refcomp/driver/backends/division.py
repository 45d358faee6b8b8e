"""Divide the functions of a large module into parts that are compiled at the same time.

The bounds of parts depend only on the functions. A small module is one part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from refcomp.driver.steps import FuncOrProgram, kernels_of
from refcomp.ir.expr import PureExtern
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import CallExtern, CallPacked
from refcomp.runtime.host.threads import usable_cores

if TYPE_CHECKING:
    from refcomp.toolchain.parts import PartsBuild

# Parts have at least so many nodes: the tools take about 70 ms for them, and 40 ms to start.
PART_NODES = 2000


def begin_build(
    options: Mapping[str, str],
    output: str,
    description: str,
    notice: Callable[[], None],
) -> PartsBuild:
    """Begin to compile parts, as many at the same time as there are usable cores."""
    from refcomp.toolchain.parts import PartsBuild  # noqa: PLC0415  (for large modules)

    return PartsBuild(
        options,
        output,
        description=description,
        processes=usable_cores(),
        notice=notice,
    )


class Division:
    """The functions of the part that is not yet complete."""

    def __init__(self) -> None:
        self.rest: list[FuncOrProgram] = []
        self._nodes = 0  # of these functions
        self._is_last = False

    def add(self, made: FuncOrProgram) -> list[FuncOrProgram]:
        """Take the next function. Return the part before it if that is complete, else nothing."""
        complete: list[FuncOrProgram] = []
        if self._nodes >= PART_NODES and not self._is_last:
            complete = self.rest
            self.rest = []
            self._nodes = 0
        self.rest.append(made)
        for func in [made] if isinstance(made, PrimFunc) else kernels_of([made]):
            nodes = list(walk(func.body))
            self._nodes += len(nodes)
            self._is_last |= bool(func.imports) or any(map(_calls_out, nodes))
        return complete


def _calls_out(node: Node) -> bool:
    """Return True for a call that leaves the loop IR.

    What it calls may be imported LLVM IR of another function, or the one callback of the module. So
    all functions from the first such call on are one part.
    """
    is_call = isinstance(node, CallPacked | CallExtern | PureExtern)
    return is_call and not (isinstance(node, PureExtern) and node.is_llvm_intrinsic)
