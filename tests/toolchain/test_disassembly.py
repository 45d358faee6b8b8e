"""Machine code becomes text once, by a fake tool, and by the real one."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.cache import default_cache
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.toolchain.compile import compile_source
from refcomp.toolchain.disassembly import disassemble, without_padding
from refcomp.toolchain.host import host_triple_and_layout
from tests.emulator.kernels import compiled_code

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
    with pytest.raises(UserError, match="format 'zip' cannot be disassembled"):
        disassemble(Binary(b"", "zip"))


def _printed(*lines):
    """Lines as llvm-objdump prints them: instructions but for comments, symbols and blanks."""
    text = ""
    for line in lines:
        if line[:1] in ("", ";", "<", "."):
            text += f"{0:016x} {line}\n" if line.startswith("<") else f"{line}\n"
        else:
            text += f"\t{line:58} // {0:012X}: BF800000\n"
    return text


def test_padding_behind_each_function_is_left_out():
    first = ("<a>:", "; k.ir:1", "s_nop 0", "v_mov_b32_e32 v0, 0", "s_endpgm")
    second = ("", "<b>:", "s_setpc_b64 s[30:31]")
    third = ("", "<c>:", "s_endpgm")
    padded = _printed(*first, "s_nop 0", "s_nop 0", *second, "s_code_end", *third, "s_code_end")
    assert without_padding(padded) == _printed(*first, *second, *third)


def test_what_a_branch_may_lead_to_stays():
    text = _printed(
        *("<a>:", "s_cbranch_scc0 2", "s_branch 5", "s_nop 1", "; k.ir:4", "s_nop 0"),
        *("v_mov_b32_e32 v0, 0", "s_endpgm"),
    )
    assert without_padding(text) == text


def test_zeros_are_padding_and_other_text_is_not():
    text = _printed("<a>:", "s_endpgm")
    assert without_padding(text + "\t\t...\n\t.long 0x00000000\n") == text
    other = "f:\n\tret\n\tnop\n"
    assert without_padding(other) == other


@pytest.mark.rocm
@pytest.mark.parametrize("gpu", ["gfx942", "gfx90a", "gfx1100"])
def test_compiled_kernels_end_with_their_last_instructions(gpu):
    text = disassemble(Binary(compiled_code("vector_add", "matmul", gpu=gpu), "hsaco"))
    plain = without_padding(text)
    assert text.count("s_code_end") + text.count("s_nop") > 60
    assert plain.rstrip().splitlines()[-1].startswith("\ts_endpgm")
    assert "s_code_end" not in plain and plain.count("s_endpgm") == text.count("s_endpgm")
    functions = [part for part in plain.split("\n\n") if "s_endpgm" in part]
    assert len(functions) == 2
    assert all(part.rstrip().splitlines()[-1].startswith("\ts_endpgm") for part in functions)


_CUDA = Source('extern "C" __global__ void k(float* a) { a[threadIdx.x] = 1.0f; }\n', "cuda")


@pytest.mark.nvcc
@pytest.mark.nvrtc
def test_code_for_nvidia_gpus_becomes_sass() -> None:
    cubin = compile_source(_CUDA, {"arch": "sm_80"}, "cubin", description="cuda")
    text = disassemble(cubin)
    assert ".text.k:" in text and "STG.E" in text and "EXIT" in text
    options = {"arch": "sm_80", "capabilities": "80,90"}
    fatbin = compile_source(_CUDA, options, "fatbin", description="cuda")
    text = disassemble(fatbin)
    assert "code for sm_80" in text and "code for sm_90" in text
    ptx = compile_source(_CUDA, {"arch": "sm_80"}, "ptx", description="cuda")
    assert disassemble(ptx) == ptx.data.decode()


@pytest.mark.nvrtc
@pytest.mark.parametrize(("kind", "tool"), [("cubin", "nvdisasm"), ("fatbin", "cuobjdump")])
def test_damaged_code_for_nvidia_gpus_is_refused(kind: str, tool: str) -> None:
    for data in (b"", b"rubbish", b"\x7fELF" + bytes(60), b"\x50\xed\x55\xba" + bytes(60)):
        with pytest.raises(ToolchainError, match=f"{tool} failed"):
            disassemble(Binary(data, kind))


def test_a_missing_disassembler_names_its_wheel(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("REFCOMP_NVDISASM", str(tmp_path / "gone"))
    with pytest.raises(ToolchainError, match="no usable nvdisasm for the sass") as caught:
        disassemble(Binary(b"", "cubin"))
    assert "pip install nvidia-cuda-nvdisasm nvidia-cuda-cuobjdump" in str(caught.value)
    assert f"REFCOMP_NVDISASM={tmp_path}/gone" in str(caught.value)
