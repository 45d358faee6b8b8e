"""Instructions that are not emulated, and what a kernel can use in their place."""

from __future__ import annotations

from refcomp.emulator.ptx.text.module import PtxInstruction
from refcomp.foundation.errors import Unsupported

_MATRICES = "use mma.sync or wmma, as a kernel compiled for sm_80 or sm_86 does"
_TEXTURES = "load by ld.global, or __ldg in CUDA C, from an array in global memory"
_CLUSTERS = "use shared memory of the block, or global memory between blocks"
# Opcode -> the remedy.
_INSTEAD = {
    **dict.fromkeys(("wgmma", "tcgen05"), _MATRICES),
    **dict.fromkeys(("tex", "tld4", "txq", "suld", "sust", "sured", "suq"), _TEXTURES),
    "istypep": _TEXTURES,
    "multimem": "load from each device, and add up in the kernel",
    "clusterlaunchcontrol": "launch a block for each tile",
    "tensormap": "copy by cp.async, or cp.async.bulk of plain bytes",
    **dict.fromkeys(("alloca", "stacksave", "stackrestore"), "use a local array"),
}
# (opcode, modifier) -> the remedy.
_INSTEAD_OF_FORM = {
    ("st", "async"): _CLUSTERS,
    ("red", "async"): _CLUSTERS,
    ("st", "bulk"): "store zeros in a loop",
}


def refuse(instruction: PtxInstruction) -> None:
    """Raise Unsupported for an instruction that is not emulated in any form."""
    opcode = instruction.opcode
    remedy = _INSTEAD.get(opcode)
    name = opcode
    for (kind, modifier), instead in _INSTEAD_OF_FORM.items():
        if kind == opcode and modifier in instruction.modifiers:
            remedy, name = instead, f"{kind}.{modifier}"
    if remedy is not None:
        raise Unsupported(
            f"the instruction {name} is not emulated",
            where=f"line {instruction.line}: {instruction.text}",
            remedy=f"{remedy}, or run the kernel on a GPU",
        )
