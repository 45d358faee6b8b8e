"""Rules of matrix products: each factor receives the adjoint times the other factor, transposed.

Products that are added up in a wider dtype (`out_dtype`) are left to `vjp`.
"""

from __future__ import annotations

from refcomp.graph.gradients.pullback import Adjoints, Pullback, Rule
from refcomp.graph.graph import Value


def is_widened(pull: Pullback) -> bool:
    """Return True if the output has another dtype than the first input."""
    return pull.output.dtype != pull.input(0).dtype


def _matmul(pull: Pullback) -> Adjoints | None:
    a, b = pull.input(0), pull.input(1)
    # A vector has no second axis that could be transposed.
    if is_widened(pull) or min(len(a.shape), len(b.shape)) < 2:
        return None
    swapped_a = bool(pull.attribute("trans_a"))
    swapped_b = bool(pull.attribute("trans_b"))
    first, second = _factors(pull, pull.head, (a, swapped_a), (b, swapped_b))
    return [pull.like_input(first, 0), pull.like_input(second, 1)]


_Factor = tuple[Value, bool]  # a matrix, and whether the product transposes it


def _factors(
    pull: Pullback, head: Value, left: _Factor, right: _Factor
) -> tuple[Value, Value]:
    """Return the adjoints of both factors of a product of matrices."""
    a, swapped_a = left
    b, swapped_b = right
    if swapped_a:
        first = _product(pull, (b, swapped_b), (head, True))
    else:
        first = _product(pull, (head, False), (b, not swapped_b))
    if swapped_b:
        second = _product(pull, (head, True), (a, swapped_a))
    else:
        second = _product(pull, (a, not swapped_a), (head, False))
    return first, second


def _product(pull: Pullback, left: _Factor, right: _Factor) -> Value:
    flags = {"trans_a": left[1], "trans_b": right[1]}
    given = {name: True for name, is_set in flags.items() if is_set}
    return pull.add("matmul", left[0], right[0], **given)


def _gemm(pull: Pullback) -> Adjoints:
    head = pull.scaled(pull.head, pull.real("alpha"))
    left = (pull.input(0), bool(pull.attribute("trans_a")))
    right = (pull.input(1), bool(pull.attribute("trans_b")))
    adjoints: list[Value | None] = [*_factors(pull, head, left, right)]
    if pull.has_input(2):
        bias = pull.scaled(pull.head, pull.real("beta"))
        adjoints.append(pull.like_input(bias, 2))
    return adjoints


def _dense(pull: Pullback) -> Adjoints | None:
    data, weight = pull.input(0), pull.input(1)
    if is_widened(pull) or len(data.shape) < 2:
        return None
    by_weight = pull.add("matmul", pull.head, data, trans_a=True)
    adjoints: list[Value | None] = [
        pull.add("matmul", pull.head, weight),
        pull.like_input(by_weight, 1),
    ]
    if pull.has_input(2):
        adjoints.append(pull.like_input(pull.head, 2))
    return adjoints


def _batch_matmul(pull: Pullback) -> Adjoints | None:
    if is_widened(pull):
        return None
    left = (pull.input(0), bool(pull.attribute("transpose_a")))
    right = (pull.input(1), bool(pull.attribute("transpose_b")))
    first, second = _factors(pull, pull.head, left, right)
    return [pull.like_input(first, 0), pull.like_input(second, 1)]


def _outer(pull: Pullback) -> Adjoints:
    first = pull.add("matmul", pull.head, pull.input(1))
    second = pull.add("matmul", pull.input(0), pull.head)
    return [first, second]


RULES: dict[str, Rule] = {
    "matmul": _matmul,
    "gemm": _gemm,
    "dense": _dense,
    "batch_matmul": _batch_matmul,
    "outer": _outer,
}
