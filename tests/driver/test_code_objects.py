"""Bare code objects, written and read."""

import json

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import ToolchainError, UserError


@pytest.mark.rocm
def _doubled():
    n = refcomp.var("n")
    a = refcomp.placeholder((n,), name="A")
    b = refcomp.compute((n,), lambda i: a[i] * 2.0, name="B")
    schedule = refcomp.create_schedule(b)
    schedule[b].bind(b.op.axis[0], refcomp.thread_axis("blockIdx.x"))
    return schedule, [a, b]


@pytest.mark.rocm
def test_a_bare_code_object_is_written_and_read(tmp_path):
    module = refcomp.build(*_doubled(), "rocm -mcpu=gfx942", name="twice")
    module.save(tmp_path / "twice.hsaco")
    kernels = refcomp.load_code_object(tmp_path / "twice.hsaco")
    made = module.imported_modules[0]
    assert kernels.kernel_names == ("twice_kernel0",) and kernels.target == "rocm -mcpu=gfx942"
    assert kernels.code == made.code
    for format in ("metadata", "asm"):
        assert kernels.get_source(format) == made.get_source(format)
    (told,) = json.loads(kernels.get_source("metadata"))["amdhsa.kernels"]
    assert told[".name"] == "twice_kernel0"
    with pytest.raises(UserError, match="cannot be called in the module of a device"):
        made["twice_kernel0"]
    with pytest.raises(UserError, match="the code object has no kernel 'twice'") as caught:
        kernels["twice"]
    assert caught.value.remedy == "it has: twice_kernel0"


@pytest.mark.rocm
def test_kernels_of_a_bare_code_object_run(tmp_path):
    """On the emulated GPU, by their metadata alone."""
    module = refcomp.build(*_doubled(), "rocm -mcpu=gfx942", name="twice")
    module.save(tmp_path / "twice.hsaco")
    twice = refcomp.load_code_object(tmp_path / "twice.hsaco")["twice_kernel0"]
    device, values = refcomp.rocm_emulator("gfx942"), np.arange(64, dtype=np.float32)
    a, b = refcomp.array(values, device), refcomp.array(np.zeros_like(values), device)
    assert "twice_kernel0 (B, A, n)" in module.get_source("launch")
    twice(b, a, np.int64(50), grid=50)
    np.testing.assert_array_equal(b.asnumpy(), np.where(values < 50, 2 * values, 0))


def test_what_is_no_code_object_is_not_loaded(tmp_path):
    for text, why in (("no machine code", "it begins with b'no m'"), ("", "it is empty")):
        (tmp_path / "text.hsaco").write_text(text)
        with pytest.raises(UserError, match=f"text.hsaco is not a code object\n  why: {why}"):
            refcomp.load_code_object(tmp_path / "text.hsaco")
    (tmp_path / "damaged.hsaco").write_text("\x7fELF no machine code")
    with pytest.raises(ToolchainError, match="the metadata of a code object cannot be read"):
        refcomp.load_code_object(tmp_path / "damaged.hsaco")
    with pytest.raises(UserError, match=r"missing.hsaco cannot be read\n  why: No such file"):
        refcomp.load_code_object(tmp_path / "missing.hsaco")
