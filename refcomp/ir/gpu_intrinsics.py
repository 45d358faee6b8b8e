"""Instructions of GPUs that kernels may call by name: dot products and matrix products.

A PureExtern with such a name is an instruction of the GPU; no other target has it. The operands and
the result are scalars: the elements of a register come one by one. A call of an instruction that
returns several elements asks for one of them, by its last operand. `join_matrix_calls` makes one
call of the calls for all elements. The result of that call is a vector, and no number is given.

An operand of bf16 may come as its bits, a u16, as passes leave it. Note [Sums of products] says
what is rounded. The threads of a wave compute a matrix product together: all of them must arrive.
"""

from __future__ import annotations

from typing import NamedTuple

from refcomp.foundation.dtype import I32, DType
from refcomp.ir.constants import as_int
from refcomp.ir.expr import PureExtern
from refcomp.ir.gpu_instructions import amd, nvidia
from refcomp.ir.gpu_instructions.records import (
    DotProduct,
    GpuInstruction,
    MatrixLoad,
    MatrixProduct,
)

_BF16_BITS = DType("uint", 16)

GPU_INTRINSICS: dict[str, GpuInstruction] = {
    intrinsic.name: intrinsic for intrinsic in (*amd.AMD, *nvidia.NVIDIA)
}
# prefix of a name -> the vendor, as `Backend.calls` has it
_VENDORS = {amd.PREFIX: "amdgpu", nvidia.PREFIX: "nvidia"}


class _Signature(NamedTuple):
    operands: tuple[DType, ...]
    result: DType

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.operands))}) -> {self.result}"


def vendor_of(name: str) -> str | None:
    """Return whose instruction `name` is: `"amdgpu"`, `"nvidia"`, or None for other functions."""
    for prefix, vendor in _VENDORS.items():
        if name.startswith(prefix):
            return vendor
    return None


def is_gpu_intrinsic(name: str) -> bool:
    """Return True if the function `name` is an instruction of GPUs."""
    return vendor_of(name) is not None


def gpu_intrinsic_fault(call: PureExtern) -> str | None:
    """Describe what is wrong with the operands of `call`; None if nothing is."""
    intrinsic = GPU_INTRINSICS.get(call.name)
    if intrinsic is None:
        vendor = vendor_of(call.name)
        known = " ".join(name for name in GPU_INTRINSICS if vendor_of(name) == vendor)
        return f"{call.name} is not a known instruction; known: {known}"
    if isinstance(intrinsic, MatrixLoad) and not intrinsic.fits(call.dtype.element):
        widths = "16" if intrinsic.is_transposed else "8 or 16"
        return f"{call.name} loads elements of {widths} bits, not of {call.dtype}"
    given = _Signature(tuple(arg.dtype for arg in call.args), call.dtype)
    signatures = _signatures(intrinsic, call.dtype.element)
    if given not in (*signatures, *map(_lowered, signatures)):
        return f"{call.name} is {signatures[0]}, not {given}"
    count = result_count(call)
    is_one_of_several = count > 1 and call.dtype.lanes == 1
    if is_one_of_several and as_int(call.args[-1]) not in range(count):
        return f"the last operand of {call.name} is a constant from 0 to {count - 1}"
    return None


def _signatures(intrinsic: GpuInstruction, element: DType) -> list[_Signature]:
    """Return the signature of a call for one element, and of a call for all elements."""
    match intrinsic:
        case DotProduct():
            return [_Signature(intrinsic.operands, intrinsic.sum)]
        case MatrixProduct():
            whole = intrinsic.sum.with_lanes(intrinsic.c.count)
            one = _Signature(intrinsic.operands, intrinsic.sum)
            return [one, _Signature(intrinsic.operands[:-1], whole)]
        case MatrixLoad():
            count = intrinsic.row(element)
            row = element.with_lanes(count)
            one = _Signature((*(element,) * count, I32), element)
            return [one, _Signature((row,), row)]


def _lowered(signature: _Signature) -> _Signature:
    """Return a signature whose bf16 operands have been replaced by their bits."""
    operands = tuple(
        _BF16_BITS if d.kind == "bfloat" else d for d in signature.operands
    )
    return _Signature(operands, signature.result)


def result_count(call: PureExtern) -> int:
    """Return the number of elements that the instruction of `call` gives each thread."""
    match GPU_INTRINSICS[call.name]:
        case MatrixProduct() as product:
            return product.c.count
        case MatrixLoad() as load:
            return load.row(call.dtype.element)
        case _:
            return 1


def is_of_a_wave(expr: object) -> bool:
    """Return True if the threads of a wave compute `expr` together."""
    if not isinstance(expr, PureExtern):
        return False
    intrinsic = GPU_INTRINSICS.get(expr.name)
    return intrinsic is not None and intrinsic.wave > 1


# Note [Sums of products]
# ~~~~~~~~~~~~~~~~~~~~~~~
# Integers wrap. Products of f32 are added one after the other along the depth, each by one fused
# operation. Of narrower floats, tf32 among them, all products and the old sum are added exactly and
# rounded once.
#
# AMD's manuals permit a GPU more: it may round in between, in its own order, and flush subnormal
# numbers to zero. A comparison with a GPU allows for that. NVIDIA's manuals say nothing: see Note
# [Sums on tensor cores] of `refcomp.ir.gpu_instructions.nvidia`.
