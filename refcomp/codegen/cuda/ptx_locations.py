"""Let the debug locations of PTX that a CUDA compiler made name lines of the loop IR.

    .loc 1 14 5                                                      .loc 1 9 0
    .loc 2 125 3, function_name $L__info_string0, inlined_at 1 14 5  .loc 1 9 0

Needs PTX that was compiled with `-lineinfo` of the text that `print_cuda` returns. A place in a
function that was inlined becomes the line of its call. A place that comes from no statement becomes
line 0, which is unknown. Ensures: nothing changes but `.loc` and `.file`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from refcomp.codegen.debug_locations import FILE, lines_of_loop_ir
from refcomp.foundation.artifacts import Source
from refcomp.ir.func import PrimFunc

_SOURCE = "kernel.cu"  # the file that the compilers read
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)".*\n?', re.MULTILINE)
_PLACE = r"(\d+)\s+(\d+)\s+(\d+)"
_LOCATION = re.compile(
    rf"^(\s*\.loc)\s+{_PLACE}(?:.*\binlined_at\s+{_PLACE})?.*$", re.MULTILINE
)


class _SourcePlace(NamedTuple):
    """A place in a source file, as `.loc` names it."""

    file: int
    line: int
    column: int


def locate_in_loop_ir(ptx: str, source: Source, kernels: Sequence[PrimFunc]) -> str:
    """Return `ptx` with locations in the loop IR.

    Args:
        ptx: the PTX.
        source: the CUDA C++ that it was compiled from.
        kernels: those that `source` was printed from.
    """
    files = {
        int(number): path.rpartition("/")[2] for number, path in _FILE.findall(ptx)
    }
    line_of = lines_of_loop_ir(source, kernels)
    callers: dict[_SourcePlace, _SourcePlace] = {}

    def line_at(place: _SourcePlace) -> int:
        is_own = files.get(place.file) == _SOURCE and 0 < place.line <= len(line_of)
        return line_of[place.line - 1] if is_own else 0

    def relocated(found: re.Match[str]) -> str:
        place = _SourcePlace(*map(int, found.groups()[1:4]))
        if found[5] is not None:
            callers[place] = _SourcePlace(*map(int, found.groups()[4:]))
        passed: set[_SourcePlace] = set()  # damaged text may name callers in a circle
        while not line_at(place) and place in callers and place not in passed:
            passed.add(place)
            place = callers[place]
        return f"{found[1]} 1 {line_at(place)} 0"

    located = _LOCATION.sub(relocated, ptx)
    return f'{_FILE.sub("", located)}\n.file 1 "{FILE}"\n'
