"""What instructions of GPUs compute: sums of products, and what threads compute together.

A thread that comes to a call which other threads take part in stops there with a Question, which
says what it brings. When all threads of its group have come to the same call, `answer` gives each
its share: by the numbers of the threads, as Note [Subgroups] of `refcomp.ir.intrinsics` and Note
[Matrix products] of `refcomp.ir.gpu_intrinsics` have it. Sums are those of Note [Sums of products].
Refuses groups that do not fill their waves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NoReturn

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.ir.expr import Add, Call, PureExtern
from refcomp.ir.gpu_intrinsics import GPU_INTRINSICS, DotProduct, MatrixProduct
from refcomp.oracle.interpreter.failure import InterpretError
from refcomp.oracle.interpreter.intrinsics import apply_intrinsic
from refcomp.oracle.interpreter.scalars import (
    OPERATORS,
    Scalar,
    make_float,
    round_exact,
    wrap,
)

Pairs = Iterable[tuple[Scalar, Scalar]]


@dataclass(slots=True, eq=False)
class Question:
    """What a thread brings to a call that threads compute together, and in the end its share."""

    call: Call | PureExtern
    operands: Sequence[Scalar]
    answer: Scalar = None


class Asks(Exception):
    """An expression needs the answer to a question that others have to come to, too."""

    def __init__(self, question: Question) -> None:
        super().__init__(question.call.name)
        self.question = question


def refuse_alone(call: Call | PureExtern) -> NoReturn:
    """InterpretError: nobody waits here for the others."""
    raise InterpretError(
        f"{call.name} is computed by several threads together",
        why="here is no thread of a kernel, or none that waits for others",
        remedy="let it stand in a statement of a kernel",
    )


def dot_product(call: PureExtern, operands: Sequence[Scalar]) -> Scalar:
    """What a thread computes by itself."""
    product = GPU_INTRINSICS[call.name]
    factors = [_number(value, product) for value in operands[:-1]]
    pairs = zip(factors[: product.factors], factors[product.factors :], strict=True)
    return _sum(pairs, operands[-1], product)


def answer(questions: Sequence[Question]) -> None:
    """Answers the question of each thread of a group, in the order of their numbers."""
    call = questions[0].call
    if isinstance(call, PureExtern):
        product = GPU_INTRINSICS[call.name]
        assert isinstance(product, MatrixProduct)
        for wave in _parts(questions, product.wave):
            _Matrices(product, wave).answer()
        return
    for subgroup in _parts(questions, questions[0].operands[-1]):
        for question, value in zip(subgroup, _exchanged(call, subgroup), strict=True):
            question.answer = value


def _parts(questions: Sequence[Question], size: int) -> Iterable[Sequence[Question]]:
    if len(questions) % size:
        raise InterpretError(
            f"{questions[0].call.name} is computed by {size} threads together",
            why=f"the group has {len(questions)}, which do not fill all of them",
            remedy=f"let the group have a multiple of {size} threads",
        )
    return (questions[k : k + size] for k in range(0, len(questions), size))


def _exchanged(call: Call, subgroup: Sequence[Question]) -> list[Scalar]:
    """What each thread of a subgroup has of what all bring."""
    values, numbers = (
        [question.operands[0] for question in subgroup],
        range(len(subgroup)),
    )
    asked = [question.operands[1] for question in subgroup]
    if call.name == "subgroup_shuffle_xor":
        return [
            values[number ^ mask] for number, mask in zip(numbers, asked, strict=True)
        ]
    if call.name == "subgroup_shuffle":
        return [values[number % len(values)] for number in asked]
    add, step = OPERATORS[Add], 1
    while step < len(values):
        values = [add(x, values[k ^ step], call.dtype) for k, x in enumerate(values)]
        step *= 2
    return values


@dataclass(eq=False)
class _Matrices:
    """The factors that the threads of a wave hold together, by row or column and depth."""

    product: MatrixProduct
    wave: Sequence[Question]
    rows: dict[tuple[int, int], Scalar] = field(default_factory=dict)
    columns: dict[tuple[int, int], Scalar] = field(default_factory=dict)

    def answer(self) -> None:
        product, count = self.product, self.product.factors
        for thread, question in enumerate(self.wave):
            for number in range(count):
                at = thread % product.size, product.depth_at(thread, number)
                self.rows[at] = _number(question.operands[number], product)
                self.columns[at] = _number(question.operands[count + number], product)
        for thread, question in enumerate(self.wave):
            question.answer = self._element(thread, question.operands)

    def _element(self, thread: int, operands: Sequence[Scalar]) -> Scalar:
        product, which = self.product, operands[-1]
        row, column = product.row_at(thread, which), thread % product.size
        pairs = [
            (self.rows[row, k], self.columns[column, k]) for k in range(product.depth)
        ]
        return _sum(pairs, operands[2 * product.factors + which], product)


def _number(value: Scalar, product: DotProduct | MatrixProduct) -> Scalar:
    """A factor as a number: bf16 may come as its bits."""
    if product.element.kind == "bfloat" and isinstance(value, int):
        return np.uint32(value << 16).view(np.float32)
    return value


def _sum(pairs: Pairs, total: Scalar, product: DotProduct | MatrixProduct) -> Scalar:
    if product.sum.is_int:
        return wrap(int(total) + sum(int(a) * int(b) for a, b in pairs), product.sum)
    if product.element == product.sum:
        for a, b in pairs:
            total = apply_intrinsic("fma", (a, b, total), product.sum)
        return total
    return _rounded_once(
        [(float(a), float(b)) for a, b in pairs], float(total), product.sum
    )


def _rounded_once(
    pairs: list[tuple[float, float]], total: float, dtype: DType
) -> Scalar:
    """Python's numbers give NaN and infinities, and the sign of a sum that is zero."""
    if all(map(math.isfinite, (total, *(number for pair in pairs for number in pair)))):
        exact = Fraction(total) + sum(Fraction(a) * Fraction(b) for a, b in pairs)
        if exact:
            return round_exact(exact, dtype)
    return make_float(sum((a * b for a, b in pairs), total), dtype)
