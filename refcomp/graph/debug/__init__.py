"""Debugging and profiling of compiled graphs: run them node by node, compare, and measure.

Reading order::

    unfuse.py                 fused nodes replaced by the nodes that they hold
    recording.py, executor.py a run that keeps the output and the times of each node
    bounds.py                 the values that a node may have, given the arrays that it reads
    peer.py, comparing.py     the first node whose output leaves its bound
"""

from refcomp.graph.debug.comparing import (
    Cause,
    Divergence,
    NodeComparison,
    WrongElement,
    compare_nodes,
    find_divergence,
    find_inside,
)
from refcomp.graph.debug.executor import DebugExecutor, create
from refcomp.graph.debug.peer import Peer
from refcomp.graph.debug.recording import Recording, load_recording

# fmt: off
__all__ = [
    "DebugExecutor", "create", "Recording", "load_recording",
    "find_divergence", "compare_nodes", "find_inside",
    "Divergence", "NodeComparison", "WrongElement", "Cause", "Peer",
]
# fmt: on
