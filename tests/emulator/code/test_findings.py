"""Findings are counted by instruction, and told in full."""

from refcomp.emulator.code.findings import OUT_OF_BOUNDS, UNDEFINED, Finding, Findings
from tests.emulator.snippets import assembly


def _finding(number, kind=OUT_OF_BOUNDS, times=2):
    code = assembly("f:", *["s_nop 0"] * 40)
    one = code.instruction(number)
    return Finding(kind, "4 bytes behind A", one, "f+0x4", "k", (1, 0, 0), (2, 3, 0), times)


def test_the_first_of_an_instruction_is_kept_and_all_are_counted():
    findings = Findings()
    for one in (_finding(1), _finding(1, times=3), _finding(2), _finding(1, UNDEFINED)):
        findings.add(one)
    assert [(f.instruction.number, f.kind, f.times) for f in findings.all()] == [
        (1, OUT_OF_BOUNDS, 5),
        (2, OUT_OF_BOUNDS, 2),
        (1, UNDEFINED, 2),
    ]


def test_there_is_an_end_to_them():
    findings = Findings()
    for number in range(40):
        findings.add(_finding(number))
    assert len(findings.all()) == 20


def test_the_text_names_all_places():
    assert str(_finding(1)) == (
        "out of bounds: 4 bytes behind A (2 times)\n"
        "    by s_nop 0  (00000000 at 0x4)\n"
        "    in f+0x4; kernel k, group (1, 0, 0), work item (2, 3, 0): lane 0 of wave 0"
    )
