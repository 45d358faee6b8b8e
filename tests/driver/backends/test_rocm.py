"""AMD GPUs as a back end: which GPU a text is printed for."""

from dataclasses import replace

import pytest

from refcomp.driver.backends import as_target, rocm
from refcomp.driver.backends.rocm import ROCM, print_rocm
from refcomp.driver.compile import compile_functions
from refcomp.driver.pipeline import run_pipeline
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.toolchain import without_padding
from tests.driver.backends.kernels import fills

pytestmark = pytest.mark.rocm


def test_kernels_are_printed_for_the_named_gpu():
    made = [run_pipeline(fills("float32"), "rocm")]
    waves = print_rocm(made, as_target("rocm -mcpu=gfx942 -waves=3")).text
    assert '"amdgpu-waves-per-eu"="3"' in waves
    with pytest.raises(UserError, match="gfx9999"):
        print_rocm(made, as_target("rocm -mcpu=gfx9999"))


def test_the_code_tells_what_kernels_take():
    compiled = compile_functions([fills("float32")], "rocm -mcpu=gfx942")
    (kernel,) = ROCM.resources(compiled)
    assert kernel.kernel == "f_kernel0" and kernel.vgprs > 0
    with pytest.raises(Unsupported, match="the resources of kernels are not known"):
        ROCM.resources(replace(compiled, code=None))


def test_texts_that_are_shown_are_those_of_the_code():
    compiled = compile_functions([fills("float32")], "rocm -mcpu=gfx942")
    code = compiled.code
    shown = ROCM.texts(compiled.made, compiled.target)
    texts = {name: text() for name, text in shown.items()}
    assert texts.pop("asm") == without_padding(code.disassemble())
    assert [*texts.items()] == [*code.sources.items()]


def test_printed_texts_need_no_compiling(monkeypatch):
    made = [run_pipeline(fills("float32"), "rocm")]
    monkeypatch.setattr(rocm.toolchain, "compile_source", None)
    shown = ROCM.texts(made, as_target("rocm -mcpu=gfx942"))
    assert "amdgpu_kernel" in shown["llvm"]()
    assert shown["kernels"]().startswith("func f_kernel0(")
    assert "f_kernel0" in shown["lines"]()
