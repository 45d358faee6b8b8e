"""`refcomp judge`: whether a foreign backend's arrays are what a computation allows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from refcomp.cli.arrays import Arrays, Filling, complete, read_npz, write_npz
from refcomp.cli.digest import to_json
from refcomp.cli.options import (
    examples,
    fill_mode_option,
    inputs_option,
    json_option,
    seed_option,
    symbol_option,
)
from refcomp.cli.outcomes import FAILED
from refcomp.cli.references import Reference, load_reference
from refcomp.cli.streams import write_json
from refcomp.dtype import DType, as_dtype
from refcomp.errors import ToolchainError, UserError
from refcomp.oracle.compare import (
    EXACT,
    UNDECIDABLE,
    VERDICTS,
    WITHIN_BOUND,
    WRONG,
    Report,
    judge_bounded,
)
from refcomp.oracle.error_bounds import Bounded, Licence
from refcomp.private_folder import private_folder
from refcomp.toolchain.run import finish_tool, start_tool, tool_timeout_s

_ORDER = (WRONG, UNDECIDABLE, WITHIN_BOUND, EXACT)


@click.command(
    "judge",
    context_settings={"ignore_unknown_options": True},
    epilog=examples(
        "refcomp judge matmul.py:matmul -i in.npz -r out.npz",
        "refcomp judge model.onnx -- python backend.py {inputs} {results}",
    ),
)
@click.argument("what", metavar="SCRIPT.py[:NAME]|MODEL.onnx|TEXT")
@click.argument("call", metavar="[-- COMMAND...]", nargs=-1)
@inputs_option
@click.option("-r", "--results", metavar="NPZ", help="What the backend computed, by name.")
@click.option(
    "--in-order", is_flag=True, help="Sums are added in the order of their axes, not in any."
)
@click.option(
    "--accumulate",
    metavar="DTYPE",
    help="Floats may also be added up in this dtype, such as float16, and not in their own alone.",
)
@fill_mode_option
@seed_option
@symbol_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    what: str,
    call: tuple[str, ...],
    inputs: str | None,
    results: str | None,
    in_order: bool,
    accumulate: str | None,
    fill_mode: str,
    seed: int,
    symbols: tuple[tuple[str, int], ...],
    as_json: bool,  # errors alone are told in another way
) -> None:
    """Judge arrays that another backend computed.

    They come from an .npz file, or from COMMAND, whose arguments {inputs} and {results} become the
    paths of such files. Each element is exact, within the bound of what any legal evaluation may
    give, wrong, or undecidable. Tensors in between, if they are given, tell who is guilty. The
    report is JSON, with --json or without; fails when an element is wrong.
    """
    reference = load_reference(what)
    feeds, _ = complete(reference.params, read_npz(inputs), Filling(fill_mode, seed, dict(symbols)))
    found = _results(reference, call, results, feeds)
    licence = Licence(not in_order, None if accumulate is None else _float_type(accumulate))
    report = judge(reference, feeds, found, licence)
    write_json(report)
    if report["verdict"] == VERDICTS[WRONG]:
        context.exit(FAILED)


def _float_type(name: str) -> DType:
    dtype = as_dtype(name)
    if not dtype.is_float:
        raise UserError(f"floats are not added up in {name}", remedy="--accumulate float32")
    return dtype


def judge(
    reference: Reference, inputs: Arrays, results: Arrays, licence: Licence
) -> dict[str, Any]:
    """The report on `results`, as JSON: a verdict, one for each of them, and the suspects."""
    bounds = reference.bounds(inputs, list(results), licence)
    reports = {name: judge_bounded(results[name], bounds[name]) for name in bounds}
    verdicts = {report.verdict for report in reports.values()}
    worst = next((VERDICTS[v] for v in _ORDER if VERDICTS[v] in verdicts), VERDICTS[EXACT])
    is_wrong = worst == VERDICTS[WRONG]
    return {
        "verdict": worst,
        "results": [
            _to_json(name, report, bounds[name], results[name]) for name, report in reports.items()
        ],
        "suspects": reference.suspects(inputs, results, licence) if is_wrong else [],
    }


def _to_json(name: str, report: Report, bounded: Bounded, found: Any) -> dict[str, Any]:
    return {
        "name": name,
        "verdict": report.verdict,
        "elements": int(report.verdicts.size),
        **{VERDICTS[v].replace(" ", "_"): report.count(v) for v in reversed(_ORDER)},
        "worst": _worst(report, bounded, found),
        "why": report.why,
        "summary": str(report),
    }


def _worst(report: Report, bounded: Bounded, found: Any) -> dict[str, Any] | None:
    index = report.worst_index
    if index is None:
        return None
    return {
        "index": list(index),
        "verdict": VERDICTS[int(report.verdicts[index])],
        "found": to_json(found[index].astype(np.float64)),
        "expected": to_json(bounded.nearest[index].astype(np.float64)),
        "bound": to_json(float(bounded.error[index])),
        "error_over_bound": to_json(report.worst_ratio),
        "condition": to_json(float(bounded.condition[index])),
    }


def _results(
    reference: Reference, call: Sequence[str], results: str | None, feeds: Arrays
) -> Arrays:
    if bool(call) == (results is not None):
        raise UserError(
            "arrays to judge come from --results or from a command, one of both",
            remedy="refcomp judge WHAT -i IN.npz -r OUT.npz, or "
            "refcomp judge WHAT -- COMMAND {inputs} {results}",
        )
    written = {name for name in reference.outputs if name in feeds}  # of loop IR
    given_to_it = {name: array for name, array in feeds.items() if name not in written}
    found = read_npz(results) if results is not None else _run(call, given_to_it)
    missing = [name for name in reference.outputs if name not in found]
    if missing:
        raise UserError(
            f"there is no result {missing[0]!r}", remedy=f"give {', '.join(reference.outputs)}"
        )
    wanted = [param for param in reference.results if param.name in found]
    return complete(wanted, found, Filling("zeros", 0, {}))[0]


def _run(call: Sequence[str], feeds: Mapping[str, Any]) -> Arrays:
    """What the command writes for `feeds`, in a private folder."""
    tool, *args = call
    found = shutil.which(tool)
    if found is None:
        raise UserError(f"there is no command {tool!r}", remedy="give its path")
    if not any("{results}" in arg for arg in args):
        raise UserError(
            f"{tool} is not told where to write its results",
            remedy="name {results} among its arguments: an .npz file, of arrays by name",
        )
    with private_folder() as folder:
        paths = {hole: str(folder / f"{hole}.npz") for hole in ("inputs", "results")}
        write_npz(paths["inputs"], feeds)
        process = start_tool([os.path.abspath(found), *(_filled(arg, paths) for arg in args)])
        done = finish_tool(process, tool_timeout_s())
        if done.status != 0:
            raise ToolchainError(
                f"{tool} ended with status {done.status}",
                command=done.command,
                stderr=done.stderr,
            )
        if not Path(paths["results"]).exists():
            raise UserError(
                f"{tool} ended well, but wrote no results",
                where=" ".join(call),
                remedy="let it write its arrays by name: np.savez(path, C=c)",
            )
        return read_npz(paths["results"])


def _filled(arg: str, paths: Mapping[str, str]) -> str:
    for hole, path in paths.items():
        arg = arg.replace("{" + hole + "}", path)
    return arg
