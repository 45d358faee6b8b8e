"""OpenCL C as a back end: the text is the code."""

from refcomp.driver.backends import as_target
from refcomp.driver.backends.opencl import OPENCL
from refcomp.driver.compile import compile_functions
from refcomp.foundation.artifacts import Source
from tests.driver.backends.kernels import fills


def test_kernels_are_printed_for_the_extensions_of_the_device():
    compiled = compile_functions([fills("float64")], "opencl")
    assert isinstance(compiled.code.code, Source) and compiled.code.disassemble is None
    assert "cl_khr_fp64" in compiled.code.sources["opencl"]


def test_limits_are_those_that_every_device_has():
    assert OPENCL.has_kernels and OPENCL.limits.threads == 256


def test_the_text_that_is_shown_is_the_code():
    compiled = compile_functions([fills("float64")], "opencl")
    shown = OPENCL.texts(compiled.made, as_target("opencl"))
    assert {name: text() for name, text in shown.items()} == compiled.code.sources
