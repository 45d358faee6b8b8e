"""Machine code becomes text once, by a fake tool, and by the real one."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.cache import default_cache
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.toolchain.compile import compile_source
from refcomp.toolchain.disassembly import disassemble
from refcomp.toolchain.host import host_triple_and_layout

_CODE = Binary(b"machine code", "o")


def _runs(fake_tools) -> list[str]:
    return [start.split()[0] for start in fake_tools.starts() if "--version" not in start]


def _add_objdump(fake_tools, version: str = "19.1.7") -> None:
    """Tools, one of which tells as much of any code as what the code says."""
    fake_tools.add_all(version=version)
    body = "sleep 0.1\nfor last; do :; done\ncat $last"
    fake_tools.add("llvm-objdump", version=version, body=body)


def test_what_was_disassembled_once_is_not_again(fake_tools, as_another_process) -> None:
    _add_objdump(fake_tools)
    assert disassemble(_CODE) == "machine code"
    starts = fake_tools.starts()
    assert _runs(fake_tools) == ["llvm-objdump"]
    as_another_process()
    assert disassemble(_CODE) == "machine code"
    assert fake_tools.starts() == starts
    disassemble(Binary(b"machine cod3", "o"))
    disassemble(Binary(b"machine code", "so"))
    assert _runs(fake_tools) == ["llvm-objdump"] * 3


def test_another_disassembler_is_asked_anew(fake_tools, as_another_process) -> None:
    _add_objdump(fake_tools)
    disassemble(_CODE)
    _add_objdump(fake_tools, version="20.1.0")
    as_another_process()
    disassemble(_CODE)
    assert _runs(fake_tools) == ["llvm-objdump"] * 2


def test_a_damaged_disassembly_is_made_again(fake_tools) -> None:
    _add_objdump(fake_tools)
    disassemble(_CODE)
    for damage in (lambda r: b"", lambda r: r[:-1], lambda r: r[:-9] + bytes(9), lambda r: b"!"):
        for path in default_cache().root.glob("entries/*/*"):
            path.write_bytes(damage(path.read_bytes()))
        assert disassemble(_CODE) == "machine code"
    assert _runs(fake_tools) == ["llvm-objdump"] * 5


def test_several_threads_disassemble_once(fake_tools) -> None:
    _add_objdump(fake_tools)
    with ThreadPoolExecutor(4) as pool:
        assert {*pool.map(disassemble, [_CODE] * 8)} == {"machine code"}
    assert _runs(fake_tools) == ["llvm-objdump"]


def _source() -> Source:
    triple, layout = host_triple_and_layout()
    header = f'target datalayout = "{layout}"\ntarget triple = "{triple}"\n'
    return Source(header + "define void @idle() {\n  ret void\n}\n", "llvm")


@pytest.mark.llvm
def test_disassembly(monkeypatch, tmp_path) -> None:
    for output in ("so", "o"):
        binary = compile_source(_source(), {}, output)
        text = disassemble(binary)
        assert "<idle>:" in text and "ret" in text
        with monkeypatch.context() as patch:
            patch.setenv("REFCOMP_KEEP", str(tmp_path / "kept"))
            assert disassemble(binary) == text
    assembly = compile_source(_source(), {}, "asm")
    assert disassemble(assembly) == assembly.data.decode()


@pytest.mark.llvm
def test_disassembly_of_rubbish() -> None:
    with pytest.raises(ToolchainError, match=r"llvm-objdump.* failed") as caught:
        disassemble(Binary(b"rubbish", "so"))
    assert caught.value.stderr
    with pytest.raises(UserError, match="format 'fatbin' cannot be disassembled"):
        disassemble(Binary(b"", "fatbin"))
