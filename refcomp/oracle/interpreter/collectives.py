"""Collective calls, which the threads of a group compute together, and sums of products.

A thread that comes to a collective call waits there: it yields an `Arrival` with its operands. When
all threads of its group have come to the same call, `compute_together` gives each its result. The
meaning is in Note [Subgroups] of `refcomp.ir.intrinsics`, in Note [Sums of products] of
`refcomp.ir.gpu_intrinsics`, and in the Notes of `refcomp.ir.gpu_instructions` on matrices. Refuses
groups that do not fill their waves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from refcomp.ir.expr import Add, Call, PureExtern
from refcomp.ir.gpu_instructions.records import (
    DotProduct,
    MatrixLoad,
    MatrixPlace,
    MatrixProduct,
)
from refcomp.ir.gpu_intrinsics import GPU_INTRINSICS
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
        intrinsic = GPU_INTRINSICS[call.name]
        for wave in _split(arrivals, intrinsic.wave):
            if isinstance(intrinsic, MatrixProduct):
                _multiply_matrices(intrinsic, wave)
            else:
                assert isinstance(intrinsic, MatrixLoad)
                _load_matrices(intrinsic, wave)
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
    assert isinstance(product, DotProduct)
    factors = [_factor(value, product) for value in operands[:-1]]
    count, _ = product.counts
    return _sum_of_products(
        list(zip(factors[:count], factors[count:], strict=True)), operands[-1], product
    )


def _multiply_matrices(product: MatrixProduct, wave: Sequence[Arrival]) -> None:
    """Set the result of each thread of a wave, which holds the matrices in parts."""
    first: dict[MatrixPlace, Scalar] = {}
    second: dict[MatrixPlace, Scalar] = {}
    count = product.a.count
    for thread, arrival in enumerate(wave):
        for number, value in enumerate(arrival.operands[:count]):
            first[product.a.place(thread, number)] = _factor(value, product)
        for number in range(product.b.count):
            value = arrival.operands[count + number]
            second[product.b.place(thread, number)] = _factor(value, product)

    def element(thread: int, number: int) -> Scalar:
        row, column = product.c.place(thread, number)
        depth = range(product.depth)
        pairs = [
            (first[MatrixPlace(row, k)], second[MatrixPlace(k, column)]) for k in depth
        ]
        total = wave[thread].operands[sum(product.counts) + number]
        return _sum_of_products(pairs, total, product)

    _answer(wave, element, product.c.count)


def _load_matrices(load: MatrixLoad, wave: Sequence[Arrival]) -> None:
    """Set the result of each thread of a wave, each of which brings a row."""
    rows = [_flat(arrival.operands) for arrival in wave]
    fragment = load.fragment(wave[0].call.dtype.element)

    def element(thread: int, number: int) -> Scalar:
        row, column = fragment.place(thread, number)
        return rows[row][column]

    _answer(wave, element, fragment.count)


def _flat(operands: Sequence[Scalar]) -> Sequence[Scalar]:
    """Return the elements of a row, which may come as one vector."""
    return operands[0] if isinstance(operands[0], tuple) else operands


def _answer(
    wave: Sequence[Arrival], element: Callable[[int, int], Scalar], count: int
) -> None:
    """Give each thread the element that it asks for, or a vector of all `count` elements.

    `element` takes the number of the thread and that of the element.
    """
    for thread, arrival in enumerate(wave):
        if arrival.call.dtype.lanes > 1:
            arrival.result = tuple(element(thread, n) for n in range(count))
        else:
            arrival.result = element(thread, arrival.operands[-1])


def _factor(value: Scalar, product: DotProduct | MatrixProduct) -> Scalar:
    """Return a factor as the instruction reads it. A bf16 may come as its bits, an integer."""
    if product.element.kind == "bfloat" and isinstance(value, int):
        return np.uint32(value << 16).view(np.float32)
    if isinstance(product, MatrixProduct) and product.unread_bits:
        bits = np.float32(value).view(np.uint32)
        kept = bits >> product.unread_bits << product.unread_bits
        return np.uint32(kept).view(np.float32)
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
    if product.rounds_once:
        floats = [(float(a), float(b)) for a, b in pairs]
        return sum_rounded_once(floats, float(total), dtype)
    for a, b in pairs:
        total = apply_intrinsic("fma", (a, b, total), dtype)
    return total
