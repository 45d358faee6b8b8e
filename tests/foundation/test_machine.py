"""What is read of the processor, and what of its flags is left out."""

from pathlib import Path

import pytest

from refcomp.foundation import machine

_INTEL = """\
processor\t: 0
model name\t: Some CPU @ 2.00GHz
flags\t\t: fpu nopl hypervisor sse2 sse4_1 ssse3 avx512f avx2 fma bmi1 sha_ni tsc_adjust amx_tile

processor\t: 1
model name\t: Another
flags\t\t: avx10
"""
_ARM = "processor\t: 0\nFeatures\t: fp asimd sve2\n"


@pytest.fixture
def fake_cpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def fake(text: str | None, kind: str) -> None:
        path = tmp_path / "cpuinfo"
        if text is not None:
            path.write_text(text)
        monkeypatch.setattr(machine, "_CPUINFO", path)
        monkeypatch.setattr(machine.platform, "machine", lambda: kind)
        forget()

    def forget() -> None:
        for remembered in (
            machine.cpu_features,
            machine.cpu_flags,
            machine.cpu_name,
            machine._first_block,
        ):
            remembered.cache_clear()

    yield fake
    forget()


def test_x86_keeps_instruction_sets_only(fake_cpu) -> None:
    fake_cpu(_INTEL, "x86_64")
    expected = {"sse2", "sse4_1", "ssse3", "avx512f", "avx2", "fma", "bmi1", "sha_ni", "amx_tile"}
    assert machine.cpu_features() == expected
    assert machine.cpu_flags() == expected | {"fpu", "nopl", "hypervisor", "tsc_adjust"}
    assert machine.cpu_name() == "Some CPU @ 2.00GHz"


def test_other_processors_keep_all_features(fake_cpu) -> None:
    fake_cpu(_ARM, "aarch64")
    assert machine.cpu_features() == machine.cpu_flags() == {"fp", "asimd", "sve2"}
    assert machine.cpu_name() == "aarch64"


def test_without_cpuinfo_nothing_is_known(fake_cpu) -> None:
    fake_cpu(None, "riscv64")
    assert machine.cpu_features() == frozenset()
    assert machine.cpu_name() == "riscv64" == machine.machine()


def _identity(fake_cpu, text: str | None) -> str:
    fake_cpu(text, "x86_64")
    return machine.cpu_identity.__wrapped__()


def test_the_identity_depends_on_features_not_on_frequency(fake_cpu) -> None:
    first = "model name\t: Z\nflags\t\t: a b\ncpu MHz\t\t: 1000\n\nprocessor\t: 1\nflags\t\t: a\n"
    base = _identity(fake_cpu, first)
    assert _identity(fake_cpu, first.replace("1000", "2000")) == base
    assert _identity(fake_cpu, first.replace("a b", "a c")) != base
    assert _identity(fake_cpu, first.replace(": Z", ": Y")) != base


def test_the_identity_without_cpuinfo(fake_cpu) -> None:
    assert _identity(fake_cpu, None).startswith("x86_64")
