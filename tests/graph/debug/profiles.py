"""A profile with given times, so that no test measures any."""

from refcomp.graph.debug.peaks import Peaks
from refcomp.graph.debug.roofline import COMPUTE, MEMORY, NetworkProfile, NodeProfile

PEAKS = Peaks(gflops=100.0, gbytes=10.0, threads=2)


def node(name: str, operator: str, seconds: float, flops: int | None, size: int) -> NodeProfile:
    least = None if flops is None else max(flops / 1e11, size / 1e10)
    bound_by = None
    if flops is not None:
        bound_by = COMPUTE if flops / 1e11 > size / 1e10 else MEMORY
    return NodeProfile(
        name=name,
        operator=operator,
        seconds=seconds,
        mean=2 * seconds,
        multiply_adds=None if flops is None else flops // 2,
        flops=flops,
        bytes=size,
        least=least,
        bound_by=bound_by,
    )


def profile() -> NetworkProfile:
    """Two matrix products, a copy, and a node whose work cannot be counted."""
    nodes = (
        node("a", "matmul", 2e-3, 100_000_000, 1_000_000),
        node("<b>$", "matmul", 1e-3, 50_000_000, 500_000),
        node("c", "copy", 1e-3, 0, 5_000_000),
        node("d", "nonzero", 0.0, None, 100),
    )
    return NetworkProfile(nodes, PEAKS)
