"""States how the arguments of a kernel must be aligned for wide accesses.

Before::

    func copy(A: f32[64], B: f32[64] out) {
      for t in range(16) threadIdx.x {
        B@[ramp(t * 4, 1, 4)] = A@[ramp(t * 4 + 1, 1, 4)]
      }
    }

After::

    func copy(A: f32[64], B: f32[64] align 16 out) {
      for t in range(16) threadIdx.x {
        B@[ramp(t * 4, 1, 4)] = A@[ramp(t * 4 + 1, 1, 4)]
      }
    }

NVIDIA's GPUs access up to 16 bytes at once, at addresses that are multiples of the size. The
printers use such an access if the buffer begins at such an address and the index keeps to it. A
launch refuses an argument that begins elsewhere (`refcomp.runtime.launch`). Shared and local arrays
always begin at such addresses.

Requires: vectors occur only in lets, and in the values, indices and predicates of stores. Ensures:
the index of an aligned access is a multiple of the alignment for all values of variables. Level:
device, kept. It refuses nothing.
"""

from __future__ import annotations

from refcomp.arith.alignment import divisor_of
from refcomp.ir.buffer import Buffer, Load
from refcomp.ir.constants import as_constant
from refcomp.ir.expr import Let, Ramp, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.rewrite import replace_buffers, walk, with_fields
from refcomp.ir.stmt import LetStmt, Store

WIDEST_ACCESS = 16  # bytes


def align_arguments(func: PrimFunc) -> PrimFunc:
    """Return `func` with the alignments that its vector accesses can use."""
    wanted = _wanted_alignments(func)
    aligned: dict[Buffer, Buffer] = {}
    for param in func.params:
        if isinstance(param, Buffer) and wanted.get(param, 0) > param.alignment:
            aligned[param] = with_fields(param, alignment=wanted[param])
    if not aligned:
        return func
    params = tuple(
        aligned.get(param, param) if isinstance(param, Buffer) else param
        for param in func.params
    )
    return with_fields(func, params=params, body=replace_buffers(func.body, aligned))


def _wanted_alignments(func: PrimFunc) -> dict[Buffer, int]:
    """Return the widest aligned access of each buffer that has accesses of several lanes."""
    divisors: dict[Var, int] = {}
    wanted: dict[Buffer, int] = {}
    # A let is visited before the expressions in which its variable stands.
    for node in walk(func.body):
        if isinstance(node, LetStmt | Let) and node.var.dtype.is_int:
            divisors[node.var] = divisor_of(node.value, divisors)
        if not (isinstance(node, Load | Store) and node.predicate is None):
            continue
        index = node.index
        if not (isinstance(index, Ramp) and as_constant(index.stride) == 1):
            continue
        size = node.buffer.dtype.bytes
        lanes = min(divisor_of(index, divisors), index.lanes & -index.lanes)
        if lanes > 1:
            widest = min(size * lanes, WIDEST_ACCESS)
            wanted[node.buffer] = max(wanted.get(node.buffer, 0), widest)
    return wanted
