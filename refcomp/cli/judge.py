"""`refcomp judge`: judges whether the arrays of another backend are what a computation allows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import numpy as np

from refcomp.cli.arrays import (
    Arrays,
    Filling,
    GivenArrays,
    add_sizes,
    chosen_sizes,
    complete,
)
from refcomp.cli.digest import to_json
from refcomp.cli.options import (
    errors_and_examples,
    fill_mode_option,
    inputs_option,
    json_option,
    seed_option,
    symbol_option,
)
from refcomp.cli.outcomes import FAILED, ILLEGAL, NO_TOOLCHAIN, UNSUPPORTED
from refcomp.cli.references import Reference, load_reference
from refcomp.cli.streams import write_json
from refcomp.cli.verdicts import ArrayReport, ElementReport, JudgeReport, write_report
from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.foundation.near_misses import advise
from refcomp.foundation.private_folder import private_folder
from refcomp.foundation.symbol_sizes import Sizes
from refcomp.oracle.compare import (
    EXACT,
    UNDECIDABLE,
    VERDICTS,
    WITHIN_BOUND,
    WRONG,
    Report,
    judge_bounded,
    upper_f64,
)
from refcomp.oracle.floats.error_bounds import Bounded, Licence
from refcomp.runtime.arrays.npz import read_npz, write_npz
from refcomp.runtime.device import HostArray
from refcomp.toolchain.run import finish_tool, start_tool, tool_timeout_s

_WORST_FIRST = (WRONG, UNDECIDABLE, WITHIN_BOUND, EXACT)


@click.command(
    "judge",
    context_settings={"ignore_unknown_options": True},
    epilog=errors_and_examples(
        {
            FAILED: "an element is wrong",
            NO_TOOLCHAIN: "COMMAND fails or hangs",
            ILLEGAL: "an array is missing, or has another name, dtype or shape",
            UNSUPPORTED: "the computation takes scalars, or its loop IR is not exact",
        },
        "refcomp judge matmul.py:matmul -i in.npz -r out.npz",
        "refcomp judge digits.onnx -- \\",
        "  refcomp run digits.onnx -i {inputs} -o {results}",
    ),
)
@click.argument("what", metavar="SCRIPT.py[:NAME]|MODEL.onnx|TEXT")
@click.argument("call", metavar="[-- COMMAND...]", nargs=-1)
@inputs_option
@click.option(
    "-r",
    "--results",
    metavar="NPZ",
    help="An .npz file with the arrays to judge, by name.",
)
@click.option(
    "--in-order",
    is_flag=True,
    help="Sums are added up in the order of their axes. By default any order is allowed.",
)
@click.option(
    "--accumulate",
    metavar="DTYPE",
    help="Floats may also be added up in this dtype, such as float16. By default they are added "
    "up in their own.",
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
    as_json: bool,
) -> None:
    """Judge arrays that another backend computed.

    The computation is one function. SCRIPT.py is run, and its function NAME (default: computation)
    returns (schedule, [arguments]). MODEL.onnx is an ONNX model, TEXT a file of loop-IR text, or -
    for stdin.

    The arrays come from --results, or from COMMAND. In the arguments of COMMAND, {inputs} stands
    for the path of an .npz file to read, and {results} for the path of one to write.

    \b
    The report is a table with a row for each array. Each element is one of
        exact         the definition, rounded once
        within bound  a legal evaluation may give it
        undecidable   its bound is infinite or NaN
        wrong         no legal evaluation gives it

    If the arrays include intermediate tensors, the report names the first operation that is wrong.
    """
    if bool(call) == (results is not None):
        raise UserError(
            "arrays to judge come from --results or from a command, one of both",
            remedy="refcomp judge WHAT -i IN.npz -r OUT.npz, or "
            "refcomp judge WHAT -- COMMAND {inputs} {results}",
        )
    reference = load_reference(what)
    licence = _licence(in_order, accumulate)
    given = GivenArrays(reference.params, read_npz(inputs), inputs or "")
    found = _named_results(reference, read_npz(results), results) if results else None
    # The sizes may follow from the results, too. So both are solved at once, if both are known.
    sizes = chosen_sizes([*reference.params, *reference.results], dict(symbols))
    add_sizes(sizes, [given, found] if found else [given])
    filling = Filling(fill_mode, seed, dict(symbols))
    feeds = _complete(given, filling, sizes)
    if found is None:
        written = _run(call, reference, feeds)
        found = _named_results(reference, written, f"what {call[0]} wrote")
        add_sizes(sizes, [found])
    arrays = _complete(found, filling, sizes)
    report = judge(reference, feeds, arrays, licence, sizes.values)
    if as_json:
        write_json(report)
    else:
        write_report(report)
    if report["verdict"] == VERDICTS[WRONG]:
        context.exit(FAILED)


def _complete(given: GivenArrays, filling: Filling, sizes: Sizes) -> Arrays:
    arrays, _ = complete(
        given.params, given.arrays, filling, source=given.source, sizes=sizes
    )
    return arrays


def _licence(in_order: bool, accumulate: str | None) -> Licence:
    if accumulate is None:
        return Licence(reassociate=not in_order)
    dtype = as_dtype(accumulate)
    if not dtype.is_float:
        raise UserError(
            f"floats are not added up in {accumulate}", remedy="--accumulate float32"
        )
    return Licence(reassociate=not in_order, accumulate=dtype)


def judge(
    reference: Reference,
    inputs: Arrays,
    results: Arrays,
    licence: Licence,
    sizes: Mapping[str, int],
) -> JudgeReport:
    """Return the report on `results`.

    Args:
        reference: the computation.
        inputs: its inputs, with the shapes that `sizes` give.
        results: the arrays to judge, outputs or intermediate tensors; shapes as those of `inputs`.
        licence: the freedom of the evaluation.
        sizes: symbolic dimension -> size in elements.
    """
    bounds = reference.bounds(inputs, list(results), licence, sizes)
    reports = {name: judge_bounded(results[name], bounds[name]) for name in bounds}
    verdicts = {report.verdict for report in reports.values()}
    ordered = [VERDICTS[v] for v in _WORST_FIRST if VERDICTS[v] in verdicts]
    worst = ordered[0] if ordered else VERDICTS[EXACT]
    suspects = []
    if worst == VERDICTS[WRONG]:
        suspects = reference.suspects(inputs, results, licence, sizes)
    return {
        "verdict": worst,
        "sizes": dict(sizes),
        "results": [
            _array_report(name, report, bounds[name], results[name])
            for name, report in reports.items()
        ],
        "suspects": suspects,
    }


def _array_report(
    name: str, report: Report, bounded: Bounded, found: HostArray
) -> ArrayReport:
    wrong = report.indices(WRONG)
    worst = report.worst_index
    return {
        "name": name,
        "verdict": report.verdict,
        "elements": int(report.verdicts.size),
        "exact": report.count(EXACT),
        "within_bound": report.count(WITHIN_BOUND),
        "undecidable": report.count(UNDECIDABLE),
        "wrong": report.count(WRONG),
        "worst": None if worst is None else _element(report, bounded, found, worst),
        "first_wrong": _element(report, bounded, found, wrong[0]) if wrong else None,
        "why": report.why,
        "summary": str(report),
    }


def _element(
    report: Report, bounded: Bounded, found: HostArray, index: tuple[int, ...]
) -> ElementReport:
    return {
        "index": list(index),
        "verdict": VERDICTS[int(report.verdicts[index])],
        "found": to_json(found[index].astype(np.float64)),
        "expected": to_json(bounded.nearest[index].astype(np.float64)),
        "bound": to_json(upper_f64(bounded.error[index])),
        "error_over_bound": to_json(float(report.ratios[index])),
        "condition": to_json(float(bounded.condition[index])),
    }


def _named_results(reference: Reference, arrays: Arrays, source: str) -> GivenArrays:
    """Return the arrays to judge.

    Raise UserError if an output is missing, or an array is not a result of the computation.
    """
    known = {param.name: param for param in reference.results}
    for name in reference.outputs:
        if name not in arrays:
            raise UserError(
                f"the result {name!r} is missing",
                where=f"{source} has {', '.join(arrays) or 'no arrays'}",
                remedy=f"give {', '.join(reference.outputs)}",
            )
    inputs = {param.name for param in reference.params}
    for name in arrays:
        if name not in known:
            remedy = f"give only results: {', '.join(map(str, known.values()))}"
            raise UserError(
                f"{name!r} is not a result of the computation",
                where=source,
                why=f"{name} is an input" if name in inputs else None,
                remedy=advise(name, known, remedy),
            )
    return GivenArrays([known[name] for name in arrays], arrays, source)


def _run(call: Sequence[str], reference: Reference, feeds: Arrays) -> Arrays:
    """Return the arrays that the command writes for the inputs in `feeds`."""
    inputs = {
        name: array for name, array in feeds.items() if name not in reference.outputs
    }
    tool, *args = call
    found = shutil.which(tool)
    if found is None:
        raise UserError(f"command {tool!r} is not found", remedy="give its path")
    if not any("{results}" in arg for arg in args):
        raise UserError(
            f"{tool} gets no path for its results",
            remedy="name {results} among its arguments: an .npz file, of arrays by name",
        )
    with private_folder() as folder:
        inputs_path = str(folder / "inputs.npz")
        results_path = str(folder / "results.npz")
        write_npz(inputs_path, inputs)
        # Not `format`: other braces are the tool's own.
        args = [
            arg.replace("{inputs}", inputs_path).replace("{results}", results_path)
            for arg in args
        ]
        process = start_tool([os.path.abspath(found), *args])
        done = finish_tool(process, tool_timeout_s())
        if done.status != 0:
            raise ToolchainError(
                f"{tool} ended with status {done.status}",
                command=done.command,
                stderr=done.stderr,
            )
        if not Path(results_path).exists():
            raise UserError(
                f"{tool} ended well, but wrote no results",
                where=" ".join(call),
                remedy="let it write its arrays by name: np.savez(path, C=c)",
            )
        return read_npz(results_path)
