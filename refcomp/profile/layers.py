"""The layers of a network: the least time of each on a card, its limit, and advice.

A layer is a call of a function, whose kernels have reports. Kernels run one after the other, so the
estimate of a layer is the sum of the estimates of its kernels. It ignores the time between two
launches.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from refcomp.foundation.names import mangle
from refcomp.profile.advice import Advice
from refcomp.profile.limit import Limit
from refcomp.profile.report import ProfileReport
from refcomp.profile.tables import LAYER, Row, Table

# The number of layers for which advice is printed: those with the longest times.
_ADVISED = 3


@dataclass(frozen=True, slots=True)
class LayerCall:
    """A call of a run: a node of a network, and the function that computes it."""

    layer: str
    function: str


@dataclass(frozen=True, slots=True)
class LayerReport:
    """The report on one layer.

    Attributes:
        layer: the name of the node.
        function: the function that computes it. Equal layers share a function.
        seconds: the least time by the estimate; None if no card is known.
        limit: the resource that limits the kernel with the longest time; None without an estimate.
        multiply_adds: the number of multiply-adds, as `KernelCounts.fmas`.
        useful: the share of multiply-adds among the vector instructions, from 0 to 1.
        advice: the first advice on the kernel with the longest time; None without any.
    """

    layer: str
    function: str
    seconds: float | None
    limit: Limit | None
    multiply_adds: int
    useful: float
    advice: Advice | None

    def to_json(self) -> dict[str, object]:
        """Return the numbers and texts as a JSON value."""
        return asdict(self)


def layers_of(
    calls: Sequence[LayerCall], reports: Sequence[ProfileReport]
) -> tuple[LayerReport, ...]:
    """Return the layers that launch kernels, in the order of `calls`.

    Args:
        calls: the calls of one run. Each call launched the kernels of its function.
        reports: the reports on the kernels of that run.
    """
    called = Counter(call.function for call in calls)
    by_function: dict[str, list[ProfileReport]] = defaultdict(list)
    for report, function in zip(reports, _launchers(called, reports), strict=True):
        by_function[function].append(report)
    return tuple(
        _layer(call, by_function[call.function], called[call.function])
        for call in calls
        if by_function[call.function]
    )


def _launchers(functions: Iterable[str], reports: Sequence[ProfileReport]) -> list[str]:
    """Return for each report the function that launches its kernel; "" for other functions."""
    # A report has the symbol of the machine code. It differs from the name in the loop IR if that
    # name is too long, or has letters that symbols cannot have.
    by_symbol = {
        mangle(f"{function}_kernel{number}"): function
        for function in functions
        for number in range(len(reports))
    }
    return [by_symbol.get(report.counts.name, "") for report in reports]


def _layer(
    call: LayerCall, reports: Sequence[ProfileReport], called: int
) -> LayerReport:
    counts = [report.counts for report in reports]
    main = max(reports, key=_seconds)
    is_timed = all(report.bound for report in reports)
    return LayerReport(
        layer=call.layer,
        function=call.function,
        seconds=sum(map(_seconds, reports)) / called if is_timed else None,
        limit=main.bound.limit if is_timed and main.bound else None,
        multiply_adds=sum(one.fmas for one in counts) // called,
        useful=useful_part(reports),
        advice=main.advice[0] if main.advice else None,
    )


def useful_part(reports: Sequence[ProfileReport]) -> float:
    """Return the share of multiply-adds among the vector instructions of waves, from 0 to 1.

    Instructions that access memory do not count. The share is 0 without vector instructions.
    """
    useful = whole = 0
    for report in reports:
        isa = report.counts.isa
        by_class = report.counts.by_class()
        multiplying = by_class.get(isa.multiply, 0) + by_class.get(isa.matrix, 0)
        useful += multiplying
        whole += multiplying + sum(by_class.get(kind, 0) for kind in isa.arithmetic)
    return useful / whole if whole else 0.0


def _seconds(report: ProfileReport) -> float:
    """Return the estimate for all launches, 0 if there is none."""
    bound = report.bound
    return bound.seconds[bound.limit] * report.counts.launches if bound else 0.0


def layers_table(
    layers: Sequence[LayerReport], reports: Sequence[ProfileReport]
) -> Table:
    """Return the table of the layers, in order, and of their sum.

    Args:
        layers: the result of `layers_of`.
        reports: the reports on all kernels, to which the rows refer.
    """
    functions = _launchers({layer.function for layer in layers}, reports)
    whole = sum(layer.seconds or 0.0 for layer in layers)
    longest = max((layer.seconds or 0.0 for layer in layers), default=0.0) or 1.0
    rows = [
        Row(
            _cells(layer, whole),
            kernel=functions.index(layer.function) + 1,
            bar=(layer.seconds or 0.0) / longest,
        )
        for layer in layers
    ]
    total = sum(layer.multiply_adds for layer in layers)
    useful = f"{useful_part(reports):.0%}"
    time = f"{1e6 * whole:.2f}" if whole else ""
    rows.append(Row(("all", total, useful, time, "100.0%" if whole else "", "")))
    title = "layers"
    if whole:
        title = (
            f"layers on {_card(reports)}; microseconds at least by an estimate, "
            "none was measured"
        )
    columns = ("multiply-adds", "useful", "microseconds", "part", "limit")
    return Table(title, (LAYER, *columns), tuple(rows))


def _cells(layer: LayerReport, whole: float) -> tuple[object, ...]:
    seconds = layer.seconds
    return (
        layer.layer,
        layer.multiply_adds,
        f"{layer.useful:.0%}",
        "" if seconds is None else f"{1e6 * seconds:.2f}",
        "" if seconds is None or not whole else f"{seconds / whole:.1%}",
        layer.limit or "",
    )


def _card(reports: Sequence[ProfileReport]) -> str:
    return next(report.bound.card.name for report in reports if report.bound)


def advice_on(layers: Sequence[LayerReport]) -> list[tuple[str, Advice]]:
    """Return the names of the layers with the longest times, and the advice on them.

    The layer with the longest time comes first. Of layers that share a function only the first is
    named.
    """
    timed = [layer for layer in layers if layer.seconds is not None]
    timed.sort(key=lambda layer: -(layer.seconds or 0.0))
    found: dict[str, tuple[str, Advice]] = {}
    for layer in timed:
        if layer.advice is not None:
            found.setdefault(layer.function, (layer.layer, layer.advice))
    return list(found.values())[:_ADVISED]
