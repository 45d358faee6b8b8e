"""Splits a function into a host function and the kernels that it launches.

Before::

    func scale(A: f32[n], B: f32[n] out, x: f32) {
      alloc T: f32[n] {
        for i in range((n + 63) // 64) blockIdx.x {
          for j in range(64) threadIdx.x {
            if (i * 64 + j < n) {
              T@[i * 64 + j] = A@[i * 64 + j] * x
            }
          }
        }
        for k in range(n) blockIdx.x {
          B@[k] = T@[n - 1 - k]
        }
      }
    }

After::

    func scale(A: f32[n], B: f32[n] out, x: f32) {
      alloc T: f32[n] {
        launch scale_kernel0 (T, A, n, x) grid ((n + 63) // 64, 1, 1) block (64, 1, 1)
        launch scale_kernel1 (B, T, n) grid (n, 1, 1) block (1, 1, 1)
      }
    }

    func scale_kernel0(T: f32[n] out, A: f32[n], n: i64, x: f32) {
      for i in range((n + 63) // 64) blockIdx.x {
        for j in range(64) threadIdx.x {
          if (i * 64 + j < n) {
            T@[i * 64 + j] = A@[i * 64 + j] * x
          }
        }
      }
    }

    func scale_kernel1(B: f32[n] out, T: f32[n], n: i64) {
      for k in range(n) blockIdx.x {
        B@[k] = T@[n - 1 - k]
      }
    }

The arguments of a kernel are all buffers that it uses, then all scalars, in order of first
use. Loops, lets, conditions and workspaces around kernels stay in the host function. Its
loops become serial.

Requires: kernels in canonical form. Ensures: the host function is at the `launch` level,
and the kernels at the `device` level, except for what later passes change. Level: flat, to
a Program. It refuses (UserError) accesses of memory outside of a kernel, since the host
cannot do them. It refuses (Unsupported) calls of functions, and shared memory whose size is
not known before the launch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from refcomp.arith import simplify
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.names import UniqueNames
from refcomp.ir.buffer import SHARED, Buffer, Load
from refcomp.ir.constants import as_ints
from refcomp.ir.expr import C_FUNCTION, Expr, IntImm, Mul, PureExtern, Var
from refcomp.ir.func import PrimFunc, Program
from refcomp.ir.gpu_intrinsics import is_gpu_intrinsic
from refcomp.ir.kernels import is_bound, kernel_nest, kernels_in
from refcomp.ir.node import Node, bound_by
from refcomp.ir.promotion import cast
from refcomp.ir.rewrite import (
    children,
    map_children,
    replace_buffers,
    substitute,
    variables_in,
    walk,
    with_fields,
)
from refcomp.ir.stmt import (
    CALLS,
    SERIAL,
    Allocate,
    AtomicUpdate,
    Block,
    For,
    IfThenElse,
    LaunchKernel,
    LetStmt,
    Prefetch,
    Stmt,
    Store,
    line_of,
    place_of,
)


def split_host_device(func: PrimFunc) -> Program:
    """Return the Program that does what `func` does."""
    splitting = _Splitting(func.name)
    host = func.with_body(splitting.visit(func.body, ()))
    return Program(host, tuple(splitting.kernels))


class _Splitting:
    """Visits the statements of the host, and moves kernels to functions of their own."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.kernels: list[PrimFunc] = []

    def visit(self, stmt: Stmt, around: tuple[For, ...]) -> Stmt:
        """Return `stmt`, inside the loops `around`, with a launch for each kernel."""
        if isinstance(stmt, For) and is_bound(stmt):
            return self._launch(stmt)
        if isinstance(stmt, Prefetch):  # a hint: the host reads nothing there
            return Block((), stmt.origin)
        if isinstance(stmt, For):
            around = (*around, stmt)
            if stmt.kind != SERIAL:  # the host launches one kernel after the other
                stmt = with_fields(stmt, kind=SERIAL)
        self._check(stmt, around)
        return map_children(stmt, lambda child: self.visit(child, around), only=Stmt)

    def _check(self, stmt: Stmt, around: tuple[For, ...]) -> None:
        """Refuse a statement that the host cannot run."""
        writes = isinstance(stmt, Store | AtomicUpdate)
        if writes or any(map(_reads_memory, _own_exprs(stmt))):
            _refuse_unbound(stmt, around)
        if not isinstance(stmt, For | LetStmt | IfThenElse | Block | Allocate):
            what, remedy = f"holds a {type(stmt).__name__}", ""
            if isinstance(stmt, CALLS):
                what = f"calls {stmt.name}"
                remedy = "build two modules, and call it between their calls"
            raise Unsupported(
                f"the host function {self._name} {what} between kernels",
                where=place_of(stmt.origin),
                at=line_of(stmt.origin),
                why="the host can only launch kernels there",
                remedy=remedy,
            )

    def _launch(self, loop: For) -> LaunchKernel:
        nest = kernel_nest(loop)
        for bound in nest.loops:
            if _reads_memory(bound.extent):
                raise UserError(
                    f"the extent of the loop {bound.var.name}, bound to {bound.kind}, "
                    "is read from memory",
                    where=place_of(bound.origin),
                    at=line_of(bound.origin),
                    why="the host must know it to launch the kernel, "
                    "and has no access to the memory",
                    remedy="pass the extent as an argument",
                )
        _check_calls(loop)
        arguments = _captures(loop)
        name = f"{self._name}_kernel{len(self.kernels)}"
        self.kernels.append(_kernel(name, arguments, loop))
        return LaunchKernel(
            name,
            arguments,
            grid=nest.grid,
            block=nest.block,
            shared_bytes=tuple(_shared_sizes(loop, set(arguments))),
            origin=loop.origin,
        )


