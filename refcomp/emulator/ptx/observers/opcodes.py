"""The class of an instruction of PTX, and its number of multiply-adds.

fma.rn.f32x2 -> "multiply-add", 2 a lane
mma.sync.aligned.m16n8k16... -> "tensor core", 2048 a warp

Counts are those of PTX, not of machine code: ptxas compiles an instruction to any number of machine
instructions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from refcomp.emulator.observers.counting.instruction_set import GpuWords, InstructionSet

FMA = "multiply-add"
TENSOR = "tensor core"
FLOAT = "other float"
SPECIAL = "special function"
INTEGER = "integer"
CONVERSION = "conversion"
COMPARISON = "compare and select"
MOVE = "move"  # ptxas removes most of them
EXCHANGE = "warp exchange"
SHARED = "shared memory"
GLOBAL = "global memory"
ATOMIC = "atomic"
LOCAL = "local memory"
CONSTANT = "constant"
BRANCH = "branch"
SYNC = "synchronization"
CLASSES = (
    FMA,
    TENSOR,
    FLOAT,
    SPECIAL,
    INTEGER,
    CONVERSION,
    COMPARISON,
    MOVE,
    EXCHANGE,
    SHARED,
    GLOBAL,
    ATOMIC,
    LOCAL,
    CONSTANT,
    BRANCH,
    SYNC,
)
ARITHMETIC = frozenset({FLOAT, SPECIAL, INTEGER, CONVERSION, COMPARISON, EXCHANGE})

# Opcodes whose class their modifiers do not change.
_CLASS_OF = {
    **dict.fromkeys(("bra", "brx", "call", "ret", "exit", "trap", "brkpt"), BRANCH),
    **dict.fromkeys(("bar", "barrier", "membar", "fence", "mbarrier"), SYNC),
    **dict.fromkeys(("nanosleep", "griddepcontrol", "setmaxnreg", "pmevent"), SYNC),
    **dict.fromkeys(("shfl", "vote", "match", "redux", "activemask"), EXCHANGE),
    **dict.fromkeys(("elect", "movmatrix"), EXCHANGE),
    **dict.fromkeys(("setp", "set", "selp", "slct", "testp", "isspacep"), COMPARISON),
    **dict.fromkeys(("mov", "cvta"), MOVE),
    **dict.fromkeys(("rcp", "rsqrt", "sqrt", "sin", "cos", "lg2", "ex2"), SPECIAL),
    **dict.fromkeys(("ldmatrix", "stmatrix"), SHARED),
    **dict.fromkeys(("prefetch", "prefetchu", "discard", "applypriority"), GLOBAL),
    "tanh": SPECIAL,
    "cvt": CONVERSION,
    "mma": TENSOR,
}
_ACCESSES = frozenset({"ld", "ldu", "st"})
_OF_SPACE = {"shared": SHARED, "global": GLOBAL, "local": LOCAL}
_CONSTANTS = frozenset({"param", "const"})
_FLOAT_TYPE = re.compile(r"b?f\d+(x\d)?|tf32")
_PACKED = re.compile(r"b?f\d+x(\d)")
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
# Types of the elements of matrices: f16, s8, and small floats such as e4m3.
_MATRIX_TYPE = re.compile(r"e\dm\d|[a-z]+\d+")
_MATRIX_DTYPES = {
    **dict.fromkeys(("e4m3", "e5m2"), "fp8"),
    **dict.fromkeys(("u8", "s8"), "i8"),
    **dict.fromkeys(("u4", "s4"), "i4"),
    "b1": "i1",
}
_DOTS = {"dp4a": 4, "dp2a": 2}  # products of each lane


@dataclass(frozen=True, slots=True)
class CountedPtx:
    """An entry of the counts: an instruction of PTX. See `CountedInstruction`."""

    text: str
    number: int
    source: str
    opcode: str
    modifiers: tuple[str, ...]

    @property
    def mnemonic(self) -> str:
        """The name, with modifiers."""
        return ".".join((self.opcode, *self.modifiers))


def class_of(instruction: CountedPtx, space: str) -> str:
    """Return the class of an instruction, one of `CLASSES`.

    `space` is the space of its accesses to memory, "" for none. It decides for accesses by generic
    addresses. If no observer sees such an access, it is one to local memory.
    """
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode in _ACCESSES:
        return _class_of_access(modifiers, space)
    if opcode in ("atom", "red"):
        return ATOMIC
    if opcode == "cp":  # a copy to shared memory, or a wait for it
        is_copy = any(one.startswith("shared") for one in modifiers)
        return GLOBAL if is_copy else SYNC
    if opcode == "wmma":
        return TENSOR if "mma" in modifiers else _class_of_access(modifiers, space)
    if found := _CLASS_OF.get(opcode):
        return found
    if opcode in _DOTS:
        return FMA
    is_float = bool(modifiers) and _FLOAT_TYPE.fullmatch(modifiers[-1]) is not None
    if opcode in ("fma", "mad") and is_float:
        return FMA
    return FLOAT if is_float else INTEGER


def _class_of_access(modifiers: tuple[str, ...], space: str) -> str:
    for modifier in modifiers:
        plain = modifier.partition("::")[0]
        if plain in _CONSTANTS:
            return CONSTANT
        if plain in _OF_SPACE:
            return _OF_SPACE[plain]
    return _OF_SPACE.get(space, LOCAL)


def fmas_of(instruction: CountedPtx, kind: str, warps: int, lanes: int) -> int:
    """Return the multiply-adds of an instruction of class `kind` in so many warps and lanes."""
    if kind == TENSOR:
        return warps * fmas_of_warp(instruction)
    if kind != FMA:
        return 0
    if products := _DOTS.get(instruction.opcode):
        return lanes * products
    packed = _PACKED.fullmatch(instruction.modifiers[-1])
    return lanes * (int(packed[1]) if packed else 1)


def fmas_of_warp(instruction: CountedPtx) -> int:
    """Return the multiply-adds of an instruction that multiplies matrices."""
    for modifier in instruction.modifiers:
        if shape := _SHAPE.fullmatch(modifier):
            return prod(map(int, shape.groups()))
    return 0


def matrix_dtype(instruction: CountedPtx) -> str:
    """Return the dtype of the factors of an instruction that multiplies matrices.

    One of f64, tf32, bf16, f16, fp8, i8, i4 and i1. Newer ones keep their names in PTX.
    """
    types = _matrix_types(instruction)
    if instruction.opcode == "wmma" and len(types) == 2:
        return "f16"  # of f16, only the types of the sums are named
    found = types[1] if len(types) > 1 else "f16"
    return _MATRIX_DTYPES.get(found, found)


def has_f32_sums(instruction: CountedPtx) -> bool:
    """Return True if an instruction that multiplies matrices sums in f32."""
    return _matrix_types(instruction)[:1] == ["f32"]


def _matrix_types(instruction: CountedPtx) -> list[str]:
    """Return the types of D, A, B and C; of `wmma.mma` on f16 those of D and C."""
    return [m for m in instruction.modifiers if _MATRIX_TYPE.fullmatch(m)]


PTX = InstructionSet(
    words=GpuWords(
        wave="warp",
        group="block",
        unit="multiprocessor",
        simd="scheduler",
        segment="sector",
        transaction="sector",
        shared="shared memory",
        code="PTX",
    ),
    classes=CLASSES,
    multiply=FMA,
    matrix=TENSOR,
    arithmetic=ARITHMETIC,
    overhead=frozenset({BRANCH, SYNC}),
    spilled=LOCAL,
    of_lanes=frozenset(CLASSES),
    cached=frozenset({CONSTANT}),
    class_of=class_of,
    fmas=fmas_of,
    product=re.compile(r"mul\.(\w+\.)*b?f\d+"),
    sum=re.compile(r"add\.(\w+\.)*b?f\d+"),
)
