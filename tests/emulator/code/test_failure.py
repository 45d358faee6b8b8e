"""The error of a launch with findings has the text of all of them."""

from dataclasses import dataclass

from refcomp.emulator.code.failure import KernelFailure


@dataclass(frozen=True)
class _Reported:
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}: at line 3"


def test_failure_tells_all_findings():
    race, wait = _Reported("race"), _Reported("wait")
    failure = KernelFailure("scale", [race, wait])
    assert "the emulator found errors in the kernel scale (2 findings)" in str(failure)
    assert failure.why == "race: at line 3\n    wait: at line 3"
    assert failure.findings == (race, wait)
    assert "(1 finding)" in str(KernelFailure("scale", [race]))
