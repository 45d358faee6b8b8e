"""Facts about processors come from llc, are remembered, and unknown processors are refused."""

import shutil

import pytest

from refcomp.foundation import triples
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.foundation.machine import cpu_identity
from refcomp.foundation.target import as_target
from refcomp.toolchain import host
from refcomp.toolchain.description import load_description
from refcomp.toolchain.host import (
    check_option,
    host_facts,
    host_part,
    host_triple_and_layout,
    known_values,
    llvm_options,
    vector_bits,
)

LLVM = load_description("llvm")
_ANSWER = """\
  target datalayout = "e-m:e-n8"
  attributes #0 = { "target-cpu"="z9" "target-features"="+a" }
    %1:vr256 = VADDPSYrr %0, %0
    %2:vr256 = VPADDDYrr %0, %0
    %3:vr128 = VPADDWrr %0, %0"""


def _add_llc(fake_tools, answer: str = _ANSWER) -> None:
    fake_tools.add_all()
    body = f"""
case "$*" in
  *mcpu=help*) echo "  z1   - Select the z1 processor."; echo "  +a   - Enable a.";;
  *) cat << 'END'
{answer}
END
esac"""
    fake_tools.add("llc", version="19.1.7\n  Default target: z-linux", body=body)


def test_the_answer_of_llc_is_read(fake_tools) -> None:
    _add_llc(fake_tools)
    facts = host_facts("native")
    assert (facts.triple, facts.layout, facts.cpu) == ("z-linux", "e-m:e-n8", "z9")
    assert facts.vector_bits == vector_bits("native") == 256
    assert facts.has_fma
    assert facts.word_bits == 128
    assert host_triple_and_layout() == ("z-linux", "e-m:e-n8")


def test_a_processor_that_adds_no_integers_in_wide_registers_has_128_bits(fake_tools) -> None:
    _add_llc(fake_tools, _ANSWER.replace("VPADDDYrr", "VPADDDrr"))
    assert vector_bits("native") == 128


def test_a_processor_that_calls_fmaf_has_no_multiply_add(fake_tools) -> None:
    _add_llc(fake_tools, f"{_ANSWER}\n    CALL64pcrel32 &fmaf, csr_64")
    assert not host_facts("native").has_fma


def test_llc_is_asked_once(fake_tools, as_another_process) -> None:
    _add_llc(fake_tools)
    host_facts("native")
    starts = fake_tools.starts()
    as_another_process()
    assert vector_bits("native") == 256
    assert host_triple_and_layout()[0] == "z-linux"
    assert fake_tools.starts() == starts


def test_what_is_remembered_serves_without_tools(fake_tools, as_another_process) -> None:
    _add_llc(fake_tools)
    host_facts("native")
    shutil.rmtree(fake_tools.bin)
    as_another_process()
    assert vector_bits("native") == 256
    with pytest.raises(ToolchainError, match="no usable llc"):
        vector_bits("z1")


def test_another_processor_is_asked_for_again(fake_tools, monkeypatch: pytest.MonkeyPatch) -> None:
    _add_llc(fake_tools)
    host_facts("native")
    starts = len(fake_tools.starts())
    monkeypatch.setattr(host, "cpu_identity", lambda: "another machine")
    host_facts("native")
    assert len(fake_tools.starts()) == starts + 1


def test_an_answer_that_makes_no_sense(fake_tools) -> None:
    _add_llc(fake_tools, "nothing to see here")
    with pytest.raises(ToolchainError, match="llc's answer holds no 'target datalayout") as caught:
        host_facts("native")
    assert "nothing to see here" in str(caught.value)


def test_an_unknown_processor_is_refused_with_the_known_ones(fake_tools) -> None:
    _add_llc(fake_tools)
    with pytest.raises(UserError, match="mcpu 'banana' is unknown to the llvm toolchain") as caught:
        vector_bits("banana")
    assert "llc knows: z1\n" in str(caught.value)
    assert "use one of them, or native for this host" in str(caught.value)
    assert vector_bits("z1") == 256
    listings = [start for start in fake_tools.starts() if "mcpu=help" in start]
    assert listings == ["llc -mtriple=z-linux -mcpu=help"]


