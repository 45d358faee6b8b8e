"""Builds kernels of the device level with PoCL and runs them by plain pyopencl, for tests alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from refcomp.codegen.opencl.module import print_opencl
from refcomp.codegen.signature import machine_symbol
from refcomp.foundation.dtype import I64, to_numpy
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import is_bound, kernel_nest
from refcomp.ir.parser import parse_func
from refcomp.ir.rewrite import map_children, memoised, replace_buffers, walk
from refcomp.ir.stmt import Allocate, For, LetStmt, ParallelRegion, block
from refcomp.ir.verify import verify
from tests.strategies.funcs import dim_value

POCL = (
    "cl_khr_fp64",
    "cl_khr_int64_base_atomics",
    "cl_khr_int64_extended_atomics",
)
ALL = (
    *POCL,
    "cl_khr_fp16",
    "cl_khr_subgroup_shuffle",
    "cl_khr_subgroup_clustered_reduce",
)
EXACT = "-cl-fp32-correctly-rounded-divide-sqrt"


@cache
def pocl() -> tuple[Any, Any]:
    """PoCL's context and queue."""
    import pyopencl as cl  # noqa: PLC0415 (optional)

    platforms = {platform.name: platform for platform in cl.get_platforms()}
    device = platforms["Portable Computing Language"].get_devices()[0]
    context = cl.Context([device])
    return context, cl.CommandQueue(context)


def together(kernels: Sequence[PrimFunc], name: str) -> PrimFunc:
    """One kernel that does what all of them do, on the parameters of all: building a kernel takes
    PoCL as long as running a hundred small loops."""
    params = [param for kernel in kernels for param in kernel.params]
    outputs = {output for kernel in kernels for output in kernel.outputs}
    return PrimFunc(name, tuple(params), block([k.body for k in kernels]), tuple(outputs))


def as_kernel(func: PrimFunc, symbols: Mapping[Var, int]) -> PrimFunc:
    """A function of the host level as a kernel of one thread, with its symbols as parameters behind
    its own. Allocations become local arrays, and a parallel region a loop over one task."""
    buffers = {
        stmt.buffer: Buffer(
            stmt.buffer.name,
            stmt.buffer.dtype,
            tuple(IntImm(dim_value(dim, symbols), I64) for dim in stmt.buffer.shape),
            "local",
        )
        for stmt in walk(func.body)
        if isinstance(stmt, Allocate)
    }

    def visit(recurse: Callable[[Any], Any], node: Any) -> Any:
        node = map_children(node, recurse)
        if not isinstance(node, ParallelRegion):
            return node
        one = IntImm(1, node.task.dtype)
        loop = For(node.task, IntImm(0, node.task.dtype), one, "serial", node.body)
        return LetStmt(node.num_tasks, one, loop)

    body = memoised(visit)(replace_buffers(func.body, buffers))
    return PrimFunc("random", (*func.params, *symbols), body, func.outputs)


class OpenCLKernels:
    """Kernels built as one program; `call(kernel, args)` runs one on numpy arrays and scalars."""

    def __init__(self, kernels: Sequence[PrimFunc], text: str | None = None) -> None:
        import pyopencl as cl  # noqa: PLC0415

        self._cl, (context, self._queue) = cl, pocl()
        self.text = print_opencl(kernels, extensions=POCL).text if text is None else text
        self._program = cl.Program(context, self.text).build(
            [EXACT, "-cl-std=CL1.2", "-w"], cache_dir=False
        )

    def call(
        self,
        kernel: PrimFunc,
        args: Sequence[Any],
        grid: Sequence[int] = (),
        block: Sequence[int] = (),
        shared_bytes: Sequence[int] = (),
    ) -> None:
        """Runs `kernel`; arrays are written in place. Without extents, those of its loops are
        taken, which may name the scalar parameters."""
        cl, queue = self._cl, self._queue
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        values: list[Any] = []
        known: dict[Var, int] = {}
        for param, arg in zip(kernel.params, args, strict=True):
            if isinstance(param, Buffer):
                hosted = arg if arg.size else np.zeros(1, arg.dtype)
                values.append(cl.Buffer(queue.context, flags, hostbuf=hosted))
            else:
                known[param] = arg
                values.append(to_numpy(param.dtype).type(arg))
                if param.dtype.is_bool:
                    values[-1] = np.uint8(arg)
                elif param.dtype.is_float and param.dtype.bits == 16:
                    values[-1] = np.float16(arg).view(np.uint16)
        grid, block = (
            grid or _extents(kernel, "grid", known),
            block or _extents(kernel, "block", known),
        )
        values += [cl.LocalMemory(size) for size in shared_bytes]
        if 0 not in (*grid, *block):
            threads = [a * b for a, b in zip(grid, block, strict=True)]
            getattr(self._program, machine_symbol(kernel.name))(
                queue, threads, tuple(block), *values
            )
        for param, arg, value in zip(kernel.params, args, values, strict=False):
            if isinstance(param, Buffer) and param.name in kernel.outputs and arg.size:
                cl.enqueue_copy(queue, arg, value)
        queue.finish()


def _extents(kernel: PrimFunc, which: str, known: dict[Var, int]) -> tuple[int, ...]:
    if not is_bound(kernel.body):
        return (1, 1, 1)
    return tuple(_number(extent, known) for extent in getattr(kernel_nest(kernel.body), which))


def _number(extent: Expr, known: dict[Var, int]) -> int:
    return extent.value if isinstance(extent, IntImm) else known[extent]


def print_body(
    body: str, params: str = "A: f32[64], B: f32[64] out, k: i64", extensions: Any = POCL
) -> str:
    """The text of a kernel `f` of this body, for a device like PoCL."""
    func = parse_func(f"func f({params}) {{ {body} }}")
    verify(func, "device")
    return print_opencl([func], extensions=extensions).text
