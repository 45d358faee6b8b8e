"""Damaged code objects, with other bytes: each runs, or is refused by an error of refcomp's own.

No other error comes out, nothing hangs, and no more memory is taken than a GPU has.
"""

import random
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from refcomp.emulator import EmulatedGpu
from refcomp.emulator.code.assembly import read_assembly
from refcomp.emulator.execution.program import ENDS, bind
from refcomp.emulator.generations.generation import ARCHITECTURES, GENERATIONS
from refcomp.emulator.limits import Limits
from refcomp.emulator.machine.memory import Arena
from refcomp.foundation.errors import RefcompError
from tests.emulator.kernels import compiled_code, disassembled
from tests.emulator.snippets import make_waves

pytestmark = [pytest.mark.rocm, pytest.mark.search]
_SEGMENT_BYTES, _SECTION_BYTES = 56, 64


def _parts(data):
    """Where the parts of a code object lie: their first bytes and their sizes."""
    elf = ELFFile(BytesIO(data))
    sections = {s.name: (s["sh_offset"], s["sh_size"]) for s in elf.iter_sections()}
    return {
        "header": (0, elf["e_ehsize"] + _SEGMENT_BYTES * elf.num_segments()),
        "sections": (elf["e_shoff"], _SECTION_BYTES * elf.num_sections()),
        "descriptor": sections[".rodata"],
        "metadata": sections[".note"],
        "symbols": sections[".dynsym"],
        "text": sections[".text"],
        "anything": (0, len(data)),
    }


def _damaged(data, part, rng):
    found, (start, size) = bytearray(data), part
    for _ in range(rng.choice((1, 1, 2, 8))):
        place = start + rng.randrange(size)
        other = found[place] ^ 1 << rng.randrange(8)
        found[place] = rng.choice((rng.randrange(256), other, 0, 255))
    return bytes(found)


def _run(data, text, is_watched):
    """Runs its only kernel on 64 numbers, of which there are too few for what it may do now."""
    gpu = EmulatedGpu(text, size=1 << 20, is_watched=is_watched)
    loaded = gpu.load(data)
    name = next(iter(loaded.code.kernels), "none")
    values = [*(np.ones(64, np.float32) for _ in range(3)), np.int64(64), np.int64(1)]
    gpu.run(loaded, name, (1, 1, 1), (64, 1, 1), values, limits=Limits(3000))


@pytest.mark.parametrize("gpu", ARCHITECTURES)
def test_whatever_is_damaged_no_other_error_comes_out(gpu, request):
    data, rng, outcomes = compiled_code("vector_add", gpu=gpu), random.Random(11), set()
    text, parts = disassembled(data), _parts(data)
    for _ in range(20 if request.config.getoption("--nightly") else 1):
        for name in list(parts) * 10:
            whole = name in ("text", "sections", "anything")
            made_of = disassembled if whole else lambda _: text
            damaged = _damaged(data, parts[name], rng)
            try:
                _run(damaged, made_of, rng.random() < 0.7)
                outcomes.add("ran")
            except (RefcompError, MemoryError) as error:
                outcomes.add(type(error).__name__)
    assert {"ran", "DamagedCode", "Unsupported", "UserError"} <= outcomes


def _damaged_lines(gpu, rng):
    """The instructions of a kernel half of which have another byte."""
    data = bytearray(compiled_code("matmul", gpu=gpu))
    start, size = _parts(bytes(data))["text"]
    for place in range(start, start + size - 3, 4):
        if rng.random() < 0.5:
            data[place + rng.randrange(4)] = rng.randrange(256)
    return disassembled(bytes(data))


def _meddled(waves, rng):
    """Other lanes run, and registers have other values."""
    borders = (0, 1, 4, 0x7F800001, 0x80000000, 0xFFFFFFFF, rng.randrange(1 << 32))
    waves.values.s[rng.randrange(106)] = rng.choice(borders)
    waves.values.v[rng.randrange(40)] = rng.choice(borders)
    lanes = [rng.random() < 0.8 for _ in range(waves.lanes)]
    waves.initialise_mask(np.broadcast_to(np.array(lanes), (waves.waves, waves.lanes)).copy())


@pytest.mark.parametrize("gpu", ARCHITECTURES)
def test_whatever_an_instruction_is_no_other_error_comes_out(gpu, request):
    generation, rng, outcomes = GENERATIONS[gpu], random.Random(12), set()
    for _ in range(40 if request.config.getoption("--nightly") else 4):
        lanes = rng.choice((32, 64)) if generation.usual_lanes == 32 else 64
        code = read_assembly(_damaged_lines(gpu, rng), generation.dialect, lanes)
        arena = Arena(1 << 16, is_watched=True)
        arena.allocate(4096, "A")
        memory = {"shared": rng.choice((0, 512)), "private": rng.choice((0, 64))}
        waves = make_waves(2, vectors=512, arena=arena, lanes=lanes, **memory)
        for number in range(len(code)):
            one = code.instruction(number)
            one = replace(one, mode=rng.randrange(256)) if rng.random() < 0.1 else one
            if one.mnemonic in (*ENDS, "s_code_end"):
                continue
            _meddled(waves, rng)
            try:
                run = bind(one, generation)
                with np.errstate(all="ignore"):
                    run and run(waves)
                outcomes.add("ran")
            except RefcompError as error:
                outcomes.add(type(error).__name__)
            waves.select(slice(None))
    assert {"ran", "Unsupported"} <= outcomes
