"""Each output language: what is printed, compiled and run is right, with the spelling loaded."""

import pytest

from refcomp.errors import ToolchainError
from refcomp.mutate import outputs
from refcomp.mutate.child import Outcome, run_in_child
from refcomp.mutate.outputs import OUTPUTS, HostOutput, OpenCLOutput
from tests.mutate.test_right_results import right_results


@pytest.mark.llvm
def test_the_host(tmp_path):
    output = HostOutput(tmp_path)
    product, blur = right_results("product", "blur")
    texts = output.right_texts([product.func, blur.func])
    assert [output.printed(one.func).text for one in (product, blur)] == texts
    code = output.compiled(output.printed(blur.func), blur.func)
    assert output.is_right_code(code, blur.func)
    assert not output.is_right_code(code, product.func)

    def work(tell):
        tell(blur.told(output.run(code, blur.func, blur.arrays())))

    assert run_in_child(work, 60) == Outcome(("",))


@pytest.mark.pocl
def test_opencl(tmp_path, monkeypatch):
    output = OpenCLOutput(tmp_path)
    (right,) = right_results("tiled transpose", target="opencl")

    def work(tell):
        (text,) = output.right_texts([right.func])
        source = output.printed(right.func)
        ran = output.run(output.compiled(source, right.func), right.func, right.arrays())
        tell([source.text == text, "__kernel" in text, right.told(ran)])

    monkeypatch.setattr(outputs, "run_in_child", lambda work, _limit: _here(work))
    outcome = run_in_child(work, 100)
    if "forked" in str(outcome.told):  # other tests of this process have used the device
        pytest.skip("OpenCL was opened before")
    assert outcome == Outcome(([True, True, ""],))


def _here(work):
    told = []
    work(told.append)
    return Outcome(tuple(told))


def test_without_a_device(tmp_path, monkeypatch):
    failed = Outcome(({"error": "there is no device"},))
    monkeypatch.setattr(outputs, "run_in_child", lambda *_: failed)
    with pytest.raises(ToolchainError, match="templates of opencl cannot be tried") as caught:
        OpenCLOutput(tmp_path).right_texts([])
    assert "there is no device" in str(caught.value)


def test_folders():
    assert {name: one.folders[-1] for name, one in OUTPUTS.items()} == {
        "llvm": "llvm",
        "opencl": "opencl",
    }
