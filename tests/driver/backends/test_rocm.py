"""AMD GPUs as a back end: which GPU a text is printed for."""

import re
from dataclasses import replace

import numpy as np
import pytest

import refcomp as rc
from refcomp.driver.backends import as_target, division, rocm
from refcomp.driver.backends.rocm import ROCM, print_rocm
from refcomp.driver.compile import compile_functions
from refcomp.driver.pipeline import run_pipeline
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.ir.parser import parse_func
from refcomp.toolchain import read_code_object, without_padding
from refcomp.toolchain.parts import PartsBuild
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


# ---- large modules are compiled in parts ------------------------------------------------------


def _exponentials(name):
    """f64: a function of AMD's device library, with its constants."""
    a = rc.placeholder((64,), name="A", dtype="float64")
    b = rc.compute((64,), lambda i: rc.exp(a[i]), name="B")
    s = rc.create_schedule(b)
    s[b].bind(b.op.axis[0], rc.thread_axis("threadIdx.x"))
    return rc.lower(s, [a, b], name)


def _reversed_rows(name):
    """Rows of any length lie in shared memory, whose size the launch sets."""
    return parse_func(f"""func {name}(A: f64[n, m], B: f64[n, m] out) {{
      for b in range(n) blockIdx.x {{
        for t in range(m) threadIdx.x {{
          alloc S: f64[m] shared {{
            S[t] = A[b, t]
            B[b, t] = S[m - 1 - t]
          }}
        }}
      }}
    }}""")


@pytest.fixture
def started(monkeypatch, tmp_path):
    """The texts of the parts that were started; a part is one function."""
    monkeypatch.setenv("REFCOMP_CACHE_DIR", str(tmp_path / "cache"))  # nothing is built yet
    monkeypatch.setattr(division, "PART_NODES", 1)
    texts = []
    start = PartsBuild.start

    def noted(self, source, options=None):
        texts.append(source.text)
        start(self, source, options)

    monkeypatch.setattr(PartsBuild, "start", noted)
    return texts


FUNCS = [_exponentials("e0"), _reversed_rows("r0"), _exponentials("e1"), _reversed_rows("r1")]


def test_kernels_in_parts_are_those_of_one_text(started, monkeypatch):
    target = "rocm -mcpu=gfx942"
    parted = compile_functions(FUNCS, target).code
    assert len(started) == 4
    monkeypatch.setattr(division, "PART_NODES", 10**9)
    whole = compile_functions(FUNCS, target).code
    assert len(started) == 4
    for language in ("llvm", "kernels", "lines"):
        assert parted.sources[language] == whole.sources[language]
    kernels = [read_code_object(code.code.data).kernels for code in (parted, whole)]
    assert [kernel.name for kernel in kernels[0]] == [f"{f.name}_kernel0" for f in FUNCS]
    assert kernels[0] == kernels[1]
    instructions = [_instructions(code.disassemble()) for code in (parted, whole)]
    assert instructions[0] == instructions[1]


def _instructions(assembly):
    """The mnemonics and debug locations, in order; addresses differ."""
    text = without_padding(assembly)
    return re.findall(r"^\t(\w+)|^; .*(kernels\.ir:\d+)", text, re.MULTILINE)


def test_kernels_in_parts_run(started):
    module = rc.build_functions(FUNCS, "rocm -mcpu=gfx942")
    assert len(started) == 4
    gpu = rc.rocm_emulator("gfx942")
    values = np.linspace(-1, 1, 64)
    for k in range(2):
        found = rc.empty(64, "float64", device=gpu)
        module[f"e{k}"](rc.array(values, gpu), found)
        np.testing.assert_allclose(found.asnumpy(), np.exp(values), rtol=1e-15)
        rows = values.reshape(4, 16)
        turned = rc.empty((4, 16), "float64", device=gpu)
        module[f"r{k}"](rc.array(rows, gpu), turned)
        np.testing.assert_array_equal(turned.asnumpy(), rows[:, ::-1])
