"""Rules of products with sparse matrices: the adjoint of a factor is such a product, too.

The places of the stored elements are integers, and have no adjoint. Products whose number of
columns is not known before a run are left to `vjp`, which refuses them.
"""

from __future__ import annotations

from refcomp.graph.gradients.pullback import Adjoints, Pullback, Rule, constant_extents
from refcomp.graph.graph import Value


def _csrmm(pull: Pullback) -> Adjoints | None:
    data, indices, indptr, b = (pull.input(place) for place in range(4))
    is_swapped = bool(pull.attribute("trans_b"))
    columns = _extent(b, 1 if is_swapped else 0)
    if columns is None:
        return None
    factor = _swapped(pull, b) if is_swapped else b
    by_b = pull.add(
        "csrmm_transposed", data, indices, indptr, pull.head, columns=columns
    )
    adjoints: list[Value | None] = [
        pull.add("csr_sampled_matmul", indices, indptr, pull.head, factor),
        None,
        None,
        _swapped(pull, by_b) if is_swapped else by_b,
    ]
    if pull.has_input(4):
        adjoints.append(pull.like_input(pull.head, 4))
    return adjoints


def _sparse_dense(pull: Pullback) -> Adjoints | None:
    """Return the adjoints of data @ w.T, which is the transpose of w @ data.T."""
    data, weight, indices, indptr = (pull.input(place) for place in range(4))
    columns = _extent(data, 1)
    if columns is None:
        return None
    head = _swapped(pull, pull.head)
    by_data = pull.add(
        "csrmm_transposed", weight, indices, indptr, head, columns=columns
    )
    adjoints: list[Value | None] = [
        _swapped(pull, by_data),
        pull.add("csr_sampled_matmul", indices, indptr, head, _swapped(pull, data)),
        None,
        None,
    ]
    if pull.has_input(4):
        adjoints.append(pull.like_input(pull.head, 4))
    return adjoints


def _csrmm_transposed(pull: Pullback) -> Adjoints:
    data, indices, indptr, b = (pull.input(place) for place in range(4))
    by_data = pull.add("csr_sampled_matmul", indices, indptr, b, pull.head)
    return [by_data, None, None, pull.add("csrmm", data, indices, indptr, pull.head)]


def _csr_sampled_matmul(pull: Pullback) -> Adjoints | None:
    indices, indptr, a, b = (pull.input(place) for place in range(4))
    columns = _extent(b, 0)
    if columns is None:
        return None
    by_a = pull.add("csrmm", pull.head, indices, indptr, b)
    by_b = pull.add("csrmm_transposed", pull.head, indices, indptr, a, columns=columns)
    return [None, None, by_a, by_b]


def _swapped(pull: Pullback, matrix: Value) -> Value:
    return pull.add("transpose", matrix, axes=(1, 0))


def _extent(value: Value, axis: int) -> int | None:
    """Return an extent; None if it is not known before a run."""
    known = constant_extents(value.shape[axis : axis + 1])
    return None if known is None else known[0]


RULES: dict[str, Rule] = {
    "csrmm": _csrmm,
    "sparse_dense": _sparse_dense,
    "csrmm_transposed": _csrmm_transposed,
    "csr_sampled_matmul": _csr_sampled_matmul,
}
