"""Debugging and profiling of compiled graphs: run them node by node, compare, and measure.

Reading order::

    unfuse.py                 fused nodes replaced by the nodes that they hold
    recording.py, executor.py a run that keeps the output and the times of each node
    bounds.py                 the values that a node may have, given the arrays that it reads
    peer.py, comparing.py     the first node whose output leaves its bound
    work.py, peaks.py         operations and bytes of a node; what the machine does at most
    roofline.py, tables.py    profiles of networks, and their rows of text
    memory.py                 maps of memory plans
    pictures.py, page.py      PNG files, and a page for a browser
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
from refcomp.graph.debug.memory import MemoryBox, MemoryMap, map_memory
from refcomp.graph.debug.page import page_of_network, save_page
from refcomp.graph.debug.peaks import Peaks, measure_peaks
from refcomp.graph.debug.peer import Peer
from refcomp.graph.debug.pictures import save_memory, save_profile
from refcomp.graph.debug.recording import Recording, load_recording
from refcomp.graph.debug.roofline import NetworkProfile, NodeProfile, profile_network

# fmt: off
__all__ = [
    "DebugExecutor", "create", "Recording", "load_recording",
    "find_divergence", "compare_nodes", "find_inside",
    "Divergence", "NodeComparison", "WrongElement", "Cause", "Peer",
    "profile_network", "NetworkProfile", "NodeProfile", "measure_peaks", "Peaks",
    "map_memory", "MemoryMap", "MemoryBox",
    "save_profile", "save_memory", "save_page", "page_of_network",
]
# fmt: on
