"""Instructions run under the eyes of those who look for hazards, as a launch would run them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from refcomp.emulator.code.findings import Finding
from refcomp.emulator.execution.execute import Execution
from refcomp.emulator.execution.program import DecodedProgram
from refcomp.emulator.generations.generation import GFX942, Generation
from refcomp.emulator.limits import Limits, Watchdog
from refcomp.emulator.machine.memory import Arena
from refcomp.emulator.machine.waves import Waves
from refcomp.emulator.observers.hazards import hazard_observers
from tests.emulator.snippets import assembly, make_waves, put, set_scalar

# Where `watch` has 4096 written bytes, whose address it puts into s[0:1].
_BYTES = 4096


def watch(
    *lines: str,
    waves: int = 2,
    groups: int = 1,
    hazards: Any = True,
    prepare: Callable[[Waves], None] = lambda waves: None,
    generation: Generation = GFX942,
    arguments: tuple[Any, ...] = (),
    batches: int = 1,
    is_on_pairs: bool = True,
    is_split: bool = False,
) -> tuple[Finding, ...]:
    """What is found when `waves` waves of each of `groups` groups run the lines to their end.

    v0 has 4 times the number of each lane in its group, v1 that of the group; every other register
    is 0. Several `batches` run one after the other, all in one launch.
    """
    arena = Arena(1 << 16, is_watched=False)
    place = arena.allocate(_BYTES, "the memory")
    assert place is not None
    code = assembly("snippet:", *lines, "s_endpgm")
    observers = hazard_observers(hazards)
    split = 1 << 16 if is_split else 0
    descriptor = SimpleNamespace(is_on_pairs=is_on_pairs, properties=0, rsrc3=split)
    loaded = SimpleNamespace(
        generation=generation,
        arena=arena,
        kernel=lambda name: SimpleNamespace(descriptor=descriptor, arguments=arguments),
        program=lambda kernel: DecodedProgram(code, generation),
    )
    request = SimpleNamespace(
        kernel="snippet",
        grid=(groups * batches, 1, 1),
        block=(64 * waves, 1, 1),
        arguments=place.address.to_bytes(8, "little"),
        read_only=(),
    )
    for observer in observers:
        observer.launched(loaded, request)
    found: list[Finding] = []
    for number in range(batches):
        more = {"arena": arena, "code": code, "observers": observers}
        batch = _batch(waves, groups, number, **more)
        set_scalar(batch, 0, place.address, 2)
        prepare(batch)
        _run(batch, loaded.program(None), observers)
        found += batch.around.findings.all()
    return tuple(found)


def _batch(waves: int, groups: int, number: int, **more: Any) -> Waves:
    block = (64 * waves, 1, 1)
    batch = make_waves(
        waves * groups, groups=groups, watched=False, shared=1024, block=block, **more
    )
    batch.groups[:, 0] += number * groups
    put(batch, 0, 4 * np.arange(64 * waves * groups).reshape(-1, 64) % (256 * waves))
    put(batch, 1, np.repeat(batch.groups[:, 0], waves)[:, None])
    return batch


def _run(waves: Waves, program: DecodedProgram, observers: Any) -> None:
    for observer in observers:
        observer.began(waves)
    Execution(waves, program, 0, Watchdog(Limits(10_000))).run()
    for observer in observers:
        observer.ended(waves)
