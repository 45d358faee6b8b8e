"""`refcomp judge`: whether a foreign backend's arrays are what a computation allows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from refcomp.cli.arrays import (
    Arrays,
    Filling,
    GivenArrays,
    add_sizes,
    chosen_sizes,
    complete,
    read_npz,
    write_npz,
)
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
from refcomp.cli.verdicts import write_report
from refcomp.foundation.dtype import DType, as_dtype
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.foundation.private_folder import private_folder
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
@click.option(
    "-r", "--results", metavar="NPZ", help="What the backend computed, by name."
)
@click.option(
    "--in-order",
    is_flag=True,
    help="Sums are added in the order of their axes, not in any.",
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
    as_json: bool,
) -> None:
    """Judge arrays that another backend computed.

    They come from an .npz file, or from COMMAND, whose arguments {inputs} and {results} become the
    paths of such files. Each element is exact, within the bound of what any legal evaluation may
    give, wrong, or undecidable. Tensors in between, if they are given, show who is guilty.

    The sizes of symbolic dimensions follow from all arrays that are given, else from --symbol. The
    report is a table with a row for each array; with --json it is JSON. Fails when an element is
    wrong.
    """
    reference = load_reference(what)
    licence = Licence(
        not in_order, None if accumulate is None else _float_type(accumulate)
    )
    _check_source(call, results)
    given = GivenArrays(reference.params, read_npz(inputs), inputs or "")
    found = _named_results(reference, read_npz(results), results) if results else None
    sizes = chosen_sizes([*reference.params, *reference.results], dict(symbols))
    add_sizes(sizes, [given, found] if found else [given])
    filling = Filling(fill_mode, seed, dict(symbols))
    feeds, _ = complete(
        given.params, given.arrays, filling, source=given.source, sizes=sizes
    )
    if found is None:
        found = _named_results(
            reference, _run(call, reference, feeds), f"what {call[0]} wrote"
        )
        add_sizes(sizes, [found])
    arrays, _ = complete(
        found.params, found.arrays, filling, source=found.source, sizes=sizes
    )
    report = judge(reference, feeds, arrays, licence, sizes.values)
    if as_json:
        write_json(report)
    else:
        write_report(report)
    if report["verdict"] == VERDICTS[WRONG]:
        context.exit(FAILED)


def _float_type(name: str) -> DType:
    dtype = as_dtype(name)
    if not dtype.is_float:
        raise UserError(
            f"floats are not added up in {name}", remedy="--accumulate float32"
        )
    return dtype


def judge(
    reference: Reference,
    inputs: Arrays,
    results: Arrays,
    licence: Licence,
    sizes: Mapping[str, int],
) -> dict[str, Any]:
    """Return the report on `results`, as JSON: a verdict, one for each array, and the suspects.

    `inputs` and `results` have the shapes that `sizes` of the symbols give.
    """
    bounds = reference.bounds(inputs, list(results), licence, sizes)
    reports = {name: judge_bounded(results[name], bounds[name]) for name in bounds}
    verdicts = {report.verdict for report in reports.values()}
    worst = next(
        (VERDICTS[v] for v in _ORDER if VERDICTS[v] in verdicts), VERDICTS[EXACT]
    )
    is_wrong = worst == VERDICTS[WRONG]
    return {
        "verdict": worst,
        "sizes": dict(sizes),
        "results": [
            _to_json(name, report, bounds[name], results[name])
            for name, report in reports.items()
        ],
        "suspects": reference.suspects(inputs, results, licence, sizes)
        if is_wrong
        else [],
    }


def _to_json(name: str, report: Report, bounded: Bounded, found: Any) -> dict[str, Any]:
    first_wrong = next(iter(report.indices(WRONG)), None)
    return {
        "name": name,
        "verdict": report.verdict,
        "elements": int(report.verdicts.size),
        **{VERDICTS[v].replace(" ", "_"): report.count(v) for v in reversed(_ORDER)},
        "worst": _element(report, bounded, found, report.worst_index),
        "first_wrong": _element(report, bounded, found, first_wrong),
        "why": report.why,
        "summary": str(report),
    }


def _element(
    report: Report, bounded: Bounded, found: Any, index: tuple[int, ...] | None
) -> dict[str, Any] | None:
    if index is None:
        return None
    return {
        "index": list(index),
        "verdict": VERDICTS[int(report.verdicts[index])],
        "found": to_json(found[index].astype(np.float64)),
        "expected": to_json(bounded.nearest[index].astype(np.float64)),
        "bound": to_json(upper_f64(bounded.error[index])),
        "error_over_bound": to_json(float(report.ratios[index])),
        "condition": to_json(float(bounded.condition[index])),
    }


def _check_source(call: Sequence[str], results: str | None) -> None:
    if bool(call) == (results is not None):
        raise UserError(
            "arrays to judge come from --results or from a command, one of both",
            remedy="refcomp judge WHAT -i IN.npz -r OUT.npz, or "
            "refcomp judge WHAT -- COMMAND {inputs} {results}",
        )


def _named_results(reference: Reference, arrays: Arrays, source: str) -> GivenArrays:
    """The arrays to judge. UserError when an output is missing, or an array has another name."""
    known = {param.name: param for param in reference.results}
    missing = [name for name in reference.outputs if name not in arrays]
    if missing:
        raise UserError(
            f"there is no result {missing[0]!r}",
            where=f"{source} has {', '.join(arrays) or 'no arrays'}",
            remedy=f"give {', '.join(reference.outputs)}",
        )
    for name in arrays:
        if name not in known:
            is_input = any(param.name == name for param in reference.params)
            raise UserError(
                f"{name!r} is not a result of the computation",
                where=source,
                why=f"{name} is an input" if is_input else None,
                remedy=f"give only results: {', '.join(map(str, known.values()))}",
            )
    return GivenArrays([known[name] for name in arrays], arrays, source)


def _run(call: Sequence[str], reference: Reference, feeds: Arrays) -> Arrays:
    """Return the arrays that the command writes for the inputs in `feeds`, in a private folder."""
    inputs = {
        name: array for name, array in feeds.items() if name not in reference.outputs
    }
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
        write_npz(paths["inputs"], inputs)
        process = start_tool(
            [os.path.abspath(found), *(_filled(arg, paths) for arg in args)]
        )
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
