"""The differences between the emulated GPUs, as data and small functions.

The rest of the emulator asks the `Generation` of a code object, never for the name of a GPU. Tables
of instructions that GPUs share are in files of their own. A `Generation` lists which tables a GPU
has, under which names, and what it adds.

Sources: LLVM's "User Guide for AMDGPU Backend" (kernel descriptors, initial state of registers) and
AMD's manuals of instruction sets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from refcomp.emulator.code.assembly import (
    NAMED,
    USUAL_DIALECT,
    USUAL_LANES,
    Dialect,
    Instruction,
)
from refcomp.emulator.code.code_object import Descriptor
from refcomp.emulator.generations import gfx11
from refcomp.emulator.generations.memory_order import (
    GFX11_ORDER,
    GFX90A_ORDER,
    GFX942_ORDER,
    MemoryOrder,
)
from refcomp.emulator.generations.wait_counters import (
    GFX9_COUNTERS,
    GFX11_COUNTERS,
    Counters,
)
from refcomp.emulator.generations.wait_states import (
    GFX11_STATES,
    GFX90A_STATES,
    GFX942_STATES,
    StateTable,
)
from refcomp.emulator.instructions.memory.buffers import SCRATCH, SCRATCH_DESCRIPTOR
from refcomp.emulator.instructions.operation import Function, PackedSemantics, Semantics
from refcomp.emulator.instructions.tables.conversions import VECTOR_CONVERSIONS
from refcomp.emulator.instructions.tables.floats import VECTOR_FLOATS
from refcomp.emulator.instructions.tables.integers import VECTOR_INTEGERS
from refcomp.emulator.instructions.tables.packed import PACKED
from refcomp.emulator.instructions.tables.scalar import SAVE_EXEC, SCALAR
from refcomp.emulator.instructions.tables.unfused import UNFUSED_F32
from refcomp.emulator.machine.registers import FIRST_ACCUMULATOR
from refcomp.emulator.machine.waves import Run

VECTOR = {**VECTOR_FLOATS, **VECTOR_INTEGERS, **VECTOR_CONVERSIONS}


@dataclass(frozen=True, slots=True, eq=False)
class Generation:
    """GPUs with one instruction set. Instructions go by the names that GPUs share."""

    name: str
    # Semantics by mnemonic.
    vector: Mapping[str, Semantics]
    packed: Mapping[str, PackedSemantics]
    scalar: Mapping[str, Semantics]
    save_exec: Mapping[str, Function]
    # Instructions without an effect in the emulator: results are there at once, and it does not
    # measure time.
    idle: frozenset[str]
    # Lanes of a kernel's waves.
    lanes: Callable[[Descriptor], int]
    # Vector registers that are allocated for each lane of a kernel.
    vectors: Callable[[Descriptor], int]
    # How the disassembler prints instructions and registers.
    dialect: Dialect = USUAL_DIALECT
    # Binders of instructions that no table can describe.
    special: Mapping[str, Callable[[Instruction], Run]] = field(default_factory=dict)
    # Lanes of a wave if nothing else is asked for.
    usual_lanes: int = USUAL_LANES
    # What a wave can wait for.
    counters: Counters = GFX9_COUNTERS
    # Which instructions wait states must separate.
    states: StateTable = GFX942_STATES
    # How groups see each other's writes.
    order: MemoryOrder = GFX942_ORDER
    # User registers to which only this emulator gives a meaning: the bit of a kernel's properties
    # that asks for them -> their words.
    start: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    # A register holds where each wave's private memory begins.
    has_wave_offset: bool = False
    # Descriptors of buffers have only an address and a size. Other fields are refused.
    has_plain_buffers: bool = False
    # Maximum of a wave's private memory in bytes, by the width of its field (LLVM's GCNSubtarget).
    wave_scratch: int = 1024 * ((1 << 13) - 1)
    # A kernel can have arguments put into registers.
    has_preload: bool = True
    # Matrix products of f16 and bf16 take and give denormals.
    has_matrix_denormals: bool = True
    # Bytes of a line of the vector L1 cache, by AMD's white papers: the unit of transactions.
    segment: int = 128
    # 16-byte reads of shared memory pair four lanes with four others.
    pairs_fours: bool = True


# Instructions of all GPUs that wait, sleep, send messages, or write caches back.
_IDLE = frozenset(
    {
        "s_nop",
        "s_waitcnt",
        "s_sleep",
        "s_setprio",
        "s_inst_prefetch",
        "s_code_end",
        "v_nop",
        "s_dcache_inv",
        "s_icache_inv",
        "s_sethalt",
        "s_clause",
        "s_sendmsg",
        "s_incperflevel",
        "s_decperflevel",
        "s_ttracedata",
    }
)


def _accumulating_vectors(descriptor: Descriptor) -> int:
    """Return how many registers there are; accumulators begin at `FIRST_ACCUMULATOR`."""
    total = 8 * descriptor.vgpr_granules
    own = min(descriptor.first_accumulator, total)
    return FIRST_ACCUMULATOR + total - own if total > own else own


# Accumulators are registers like others, so moves between the two are plain moves.
_MOVES = {f"v_accvgpr_{name}_b32": "v_mov_b32" for name in ("read", "write", "mov")}

# CDNA3: waves of 64 lanes; private memory and the ids of groups need no descriptor.
GFX942 = Generation(
    name="gfx942",
    vector=VECTOR,
    packed=PACKED,
    scalar=SCALAR,
    save_exec=SAVE_EXEC,
    dialect=Dialect(NAMED, _MOVES),
    idle=_IDLE
    | {"s_dcache_wb", "s_wakeup", "buffer_wbl2", "buffer_inv", "s_set_gpr_idx_off"},
    lanes=lambda descriptor: 64,
    vectors=_accumulating_vectors,
)

# CDNA2: a descriptor in s[0:3] points to private memory, and a register has each wave's offset.
# Additions of 64 bits take two instructions. It does not have eight-bit floats.
_ONLY_CDNA3 = (
    "v_lshl_add_u64",
    "v_mov_b64",
    *(n for n in VECTOR if "fp8" in n or "bf8" in n),
)
GFX90A = Generation(
    name="gfx90a",
    vector={name: row for name, row in VECTOR.items() if name not in _ONLY_CDNA3}
    | UNFUSED_F32,
    packed=PACKED,
    scalar=SCALAR,
    save_exec=SAVE_EXEC,
    dialect=Dialect(
        NAMED,
        _MOVES
        | {f"v_dot2{c}_f32_f16": f"v_dot2{c}_f32_f16_flushed" for c in ("", "c")},
    ),
    idle=_IDLE
    | {"s_dcache_wb", "s_wakeup", "buffer_wbl2", "buffer_invl2"}
    | {"buffer_wbinvl1", "buffer_wbinvl1_vol", "s_set_gpr_idx_off"},
    lanes=lambda descriptor: 64,
    vectors=_accumulating_vectors,
    states=GFX90A_STATES,
    order=GFX90A_ORDER,
    start={0: SCRATCH_DESCRIPTOR, 5: (SCRATCH & 0xFFFFFFFF, SCRATCH >> 32)},
    has_wave_offset=True,
    has_matrix_denormals=False,
    segment=64,
)


def _lanes_as_asked(descriptor: Descriptor) -> int:
    """Return 32 if the descriptor asks for it, else 64."""
    return 32 if descriptor.properties >> 10 & 1 else 64


def _vectors_by_lanes(descriptor: Descriptor) -> int:
    """Return the vector registers of a lane: twice as many for half the lanes."""
    return 256 // _lanes_as_asked(descriptor) * descriptor.vgpr_granules


# RDNA3: waves of 32 or 64 lanes, other names, pairs of instructions, and no accumulators.
GFX1100 = Generation(
    name="gfx1100",
    vector=gfx11.vector_rows(VECTOR),
    packed=PACKED,
    scalar={**SCALAR, **gfx11.SCALAR_ROWS},
    save_exec=gfx11.in_both_widths(SAVE_EXEC),
    special=gfx11.SPECIAL,
    dialect=Dialect(gfx11.NAMED_REGISTERS, gfx11.RENAMED),
    idle=_IDLE | gfx11.IDLE,
    lanes=_lanes_as_asked,
    vectors=_vectors_by_lanes,
    usual_lanes=32,
    counters=GFX11_COUNTERS,
    states=GFX11_STATES,
    order=GFX11_ORDER,
    has_plain_buffers=True,
    wave_scratch=256 * ((1 << 15) - 1),
    has_preload=False,
    pairs_fours=False,
)

GENERATIONS: dict[str, Generation] = {
    one.name: one for one in (GFX942, GFX90A, GFX1100)
}
ARCHITECTURES = tuple(GENERATIONS)
