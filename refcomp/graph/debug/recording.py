"""Recordings: the outputs and the times of the nodes of one run, and their files.

A file is an .npz archive of plain arrays; nothing in it is pickled. Names of values come from model
files and may hold any character. So a member's name is the value's name, percent-encoded as in a
URL. The members `%nodes` and `%times`, which no encoded name equals, hold the encoded names of the
nodes and their seconds. The seconds have a row for each node and a column for each launch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.graph.graph import Array
from refcomp.runtime.arrays.npz import read_npz, write_npz

_NODES = "%nodes"
_TIMES = "%times"


@dataclass(frozen=True, slots=True)
class Recording:
    """A record of what the nodes of a graph made in one run.

    Attributes:
        outputs: name of a value -> its array.
        times: name of a node -> the seconds of each launch of its kernel; empty on a device whose
            times say nothing.
    """

    outputs: Mapping[str, Array]
    times: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def save(self, path: str) -> None:
        """Write the recording to an .npz file. Raise UserError if it cannot be written."""
        members = {quote(name, safe=""): array for name, array in self.outputs.items()}
        members[_NODES] = np.array([quote(name, safe="") for name in self.times], "U")
        members[_TIMES] = np.array(list(self.times.values()), np.float64)
        write_npz(path, members)


def load_recording(path: str) -> Recording:
    """Return the recording that a file holds.

    A file without times, such as `numpy.savez` writes, is a recording of its arrays.

    Args:
        path: what `DebugExecutor.save` or `refcomp debug -o` wrote, or another .npz file.

    Raises:
        UserError: the file is missing or damaged, is not an .npz file of plain arrays, or its times
            do not belong to its nodes.

    Example::

        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = str(Path(folder, "x.npz"))
        ...     np.savez(path, x=np.zeros(2))
        ...     list(rc.graph.debug.load_recording(path).outputs)
        ['x']
    """
    members = read_npz(path)
    if not is_recording(members):
        return Recording(members)
    nodes = members.pop(_NODES)
    times = members.pop(_TIMES)
    is_named = nodes.ndim == 1 and nodes.dtype.kind == "U"
    if not is_named or times.dtype != np.float64 or times.shape[:1] != nodes.shape:
        raise UserError(
            f"{path} is a damaged recording",
            why=f"{_TIMES} has no row for each of {_NODES}",
            remedy="write it again: refcomp debug MODEL.onnx -o FILE.npz",
        )
    return Recording(
        outputs={unquote(name): array for name, array in members.items()},
        times={
            unquote(str(name)): tuple(map(float, np.atleast_1d(row)))
            for name, row in zip(nodes, times, strict=True)
        },
    )


def is_recording(members: Mapping[str, Array]) -> bool:
    """Return True if an archive with these members is a recording."""
    return _NODES in members and _TIMES in members
