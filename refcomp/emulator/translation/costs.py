"""Estimates of how long the interpreter and the compiler take, to decide what to compile.

A unit is compiled once the interpreter has spent as much time on it as the compiler will take. Then
the total is at most twice the least possible time (the ski rental problem). The estimates do not
depend on the load of the machine. So a program is compiled to the same modules each time, which a
later process finds in the cache.

The figures are CPU time, in nanoseconds, of the networks in `benchmarks/emulated_networks` on one
core of a server. An access to memory takes the interpreter, and the compiler, about ten times as
long as another vector instruction.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.emulator.translation.steps import HostStep

# Starting opt, llc and the linker, once for a module.
STARTUP_NS = 120_000_000
# Dividing a block into units, for each instruction.
DIVISION_NS = 60_000

_ACCESS_WEIGHT = 10
_FUNCTION_NS = 5_000_000  # what each function holds beside its steps
_COMPILE_NS = 700_000  # for a step
_CALL_NS = 25_000  # for a step, whatever the number of lanes
_LANE_NS = 2  # for a step of a lane
# Of a product of matrices: a multiply-add, and a call of the interpreter.
_COMPILE_SUM_NS = 110_000
_SUM_NS = 5
_MATRIX_NS = 150_000


def weight_of(steps: Sequence[HostStep]) -> int:
    """Return how many simple steps take as long as `steps`."""
    accesses = sum(step.access is not None for step in steps)
    return len(steps) + (_ACCESS_WEIGHT - 1) * accesses


def compile_ns(weight: int) -> int:
    """Return about how long the tools take for a function of `weight` simple steps."""
    return _FUNCTION_NS + _COMPILE_NS * weight


def interpret_ns(weight: int, lanes: int) -> int:
    """Return about how long `weight` simple steps take the interpreter, on `lanes` lanes."""
    return weight * (_CALL_NS + _LANE_NS * lanes)


def compile_matrix_ns(sums: int) -> int:
    """Return about how long the tools take for a product of `sums` multiply-adds."""
    return _COMPILE_SUM_NS * sums


def interpret_matrix_ns(sums: int) -> int:
    """Return about how long products of `sums` multiply-adds in all take the interpreter."""
    return _MATRIX_NS + _SUM_NS * sums
