"""The function of a unit as LLVM IR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from refcomp.emulator.machine.registers import FIRST_VECTOR
from refcomp.emulator.translation.accesses import AccessPrinter
from refcomp.emulator.translation.names import Lines
from refcomp.emulator.translation.steps import (
    Computation,
    HostStep,
    ResultPlace,
    SourceValue,
)
from refcomp.emulator.translation.texts import Texts, load_texts
from refcomp.emulator.translation.units import CodeUnit, vectors
from refcomp.emulator.translation.values import (
    Loop,
    ScalarValues,
    Scratch,
    VectorValues,
)

# What a function is given, in order: addresses (ptr) and numbers (i64).
FIELDS = {
    "v": "ptr",  # vector registers of the first wave
    "u": "ptr",  # their undefined bits
    "s": "ptr",  # scalar registers of the first wave
    "scc": "ptr",
    "v.stride": "i64",  # bytes from a vector register to the next
    "s.stride": "i64",
    "rows": "ptr",  # numbers of the waves that run, i64
    "count": "i64",  # of them
    "arena": "ptr",  # memory of the device, and which bits of it were written
    "arena.known": "ptr",
    "shared.data": "ptr",  # memory of all groups
    "shared.shadow": "ptr",
    "shared.bases": "ptr",  # i64 for each wave: where its group's memory begins
    "shared.limit": "i64",  # bytes of a group
    "starts": "ptr",  # of the live allocations, sorted
    "ends": "ptr",
    "allocations": "i64",  # their number
}
_LETTERS = "abcd"


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to run a unit.

    Attributes:
        is_masked: some lanes may not run.
        is_checked: bits that nothing wrote hold up a wave.
        has_shadow: registers may have such bits, and not only memory.
    """

    is_masked: bool
    is_checked: bool
    has_shadow: bool


def print_module(functions: Sequence[str], width: int) -> str:
    """Return a module with the functions."""
    return load_texts(width).frame["module"]["head"] + "".join(functions)


def print_unit(unit: CodeUnit, variant: Variant, name: str, width: int) -> str:
    """Return the text of the function `name` that runs a unit, `width` lanes at once."""
    return _UnitPrinter(unit, variant, name, width).print()


def field_lines(width: int) -> str:
    """Return the lines that load what a function is given."""
    text = load_texts(width).frame["module"]["field"]
    return "".join(
        text.format(name=name, type=kind, number=number)
        for number, (name, kind) in enumerate(FIELDS.items())
    )


