"""Recorded reports of ptxas are read; damaged ones are refused, or read without a crash."""

import random
from dataclasses import astuple, replace
from pathlib import Path

import pytest

from refcomp.foundation.errors import ToolchainError
from refcomp.toolchain.ptxas_report import PtxasRecord, read_ptxas_report

_REPORTS = Path(__file__).parent / "reports"
_PLAIN = PtxasRecord("plain", "sm_80", 10, 1, 0, 0, 0, 0, 360)
_INDEXES = PtxasRecord("indexes", "sm_80", 32, 1, 400, 0, 0, 400, 372)
_SPILLS = PtxasRecord("spills", "sm_80", 32, 0, 968, 2436, 2328, 0, 376)


def _recorded(name: str) -> str:
    return (_REPORTS / f"{name}.txt").read_text()


def test_a_fatbin_has_a_record_for_each_architecture() -> None:
    found = read_ptxas_report(_recorded("nvcc_13.0"))
    assert found[:3] == (_PLAIN, _INDEXES, _SPILLS)
    assert [astuple(one)[:3] for one in found[3:]] == [
        (name, "sm_90", registers)
        for name, registers in (("plain", 10), ("indexes", 32), ("spills", 32))
    ]
    # ptxas lists no constant bank 0 for this architecture.
    assert found[4] == replace(_INDEXES, arch="sm_90", constant_bytes=0)


def test_nvrtc_reports_the_same_as_nvcc() -> None:
    assert read_ptxas_report(_recorded("nvrtc_13.5")) == (_PLAIN, _INDEXES, _SPILLS)


def test_functions_that_are_not_inlined_count() -> None:
    calls, trig = read_ptxas_report(_recorded("nvcc_13.5"))
    assert (calls.kernel, calls.stack_bytes) == ("calls", 200)
    assert (trig.registers, trig.constant_bytes) == (34, 368 + 192)


def test_other_lines_are_passed_over() -> None:
    warning = "kernel.cu(3): warning #1234: something\nptxas warning : Registers are spilled\n"
    assert read_ptxas_report(warning + _recorded("nvrtc_13.5")) == (_PLAIN, _INDEXES, _SPILLS)
    assert read_ptxas_report(warning) == ()


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("'plain' for", "plain for", 'a line is not understood: "Compiling entry function plain'),
        ("'indexes'", "'plain'", "plain is listed twice for sm_80"),
        ("Used 10 registers", "Used ten registers", "the figures of plain for sm_80 are not compl"),
        ("Used 10", "Used 99999999999999", "the figures of plain for sm_80 are not complete"),
        ("0 bytes spill loads", "no spills", "the figures of plain for sm_80 are not complete"),
        ("used 1 barriers", "used -1 barriers", "a figure is not understood: 'used -1 barriers'"),
        ("400 bytes smem", "400 bytes of fog", "a figure is not understood: '400 bytes of fog'"),
    ],
)
def test_a_damaged_report_is_refused(old: str, new: str, why: str) -> None:
    text = _recorded("nvrtc_13.5")
    assert old in text
    with pytest.raises(ToolchainError, match="^the report of ptxas cannot be read") as caught:
        read_ptxas_report(text.replace(old, new, 1))
    assert why in str(caught.value)
    assert "use a version of CUDA" in str(caught.value)


def test_any_damage_is_refused_or_read() -> None:
    text = _recorded("nvcc_13.0")
    draw = random.Random(16)
    refused = 0
    for _ in range(400):
        begin = draw.randrange(len(text))
        end = min(len(text), begin + draw.randrange(1, 40))
        middle = "".join(draw.choices("0123456789 ,'\n", k=draw.randrange(20)))
        try:
            read_ptxas_report(text[:begin] + middle + text[end:])
        except ToolchainError:
            refused += 1
    assert refused > 100
