"""The vector registers by which host schedules choose tiles: of this host, of levels, of names."""

import pytest

from refcomp.foundation import machine, triples
from refcomp.foundation.errors import UserError
from refcomp.topi.schedules import vector_registers as module
from refcomp.topi.schedules.vector_registers import (
    AVX2,
    AVX512,
    NEON,
    SHORT,
    SSE,
    has_fma,
    vector_registers,
)


@pytest.mark.parametrize(
    ("kind", "features", "expected"),
    [
        ("x86_64", {"sse2", "avx2", "avx512f"}, AVX512),
        ("x86_64", {"sse2", "avx", "avx2"}, AVX2),
        ("x86_64", {"sse2", "avx"}, SSE),
        ("aarch64", {"asimd"}, NEON),
    ],
)
def test_this_host_has_the_registers_of_its_instruction_sets(monkeypatch, kind, features, expected):
    monkeypatch.setattr(module, "machine", lambda: kind)
    monkeypatch.setattr(module, "cpu_features", lambda: frozenset(features))
    assert vector_registers() == vector_registers("llvm -mcpu=native") == expected
    assert vector_registers("interp") == expected


def test_a_level_is_known_without_tools():
    found = [vector_registers(f"llvm -mcpu=x86-64{level}") for level in ("", "-v2", "-v3", "-v4")]
    assert found == [SSE, SSE, AVX2, AVX512]


def test_a_register_holds_at_least_one_element():
    assert [AVX2.lanes(size) for size in (1, 4, 8, 64)] == [32, 8, 4, 1]


@pytest.mark.llvm
@pytest.mark.parametrize(("mcpu", "expected"), [("znver3", AVX2), ("znver4", AVX512)])
def test_llvm_knows_the_processors_that_have_names(mcpu, expected):
    assert vector_registers(f"llvm -mcpu={mcpu}") == expected


@pytest.mark.llvm
def test_an_unknown_processor_is_refused():
    with pytest.raises(UserError, match="mcpu 'znver99' is unknown"):
        vector_registers("llvm -mcpu=znver99")


@pytest.mark.parametrize(("kind", "features"), [("x86_64", {"fma", "avx"}), ("aarch64", {"asimd"})])
def test_this_host_has_a_multiply_add(monkeypatch, kind, features):
    monkeypatch.setattr(module, "machine", lambda: kind)
    monkeypatch.setattr(module, "cpu_features", lambda: frozenset(features))
    assert has_fma() and has_fma("llvm -mcpu=native")


def test_a_level_has_a_multiply_add_or_not():
    found = [has_fma(f"llvm -mcpu=x86-64{level}") for level in ("", "-v2", "-v3", "-v4")]
    assert found == [False, False, True, True]


def test_other_targets_have_a_multiply_add():
    assert has_fma("opencl") and has_fma("interp")


@pytest.mark.llvm
@pytest.mark.parametrize(
    ("mcpu", "expected"), [("znver4", True), ("bdver1", True), ("sandybridge", False)]
)
def test_llvm_knows_which_processors_have_a_multiply_add(mcpu, expected):
    if machine.machine() != "x86_64":
        pytest.skip("llc names processors of its own kind")
    assert has_fma(f"llvm -mcpu={mcpu}") == expected


@pytest.fixture
def on_power(monkeypatch):
    monkeypatch.setattr(triples, "machine", lambda: "ppc64le")


@pytest.mark.usefixtures("on_power")
@pytest.mark.parametrize(
    ("triple", "expected"),
    [
        ("aarch64-linux-gnu -mcpu=cortex-a72", NEON),
        ("armv7l-linux-gnueabihf -mattr=+neon", SHORT),
        ("riscv64-linux-gnu", SHORT),
        ("x86_64-linux-gnu -mcpu=x86-64-v3", AVX2),
    ],
)
def test_another_machine_has_its_own_registers(triple, expected):
    assert vector_registers(f"llvm -mtriple={triple}") == expected


@pytest.mark.llvm
@pytest.mark.usefixtures("on_power")
@pytest.mark.parametrize(
    ("triple", "has_one"),
    [
        ("aarch64-linux-gnu", True),
        ("riscv64-linux-gnu", True),
        ("armv7-linux-gnueabihf", False),
        ("armv7-linux-gnueabihf -mcpu=cortex-a15", True),
        ("x86_64-linux-gnu", False),
        ("x86_64-linux-gnu -mcpu=haswell", True),
    ],
)
def test_llvm_knows_the_multiply_add_of_another_machine(triple, has_one):
    assert has_fma(f"llvm -mtriple={triple}") == has_one


@pytest.mark.llvm
@pytest.mark.usefixtures("on_power")
def test_llvm_knows_the_registers_of_another_x86():
    assert vector_registers("llvm -mtriple=x86_64-linux-gnu") == SSE
    assert vector_registers("llvm -mtriple=x86_64-linux-gnu -mcpu=znver4") == AVX512
