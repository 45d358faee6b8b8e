"""Reverse-mode differentiation of a graph of computes.

The adjoint of a tensor says how much a small change of each of its elements changes the outputs,
weighted by the head. It is the sum of what the computes that read the tensor contribute. A compute
contributes, to each element, the adjoints of all iterations that read it (preimages.py).

Reference: A. Griewank and A. Walther, "Evaluating Derivatives", 2nd edition, 2008, chapter 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Add, Expr, Max, Min, Mul, Var
from refcomp.ir.promotion import const
from refcomp.ir.rewrite import substitute, walk
from refcomp.ir.structure import structurally_equal
from refcomp.te import maths
from refcomp.te import reducer as reducers
from refcomp.te.dependent_ranges import rectangular
from refcomp.te.gradients.elements import adjoints
from refcomp.te.gradients.preimages import find_preimage
from refcomp.te.operation import ComputeOp, Operation, compute, reachable_operations
from refcomp.te.reducer import CommReducer, Reduce
from refcomp.te.tensor import REDUCTION, IterVar, Tensor, TensorRead, axis


def gradient(
    output: Tensor, inputs: Tensor | Sequence[Tensor], head: Tensor | None = None
) -> list[Tensor]:
    """Return the gradient of `output` with respect to each of `inputs`.

    Element [j..., a...] of a gradient is the sum, over all i, of head[j..., i...] times the
    derivative of output[i...] by input[a...]. If a maximum or minimum is attained several times,
    each place has an equal part of the adjoint. At other kinks, one of the slopes is taken.

    Args:
        output: floats, made by computes.
        inputs: tensors of floats: one, or a list.
        head: a tensor of the dtype of `output`, whose shape ends in that of `output`. By default
            the identity, which gives the whole Jacobian.

    Returns:
        A tensor for each input. Its shape is the part of the head's shape before that of `output`,
        and then the shape of the input. The dtype is that of the input.

    Raises:
        UserError: an argument is not a tensor of floats, the head has another dtype or a shape that
            does not end in that of `output`, or `output` does not depend on an input.
        Unsupported: a scan or an extern is on the way, a reduction other than sum, prod, max and
            min, or a function whose derivative is unknown.

    Source: TVM, te.gradient.

    Example::

        >>> X = rc.placeholder((3,), name="X")
        >>> k = rc.reduce_axis(3, name="k")
        >>> Y = rc.compute((), lambda: rc.sum(X[k] * X[k], axis=k), name="Y")
        >>> (G,) = rc.te.gradient(Y, X)
        >>> print(*rc.oracle.evaluate([G], {X: np.array([1, 2, 3], "float32")}))
        [2. 4. 6.]
    """
    given = inputs if isinstance(inputs, tuple | list) else (inputs,)
    wanted = [_floats(tensor) for tensor in given]
    _floats(output)
    if head is None:
        head = _identity(output)
    _check_head(head, output)
    adjoint = _Adjoints(head, output)
    order = reachable_operations([output.op])
    for tensor in wanted:
        if tensor.op not in order:
            raise UserError(
                f"{output.name} does not depend on {tensor.name}",
                remedy="take the gradient by a tensor that it is computed from",
                earlier=[tensor.declaration()],
            )
    active = _dependent(order, wanted)
    for op in reversed(order):
        if op in active:
            adjoint.propagate(op, active | {tensor.op for tensor in wanted})
    return [adjoint.of(tensor) for tensor in wanted]


def _floats(tensor: object) -> Tensor:
    """Return the tensor. Raise UserError if it is something else, or does not hold floats."""
    if not isinstance(tensor, Tensor):
        raise UserError(
            f"gradient is applied to a {type(tensor).__name__}, not to a tensor",
            remedy="pass tensors that refcomp.placeholder or refcomp.compute returned",
        )
    if tensor.dtype.lanes > 1:
        raise UserError(
            f"{tensor.name} has no gradient, since it holds vectors of {tensor.dtype}",
            remedy="compute on scalars, with the lanes as the last dimension; "
            "vectorize its loop in the schedule",
            earlier=[tensor.declaration()],
        )
    if not tensor.dtype.is_float:
        raise UserError(
            f"{tensor.name} has no gradient, since it holds {tensor.dtype}",
            remedy="take gradients of floats, by floats",
            earlier=[tensor.declaration()],
        )
    return tensor


def _check_head(head: Tensor, output: Tensor) -> None:
    _floats(head)
    fits = head.dtype == output.dtype and head.ndim >= output.ndim
    ending = head.shape[head.ndim - output.ndim :] if fits else ()
    if not fits or not all(map(structurally_equal, ending, output.shape)):
        raise UserError(
            f"the head {head.name} does not fit the output {output.name}",
            remedy=f"give a head of {output.dtype} whose shape ends in that of {output.name}",
            earlier=[head.declaration(), output.declaration()],
        )


def _identity(output: Tensor) -> Tensor:
    """Return the tensor of 1 where both halves of the index are the same, else 0."""

    def element(*index: Expr) -> Expr:
        pairs = zip(index[: output.ndim], index[output.ndim :], strict=True)
        one = const(1, output.dtype)
        same = [first.equal(second) for first, second in pairs]
        return (
            maths.select(maths.all(*same), one, const(0, output.dtype)) if same else one
        )

    return compute((*output.shape, *output.shape), element, name="identity")


def _dependent(order: Sequence[Operation], wanted: Sequence[Tensor]) -> set[Operation]:
    """Return the operations that depend on one of `wanted`, which are not made by them."""
    sources = {tensor.op for tensor in wanted}
    found: set[Operation] = set()
    for op in order:
        if any(tensor.op in found or tensor.op in sources for tensor in op.inputs):
            found.add(op)
    return found


@dataclass(slots=True)
class _Read:
    """A read in a compute, and the adjoint that all reads at the same place have there."""

    read: TensorRead
    adjoint: Expr


class _Adjoints:
    """The adjoints of tensors, as far as they are known."""

    def __init__(self, head: Tensor, output: Tensor) -> None:
        self._prefix = head.shape[: head.ndim - output.ndim]
        self._parts: dict[Tensor, list[Tensor]] = {output: [head]}

    def of(self, tensor: Tensor) -> Tensor:
        """Return the sum of the parts; zeros if there are none."""
        parts = self._parts.get(tensor, [])
        if len(parts) == 1:
            return parts[0]

        def total(*index: Expr) -> Expr:
            terms = [part[index] for part in parts]
            result: Expr = const(0, tensor.dtype) if not terms else terms[0]
            for term in terms[1:]:
                result = result + term
            return result

        whole = compute(
            (*self._prefix, *tensor.shape), total, name=f"{tensor.name}_grad"
        )
        self._parts[tensor] = [whole]
        return whole

    def propagate(self, op: Operation, active: set[Operation]) -> None:
        """Add what `op` contributes to the adjoints of its inputs in `active`."""
        reached = [tensor for tensor in op.outputs if tensor in self._parts]
        if not reached:
            return
        if not isinstance(op, ComputeOp):
            raise Unsupported(
                f"gradient through {op.what}: {op.name}",
                why="only computes are differentiated",
                remedy=f"write {op.name} by computes, or its gradient by hand",
            )
        for tensor in reached:
            prefix = [
                Var(f"j{place}", axis.dtype) for place, axis in enumerate(self._prefix)
            ]
            seed: Expr = self.of(tensor)[(*prefix, *(axis.var for axis in op.axis))]
            body = op.body[tensor.value_index]
            axes = op.axis
            if isinstance(body, Reduce):
                body = rectangular(body, op.axis, op.name)
                axes = (*op.axis, *body.axes)
                body, seed = _within_reduction(tensor, body, seed)
            for found in _merged(adjoints(body, seed)):
                source = found.read.tensor
                if source.op in active and source.dtype.is_float:
                    part = self._contribution(found, axes, prefix)
                    self._parts.setdefault(source, []).append(part)

    def _contribution(
        self, found: _Read, axes: Sequence[IterVar], prefix: Sequence[Var]
    ) -> Tensor:
        """Return, for each element, the sum of the adjoint over the iterations that read it."""
        tensor = found.read.tensor

        def element(*index: Var) -> Expr:
            place = index[len(prefix) :]
            preimage = find_preimage(found.read.indices, place, tensor.shape, axes)
            # The axes of the compute become axes of a reduction.
            over, renamed = _fresh(preimage.remaining)
            solved = {
                var: substitute(value, renamed)
                for var, value in preimage.values.items()
            }
            outer: dict[Var, Expr] = dict(zip(prefix, index, strict=False))
            value = substitute(found.adjoint, renamed | solved | outer)
            conditions = [substitute(c, renamed) for c in preimage.conditions]
            value = _where_all(conditions, value)
            return reducers.sum(value, axis=over) if over else value

        shape = (*self._prefix, *tensor.shape)
        return compute(shape, element, name=f"{tensor.name}_grad")


def _where_all(conditions: Sequence[Expr], value: Expr) -> Expr:
    """Return `value` where all conditions hold, else 0.

    Both sides of `and` are evaluated. So a condition that reads a tensor is evaluated only where
    the conditions without reads hold: they keep its indices in range.
    """
    zero = const(0, value.dtype)
    reading = [c for c in conditions if _reads(c)]
    ranges = [c for c in conditions if not _reads(c)]
    if reading:
        value = maths.if_then_else(maths.all(*reading), value, zero)
    if ranges:
        value = maths.if_then_else(maths.all(*ranges), value, zero)
    return value


def _reads(condition: Expr) -> bool:
    return any(isinstance(node, TensorRead) for node in walk(condition))


def _merged(found: Iterable[tuple[TensorRead, Expr]]) -> list[_Read]:
    """Return the reads with the adjoints of equal reads added."""
    merged: list[_Read] = []
    for read, adjoint in found:
        for other in merged:
            if structurally_equal(other.read, read):
                other.adjoint = other.adjoint + adjoint
                break
        else:
            merged.append(_Read(read, adjoint))
    return merged


def _within_reduction(
    tensor: Tensor, reduction: Reduce, seed: Expr
) -> tuple[Expr, Expr]:
    """Return the source of a reduction, and its adjoint if that of the reduced value is `seed`."""
    source = reduction.sources[reduction.value_index]
    kind = _kind_of(reduction.reducer)
    if kind is None:
        raise Unsupported(
            f"gradient through the reduction {reduction.reducer.name} of {tensor.name}",
            why="only sum, prod, max and min are differentiated",
            remedy="write the computation with these, or its gradient by hand",
        )
    if kind is Mul:
        seed = seed * _product_of_others(tensor, reduction)
    elif kind is not Add:
        seed = _share_of_ties(tensor, reduction, source, seed)
    if as_int(reduction.condition) != 1:
        seed = maths.if_then_else(reduction.condition, seed, const(0, seed.dtype))
    return source, seed


def _kind_of(reducer: CommReducer) -> type[Expr] | None:
    """Return the class of the node that combines two values, or None if it is not a known one."""
    if len(reducer.results) != 1:
        return None
    (result,), (lhs,), (rhs,) = reducer.results, reducer.lhs, reducer.rhs
    if not isinstance(result, Add | Mul | Max | Min):
        return None
    return type(result) if (result.a, result.b) == (lhs, rhs) else None


def _share_of_ties(tensor: Tensor, reduction: Reduce, source: Expr, seed: Expr) -> Expr:
    """Return the adjoint of an element of a maximum: its share if it is attained there."""
    axes = _axes_of(tensor)
    number = tensor.dtype

    def attained(here: Expr, value: Expr) -> Expr:
        return maths.select(here.equal(value), const(1, number), const(0, number))

    def count(*index: Expr) -> Expr:
        over, renamed = _fresh(reduction.axes)
        renamed |= dict(zip(axes, index, strict=True))
        here = substitute(source, renamed)
        where = substitute(reduction.condition, renamed)
        return reducers.sum(attained(here, tensor[index]), axis=over, where=where)

    ties = compute(tensor.shape, count, name=f"{tensor.name}_ties")
    return seed * attained(source, tensor[axes]) / ties[axes]


def _product_of_others(tensor: Tensor, reduction: Reduce) -> Expr:
    """Return the product of all factors but one, which are divided by nothing, as one may be 0."""
    axes = _axes_of(tensor)
    own = tuple(axis.var for axis in reduction.axes)
    source = reduction.sources[reduction.value_index]

    def others(*index: Expr) -> Expr:
        here = index[len(axes) :]
        over, renamed = _fresh(reduction.axes)
        renamed |= dict(zip(axes, index, strict=False))
        factor = substitute(source, renamed)
        starts = [axis.minimum for axis in reduction.axes]
        places = [axis.var for axis in over]
        is_own = maths.all(
            *(
                place.equal(offset + start)
                for place, offset, start in zip(places, here, starts, strict=True)
            )
        )
        where = substitute(reduction.condition, renamed)
        kept = maths.select(is_own, const(1, tensor.dtype), factor)
        return reducers.prod(kept, axis=over, where=where)

    extents = [axis.extent for axis in reduction.axes]
    products = compute((*tensor.shape, *extents), others, name=f"{tensor.name}_others")
    offsets = [
        var - axis.minimum for var, axis in zip(own, reduction.axes, strict=True)
    ]
    return products[(*axes, *offsets)]


def _axes_of(tensor: Tensor) -> tuple[Var, ...]:
    op = tensor.op
    assert isinstance(op, ComputeOp)
    return tuple(axis.var for axis in op.axis)


def _fresh(axes: Sequence[IterVar]) -> tuple[list[IterVar], dict[Var, Expr]]:
    """Return new axes of the same ranges, and what replaces the old variables."""
    over = [axis(old.name, old.minimum, old.extent, REDUCTION) for old in axes]
    return over, {old.var: new.var for old, new in zip(axes, over, strict=True)}