def _kernel(name: str, arguments: tuple[Var | Buffer, ...], loop: For) -> PrimFunc:
    """Return the function of the kernel `loop`.

    If several arguments have one name, only the first keeps it.
    """
    unique = UniqueNames()
    scalars: dict[Var, Expr] = {}  # only those that get another name
    buffers: dict[Buffer, Buffer] = {}
    for item in arguments:
        label = unique.take(item.name)
        if label == item.name:
            continue
        if isinstance(item, Var):
            scalars[item] = Var(label, item.dtype)
        else:
            buffers[item] = with_fields(item, name=label)
    if scalars:
        # A shape is part of a buffer, not a child of its accesses.
        used = [item for item in arguments if isinstance(item, Buffer)]
        used += [node.buffer for node in walk(loop) if isinstance(node, Allocate)]
        for item in used:
            buffer = buffers.get(item, item)
            shape = tuple(substitute(dim, scalars) for dim in buffer.shape)
            buffers[item] = with_fields(buffer, shape=shape)
        loop = substitute(loop, scalars)
    params = tuple(
        substitute(item, scalars) if isinstance(item, Var) else buffers.get(item, item)
        for item in arguments
    )
    body = replace_buffers(loop, buffers)
    stores = (node for node in walk(body) if isinstance(node, Store | AtomicUpdate))
    written = {store.buffer for store in stores}
    outputs = [p.name for p in params if isinstance(p, Buffer) and p in written]
    return PrimFunc(name, params, body, tuple(outputs))


def _captures(loop: For) -> tuple[Var | Buffer, ...]:
    """Return the buffers, then the variables, that a kernel uses and does not bind.

    Variables that occur only in shapes are last.
    """
    bound: set[Node] = set()
    buffers: dict[Buffer, None] = {}
    variables: dict[Var, None] = {}
    for node in walk(loop):
        if type(node).binds:
            bound.update(bound_by(node))
        if isinstance(node, Var):
            variables[node] = None
        if isinstance(node, Load | Store | AtomicUpdate | Prefetch):
            buffers[node.buffer] = None
        if isinstance(node, Allocate):
            for dim in node.buffer.shape:
                variables.update(dict.fromkeys(variables_in(dim)))
    free_buffers = [buffer for buffer in buffers if buffer not in bound]
    for buffer in free_buffers:
        for dim in buffer.shape:
            variables.update(dict.fromkeys(variables_in(dim)))
    free_variables = [var for var in variables if var not in bound]
    return (*free_buffers, *free_variables)


