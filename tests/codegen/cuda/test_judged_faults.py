"""Faults put into printed kernels: g++ with sanitizers reports each, and nothing without them.

Each faulty kernel has a name of its own, so that all of them are compiled as one file.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from refcomp.codegen.cuda.module import print_cuda
from refcomp.foundation.errors import ToolchainError
from refcomp.ir.func import PrimFunc
from tests.codegen.cuda.host_kernels import HostKernels
from tests.codegen.device_kernels import TEXTS, device_kernel, draw_arguments

pytestmark = pytest.mark.gcc

_BARRIER = "__syncthreads();"
_KERNEL = re.compile(r'^(?=extern "C" __global__)', re.MULTILINE)
SHARED_BYTES = {"group_sum": (24 * 4,)}
# The sanitizer remembers the last four accesses of eight bytes. Where more than four threads access
# them, a run may miss a race, as the order of the threads has it.
_MOST_RUNS = 10


@dataclass(frozen=True)
class Fault:
    """A change of one kernel's text, and a part of the report on it."""

    kernel: str
    edit: Callable[[str], str]
    report: str


def _without_barrier(number):
    def edit(text):
        parts = text.split(_BARRIER)
        assert number + 1 < len(parts), f"no barrier {number}"
        parts[number : number + 2] = [parts[number] + parts[number + 1]]
        return _BARRIER.join(parts)

    return edit


def _replaced(old, new):
    def edit(text):
        assert re.search(old, text), f"nothing like {old}"
        return re.sub(old, new, text, count=1)

    return edit


def _moved(array, distance=1):
    """The first access of an array, but not its declaration, is moved by some elements."""
    return _replaced(rf"\b{array}\[(?!\d+\];)", f"{array}[{distance} + ")


_FAULTS = {
    "races": [
        *(Fault("matmul", _without_barrier(k), "data race") for k in range(2)),
        *(Fault("softmax", _without_barrier(k), "data race") for k in range(5)),
        *(Fault("blocked", _without_barrier(k), "data race") for k in range(2)),
        *(Fault("atomics", _without_barrier(k), "data race") for k in range(2)),
        Fault("transpose", _without_barrier(0), "data race"),
        Fault("group_sum", _without_barrier(0), "data race"),
        Fault(
            "atomics", _replaced(r"update_add\(&T\[(\w+)\], ", r"((void)0, T[\1] += "), "data race"
        ),
        Fault("softmax", _replaced(r"T\[t\] =", "T[t / 2] ="), "data race"),
        Fault(
            "control", _replaced(r"shift_left_i64\((.*), i\)", r"\1 << (i + 64)"), "shift exponent"
        ),
        Fault(
            "control", _replaced(r"floordiv_i64\((.*?), ", r"\1 / (k - k) + ("), "division by zero"
        ),
        Fault(
            "bytes", _replaced(r"S\[g", "sum[0] = 2147483647 + (int)(t + 1); S[g"), "signed integer"
        ),
    ],
    "bounds": [
        Fault("vector_add", _moved("C"), "WRITE of size 4"),
        Fault("vector_add", _moved("A"), "READ of size 4"),
        Fault("vector_add", _replaced("< n", "<= n"), "READ of size 4"),
        Fault("matmul", _moved("A"), "READ of size 4"),
        Fault("blocked", _moved("A"), "READ of size"),
        Fault("transpose", _moved("T", 17), "out of bounds"),
        Fault("group_sum", _moved("T"), "WRITE of size 4"),
        Fault("control", _moved("T"), "out of bounds"),
        Fault("gather", _replaced("row < rows", "true"), "AddressSanitizer"),
        Fault(
            "atomics",
            _replaced(r"\(unsigned long long\)A\[", "*(const unsigned long long*)&A["),
            "misaligned address",
        ),
    ],
}
_CASES = [
    pytest.param(sanitizers, number, id=f"{fault.kernel}-{fault.report}-{number}")
    for sanitizers, faults in _FAULTS.items()
    for number, fault in enumerate(faults)
]


@pytest.fixture(scope="module")
def built():
    """For each kind of sanitizers: all right and all faulty kernels, by name."""
    return {sanitizers: _build(sanitizers) for sanitizers in _FAULTS}


def _build(sanitizers):
    right = {name: device_kernel(name) for name in TEXTS}
    head, *texts = _KERNEL.split(print_cuda(list(right.values())).text)
    text_of = dict(zip(right, texts, strict=True))
    kernels = dict(right)
    for number, fault in enumerate(_FAULTS[sanitizers]):
        name = f"fault{number}"
        old = right[fault.kernel]
        kernels[name] = PrimFunc(name, old.params, old.body, old.outputs)
        edited = fault.edit(text_of[fault.kernel])
        texts.append(edited.replace(f"{fault.kernel}(", f"{name}(", 1))
    return kernels, HostKernels(list(kernels.values()), head + "".join(texts), sanitizers)


def _run(built, name, as_name):
    kernels, ours = built
    ours.call(kernels[as_name], draw_arguments(name), shared_bytes=SHARED_BYTES.get(name, ()))


@pytest.mark.parametrize(("sanitizers", "number"), _CASES)
def test_a_fault_is_reported(built, sanitizers, number):
    fault = _FAULTS[sanitizers][number]
    with pytest.raises(ToolchainError, match="a CUDA kernel fails on this machine") as caught:
        for _ in range(_MOST_RUNS if fault.report == "data race" else 1):
            _run(built[sanitizers], fault.kernel, f"fault{number}")
    assert fault.report in caught.value.stderr


@pytest.mark.parametrize("sanitizers", _FAULTS)
def test_of_right_kernels_nothing_is_reported(built, sanitizers):
    for name in TEXTS:
        _run(built[sanitizers], name, name)
