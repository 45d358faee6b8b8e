"""Schedules by target: `schedule_*` of each kind of operator, as the classic tutorials use them.

    with rc.topi.generic.target_scope("opencl"):
        s = rc.topi.generic.schedule_softmax(B)

Each function takes any computation of topi operators. It finds tiles, rows and other patterns by
itself, so that the function's name says what the caller expects, and is not a condition.

Source: TVM 0.6, topi.generic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from refcomp.foundation.target import Target, as_target, kind_of, target_or_current
from refcomp.schedule.schedule import Schedule
from refcomp.te.tensor import Tensor
from refcomp.topi.schedules.cuda import schedule_cuda
from refcomp.topi.schedules.gpu import schedule_gpu
from refcomp.topi.schedules.llvm import schedule_llvm

Outputs = Tensor | Sequence[Tensor]
# `TargetKind.schedules` -> the function that schedules outputs for a target of that kind
_BY_KIND: dict[str, Callable[[Sequence[Tensor], Target], Schedule]] = {
    "cpu": schedule_llvm,
    "gpu": lambda outputs, _: schedule_gpu(outputs),
    "cuda": lambda outputs, _: schedule_cuda(outputs),
}


@contextmanager
def target_scope(target: Target | str) -> Iterator[Target]:
    """Make a target the current one in the `with` block, as `with refcomp.Target(target)` does.

    Args:
        target: what `refcomp.build` takes, such as `"opencl"` or `"rocm -mcpu=gfx942"`.

    Yields:
        The target.

    Raises:
        UserError: the target is unknown.

    Source: TVM, `with tvm.target.create(...)`.

    Example::

        >>> A = rc.placeholder((64,), name="A")
        >>> B = rc.topi.relu(A)
        >>> with rc.topi.target_scope("opencl"):
        ...     s = rc.topi.schedule_injective(B)
        >>> [step.primitive for step in s.steps]
        ['fuse', 'split', 'bind', 'bind']
    """
    with as_target(target) as chosen:
        yield chosen


def _schedule(outputs: Outputs, target: Target | str | None) -> Schedule:
    """Return the schedule for `target`, the current target, or the host."""
    listed = [outputs] if isinstance(outputs, Tensor) else outputs
    return schedule_for(listed, target_or_current(target))


def schedule_for(outputs: Sequence[Tensor], target: Target | str) -> Schedule:
    """Return the schedule of `outputs` for `target`. UserError if the target is unknown."""
    by_kind = _BY_KIND[kind_of(target).schedules]
    return by_kind(outputs, as_target(target))


def schedule_injective(
    outputs: Outputs, *, target: Target | str | None = None
) -> Schedule:
    """Return a schedule of computations without reductions: elementwise, broadcast and movement.

    On GPUs a thread computes an element, and transposes go through shared memory. On the
    host the last axis has vectors.

    Args:
        outputs: the tensor that an operator returned, or a list of tensors.
        target: what the schedule is for. By default it is the current target, or else the
            host.

    Raises:
        UserError: the target is unknown, or an output is not a tensor.

    Source: TVM, topi.generic.schedule_injective.

    Example::

        >>> A = rc.placeholder((64,), name="A")
        >>> B = rc.topi.relu(A)
        >>> s = rc.topi.schedule_injective(B, target="opencl")
        >>> any(step.primitive == "bind" for step in s.steps)
        True
    """
    return _schedule(outputs, target)


def schedule_elemwise(
    outputs: Outputs, *, target: Target | str | None = None
) -> Schedule:
    """Return a schedule of computations of one element from one element of each operand.

    They are scheduled as by `schedule_injective`.

    Args:
        outputs: the tensor that an operator returned, or a list of tensors.
        target: what the schedule is for. By default it is the current target, or else the
            host.

    Raises:
        UserError: the target is unknown, or an output is not a tensor.

    Source: TVM, topi.generic.schedule_elemwise.

    Example::

        >>> A = rc.placeholder((64,), name="A")
        >>> B = rc.topi.tanh(A)
        >>> s = rc.topi.schedule_elemwise(B, target="opencl")
        >>> any(step.primitive == "bind" for step in s.steps)
        True
    """
    return _schedule(outputs, target)


def schedule_broadcast(
    outputs: Outputs, *, target: Target | str | None = None
) -> Schedule:
    """Return a schedule of computations of two operands with broadcasting.

    They are scheduled as by `schedule_injective`.

    Args:
        outputs: the tensor that an operator returned, or a list of tensors.
        target: what the schedule is for. By default it is the current target, or else the
            host.

    Raises:
        UserError: the target is unknown, or an output is not a tensor.

    Source: TVM, topi.generic.schedule_broadcast.

    Example::

        >>> A = rc.placeholder((64,), name="A")
        >>> B = rc.topi.add(A, A)
        >>> s = rc.topi.schedule_broadcast(B, target="opencl")
        >>> any(step.primitive == "bind" for step in s.steps)
        True
    """
    return _schedule(outputs, target)


def schedule_reduce(
    outputs: Outputs, *, target: Target | str | None = None
) -> Schedule:
    """Return a schedule of reductions, and what is computed from their results.

    On GPUs the threads of a group share a row whose elements are neighbours in memory.

    Args:
        outputs: the tensor that an operator returned, or a list of tensors.
        target: what the schedule is for. By default it is the current target, or else the
            host.

    Raises:
        UserError: the target is unknown, or an output is not a tensor.

    Source: TVM, topi.generic.schedule_reduce.

    Example::

        >>> A = rc.placeholder((8, 64, 4, 4), name="A")
        >>> B = rc.topi.global_avg_pool2d(A)
        >>> s = rc.topi.schedule_reduce(B, target="opencl")
        >>> any(step.primitive == "bind" for step in s.steps)
        True
    """
    return _schedule(outputs, target)


def schedule_softmax(
    outputs: Outputs, *, target: Target | str | None = None
) -> Schedule:
    """Return a schedule of softmax, log-softmax and other normalizations of rows.

    On GPUs they are one kernel, whose statistics stay in registers.

    Args:
        outputs: the tensor that an operator returned, or a list of tensors.
        target: what the schedule is for. By default it is the current target, or else the
            host.

    Raises:
        UserError: the target is unknown, or an output is not a tensor.

    Source: TVM, topi.generic.schedule_softmax.

    Example::

        >>> A = rc.placeholder((8, 64), name="A")
        >>> B = rc.topi.softmax(A)
        >>> s = rc.topi.schedule_softmax(B, target="opencl")
        >>> any(step.primitive == "bind" for step in s.steps)
        True
    """
    return _schedule(outputs, target)


def schedule_pool(outputs: Outputs, *, target: Target | str | None = None) -> Schedule:
    """Return a schedule of pooling over windows.

    On GPUs a thread computes a window. On the host the last axis has vectors.

    Args:
        outputs: the tensor that an operator returned, or a list of tensors.
        target: what the schedule is for. By default it is the current target, or else the
            host.

    Raises:
        UserError: the target is unknown, or an output is not a tensor.

    Source: TVM, topi.generic.schedule_pool.

    Example::

        >>> A = rc.placeholder((1, 8, 16, 16), name="A")
        >>> B = rc.topi.max_pool2d(A, kernel=(2, 2), strides=(2, 2))
        >>> s = rc.topi.schedule_pool(B, target="opencl")
        >>> any(step.primitive == "bind" for step in s.steps)
        True
    """
    return _schedule(outputs, target)


def schedule_adaptive_pool(
    outputs: Outputs, *, target: Target | str | None = None
) -> Schedule:
    """Return a schedule of pooling to a given number of elements, or to one for each channel.

    They are scheduled as by `schedule_reduce`.

    Args:
        outputs: the tensor that an operator returned, or a list of tensors.
        target: what the schedule is for. By default it is the current target, or else the
            host.

    Raises:
        UserError: the target is unknown, or an output is not a tensor.

    Source: TVM, topi.generic.schedule_adaptive_pool.

    Example::

        >>> A = rc.placeholder((1, 8, 16, 16), name="A")
        >>> B = rc.topi.global_avg_pool2d(A)
        >>> s = rc.topi.schedule_adaptive_pool(B, target="opencl")
        >>> any(step.primitive == "bind" for step in s.steps)
        True
    """
    return _schedule(outputs, target)


def schedule_dense(outputs: Outputs, *, target: Target | str | None = None) -> Schedule:
    """Return a schedule of products of matrices and dense layers.

    On GPUs they have tiles in shared memory and in registers, if the extents are constant.

    Args:
        outputs: the tensor that an operator returned, or a list of tensors.
        target: what the schedule is for. By default it is the current target, or else the
            host.

    Raises:
        UserError: the target is unknown, or an output is not a tensor.

    Source: TVM, topi.generic.schedule_dense.

    Example::

        >>> A = rc.placeholder((64, 32), name="A")
        >>> W = rc.placeholder((32, 64), name="W")
        >>> B = rc.topi.matmul(A, W)
        >>> s = rc.topi.schedule_dense(B, target="opencl")
        >>> any(step.primitive == "bind" for step in s.steps)
        True
    """
    return _schedule(outputs, target)


def schedule_batch_matmul(
    outputs: Outputs, *, target: Target | str | None = None
) -> Schedule:
    """Return a schedule of products of batches of matrices.

    They are scheduled as by `schedule_dense`.

    Args:
        outputs: the tensor that an operator returned, or a list of tensors.
        target: what the schedule is for. By default it is the current target, or else the
            host.

    Raises:
        UserError: the target is unknown, or an output is not a tensor.

    Source: TVM, topi.generic.schedule_batch_matmul.

    Example::

        >>> A = rc.placeholder((2, 64, 32), name="A")
        >>> W = rc.placeholder((2, 32, 64), name="W")
        >>> B = rc.topi.matmul(A, W)
        >>> s = rc.topi.schedule_batch_matmul(B, target="opencl")
        >>> any(step.primitive == "bind" for step in s.steps)
        True
    """
    return _schedule(outputs, target)


def schedule_conv2d_nchw(
    outputs: Outputs, *, target: Target | str | None = None
) -> Schedule:
    """Return a schedule of convolutions whose channels are the second axis.

    On GPUs they have tiles in shared memory and in registers, if the extents are constant.
    On the host, `conv2d_nchwc` is faster.

    Args:
        outputs: the tensor that an operator returned, or a list of tensors.
        target: what the schedule is for. By default it is the current target, or else the
            host.

    Raises:
        UserError: the target is unknown, or an output is not a tensor.

    Source: TVM, topi.generic.schedule_conv2d_nchw.

    Example::

        >>> A = rc.placeholder((1, 16, 14, 14), name="A")
        >>> W = rc.placeholder((32, 16, 3, 3), name="W")
        >>> B = rc.topi.conv2d(A, W)
        >>> s = rc.topi.schedule_conv2d_nchw(B, target="opencl")
        >>> any(step.primitive == "bind" for step in s.steps)
        True
    """
    return _schedule(outputs, target)


def schedule_conv2d_nhwc(
    outputs: Outputs, *, target: Target | str | None = None
) -> Schedule:
    """Return a schedule of convolutions whose channels are the last axis.

    On GPUs they have tiles in shared memory and in registers, if the extents are constant.
    All bytes that move are used.

    Args:
        outputs: the tensor that an operator returned, or a list of tensors.
        target: what the schedule is for. By default it is the current target, or else the
            host.

    Raises:
        UserError: the target is unknown, or an output is not a tensor.

    Source: TVM, topi.generic.schedule_conv2d_nhwc.

    Example::

        >>> A = rc.placeholder((1, 14, 14, 16), name="A")
        >>> W = rc.placeholder((3, 3, 16, 32), name="W")
        >>> B = rc.topi.conv2d_nhwc(A, W)
        >>> s = rc.topi.schedule_conv2d_nhwc(B, target="opencl")
        >>> any(step.primitive == "bind" for step in s.steps)
        True
    """
    return _schedule(outputs, target)


def schedule_conv2d_nchwc(
    outputs: Outputs, *, target: Target | str | None = None
) -> Schedule:
    """Return a schedule of convolutions whose channels are in blocks.

    On the host a tile of pixels stays in registers.

    Args:
        outputs: the tensor that an operator returned, or a list of tensors.
        target: what the schedule is for. By default it is the current target, or else the
            host.

    Raises:
        UserError: the target is unknown, or an output is not a tensor.

    Source: TVM, topi.generic.schedule_conv2d_nchwc.

    Example::

        >>> A = rc.placeholder((1, 1, 14, 14, 16), name="A")
        >>> W = rc.placeholder((1, 1, 3, 3, 16, 16), name="W")
        >>> B = rc.topi.conv2d_nchwc(A, W)
        >>> s = rc.topi.schedule_conv2d_nchwc(B, target="opencl")
        >>> any(step.primitive == "bind" for step in s.steps)
        True
    """
    return _schedule(outputs, target)


def schedule_depthwise_conv2d_nchw(
    outputs: Outputs, *, target: Target | str | None = None
) -> Schedule:
    """Return a schedule of convolutions of each channel by itself.

    On GPUs a thread computes an element, and neighbours share what the caches hold.

    Args:
        outputs: the tensor that an operator returned, or a list of tensors.
        target: what the schedule is for. By default it is the current target, or else the
            host.

    Raises:
        UserError: the target is unknown, or an output is not a tensor.

    Source: TVM, topi.generic.schedule_depthwise_conv2d_nchw.

    Example::

        >>> A = rc.placeholder((1, 16, 14, 14), name="A")
        >>> W = rc.placeholder((16, 1, 3, 3), name="W")
        >>> B = rc.topi.conv2d(A, W, groups=16)
        >>> s = rc.topi.schedule_depthwise_conv2d_nchw(B, target="opencl")
        >>> any(step.primitive == "bind" for step in s.steps)
        True
    """
    return _schedule(outputs, target)


def schedule_extern(
    outputs: Outputs, *, target: Target | str | None = None
) -> Schedule:
    """Return a schedule of computations that contain extern operations.

    Extern operations stay as they are. The computes around them are scheduled, and what an
    extern operation reads is stored.

    Args:
        outputs: the tensor that an operator returned, or a list of tensors.
        target: what the schedule is for. By default it is the current target, or else the
            host.

    Raises:
        UserError: the target is unknown, or an output is not a tensor.

    Source: TVM, topi.generic.schedule_extern.

    Example::

        >>> A = rc.placeholder((64,), name="A")
        >>> B = rc.topi.relu(A)
        >>> s = rc.topi.schedule_extern(B, target="opencl")
        >>> any(step.primitive == "bind" for step in s.steps)
        True
    """
    return _schedule(outputs, target)