def _shared_sizes(loop: For, known: set[Var | Buffer]) -> Iterator[Expr]:
    """Yield the bytes of each shared buffer whose size is not a constant."""
    for node in walk(loop):
        if not isinstance(node, Allocate) or node.buffer.scope != SHARED:
            continue
        shape = node.buffer.shape
        if as_ints(shape) is not None:
            continue  # part of the code of the kernel
        if not all(var in known for dim in shape for var in variables_in(dim)):
            raise Unsupported(
                f"the size of the shared buffer {node.buffer.name} differs "
                "within a kernel",
                where=place_of(node.origin),
                at=line_of(node.origin),
                why="shared memory is set apart when a kernel is launched",
                remedy="split by constant factors, "
                "so that what a group needs has a constant size",
            )
        size: Expr = IntImm(node.buffer.dtype.bytes, I64)
        for dim in shape:
            size = Mul(cast(I64, dim), size)
        yield simplify(size)


# What the host cannot do.


def _own_exprs(stmt: Stmt) -> Iterator[Expr]:
    return (child for child in children(stmt) if isinstance(child, Expr))


def _reads_memory(expr: Expr) -> bool:
    return any(isinstance(node, Load) for node in walk(expr))


def _check_calls(loop: For) -> None:
    """Refuse functions of the host in a kernel."""
    for stmt in walk(loop):
        if not isinstance(stmt, Stmt):
            continue
        inside = (node for expr in _own_exprs(stmt) for node in walk(expr))
        for node in inside:
            if isinstance(node, PureExtern) and not is_gpu_intrinsic(node.name):
                is_c = node.callee == C_FUNCTION
                kind = "C" if is_c else "registered Python"
                raise Unsupported(
                    f"the {kind} function {node.name} cannot be called in a kernel",
                    where=place_of(stmt.origin),
                    at=line_of(stmt.origin),
                    why=f"it is {'machine' if is_c else 'Python'} code of the host",
                    remedy="use a function of refcomp, such as refcomp.exp"
                    if is_c
                    else 'build for the host, such as target="llvm"',
                )


def _refuse_unbound(stmt: Stmt, around: tuple[For, ...]) -> NoReturn:
    # A loop with a kernel in it is a loop of the host on purpose.
    unbound = [loop for loop in around if not any(kernels_in(loop))]
    loop = unbound[0] if unbound else None
    origin = stmt.origin if loop is None else loop.origin
    subject = "a value that is read from memory"
    if stmt.origin and stmt.origin.stage:
        subject = f"stage {stmt.origin.stage}"
    elif isinstance(stmt, Store | AtomicUpdate):
        subject = f"what is written to {stmt.buffer.name}"
    cause = "it has no loop"
    if loop is not None:
        cause = f"its loop {loop.var.name} is not bound"
    raise UserError(
        f"{subject} is computed outside of a kernel, which a GPU cannot do: {cause}",
        where=place_of(origin),
        at=line_of(origin),
        why="what stands outside of bound loops is run by the host, "
        "which has no access to the memory of the device",
        remedy=_remedy(loop),
    )


def _remedy(loop: For | None) -> str:
    if loop is None:
        return (
            "make a loop of one iteration by fuse() of the stage, "
            "and bind it to blockIdx.x"
        )
    origin = loop.origin
    # A loop of the user's own statement need not be the first axis of its stage.
    if origin is None or not (origin.axis or origin.primitive):
        return f"bind the loop {loop.var.name} to blockIdx.x"
    axis = f"{origin.stage}.op.axis[0]"
    # A primitive made the axis. The user's name for it is not known.
    if origin.primitive:
        axis = origin.axis.replace(".", "_")
    return f's[{origin.stage}].bind({axis}, refcomp.thread_axis("blockIdx.x"))'
