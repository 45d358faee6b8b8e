"""`refcomp run`: runs an ONNX model on arrays from a file, or on filled ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NotRequired, TypedDict, TypeVar, cast

import click
import numpy as np

from refcomp.cli.arrays import Arrays, Filling
from refcomp.cli.digest import (
    Digest,
    JsonNumber,
    digest,
    digest_to_text,
    number_to_text,
    to_json,
)
from refcomp.cli.model_inputs import arrays_of, feeds_of
from refcomp.cli.options import (
    errors_and_examples,
    fill_mode_option,
    inputs_option,
    json_option,
    outputs_option,
    seed_option,
    symbol_option,
    target_option,
)
from refcomp.cli.outcomes import ILLEGAL, NO_TOOLCHAIN, UNSUPPORTED
from refcomp.cli.streams import progress, write_json
from refcomp.foundation.target import Target
from refcomp.frontend.onnx import from_onnx
from refcomp.graph.stages.executor import executor_for
from refcomp.runtime.arrays.npz import read_npz, write_npz
from refcomp.runtime.device import HostArray

_Result = TypeVar("_Result")


class TopElement(TypedDict):
    """One of the greatest elements of a row."""

    index: int  # in the last dimension
    value: JsonNumber


class OutputReport(Digest):
    """The report on one output, as JSON."""

    top: NotRequired[list[list[TopElement]]]  # for each row; with --print-top only


class RunTimes(TypedDict):
    """The report of --print-time, as JSON."""

    compile_s: float
    run_ms: dict[str, float]  # min, mean, max and median of the runs
    runs: int


@click.command(
    "run",
    epilog=errors_and_examples(
        {
            NO_TOOLCHAIN: "a tool of the target is missing",
            ILLEGAL: "the model is illegal, or an input has another name, dtype or shape",
            UNSUPPORTED: "the model has an operator that refcomp does not know",
        },
        "refcomp run digits.onnx --print-top 3",
        "refcomp run digits.onnx -i images.npz -o scores.npz --print-time",
    ),
)
@click.argument("model", metavar="MODEL.onnx")
@inputs_option
@outputs_option
@target_option()
@fill_mode_option
@seed_option
@symbol_option
@click.option(
    "--print-top",
    "top",
    type=click.IntRange(min=1),
    metavar="N",
    help="Print the N greatest elements of each row (the last dimension) of each output.",
)
@click.option(
    "--print-time",
    "timed",
    is_flag=True,
    help="Print how long compiling takes, in seconds, and a run, in milliseconds.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="How many runs --print-time measures, after one run that it does not measure.",
)
@json_option
def command(
    model: str,
    inputs: str | None,
    outputs: str | None,
    target: Target,
    fill_mode: str,
    seed: int,
    symbols: tuple[tuple[str, int], ...],
    top: int | None,
    timed: bool,
    repeat: int,
    as_json: bool,
) -> None:
    """Run an ONNX model.

    MODEL.onnx is compiled for TARGET, and run once. Inputs that the .npz file does not have are
    filled. Elements of a sequence are arrays NAME.0, NAME.1, ...

    Prints dtype, shape, minimum, maximum and first elements of each output.
    """
    with progress(f"reading {model}") as change_text:
        graph = from_onnx(model)
        filling = Filling(fill_mode, seed, dict(symbols))
        feeds = feeds_of(graph, read_npz(inputs), filling)
        change_text(f"compiling {len(graph.nodes)} nodes for {target}")
        executor, compile_s = _timed(lambda: executor_for(graph, target))
        change_text("running")
        # This run also makes the plan of the executor. So --print-time does not measure it.
        results: Arrays = {}
        for value, output in zip(graph.outputs, executor.run(feeds), strict=True):
            results |= arrays_of(value.name, output)
    reports = []
    for name, array in results.items():
        entry = cast(OutputReport, digest(name, array))
        if top and array.dtype != object:
            entry["top"] = top_of_rows(array, top)
        reports.append(entry)
    times = None
    if timed:
        # Outside of `progress`, whose animation would be measured, too.
        runs = [_timed(lambda: executor.run(feeds))[1] for _ in range(repeat)]
        times = _times(compile_s, runs)
    if as_json:
        report: dict[str, object] = {"outputs": reports}
        write_json(report | ({"time": times} if times else {}))
    else:
        _print(reports, times)
    if outputs is not None:
        write_npz(outputs, results)


def _timed(call: Callable[[], _Result]) -> tuple[_Result, float]:
    """Return the result of `call`, and how many seconds it took."""
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def top_of_rows(array: HostArray, count: int) -> list[list[TopElement]]:
    """Return the `count` greatest elements of each row, in falling order.

    A row runs along the last dimension. NaN comes last. Among equals the first one is first.
    """
    rows = array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)
    # A stable sort of the negated values: the first one of equals stays first.
    order = np.argsort(-rows.astype(np.float64), axis=-1, kind="stable")[:, :count]
    if rows.dtype.kind not in "iub":
        rows = rows.astype(np.float64)  # `to_json` does not know narrower floats
    return [
        [{"index": int(k), "value": to_json(row[k])} for k in chosen]
        for row, chosen in zip(rows, order, strict=True)
    ]


def _times(compile_s: float, runs_s: Sequence[float]) -> RunTimes:
    """Return the report on at least one run."""
    milliseconds = 1e3 * np.array(runs_s)
    spread = {
        "min": float(milliseconds.min()),
        "mean": float(milliseconds.mean()),
        "max": float(milliseconds.max()),
        "median": float(np.median(milliseconds)),
    }
    return {"compile_s": compile_s, "run_ms": spread, "runs": len(runs_s)}


def _print(outputs: Sequence[OutputReport], times: RunTimes | None) -> None:
    for output in outputs:
        click.echo(digest_to_text(output))
        for number, row in enumerate(output.get("top", [])):
            pairs = [f"{e['index']}: {number_to_text(e['value'])}" for e in row]
            click.echo(f"  row {number}: {', '.join(pairs)}")
    if times:
        spread = [f"{name} {value:.4g}" for name, value in times["run_ms"].items()]
        click.echo(f"compiled in {times['compile_s']:.3g} s")
        click.echo(f"{times['runs']} runs, milliseconds each: {'  '.join(spread)}")
