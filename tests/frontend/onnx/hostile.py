"""Read and run damaged models, each within a bound on time and memory.

Run more by hand: `python -m tests.frontend.onnx.hostile 100000 [--first N] [--processes 2]`.
A model is damaged by its number alone, so that a fault can be repeated: `--first N` with a count
of 1 prints the traceback.
"""

import argparse
import math
import multiprocessing
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.frontend.onnx import from_onnx
from refcomp.frontend.onnx.element_types import ELEMENT_TYPES
from refcomp.graph.graph import Graph, Value, ValueKind
from refcomp.graph.stages.executor import executor_for
from tests.conformance.suite import cases
from tests.frontend.onnx.mutations import mutated

MAX_SEED_BYTES = 3000  # of a model that is damaged
MAX_BYTES = 1 << 24  # that a model may store
MAX_MEMORY = 3 << 30  # address space for the models of a process, beside what it begins with, bytes
MAX_READING = 20  # seconds
MAX_RUNNING = 5  # seconds; a model may mean more work, such as a loop without an end
MAX_ELEMENTS = 4096  # of a value in a model that is run
MAX_NODES = 24
SILENT = 60  # seconds without a sign of life, after which a process hangs


def _own_seeds() -> Iterator[onnx.ModelProto]:
    """Yield models of what ONNX's suite lacks: functions, constants of all forms, optionals."""
    text = """
<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
g (float[N, 2] x) => (float[N, 2] y, bool h) {
    a = own.F <slope = 0.5> (x)
    b = own.G (a, x)
    o = Optional <type: type_proto = float[2]> ()
    p = Optional (b)
    h = OptionalHasElement (o)
    y = OptionalGetElement (p)
}
<opset_import: ["" : 18], domain: "own">
F <slope> (a) => (b) { b = LeakyRelu <alpha: float = @slope> (a) }
<opset_import: ["" : 18, "own" : 1], domain: "own">
G (a, c) => (b) {
    t = Add (a, c)
    b = own.F <slope: float = 2.0> (t)
}"""
    yield onnx.parser.parse_model(text)
    pair = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3]) for name in "xy"]
    values = helper.make_tensor("w", onnx.TensorProto.FLOAT, [2], [1.0, 2.0])
    places = helper.make_tensor("", onnx.TensorProto.INT64, [2, 2], [0, 1, 1, 2])
    sparse = helper.make_sparse_tensor(values, places, [2, 3])
    codes = [code for code in ELEMENT_TYPES if code != onnx.TensorProto.STRING]
    stored = [helper.make_tensor(f"c{code}", code, [2], [1, 0]) for code in codes]
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    nodes += [helper.make_node("Cast", [one.name], [f"d{k}"], to=1) for k, one in enumerate(stored)]
    graph = helper.make_graph(nodes, "g", pair[:1], pair[1:], stored, sparse_initializer=[sparse])
    yield helper.make_model(graph, opset_imports=[helper.make_opsetid("", 28)], ir_version=13)


@cache
def seeds() -> tuple[bytes, ...]:
    """Models of all families: one small case of ONNX's suite for each set of operators."""
    chosen: dict[frozenset[str], bytes] = {}
    for case in cases():
        key = frozenset(case.operators)
        if key not in chosen:
            content = case.model.SerializeToString()
            if len(content) <= MAX_SEED_BYTES:
                chosen[key] = content
    own = (model.SerializeToString() for model in _own_seeds())
    return (*chosen.values(), *own)


class OverrunError(Exception):
    """Raised if a model takes too long."""


def _overrun(*_: Any) -> None:
    raise OverrunError


def model_of(number: int) -> bytes:
    """Return the damaged model of a number."""
    rng = random.Random(number)
    models = seeds()
    # The few models of our own are drawn more often.
    place = rng.randrange(len(models) + 20)
    return mutated(models[min(place, len(models) - 1 - place % 2)], rng)


