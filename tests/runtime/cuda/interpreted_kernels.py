"""Launches on the stand-in for pycuda, computed by the interpreter from the packed arguments."""

from collections.abc import Sequence

import numpy as np

from refcomp.arith import simplify
from refcomp.codegen.signature import machine_symbol
from refcomp.foundation.dtype import to_numpy
from refcomp.ir.buffer import SHARED, Buffer
from refcomp.ir.constants import as_int, as_ints
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import kernel_nest
from refcomp.ir.rewrite import substitute, walk
from refcomp.ir.stmt import Allocate
from refcomp.oracle.lockstep.interpret import interpret
from tests.runtime.cuda.recording_pycuda import Launch, RecordingPycuda

ALIGNMENT = 128  # of the dynamic shared buffers, in bytes


def interpret_launches(recording: RecordingPycuda, kernels: Sequence[PrimFunc]) -> None:
    """Let launches run `kernels` by the interpreter, and check what they are given."""
    by_symbol = {machine_symbol(kernel.name): kernel for kernel in kernels}

    def run(launch: Launch) -> None:
        kernel = by_symbol[launch.symbol]
        words, begins = _unpacked(kernel, launch.arguments)
        known = {
            param: word
            for param, word in zip(kernel.params, words, strict=True)
            if isinstance(param, Var)
        }
        nest = kernel_nest(kernel.body)
        assert launch.grid == tuple(_number(extent, known) for extent in nest.grid)
        assert launch.block == tuple(_number(extent, known) for extent in nest.block)
        assert (begins, launch.shared) == _placed(kernel, known)
        args = [
            _array(recording, param, word, known) if isinstance(param, Buffer) else word
            for param, word in zip(kernel.params, words, strict=True)
        ]
        interpret(kernel, args)

    recording.on_launch = run


def _unpacked(kernel: PrimFunc, arguments: bytes) -> tuple[list[int], list[int]]:
    """The parameters as C reads them, all integers here, and the words behind them."""
    offset, words = 0, []
    for param in kernel.params:
        size = 8 if isinstance(param, Buffer) else param.dtype.bytes
        offset += -offset % size
        is_float = isinstance(param, Var) and param.dtype.is_float
        assert not is_float, "these kernels take integers"
        words.append(int.from_bytes(arguments[offset : offset + size], "little", signed=True))
        offset += size
    offset += -offset % 8
    rest = arguments[offset:]
    return words, [int.from_bytes(rest[k : k + 8], "little") for k in range(0, len(rest), 8)]


def _placed(kernel: PrimFunc, known: dict[Var, int]) -> tuple[list[int], int]:
    """Where the dynamic shared buffers begin, and the bytes of all."""
    begins, end = [], 0
    for node in walk(kernel.body):
        if not isinstance(node, Allocate) or node.buffer.scope != SHARED:
            continue
        if as_ints(node.buffer.shape) is None:
            begins.append(-(-end // ALIGNMENT) * ALIGNMENT)
            elements = np.prod([_number(dim, known) for dim in node.buffer.shape])
            end = begins[-1] + int(elements) * node.buffer.dtype.bytes
    return begins, end


def _number(expr: Expr, known: dict[Var, int]) -> int:
    values = {var: IntImm(value, var.dtype) for var, value in known.items()}
    value = as_int(simplify(substitute(expr, values)))
    assert value is not None, f"{expr} is not known"
    return value


def _array(
    recording: RecordingPycuda, buffer: Buffer, address: int, known: dict[Var, int]
) -> np.ndarray:
    shape = tuple(_number(dim, known) for dim in buffer.shape)
    dtype = to_numpy(buffer.dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    return recording.piece(address, size).view(dtype).reshape(shape)