def test_an_option_can_be_checked_alone(fake_tools) -> None:
    _add_llc(fake_tools)
    check_option("llvm", "mcpu", "z1")
    with pytest.raises(UserError, match="mcpu 'banana' is unknown to the llvm toolchain"):
        check_option("llvm", "mcpu", "banana")


def test_the_values_of_an_option_are_listed_once(fake_tools) -> None:
    _add_llc(fake_tools)
    assert known_values("llvm", "mcpu") == known_values("llvm", "mcpu") == ["z1"]
    assert len([start for start in fake_tools.starts() if "mcpu=help" in start]) == 1


def test_only_native_depends_on_this_machine() -> None:
    assert host_part(LLVM, {"mcpu": "native", "mattr": ""}) == cpu_identity()
    assert host_part(LLVM, {"mcpu": "haswell", "mattr": ""}) == ""


@pytest.mark.llvm
def test_the_real_llc() -> None:
    triple, layout = host_triple_and_layout()
    assert "linux" in triple
    assert layout.startswith("e-")
    assert vector_bits("native") in (128, 256, 512)


@pytest.mark.llvm
@pytest.mark.parametrize(
    ("mcpu", "bits", "word_bits"),
    [
        ("nehalem", 128, 128),
        ("sandybridge", 128, 128),
        ("haswell", 256, 256),
        ("knl", 512, 256),
        ("skx", 512, 512),
    ],
)
def test_the_real_llc_about_known_processors(mcpu: str, bits: int, word_bits: int) -> None:
    if not host_triple_and_layout()[0].startswith("x86_64"):
        with pytest.raises(UserError, match="is unknown"):
            vector_bits(mcpu)
    else:
        assert vector_bits(mcpu) == bits
        assert host_facts(mcpu).word_bits == word_bits


@pytest.mark.llvm
def test_the_real_llc_refuses_an_unknown_processor() -> None:
    with pytest.raises(UserError, match="mcpu 'banana' is unknown") as caught:
        vector_bits("banana")
    assert "knows: " in str(caught.value) and "-mcpu=help" in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.llvm
def test_the_real_llc_about_another_machine() -> None:
    facts = host_facts("cortex-a72", "aarch64-linux-gnu")
    assert (facts.triple, facts.cpu) == ("aarch64-linux-gnu", "cortex-a72")
    assert (facts.vector_bits, facts.has_fma) == (128, True)
    assert "p:32:" in host_facts("generic", "armv7-linux-gnueabihf").layout
    assert not host_facts("generic", "riscv64-linux-gnu").has_fma
    assert host_facts("generic", "riscv64-linux-gnu", "+f").has_fma
    with pytest.raises(UserError, match="mcpu 'znver3' is unknown") as caught:
        host_facts("znver3", "aarch64-linux-gnu")
    assert "-mtriple=aarch64-linux-gnu -mcpu=help" in str(caught.value)
    assert "native" not in str(caught.value)


def test_options_of_a_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triples, "machine", lambda: "x86_64")
    options = {
        "llvm -mtriple=x86_64-linux-gnu -passes=sroa": {"passes": "sroa"},
        "llvm -system-lib": {},
        "llvm -mtriple=riscv64-linux-gnu": {
            "mtriple": "riscv64-linux-gnu",
            "mcpu": "generic",
            "mattr": "+m,+a,+f,+d,+c",
        },
        "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72 -mattr=+crc": {
            "mtriple": "aarch64-linux-gnu",
            "mcpu": "cortex-a72",
            "mattr": "+crc",
        },
    }
    assert {text: llvm_options(as_target(text)) for text in options} == options