def outcome_of(number: int) -> tuple[str, str]:
    """Return what became of a model: a word, and the traceback if it is a fault."""
    content = model_of(number)
    try:
        signal.setitimer(signal.ITIMER_REAL, MAX_READING)
        try:
            graph = from_onnx(content, max_bytes=MAX_BYTES)
        except (UserError, Unsupported) as error:
            return _judged(error, "refused")
        except OverrunError:
            return "fault: reading takes too long", traceback.format_exc()
        if not _is_small(graph):
            return "read, too large to run", ""
        signal.setitimer(signal.ITIMER_REAL, MAX_RUNNING)
        try:
            rng = np.random.default_rng(number)
            feeds = {value.name: _fed(value, rng) for value in graph.inputs}
            with np.errstate(all="ignore"):
                executor_for(graph, "interp").run(feeds)
        except (UserError, Unsupported) as error:
            return _judged(error, "refused in a run")
        except OverrunError:
            return "stopped in a run", ""
        return "run", ""
    except BaseException as error:  # each is a fault
        return f"fault: {type(error).__name__}", traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _judged(error: UserError | Unsupported, word: str) -> tuple[str, str]:
    text = str(error)
    if len(text) > 20_000 or "\0" in text or not error.what:
        return "fault: the message is unfit", repr(text[:2000])
    return word, ""


def _is_small(graph: Graph) -> bool:
    """Return True if a run takes little work, as far as the graph shows."""
    if len(graph.nodes) > MAX_NODES:
        return False
    for value in graph.values():
        dims = [dim if isinstance(dim, int) else 3 for dim in value.shape]
        if max(dims, default=0) > MAX_ELEMENTS or math.prod(dims) > MAX_ELEMENTS:
            return False
    return True


def _fed(value: Value, rng: np.random.Generator) -> Any:
    shape = [dim if isinstance(dim, int) else 3 for dim in value.shape]
    if value.kind is ValueKind.UNSHAPED:
        shape = [2]
    if value.dtype.kind == "string":
        array = np.array(["a", ""], object)
    else:
        array = rng.integers(0, 3, shape).astype(to_numpy(value.dtype))
    is_sequence = value.kind in (ValueKind.SEQUENCE, ValueKind.OPTIONAL_SEQUENCE)
    return [array] if is_sequence else array


def _work(numbers: range, answers: Connection) -> None:
    """Send (number, outcome, traceback) for each number."""
    warnings.simplefilter("ignore")
    # A process that was forked from one with much memory, such as pytest's, begins with it.
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MAX_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, _overrun)
    for number in numbers:
        answers.send((number, *outcome_of(number)))
    answers.close()


def _watched(numbers: range) -> Iterator[tuple[int, str, str]]:
    """Yield the outcome of each number. A process that dies or hangs is followed by another."""
    context = multiprocessing.get_context("fork")
    while numbers:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(numbers, sender), daemon=True)
        process.start()
        sender.close()
        try:
            while numbers and receiver.poll(SILENT):
                answer = receiver.recv()
                numbers = numbers[1:]
                yield answer
        except EOFError:
            pass
        if numbers:
            process.join(1)  # it may just be ending
            process.kill()
            process.join()
            yield numbers[0], f"fault: the process ends with {process.exitcode}", ""
            numbers = numbers[1:]
        process.join()


def run(first: int, count: int) -> tuple[Counter[str], dict[int, str]]:
    """Return how often each outcome came, and the number of each fault with its traceback."""
    outcomes: Counter[str] = Counter()
    faults: dict[int, str] = {}
    for number, word, trace in _watched(range(first, first + count)):
        outcomes[word] += 1
        if word.startswith("fault"):
            faults[number] = f"{word}\n{trace}"
    return outcomes, faults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--save", type=Path, help="a file for the damaged model, if it is one")
    arguments = parser.parse_args()
    begin = time.perf_counter()
    seeds()
    if arguments.save:
        arguments.save.write_bytes(model_of(arguments.first))
        print(onnx.printer.to_text(onnx.load(arguments.save)))
    each = -(-arguments.count // arguments.processes)
    parts = [
        (arguments.first + k * each, min(each, arguments.count - k * each))
        for k in range(arguments.processes)
    ]
    outcomes: Counter[str] = Counter()
    faults: dict[int, str] = {}
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    with ThreadPoolExecutor(len(parts)) as pool:
        for made, found in pool.map(lambda part: run(*part), parts):
            outcomes += made
            faults |= found
    kinds: Counter[str] = Counter()
    for number, text in sorted(faults.items()):
        lines = text.strip().splitlines()
        place = [line.strip() for line in lines if line.strip().startswith("File ")][-1:]
        kind = f"{lines[-1][:200]} {place[0] if place else ''}"
        kinds[kind] += 1
        if kinds[kind] == 1:
            print(f"== {number}: {text if arguments.count == 1 else kind}")
    for kind, number in kinds.most_common():
        print(f"{number:6} {kind}")
    print(dict(outcomes), f"{time.perf_counter() - begin:.0f} s")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
