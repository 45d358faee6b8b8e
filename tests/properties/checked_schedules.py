"""Checked builds of random schedules: what they must give, with good data and with bad.

A right program gives what it gives without checks. A program whose indices are read from bad data
raises OutOfBounds exactly when the tensor expressions cannot be evaluated, and writes nothing
beside its arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import refcomp
from refcomp.codegen.signature import signature_of
from refcomp.compiler import build_functions
from refcomp.driver.pipeline import passes_for
from refcomp.driver.steps import run_pass
from refcomp.foundation.errors import OutOfBounds
from refcomp.ir.func import PrimFunc
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.oracle.tensors.evaluate import EvaluateError, evaluate
from refcomp.passes.insert_barriers import insert_barriers
from refcomp.runtime.arrays.access_status import fresh_status, require_in_bounds
from refcomp.schedule.schedule import Schedule
from tests.properties.differential import agree, expected, lowered
from tests.strategies.computation import Computation

_SEED = 20240  # as in differential.expected


def bad_arrays(computation: Computation, seed: int) -> list[np.ndarray]:
    """Return arguments of which some that are integers hold a few numbers far and near."""
    arrays, random = computation.arrays(_SEED), np.random.default_rng(seed)
    for tensor, array in zip(computation.args, arrays, strict=True):
        if tensor in computation.inputs and array.dtype.kind == "i" and random.random() < 0.6:
            wild = random.random(array.shape) < 0.3
            numbers = random.choice([-1, -100, 3, 4, 5, 100], array.shape)
            array[wild] = numbers[wild].astype(array.dtype)
    return arrays


def is_legal(computation: Computation, arrays: Sequence[np.ndarray]) -> bool:
    """Return True if the tensor expressions can be evaluated on `arrays`."""
    feeds = {
        tensor: array
        for tensor, array in zip(computation.args, arrays, strict=True)
        if tensor in computation.inputs
    }
    try:
        evaluate(computation.outputs, feeds, computation.sizes)
    except EvaluateError:
        return False
    return True


def check_each_pass(computation: Computation, schedule: Schedule, kind: str) -> None:
    """The interpreter agrees with numpy after each pass of a checked build for `kind`, from the one
    on that puts barriers in where there are kernels, and no check finds anything."""
    func, wanted = lowered(computation, schedule), expected(computation)
    steps = passes_for(kind)
    is_ready = all(step.function is not insert_barriers for step in steps)
    for step in steps:
        changed = run_pass(step, func)
        is_ready |= step.function is insert_barriers
        if is_ready and (changed is not func or step.function is insert_barriers):
            _check_interpreted(changed, computation, wanted, f"after {step.name}")
        func = changed


def _check_interpreted(
    func: PrimFunc, computation: Computation, wanted: list[np.ndarray], where: str
) -> None:
    arrays, signature = computation.arrays(_SEED), signature_of(func)
    status = fresh_status(signature)
    stored = [
        array.view(np.uint16) if buffer.dtype.kind == "uint" and array.dtype.kind == "V" else array
        for array, buffer in zip(arrays, func.buffers, strict=False)
    ]
    interpret(func, [*stored, *([status] if signature.checks else [])])
    require_in_bounds(signature, status)
    agree(arrays, wanted, where)


def check_bad_data(
    computation: Computation, schedule: Schedule, target: str, seed: int
) -> tuple[bool, bool]:
    """Build with checks, and call with bad data. Return whether anything was checked, and whether
    the data were refused."""
    with refcomp.build_options(check_bounds=True):
        module = build_functions([lowered(computation, schedule)], target)
    arrays = bad_arrays(computation, seed)
    is_refused = False
    device = refcomp.context(target) if target not in ("llvm", "interp") else refcomp.cpu()
    try:
        module(*(refcomp.array(array, device) for array in arrays))
    except OutOfBounds:
        is_refused = True
    assert is_refused != is_legal(computation, arrays)
    return bool(module.entry.signature.checks), is_refused
