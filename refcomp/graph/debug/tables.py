"""The profile of a network as rows of text, for terminals and pages."""

from __future__ import annotations

from refcomp.foundation.counted import counted
from refcomp.graph.debug.roofline import NetworkProfile, NodeProfile

COLUMNS = (
    "node",
    "operator",
    "ms",
    "share",
    "MFLOP",
    "MB",
    "GFLOP/s",
    "GB/s",
    "bound by",
    "of roof",
)


def row_of(profile: NetworkProfile, node: NodeProfile) -> tuple[str, ...]:
    """Return the cells of one node, or of one total; `-` for what is not known."""
    return (
        node.name,
        node.operator,
        f"{node.seconds * 1e3:.3f}",
        f"{profile.share(node):.1%}",
        "-" if node.flops is None else f"{node.flops / 1e6:.3f}",
        f"{node.bytes / 1e6:.3f}",
        "-" if node.gflops is None else f"{node.gflops:.2f}",
        f"{node.gbytes:.2f}",
        node.bound_by or "-",
        "-" if node.of_roof is None else f"{node.of_roof:.0%}",
    )


def rows_of_totals(profile: NetworkProfile) -> list[tuple[str, ...]]:
    """Return the cells of the total of each operator. The first cell counts its nodes."""
    totals = (row_of(profile, total) for total in profile.by_operator())
    return [
        (f"{count} node" if count == "1" else f"{count} nodes", *rest)
        for count, *rest in totals
    ]


def facts_of(profile: NetworkProfile) -> list[str]:
    """Return sentences about the whole network."""
    multiply_adds = sum(node.multiply_adds or 0 for node in profile.nodes)
    flops = sum(node.flops or 0 for node in profile.nodes)
    facts = [
        f"{len(profile.nodes)} nodes take {profile.seconds * 1e3:.3f} ms together",
        f"{multiply_adds:,} multiply-adds; {flops:,} operations, a multiply-add counted as two",
    ]
    if profile.peaks is not None:
        peaks = profile.peaks
        threads = counted(peaks.threads, "thread")
        facts.append(
            f"measured peaks of this machine, {threads}: "
            f"{peaks.gflops:.1f} GFLOP/s of f32, {peaks.gbytes:.1f} GB/s"
        )
    return facts
