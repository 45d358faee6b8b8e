"""ONNX's own suite of backend tests: its cases, and how one is judged.

Run a part of it by hand: `python -m tests.conformance.suite REGEX [--device CPU] [--verbose]`.
"""

import argparse
import os
import re
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

from refcomp import onnx_backend
from refcomp.foundation.errors import RefcompError

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


@dataclass(frozen=True)
class Case:
    """A case: a model, and sets of inputs with the outputs that they give."""

    name: str
    test: Any  # onnx's own TestCase

    @cached_property
    def model(self) -> onnx.ModelProto:
        if self.test.model is not None:
            return self.test.model
        return onnx.load(os.path.join(self.test.model_dir, "model.onnx"))

    @property
    def data_sets(self) -> list[tuple[list[Any], list[Any]]]:
        if self.test.data_sets is not None:
            return list(self.test.data_sets)
        folders = sorted(Path(self.test.model_dir).glob("test_data_set_*"))
        graph = self.model.graph
        return [
            (_read(folder, "input", graph.input), _read(folder, "output", graph.output))
            for folder in folders
        ]

    @property
    def operators(self) -> set[str]:
        return {node.op_type for node in self.model.graph.node}


def _read(folder: Path, stem: str, infos: Any) -> list[Any]:
    return [_value(folder / f"{stem}_{k}.pb", info.type) for k, info in enumerate(infos)]


def _value(path: Path, kind: Any) -> Any:
    data = path.read_bytes()
    if kind.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def cases() -> Iterator[Case]:
    """Yield all cases, but those whose networks would have to be downloaded."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for kind in KINDS:
            for test in load_model_tests(kind=kind):
                yield Case(test.name, test)


def judge(case: Case, device: str = "CPU") -> int:
    """Run a case, and raise an error unless all outputs are right. Returns the kernels launched."""
    prepared = onnx_backend.prepare(case.model, device)
    for inputs, expected in case.data_sets:
        made = prepared.run(inputs)
        Runner.assert_similar_outputs(
            expected, made, rtol=case.test.rtol, atol=case.test.atol, model_dir=case.test.model_dir
        )
    return prepared.launches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", help="a regular expression for names of cases or of operators")
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--verbose", action="store_true", help="print tracebacks")
    arguments = parser.parse_args()
    wanted = re.compile(arguments.pattern)
    outcomes: Counter[str] = Counter()
    for case in cases():
        is_named = wanted.search(case.name) or any(map(wanted.fullmatch, case.operators))
        if not is_named:
            continue
        try:
            judge(case, arguments.device)
            outcomes["passed"] += 1
        except Exception as error:  # each kind of failure is reported
            known = isinstance(error, RefcompError)
            why = f"{error.what} {error.why or ''}" if known else str(error)
            print(f"{case.name}: {type(error).__name__}: {' '.join(why.split())[:300]}", flush=True)
            if arguments.verbose:
                traceback.print_exc()
            outcomes[type(error).__name__] += 1
    print(dict(outcomes))
    sys.exit(set(outcomes) - {"passed"} != set())


if __name__ == "__main__":
    main()
