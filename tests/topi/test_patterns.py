"""Is the declared pattern of an operator that of its te compute?"""

import math

import pytest

from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr
from refcomp.ir.rewrite import walk
from refcomp.te.operation import (
    ComputeOp,
    PlaceholderOp,
    placeholder,
    reachable_operations,
)
from refcomp.te.tensor import Tensor, TensorRead
from refcomp.topi.draws import Draws
from refcomp.topi.operator import Operator, find_operator
from refcomp.topi.sources import OPERATOR_HOMES

SAMPLED = [name for name in OPERATOR_HOMES if find_operator(name).sample is not None]


def computed(operator: Operator, seed: int) -> list[Tensor]:
    assert operator.sample is not None
    sample = operator.sample(Draws(seed))
    inputs = [None if a is None else placeholder(a.shape, a.dtype) for a in sample.operands]
    made = operator.compute(*inputs, **sample.attributes)
    return made if isinstance(made, list) else [made]


def reads(op: ComputeOp) -> list[TensorRead]:
    return [n for root in op.body for n in walk(root) if isinstance(n, TensorRead)]


def is_at_own_index(op: ComputeOp, read: TensorRead, broadcasts: bool) -> bool:
    """The read is at the axes of the compute; with broadcasting, at 0 along extents of 1."""
    axes = [axis.var for axis in op.axis]
    if not broadcasts:
        return len(axes) == len(read.indices) and all(map(_is_same, axes, read.indices))
    last = axes[len(axes) - len(read.indices) :]
    pairs = zip(last, read.indices, read.tensor.shape, strict=True)
    return all(
        _is_same(axis, index) or (as_int(extent) == 1 and as_int(index) == 0)
        for axis, index, extent in pairs
    )


def _is_same(axis: Expr, index: Expr) -> bool:
    return index is axis


@pytest.mark.parametrize("name", SAMPLED)
def test_loops_are_declared(name: str) -> None:
    operator = find_operator(name)
    for seed in range(4):
        ops = reachable_operations([tensor.op for tensor in computed(operator, seed)])
        has_loops = any(
            not isinstance(op, PlaceholderOp) and (not isinstance(op, ComputeOp) or op.reduce_axis)
            for op in ops
        )
        assert operator.has_loops or not has_loops


@pytest.mark.parametrize("name", SAMPLED)
def test_several_results_are_opaque(name: str) -> None:
    operator = find_operator(name)
    if len(computed(operator, 0)) > 1:
        assert operator.pattern == "opaque" or name in ("meshgrid",)


WITH_AXIS = {"batch_norm", "prelu", "quantize", "dequantize", "requantize", "fake_quantize"}


@pytest.mark.parametrize("name", SAMPLED)
def test_elementwise_and_broadcast_read_at_their_own_index(name: str) -> None:
    operator = find_operator(name)
    if operator.pattern not in ("elementwise", "broadcast") or name in WITH_AXIS:
        return
    for seed in range(6):
        ops = reachable_operations([tensor.op for tensor in computed(operator, seed)])
        for op in ops:
            if isinstance(op, ComputeOp):
                broadcasts = operator.pattern == "broadcast"
                assert all(is_at_own_index(op, read, broadcasts) for read in reads(op)), name


@pytest.mark.parametrize("name", [n for n in SAMPLED if find_operator(n).pattern == "reduction"])
def test_reductions_read_each_element_once(name: str) -> None:
    for seed in range(4):
        tensors = computed(find_operator(name), seed)
        ops = reachable_operations([tensor.op for tensor in tensors])
        counts: dict[Tensor, int] = {}
        for op in ops:
            if not isinstance(op, ComputeOp):
                continue
            for tensor in {read.tensor for read in reads(op)}:
                steps = math.prod(as_int(a.extent) or 0 for a in (*op.axis, *op.reduce_axis))
                counts[tensor] = counts.get(tensor, 0) + steps
        for tensor, steps in counts.items():
            if isinstance(tensor.op, PlaceholderOp):
                size = math.prod(as_int(dim) or 0 for dim in tensor.shape)
                assert steps == size, f"{name}: {steps} reads of {size} elements"


def test_operators_with_an_axis_read_vectors_along_it() -> None:
    for name in WITH_AXIS:
        operator = find_operator(name)
        assert operator.pattern == "broadcast"
        if name != "prelu":
            assert any(spec.name == "axis" for spec in operator.attributes)
