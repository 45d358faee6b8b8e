"""Kernels as functions of C: their parameters, the size of their group, and their names."""

import pytest

from refcomp.codegen.c_family.function import CModule
from refcomp.codegen.c_family.kernels import print_kernels
from refcomp.codegen.spelling import load_spelling
from refcomp.foundation.errors import UserError
from refcomp.ir.parser import parse_func

LANGUAGES = {"opencl": frozenset({"cl_khr_fp64"}), "cuda": frozenset({"all"})}


def _print(language, *texts):
    module = CModule(load_spelling("c_family", language), LANGUAGES[language])
    print_kernels(module, [parse_func(text) for text in texts], language)
    return "".join(chunk.text for chunk in module.functions)


@pytest.mark.parametrize("language", LANGUAGES)
def test_bools_are_passed_as_bytes(language):
    text = _print(language, "func f(A: i64[1] out, flag: bool) { A@[0] = i64(flag) }")
    assert "flag_passed" in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_only_buffers_that_are_written_are_not_constant(language):
    text = _print(language, "func f(A: i64[1], B: i64[1] out) { B@[0] = A@[0] }")
    assert text.count("const long*") + text.count("const long long*") == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_extents_of_a_group_are_stated_only_if_they_are_constants(language):
    kernel = """func f(A: i64[64] out, n: i64) {
      for b in range(2) blockIdx.x { for t in range(EXTENT) threadIdx.x { A@[t] = b } }
    }"""
    stated = {"opencl": "reqd_work_group_size(32, 1, 1)", "cuda": "__launch_bounds__(32)"}
    assert stated[language] in _print(language, kernel.replace("EXTENT", "32"))
    constant = _print(language, kernel.replace("EXTENT", "n"))
    assert "reqd_work_group_size" not in constant and "__launch_bounds__" not in constant


@pytest.mark.parametrize("language", LANGUAGES)
def test_two_kernels_of_one_name_are_refused(language):
    text = "func f(A: i64[1] out) { A@[0] = 1 }"
    with pytest.raises(UserError, match="two kernels named 'f' cannot stand in one file"):
        _print(language, text, text)
