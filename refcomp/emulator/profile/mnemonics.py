"""Which class an instruction is of, and how many multiply-adds it does.

v_pk_fma_f32 -> "FMA", 2 a lane        v_mfma_f32_32x32x8_f16 -> "MFMA", 8192 a wave
"""

from __future__ import annotations

import re

from refcomp.emulator.assembly import Instruction

FMA, MFMA, VALU, SALU, LDS = "VALU FMA", "MFMA", "other VALU", "SALU", "LDS"
GLOBAL, SCRATCH, SCALAR_MEMORY = "global memory", "scratch", "scalar memory"
BRANCH, WAIT = "branch", "wait"
CLASSES = (FMA, MFMA, VALU, SALU, LDS, GLOBAL, SCRATCH, SCALAR_MEMORY, BRANCH, WAIT)
VECTOR_CLASSES = (FMA, MFMA, VALU, LDS, GLOBAL, SCRATCH)

_MATRIX = re.compile(r"v_(mfma|smfmac|wmma)_\w+?_(\d+)x(\d+)x(\d+)")
_FMA = re.compile(
    r"v_(pk_|dual_)?(fma|fmac|fmaak|fmamk|mad|mac|madak|madmk)(_legacy)?(_mix(lo|hi)?)?_(bf|f)\d+"
)
_DOT = re.compile(r"v_(?:dual_)?dot(\d)(?:c|acc)?_")
_CODE = ("s_branch", "s_cbranch", "s_setpc", "s_swappc", "s_call", "s_endpgm", "s_trap")
_WAITS = ("s_wait", "s_nop", "s_sleep", "s_barrier", "s_delay_alu", "s_clause", "v_nop")
_CACHES = re.compile(r"(buffer|global)_(wb|inv|gl)\w*$")
_SCALAR_MEMORY = ("s_load", "s_buffer", "s_store", "s_scratch", "s_dcache", "s_memtime")
_MEMORIES = (("ds_", LDS), ("scratch_", SCRATCH))
_DUAL = " :: "

# Of the matrices' elements, as their names end.
_BITS = (("f64", 64), ("xf32", 32), ("bf16", 16), ("f16", 16), ("i8", 8), ("iu8", 8))
_NARROW = re.compile(r"_(fp8|bf8)")


def class_of(mnemonic: str, space: str = "") -> str:
    """One of CLASSES; `space` is that of the accesses that such an instruction made, if any."""
    if mnemonic.startswith(_CODE):
        return BRANCH
    if mnemonic.startswith(_WAITS) or _CACHES.match(mnemonic):
        return WAIT
    for beginning, found in _MEMORIES:
        if mnemonic.startswith(beginning):
            return found
    if mnemonic.startswith(("global_", "flat_", "buffer_")):
        return SCRATCH if space == "private" else GLOBAL
    if mnemonic.startswith(_SCALAR_MEMORY):
        return SCALAR_MEMORY
    return SALU if mnemonic.startswith("s_") else _vector_class(mnemonic)


def _vector_class(mnemonic: str) -> str:
    if _MATRIX.match(mnemonic):
        return MFMA
    return FMA if _FMA.match(mnemonic) or _DOT.match(mnemonic) else VALU


def fmas_of_lane(instruction: Instruction) -> int:
    """How many multiply-adds of floats, or products of a dot product, each active lane does."""
    return sum(_of_lane(part.split(" ")[0]) for part in instruction.text.split(_DUAL))


def _of_lane(name: str) -> int:
    if dot := _DOT.match(name):
        return int(dot[1])
    match = _FMA.match(name)
    return 0 if match is None else 2 if match[1] == "pk_" else 1


def fmas_of_wave(instruction: Instruction) -> int:
    """How many multiply-adds a matrix instruction does; 0 for any other.

    Older names tell no blocks: there are as many as the lanes together hold matrices B.
    """
    match = _MATRIX.match(instruction.mnemonic)
    if match is None:
        return 0
    rows, columns, depth = int(match[2]), int(match[3]), int(match[4])
    if match[1] == "wmma":
        return rows * columns * depth
    held = 64 * instruction.operands[2].count * 32 // matrix_bits(instruction.mnemonic)
    return rows * columns * depth * max(1, held // (columns * depth))


def matrix_dtype(mnemonic: str) -> str:
    """The dtype that a matrix instruction multiplies: f64, f32, xf32, bf16, f16, i8 or fp8."""
    rest = mnemonic[match.end() :] if (match := _MATRIX.match(mnemonic)) else mnemonic
    rest = rest.removesuffix("_1k")
    if _NARROW.search(rest):
        return "fp8"
    found = next((name for name, _ in _BITS if rest.endswith(name)), "f32")
    return "i8" if found == "iu8" else found


def matrix_bits(mnemonic: str) -> int:
    """Bits of an element that a matrix instruction multiplies."""
    dtype = matrix_dtype(mnemonic)
    return 8 if dtype in ("fp8", "i8") else dict(_BITS).get(dtype, 32)
