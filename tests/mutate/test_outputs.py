"""Each output language: what is printed, compiled and run is right, with the spelling loaded."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from refcomp.foundation.errors import ToolchainError
from refcomp.mutate import outputs
from refcomp.mutate.child import Outcome, run_in_child
from refcomp.mutate.expected_results import ExpectedResults
from refcomp.mutate.operations import operations
from refcomp.mutate.outputs import (
    OUTPUTS,
    CudaOutput,
    EmulatedOutput,
    HostOutput,
    OpenCLOutput,
)
from tests.mutate.test_expected_results import expected_results


@pytest.mark.llvm
def test_the_host(tmp_path):
    output = HostOutput(tmp_path)
    product, blur = expected_results("product", "blur")
    texts = output.print_right([product.func, blur.func])
    assert [output.printed(one.func).text for one in (product, blur)] == texts
    code = output.compiled(output.printed(blur.func), blur.func)
    assert output.is_right_code(code, blur.func)
    assert not output.is_right_code(code, product.func)

    def work(send):
        send(blur.difference(output.run(code, blur.func, blur.arrays())))

    assert run_in_child(work, 60) == Outcome(("",))


_OPENCL = """
import json, sys
from pathlib import Path
from refcomp.mutate.child import run_in_child
from refcomp.mutate.operations import operations
from refcomp.mutate.outputs import OpenCLOutput
from refcomp.mutate.expected_results import ExpectedResults

(right,) = [ExpectedResults(o) for o in operations("opencl") if o.name == "tiled transpose"]
output = OpenCLOutput(Path(sys.argv[1]))
(text,) = output.print_right([right.func])

def work(send):
    source = output.printed(right.func)
    ran = output.run(output.compiled(source, right.func), right.func, right.arrays())
    send([source.text == text, "__kernel" in text, right.difference(ran)])

print(json.dumps(run_in_child(work, 100).messages))
"""


@pytest.mark.pocl
def test_opencl(tmp_path):
    """In a process of its own: the children of one that has opened a device cannot use it."""
    command = [sys.executable, "-c", _OPENCL, str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert json.loads(done.stdout) == [[True, True, ""]]


def test_without_a_device(tmp_path, monkeypatch):
    failed = Outcome(({"error": "there is no device"},))
    monkeypatch.setattr(outputs, "run_in_child", lambda *_: failed)
    with pytest.raises(ToolchainError, match="templates of opencl cannot be tried") as caught:
        OpenCLOutput(tmp_path).print_right([])
    assert "there is no device" in str(caught.value)


@pytest.mark.gcc
def test_cuda(tmp_path):
    """A kernel with shared memory is also checked for races."""
    (right,) = [ExpectedResults(o) for o in operations("cuda") if o.name == "tiled transpose"]
    output = CudaOutput(tmp_path)
    (text,) = output.print_right([right.func])
    source = output.printed(right.func)
    assert source.text == text and "__global__" in text
    code = output.compiled(source, right.func)
    assert right.difference(output.run(code, right.func, right.arrays())) == ""
    assert output.is_right_code(code, right.func)
    racy = replace(source, text=text.replace("__syncthreads();", ""))
    ran = output.run(output.compiled(racy, right.func), right.func, right.arrays())
    assert "data race" in ran.fault and ran.arrays


@pytest.mark.rocm
def test_the_emulator(tmp_path, monkeypatch):
    monkeypatch.setenv("REFCOMP_CACHE_DIR", str(tmp_path))  # as it is again afterwards
    (right,) = [ExpectedResults(o) for o in operations("amdgpu") if o.name == "tiled transpose"]
    output = EmulatedOutput(tmp_path)
    (text,) = output.print_right([right.func])
    source = output.printed(right.func)
    assert source.text == text and "amdgpu_kernel" in text
    code = output.compiled(source, right.func)
    assert right.difference(output.run(code, right.func, right.arrays())) == ""
    assert output.is_right_code(code, right.func)
    other = replace(source, text=text.replace("fadd", "fsub").replace(" 0, ", " 1, "))
    assert other.text != text and not output.is_right_code((other, None), right.func)


def test_folders(tmp_path):
    last = {name: make(tmp_path).folders[-1] for name, make in OUTPUTS.items()}
    assert last == {"llvm": "llvm", "opencl": "opencl", "cuda": "cuda", "amdgpu": "amdgpu"}
