"""`refcomp run`: an ONNX model on arrays from a file, or on filled ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import click
import numpy as np

from refcomp.cli.arrays import Arrays, Filling, complete, read_npz, write_npz
from refcomp.cli.digest import digest, digest_to_text, number_to_text, to_json
from refcomp.cli.options import (
    examples,
    fill_mode_option,
    inputs_option,
    json_option,
    outputs_option,
    seed_option,
    symbol_option,
    target_option,
)
from refcomp.cli.streams import progress, write_json
from refcomp.foundation.artifacts import TensorParam
from refcomp.foundation.target import Target
from refcomp.frontend.onnx import from_onnx
from refcomp.graph.compile import compile_graph
from refcomp.graph.executor import GraphExecutor
from refcomp.graph.graph import Graph


@click.command(
    "run", epilog=examples("refcomp run model.onnx -i in.npz -o out.npz --print-top 3")
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
    help=(
        "Print the N greatest elements of each row (the last dimension) of each output."
    ),
)
@click.option(
    "--print-time",
    "timed",
    is_flag=True,
    help="Print how long compiling and runs take.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="How many runs --print-time measures, after one that it does not.",
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

    Inputs come from an .npz file by name; what it does not have is filled. Prints of each output
    its dtype, shape, least and greatest value and first values.
    """
    with progress(f"reading {model}") as tell:
        graph = from_onnx(model)
        filling = Filling(fill_mode, seed, dict(symbols))
        feeds, _ = complete(params_of(graph), read_npz(inputs), filling)
        tell(f"compiling {len(graph.nodes)} nodes for {target}")
        executor, compile_s = _timed(
            lambda: GraphExecutor(compile_graph(graph, target))
        )
        tell("running")
        results = _run(executor, feeds)
    # Outside of `progress`, whose animation would be measured, too.
    runs = [
        _timed(lambda: executor.run(feeds))[1] for _ in range(repeat if timed else 0)
    ]
    report = {
        "outputs": [_to_json(name, array, top) for name, array in results.items()]
    }
    times = _times(compile_s, runs)
    if as_json:
        write_json(report | ({"time": times} if timed else {}))
    else:
        _print(report["outputs"], times if timed else None)
    if outputs is not None:
        write_npz(outputs, results)


def params_of(graph: Graph) -> list[TensorParam]:
    """What a model takes."""
    return [TensorParam(value.name, value.dtype, value.shape) for value in graph.inputs]


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def _run(executor: GraphExecutor, feeds: Mapping[str, Any]) -> Arrays:
    names = [value.name for value in executor.module.graph.outputs]
    return {
        name: array.asnumpy()
        for name, array in zip(names, executor.run(feeds), strict=True)
    }


def _to_json(name: str, array: Any, top: int | None) -> dict[str, Any]:
    return digest(name, array) | ({"top": top_of_rows(array, top)} if top else {})


def top_of_rows(array: Any, count: int) -> list[list[dict[str, Any]]]:
    """Index and value of the `count` greatest elements of each row, the greatest first.

    A row is one run along the last dimension; NaN comes last, and of equals the first is first.
    """
    rows = array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)
    order = np.argsort(-rows.astype(np.float64), axis=-1, kind="stable")[:, :count]
    return [
        [{"index": int(k), "value": to_json(row[k])} for k in chosen]
        for row, chosen in zip(_as_plain(rows), order, strict=True)
    ]


def _as_plain(rows: Any) -> Any:
    """Floats of every width as f64: JSON knows no other."""
    return rows if rows.dtype.kind in "iub" else rows.astype(np.float64)


def _times(compile_s: float, runs: list[float]) -> dict[str, Any]:
    """Seconds to compile, and milliseconds per run."""
    if not runs:
        return {}
    milliseconds = 1e3 * np.array(runs)
    spread = {
        name: float(getattr(np, name)(milliseconds)) for name in ("min", "mean", "max")
    }
    median = {"median": float(np.median(milliseconds))}
    return {"compile_s": compile_s, "run_ms": spread | median, "runs": len(runs)}


def _print(outputs: list[dict[str, Any]], times: dict[str, Any] | None) -> None:
    for output in outputs:
        click.echo(digest_to_text(output))
        for number, row in enumerate(output.get("top", [])):
            pairs = (
                f"{entry['index']}: {number_to_text(entry['value'])}" for entry in row
            )
            click.echo(f"  row {number}: {', '.join(pairs)}")
    if times:
        run = "  ".join(
            f"{name} {value:.4g}" for name, value in times["run_ms"].items()
        )
        click.echo(f"compiled in {times['compile_s']:.3g} s")
        click.echo(f"{times['runs']} runs, milliseconds each: {run}")
