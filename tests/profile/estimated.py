"""Kernels of AMD GPUs with counts, for which estimates are computed by hand."""

from dataclasses import replace

from refcomp.emulator.observers.counting import InstructionCounts, KernelCounts, MemoryTraffic
from refcomp.profile.cards import CARDS
from tests.emulator.snippets import instruction

CARD = replace(CARDS["MI300X"], units=10, gigahertz=1.0, bandwidth=100.0)


def counted_kernel(*rows, groups=10, launches=1, read=0, waves=4, **options):
    """Each group has so many waves."""
    told = {"groups": groups, "waves": waves * groups, "launches": launches, "read": read}
    kernel = KernelCounts("k", "gfx942", 64, 128, **told, **options)
    for number, (text, waves, access) in enumerate(rows):
        one = replace(instruction(text), number=number)
        kernel.by_number[number] = InstructionCounts(one, waves, 64 * waves, access)
    return kernel


def access_of(space, **costs):
    return MemoryTraffic(space, 4, False, False, **costs)
