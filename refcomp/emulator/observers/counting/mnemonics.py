"""The class of an instruction, and its number of multiply-adds.

v_pk_fma_f32 -> "FMA", 2 a lane        v_mfma_f32_32x32x8_f16 -> "MFMA", 8192 a wave
"""

from __future__ import annotations

import re
from math import prod

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.observers.counting.instruction_set import (
    CountedInstruction,
    GpuWords,
    InstructionSet,
)

FMA = "VALU FMA"
MFMA = "MFMA"
VALU = "other VALU"
SALU = "SALU"
LDS = "LDS"
GLOBAL = "global memory"
SCRATCH = "scratch"
SCALAR_MEMORY = "scalar memory"
BRANCH = "branch"
WAIT = "wait"
UNKNOWN = "not known here"
CLASSES = (
    FMA,
    MFMA,
    VALU,
    SALU,
    LDS,
    GLOBAL,
    SCRATCH,
    SCALAR_MEMORY,
    BRANCH,
    WAIT,
    UNKNOWN,
)
VECTOR_CLASSES = (FMA, MFMA, VALU, LDS, GLOBAL, SCRATCH)

_MATRIX = re.compile(r"v_(mfma|smfmac|wmma)_\w+?_(\d+)x(\d+)x(\d+)")
_FMA = re.compile(
    r"v_(pk_|dual_)?(fma|fmac|fmaak|fmamk|mad|mac|madak|madmk)"
    r"(_legacy|_dx9_zero)?(_mix(lo|hi)?)?_(bf|f)\d+"
)
_DOT = re.compile(r"v_(?:dual_)?dot(\d)(?:c|acc)?_")
_CODE = ("s_branch", "s_cbranch", "s_setpc", "s_swappc", "s_call", "s_endpgm", "s_trap")
_WAITS = (
    "s_wait",
    "s_nop",
    "s_sleep",
    "s_barrier",
    "s_delay_alu",
    "s_clause",
    "v_nop",
    "s_wakeup",
    "s_setprio",
    "s_sethalt",
    "s_sendmsg",
    "s_icache",
    "s_inst_prefetch",
    "s_set_inst_prefetch",
    "s_code_end",
    "s_ttracedata",
)
_CACHES = re.compile(r"(buffer|global)_(wb|inv|gl)\w*$")
_SCALAR_MEMORY = (
    "s_load",
    "s_buffer",
    "s_store",
    "s_atomic",
    "s_scratch",
    "s_dcache",
    "s_gl1",
    "s_mem",
    "s_atc",
)
_MEMORIES = (("ds_", LDS), ("lds_", LDS), ("scratch_", SCRATCH))
_OF_LANES = ("global_", "flat_", "buffer_", "tbuffer_", "image_")
_DUAL = " :: "

# Bits of the matrices' elements, by the end of the name.
_BITS = (
    ("f64", 64),
    ("xf32", 32),
    ("bf16", 16),
    ("f16", 16),
    ("i8", 8),
    ("iu8", 8),
    ("iu4", 4),
)
_BITS_OF = dict(_BITS) | {"f32": 32, "fp8": 8, "i4": 4}
_NARROW = re.compile(r"_(fp8|bf8)")


def class_of(mnemonic: str, space: str = "") -> str:
    """Return the class of an instruction, one of `CLASSES`.

    `space` is the space of its accesses to memory, "" for none: flat accesses need it.
    """
    if mnemonic.startswith(_CODE):
        return BRANCH
    if mnemonic.startswith(_WAITS) or _CACHES.match(mnemonic):
        return WAIT
    for beginning, found in _MEMORIES:
        if mnemonic.startswith(beginning):
            return found
    if mnemonic.startswith(_OF_LANES):
        return SCRATCH if space == "private" else GLOBAL
    if mnemonic.startswith(_SCALAR_MEMORY):
        return SCALAR_MEMORY
    if mnemonic.startswith("s_"):
        return SALU
    if not mnemonic.startswith("v_"):
        return UNKNOWN
    if _MATRIX.match(mnemonic):
        return MFMA
    return FMA if _FMA.match(mnemonic) or _DOT.match(mnemonic) else VALU


def fmas_of_lane(instruction: CountedInstruction) -> int:
    """Return how many multiply-adds of floats, or products of a dot product, a lane does."""
    total = 0
    for half in instruction.text.split(_DUAL):
        name = half.split(" ")[0]
        if dot := _DOT.match(name):
            total += int(dot[1])
        elif match := _FMA.match(name):
            total += 2 if match[1] == "pk_" else 1
    return total


def fmas_of_wave(instruction: Instruction) -> int:
    """Return how many multiply-adds a matrix instruction does; 0 for any other."""
    match = _MATRIX.match(instruction.mnemonic)
    return (
        prod(map(int, match.groups()[1:])) * matrix_blocks(instruction) if match else 0
    )


def matrix_blocks(instruction: Instruction) -> int:
    """Return how many independent matrix products (blocks) a matrix instruction does.

    Older names do not contain it: there are as many as the lanes together hold matrices B.
    """
    match = _MATRIX.match(instruction.mnemonic)
    if match is None or match[1] == "wmma":
        return 1
    held = 64 * instruction.operands[2].count * 32 // matrix_bits(instruction.mnemonic)
    return max(1, held // (int(match[3]) * int(match[4])))


def matrix_dtype(mnemonic: str) -> str:
    """Return the dtype that a matrix instruction multiplies.

    One of f64, f32, xf32, bf16, f16, i8, i4 and fp8.
    """
    match = _MATRIX.match(mnemonic)
    rest = mnemonic[match.end() :] if match else mnemonic
    rest = rest.removesuffix("_1k")
    if _NARROW.search(rest):
        return "fp8"
    found = next((name for name, _ in _BITS if rest.endswith(name)), "f32")
    return found.replace("iu", "i")


def matrix_bits(mnemonic: str) -> int:
    """Return the bits of an element that a matrix instruction multiplies."""
    return _BITS_OF[matrix_dtype(mnemonic)]


def _class_of(instruction: Instruction, space: str) -> str:
    """Return the class; of a VOPD pair that of the instruction that does more work."""
    found = class_of(instruction.mnemonic, space)
    return FMA if found == VALU and fmas_of_lane(instruction) else found


def _fmas(instruction: Instruction, kind: str, waves: int, lanes: int) -> int:
    if kind == MFMA:
        return waves * fmas_of_wave(instruction)
    return lanes * fmas_of_lane(instruction)


AMD = InstructionSet(
    words=GpuWords(
        wave="wave",
        group="group",
        unit="compute unit",
        simd="SIMD",
        segment="segment",
        transaction="transaction",
        shared="shared memory (LDS)",
        code="ISA",
    ),
    classes=CLASSES,
    multiply=FMA,
    matrix=MFMA,
    arithmetic=frozenset({VALU}),
    overhead=frozenset({SALU, BRANCH, WAIT}),
    spilled=SCRATCH,
    of_lanes=frozenset(VECTOR_CLASSES),
    cached=frozenset({SCALAR_MEMORY}),
    class_of=_class_of,
    fmas=_fmas,
    product=re.compile("v_(pk_)?mul_f"),
    sum=re.compile("v_(pk_)?add_f"),
)
