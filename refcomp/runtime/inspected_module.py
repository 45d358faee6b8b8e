"""Modules of code for another machine, which is read and saved. Calls are refused by name."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from refcomp.foundation.artifacts import Signature
from refcomp.foundation.errors import UserError
from refcomp.runtime.arrays.entry_checks import MachineValues
from refcomp.runtime.files.manifest import ObjectContents
from refcomp.runtime.function import Function
from refcomp.runtime.module import Module
from refcomp.runtime.sources import Disassemble


def inspected_module(
    signatures: Iterable[Signature],
    machine: str,
    *,
    target: str,
    sources: Mapping[str, str],
    disassemble: Disassemble,
) -> Module:
    """Return a module of code for another machine.

    Args:
        signatures: of its functions.
        machine: the triple of the machine.
        target: the target as text.
        sources: language (`loop_ir`, `llvm`) -> text.
        disassemble: makes the source `asm` when it is requested.
    """
    listed = tuple(signatures)
    return Module(
        [InspectedFunction(signature, machine) for signature in listed],
        target=target,
        sources=sources,
        disassemble=disassemble,
        contents=ObjectContents(machine, listed, target, dict(sources)),
    )


class InspectedFunction(Function):
    """A function of code for another machine, which can only be read. Calls are refused."""

    __slots__ = ("_machine",)

    def __init__(self, signature: Signature, machine: str) -> None:
        super().__init__(signature)
        self._machine = machine

    def __call__(self, *args: object, **named: object) -> None:
        raise self._refusal()

    def bind(self, *args: object) -> Callable[[], None]:
        raise self._refusal()

    def __repr__(self) -> str:
        return f"<refcomp function {self.signature} for {self._machine}, to be read>"

    def _refusal(self) -> UserError:
        return UserError(
            f"{self.name} cannot be called: its code is for the machine {self._machine}",
            where=str(self.signature),
            why="code for another machine is made to be read and saved",
            remedy='build it for the target "llvm" to call it here, or write '
            'module.save("x.o") and link the object on that machine',
        )

    def _run(self, args: Sequence[object], values: MachineValues) -> None:
        raise self._refusal()

    def _bound(
        self, args: Sequence[object], values: MachineValues
    ) -> Callable[[], None]:
        raise self._refusal()
