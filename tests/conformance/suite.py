"""ONNX's own suite of backend tests: its cases, and how one is judged.

Run a part of it by hand: `python -m tests.conformance.suite REGEX [--device CPU] [--jobs 2]`.
"""

import argparse
import json
import multiprocessing
import os
import re
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

from refcomp import onnx_backend
from refcomp.foundation.errors import RefcompError

# The networks of kind `real` have the weights of light models: one value for all elements.
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")


@dataclass(frozen=True)
class Case:
    """A case: a model, and sets of inputs with the outputs that they give."""

    name: str
    test: Any  # onnx's own TestCase

    @cached_property
    def model(self) -> onnx.ModelProto:
        if self.test.model is not None:
            return self.test.model
        if self.test.model_dir is None:
            return onnx.load(self._light_path)
        return onnx.load(os.path.join(self.test.model_dir, "model.onnx"))

    @property
    def _light_path(self) -> Path:
        return Path(onnx.__file__).parents[1] / self.test.url

    def _light_data(self) -> tuple[list[Any], list[Any]]:
        """The input that ONNX's runner makes for a light model, and the stored output."""
        graph = self.model.graph
        stored = {tensor.name for tensor in graph.initializer}
        inputs = [
            Runner.generate_dummy_data(info, seed=0, name=self.test.model_name, random=False)
            for info in graph.input
            if info.name not in stored
        ]
        stem = self._light_path.with_suffix("")
        return inputs, _read(stem.parent, f"{stem.name}_output", graph.output)

    @property
    def data_sets(self) -> list[tuple[list[Any], list[Any]]]:
        if self.test.model is None and self.test.model_dir is None:
            return [self._light_data()]
        if self.test.data_sets is not None:
            return [tuple(list(map(_array, side)) for side in pair) for pair in self.test.data_sets]
        folders = sorted(Path(self.test.model_dir).glob("test_data_set_*"))
        graph = self.model.graph
        return [
            (_read(folder, "input", graph.input), _read(folder, "output", graph.output))
            for folder in folders
        ]

    @property
    def operators(self) -> set[str]:
        return {node.op_type for node in self.model.graph.node}


def _array(value: Any) -> Any:
    """Return a value of a case; ONNX stores some as protos, and converts them as we do."""
    is_proto = isinstance(value, onnx.TensorProto)
    return numpy_helper.to_array(value) if is_proto else value


def _read(folder: Path, stem: str, infos: Any) -> list[Any]:
    # Old models list their weights as inputs, too. The files hold only the first inputs.
    count = len(list(folder.glob(f"{stem}_*.pb")))
    return [_value(folder / f"{stem}_{k}.pb", infos[k].type) for k in range(count)]


def _value(path: Path, kind: Any) -> Any:
    data = path.read_bytes()
    if kind.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def cases() -> Iterator[Case]:
    """Yield all cases."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for kind in KINDS:
            for test in load_model_tests(kind=kind):
                yield Case(test.name, test)


def judge(case: Case, device: str = "CPU") -> int:
    """Run a case, and raise an error unless all outputs are right. Return the kernels launched."""
    prepared = onnx_backend.prepare(case.model, device)
    for inputs, expected in case.data_sets:
        made = prepared.run(inputs)
        for right, one in zip(expected, made, strict=True):
            # The runner would compare the tensors of a sequence row by row.
            pair = (right, one) if isinstance(right, list) else ([right], [one])
            Runner.assert_similar_outputs(*pair, rtol=case.test.rtol, atol=case.test.atol)
    return prepared.launches


class Outcome(NamedTuple):
    """What became of a case."""

    name: str
    error: str  # empty if it passed
    launches: int
    seconds: float


def outcome_of(case: Case, device: str) -> Outcome:
    begin = time.perf_counter()
    error = ""
    launches = 0
    try:
        launches = judge(case, device)
    except Exception as raised:  # each kind of failure is reported
        is_own = isinstance(raised, RefcompError)
        why = f"{raised.what} {raised.why or ''}" if is_own else str(raised)
        error = f"{type(raised).__name__}: {' '.join(why.split())[:300]}"
    return Outcome(case.name, error, launches, time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", help="a regular expression for names of cases or of operators")
    parser.add_argument("--device", default="CPU", help="as for refcomp.onnx_backend.prepare")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take each Nth case")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the cases")
    parser.add_argument("--json", metavar="FILE", help="write the outcome of each case")
    parser.add_argument("--list", metavar="FILE", help="only write the names of the cases")
    arguments = parser.parse_args()
    wanted = re.compile(arguments.pattern)
    chosen = [
        case
        for case in cases()
        if wanted.search(case.name) or any(map(wanted.fullmatch, case.operators))
    ][:: arguments.every]
    if arguments.list:
        Path(arguments.list).write_text(
            "".join(f"{name}\n" for name in sorted(c.name for c in chosen))
        )
        return
    run = partial(_run, chosen, arguments.device)
    outcomes: list[Outcome] = []
    begin = time.perf_counter()
    with multiprocessing.get_context("fork").Pool(arguments.jobs) as pool:
        for outcome in pool.imap_unordered(run, range(len(chosen))):
            outcomes.append(outcome)
            if outcome.error:
                print(f"{outcome.name}: {outcome.error}", flush=True)
    seconds = time.perf_counter() - begin
    passed = sum(not outcome.error for outcome in outcomes)
    print(f"{passed} of {len(outcomes)} passed on {arguments.device} in {seconds:.0f} s")
    if arguments.json:
        report = {
            "onnx": onnx.__version__,
            "device": arguments.device,
            "cases": len(outcomes),
            "passed": passed,
            "seconds": round(seconds, 1),
            "without_kernels": sorted(o.name for o in outcomes if not o.error and not o.launches),
            "failed": {o.name: o.error for o in sorted(outcomes) if o.error},
        }
        Path(arguments.json).write_text(json.dumps(report, indent=1) + "\n")
    sys.exit(passed != len(outcomes))


def _run(chosen: list[Case], device: str, place: int) -> Outcome:
    return outcome_of(chosen[place], device)


if __name__ == "__main__":
    main()
