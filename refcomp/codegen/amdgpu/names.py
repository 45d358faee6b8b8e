"""Derive from the name of an AMD GPU its instruction set and the lanes of its waves.

Refuses, by UserError, names that AMD GPUs do not have, and waves that the GPU does not have.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from refcomp.foundation.errors import UserError

_PROCESSOR = re.compile(r"gfx([1-9]\d?)(\d)([0-9a-f])\Z")
_MIN_MAJOR_WITH_32_LANES = 10


@dataclass(frozen=True, slots=True)
class IsaVersion:
    """The version of a GPU's instruction set."""

    major: int
    minor: int
    stepping: int


def isa_version(mcpu: str) -> IsaVersion:
    """Return the version that the name of a GPU stands for: 9, 0, 10 for gfx90a.

    Raise UserError for any other name.
    """
    match = _PROCESSOR.match(mcpu)
    if match is None:
        raise UserError(
            f"{mcpu!r} is not the name of an AMD GPU",
            where=f"-mcpu={mcpu}",
            remedy="use a name such as gfx90a, gfx942 or gfx1100; rocminfo prints that of a GPU, "
            "`llc -mtriple=amdgcn-amd-amdhsa -mcpu=help` all",
        )
    return IsaVersion(int(match[1]), int(match[2]), int(match[3], 16))


def wavefront_size(mcpu: str, wish: int = 0) -> int:
    """Return the lanes of a wave of the GPU `mcpu`: `wish`, or by default the GPU's preference.

    Raise UserError for a wish other than 32 and 64, and for 32 if the GPU's waves always have 64.
    """
    has_choice = isa_version(mcpu).major >= _MIN_MAJOR_WITH_32_LANES
    sizes = (32, 64) if has_choice else (64,)
    if wish and wish not in sizes:
        raise UserError(
            f"a wave of {mcpu} has {' or '.join(map(str, sizes))} lanes, not {wish}",
            where=f"-wavefront={wish}",
            remedy=f"leave the option out: it is {sizes[0]} then",
        )
    return wish or sizes[0]
