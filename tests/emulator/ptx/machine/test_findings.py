"""Findings, and their text."""

from dataclasses import replace

from refcomp.emulator.ptx.machine.findings import PtxFinding, PtxFindings
from refcomp.emulator.ptx.text.module import Location, PtxInstruction

_INSTRUCTION = PtxInstruction(
    3, 17, "st", ("global", "u32"), (), "st.global.u32 [%rd1], 5", location=Location("a.cu", 4)
)
_FINDING = PtxFinding("race", "writes", _INSTRUCTION, "f", "k", (1, 0, 0), (5, 0, 0), 2)


def test_a_finding_says_where_it_is():
    assert str(_FINDING) == (
        "race: writes (2 times)\n"
        "    by st.global.u32 [%rd1], 5\n"
        "    in line 17 of the PTX, function f, made of a.cu:4; kernel k, "
        "block (1, 0, 0), thread (5, 0, 0)"
    )


def test_findings_of_one_instruction_and_kind_are_counted():
    findings = PtxFindings()
    other = replace(_FINDING, kind="undefined")
    for one in (_FINDING, other, replace(_FINDING, what="again")):
        findings.add(one)
    assert [(one.kind, one.what, one.times) for one in findings.all()] == [
        ("race", "writes", 4),
        ("undefined", "writes", 2),
    ]


def test_only_the_first_findings_are_kept():
    findings = PtxFindings()
    for number in range(50):
        findings.add(replace(_FINDING, instruction=replace(_INSTRUCTION, number=number)))
    assert len(findings.all()) == 20
