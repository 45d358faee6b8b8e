"""Collective calls, which the threads of a group compute together, and sums of products.

A thread that comes to a collective call waits there: it yields an `Arrival` with its operands. When
all threads of its group have come to the same call, `compute_together` gives each its result. The
meaning is in Note [Subgroups] of `refcomp.ir.intrinsics`, and in the Notes [Matrix products] and
[Sums of products] of `refcomp.ir.gpu_intrinsics`. Refuses groups that do not fill their waves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from refcomp.ir.expr import Add, Call, PureExtern
from refcomp.ir.gpu_intrinsics import GPU_INTRINSICS, DotProduct, MatrixProduct
from refcomp.oracle.interpreter.failure import InterpretError
from refcomp.oracle.interpreter.intrinsics import apply_intrinsic, sum_rounded_once
from refcomp.oracle.interpreter.scalars import OPERATORS, Scalar, wrap


@dataclass(slots=True, eq=False)
class Arrival:
    """One thread's arrival at a collective call."""

    call: Call | PureExtern
    operands: Sequence[Scalar]  # what this thread contributes
    result: Scalar = None  # what it gets when all threads of the group have arrived


class AwaitsOthers(Exception):
    """Raised where an expression needs the result of a collective call."""

    def __init__(self, arrival: Arrival) -> None:
        super().__init__(arrival.call.name)
        self.arrival = arrival


def refuse_without_group(call: Call | PureExtern) -> NoReturn:
    """Raise InterpretError for a collective call where no thread waits for others."""
    raise InterpretError(
        f"{call.name} is computed by several threads together",
        why="the expression is not evaluated by a thread of a kernel that waits for the others",
        remedy="let it stand in a statement of a kernel",
    )


def compute_together(arrivals: Sequence[Arrival]) -> None:
    """Set the result of each thread of a group; the arrivals are ordered by thread number."""
    call = arrivals[0].call
    if isinstance(call, PureExtern):
        product = GPU_INTRINSICS[call.name]
        assert isinstance(product, MatrixProduct)
        for wave in _split(arrivals, product.wave):
            _multiply_matrices(product, wave)
        return
    for subgroup in _split(arrivals, arrivals[0].operands[-1]):
        results = _exchange(call, subgroup)
        for arrival, result in zip(subgroup, results, strict=True):
            arrival.result = result


def _split(arrivals: Sequence[Arrival], size: int) -> Iterator[Sequence[Arrival]]:
    """Split a group into waves or subgroups of `size` threads."""
    if len(arrivals) % size:
        raise InterpretError(
            f"{arrivals[0].call.name} is computed by {size} threads together",
            why=f"the group has {len(arrivals)}, which do not fill all of them",
            remedy=f"let the group have a multiple of {size} threads",
        )
    return (arrivals[k : k + size] for k in range(0, len(arrivals), size))


def _exchange(call: Call, subgroup: Sequence[Arrival]) -> list[Scalar]:
    """Return the result of a subgroup call for each thread of a subgroup."""
    values = [arrival.operands[0] for arrival in subgroup]
    if call.name == "subgroup_shuffle_xor":
        return [values[k ^ arrival.operands[1]] for k, arrival in enumerate(subgroup)]
    if call.name == "subgroup_shuffle":
        return [values[arrival.operands[1] % len(values)] for arrival in subgroup]
    # A butterfly of sums: the order of additions is part of the meaning, as floats round.
    add = OPERATORS[Add]
    step = 1
    while step < len(values):
        values = [add(x, values[k ^ step], call.dtype) for k, x in enumerate(values)]
        step *= 2
    return values


def dot_product(call: PureExtern, operands: Sequence[Scalar]) -> Scalar:
    """Return a sum of products that one thread computes: of the factors, plus the last operand."""
    product = GPU_INTRINSICS[call.name]
    factors = [_factor(value, product) for value in operands[:-1]]
    first = factors[: product.factors]
    second = factors[product.factors :]
    return _sum_of_products(
        list(zip(first, second, strict=True)), operands[-1], product
    )


def _multiply_matrices(product: MatrixProduct, wave: Sequence[Arrival]) -> None:
    """Set the result of each thread of a wave, which holds the matrices in parts."""
    # By row of the first or column of the second factor, and by depth.
    rows: dict[tuple[int, int], Scalar] = {}
    columns: dict[tuple[int, int], Scalar] = {}
    count = product.factors
    for thread, arrival in enumerate(wave):
        for number in range(count):
            at = (thread % product.size, product.depth_at(thread, number))
            rows[at] = _factor(arrival.operands[number], product)
            columns[at] = _factor(arrival.operands[count + number], product)
    for thread, arrival in enumerate(wave):
        which = arrival.operands[-1]  # of the thread's elements of the sum
        row = product.row_at(thread, which)
        column = thread % product.size
        pairs = [(rows[row, k], columns[column, k]) for k in range(product.depth)]
        total = arrival.operands[2 * count + which]
        arrival.result = _sum_of_products(pairs, total, product)


def _factor(value: Scalar, product: DotProduct | MatrixProduct) -> Scalar:
    """Return a factor as a number. A bf16 may come as its bits, an integer."""
    if product.element.kind == "bfloat" and isinstance(value, int):
        return np.uint32(value << 16).view(np.float32)
    return value


def _sum_of_products(
    pairs: Sequence[tuple[Scalar, Scalar]],
    total: Scalar,
    product: DotProduct | MatrixProduct,
) -> Scalar:
    """Return `total` plus the product of each pair, as Note [Sums of products] says."""
    dtype = product.sum
    if dtype.is_int:
        return wrap(int(total) + sum(int(a) * int(b) for a, b in pairs), dtype)
    if product.element != dtype:
        floats = [(float(a), float(b)) for a, b in pairs]
        return sum_rounded_once(floats, float(total), dtype)
    for a, b in pairs:
        total = apply_intrinsic("fma", (a, b, total), dtype)
    return total