class _UnitPrinter:
    """Prints one function."""

    def __init__(self, unit: CodeUnit, variant: Variant, name: str, width: int) -> None:
        self._unit = unit
        self._variant = variant
        self._name = name
        self._texts: Texts = load_texts(width)
        self._scratch = Scratch()
        self._lines = Lines(self._texts.frame, "w")
        self._scalars = ScalarValues(self._lines, self._scratch)
        can_stop = variant.is_checked or variant.has_shadow or not unit.is_plain
        self._values = VectorValues(
            texts=self._texts,
            lanes=unit.lanes,
            scalars=self._scalars,
            scratch=self._scratch,
            kept=unit.inputs & unit.outputs if can_stop else frozenset(),
            is_masked=variant.is_masked,
            has_shadow=variant.has_shadow,
        )
        self._accesses = AccessPrinter(self._values, is_checked=variant.is_checked)
        self._loops = 0
        self._loop: Loop | None = None

    def print(self) -> str:
        for step in self._unit.steps:
            if step.is_scalar:
                self._put_scalar(step)
            else:
                self._put_vector(step)
        self._close()
        self._commit()
        return self._whole()

    # Steps.

    def _put_scalar(self, step: HostStep) -> None:
        loop = self._loop
        touched = step.reads | step.writes
        if loop is not None and self._overlaps(loop, touched):
            self._close()
        if step.load is not None:
            self._accesses.put_scalar(step.load)
        for computation in step.computations:
            self._compute_scalar(computation)

    def _overlaps(self, loop: Loop, numbers: frozenset[int]) -> bool:
        """Return True if the loop computes a mask in some of the registers."""
        words = self._unit.lanes // 32
        return any(
            number + word in numbers for number in loop.masks for word in range(words)
        )

    def _compute_scalar(self, computation: Computation) -> None:
        values = [self._scalars.read(source) for source in computation.sources]
        text = load_texts(1).instruction(computation.mnemonic)
        assert text is not None
        result = self._computed(self._lines, text, values)
        for target, value in zip(computation.targets, result, strict=False):
            self._scalars.write(target, value)

    def _computed(self, lines: Lines, text: str, values: Sequence[str]) -> list[str]:
        """Add the text of an instruction, and return its results."""
        if text == "{a}":
            return [values[0]]
        name = f"%{lines.fresh()}"
        sources = dict(zip(_LETTERS, values, strict=False))
        body = text.format(r=name, **sources)
        lines.parts.append(f"{body}\n")
        # A comparison has one result, which may be SCC.
        return [name, f"{name}.1"]

    def _put_vector(self, step: HostStep) -> None:
        loop = self._open_loop()
        if self._conflicts(loop, step):
            self._close()
            loop = self._open_loop()
        if step.access is not None:
            self._accesses.put(loop, step.access)
        writes = []
        for computation in step.computations:
            values = [self._values.read(loop, s) for s in computation.sources]
            text = self._texts.instruction(computation.mnemonic)
            assert text is not None
            result = self._computed(loop.lines, text, values)
            writes += list(zip(computation.targets, result, strict=False))
        for target, value in writes:
            self._values.write(loop, target, value)

    def _conflicts(self, loop: Loop, step: HostStep) -> bool:
        """Return True if a step uses a mask of the loop otherwise than as the same mask."""
        masks: set[int] = set()
        for computation in step.computations:
            ends: list[SourceValue | ResultPlace] = [
                *computation.sources,
                *computation.targets,
            ]
            for one in ends:
                if one.kind.startswith("mask") and one.number is not None:
                    masks.add(one.number)
        words = self._unit.lanes // 32
        same = {n + word for n in masks & loop.masks.keys() for word in range(words)}
        return self._overlaps(loop, (step.reads | step.writes) - same)

    # Loops.

    def _open_loop(self) -> Loop:
        if self._loop is None:
            self._loops += 1
            name = f"loop{self._loops}"
            loop = Loop(name, Lines(self._texts.frame, f"l{self._loops}x"))
            self._loop = loop
            holes = {"chunk_bytes": 4 * self._texts.width}
            loop.lines.put("module", "loop_begin", name, **holes)
            loop.label = name
            if self._variant.is_masked:
                loop.lines.put("module", "skip_idle", name)
                loop.label = f"{name}.body"
        return self._loop

    def _close(self) -> None:
        """End the loop that is open."""
        loop = self._loop
        if loop is None:
            return
        self._require(loop)
        self._values.close(loop)
        self._end(loop)
        for number in loop.masks:
            self._scalars.set_from_mask(number, self._unit.lanes)

    def _require(self, loop: Loop) -> None:
        """Leave the function if something that was read is undefined."""
        if loop.known:
            t = loop.lines.fresh()
            loop.lines.put("module", "require_known", t, known=loop.known)
            loop.label = f"{t}.known"
        if loop.undefined:
            t = loop.lines.fresh()
            holes = {"undefined": loop.undefined, "mask": loop.mask}
            loop.lines.put("module", "require_defined", t, **holes)
            loop.label = f"{t}.defined"

    def _end(self, loop: Loop) -> None:
        chunks = self._unit.lanes // self._texts.width
        loop.lines.put("module", "loop_end", loop.name, chunks=chunks)
        self._lines.parts.append(loop.lines.text())
        self._loop = None

    # The end of a wave.

    def _commit(self) -> None:
        """Write what was kept: nothing can hold up the wave any more."""
        kept = self._scratch.vectors
        shadowed = vectors(self._unit.outputs) if self._variant.has_shadow else []
        if kept or shadowed:
            loop = self._open_loop()
            types = self._texts.expand("$I")
            for number in kept:
                t = self._values.place(loop, number)
                value = loop.lines.put("registers", "load", t, type=types)
                self._store(loop, number, f"%{loop.name}.v", value)
            for number in shadowed:
                self._clear_shadow(loop, number)
            self._end(loop)
        # A store is made by all lanes before the next one, which may overwrite it.
        for store in self._accesses.stores:
            loop = self._open_loop()
            self._accesses.commit(loop, store)
            self._end(loop)
        self._scalars.commit()

    def _store(self, loop: Loop, number: int, base: str, value: str) -> None:
        t = loop.lines.fresh()
        register = number - FIRST_VECTOR
        types = self._texts.expand("$I")
        loop.lines.put("registers", "vector_place", t, base=base, register=register)
        loop.lines.put("registers", "store", t, type=types, value=value)

    def _clear_shadow(self, loop: Loop, number: int) -> None:
        zero = self._texts.expand("$[i32 0]")
        base = f"%{loop.name}.u"
        if self._variant.is_masked:
            t = loop.lines.fresh()
            register = number - FIRST_VECTOR
            types = self._texts.expand("$I")
            loop.lines.put("registers", "vector_place", t, base=base, register=register)
            old = loop.lines.put("registers", "load", t, type=types)
            holes = {"mask": loop.mask, "value": zero, "old": old}
            zero = loop.lines.put("registers", "choose", **holes)
        self._store(loop, number, base, zero)

    def _whole(self) -> str:
        frame = self._texts.frame["module"]
        windows = max(2, self._accesses.windows)
        parts = [
            frame["begin"].format(
                name=self._name,
                more="",
                fields=field_lines(self._texts.width),
                scratch=self._scratch.size,
                windows=windows,
                window_bytes=8 * windows,
                wave_bytes=4 * self._unit.lanes,
            )
        ]
        clear = Lines(self._texts.frame, "z")
        for offset in self._scratch.masks.values():
            clear.put("registers", "clear_mask", offset=offset)
        return "".join(
            [*parts, clear.text(), self._lines.text(), frame["end"].format()]
        )
