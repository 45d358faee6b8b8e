"""Code objects that no linker saw are refused with the command that links them."""

import subprocess

import pytest

import refcomp
from refcomp.emulator.code.code_object import read_code_object
from refcomp.foundation.errors import UserError
from refcomp.foundation.unlinked import refuse_unlinked

_KERNEL = """
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @nothing() { ret void }
"""
_LLVM = "/usr/lib/llvm-19/bin/"


def compile_unlinked(folder):
    """Compile a kernel as `llc -filetype=obj` does."""
    source, result = folder / "nothing.ll", folder / "nothing.o"
    source.write_text(_KERNEL)
    command = [f"{_LLVM}llc", "-mcpu=gfx942", "-filetype=obj", source, "-o", result]
    subprocess.run(command, check=True, timeout=60)
    return result


@pytest.mark.rocm
def test_a_relocatable_file_is_refused_until_it_is_linked(tmp_path):
    path = compile_unlinked(tmp_path)
    linked = tmp_path / "nothing.hsaco"
    with pytest.raises(
        UserError, match="nothing.o is relocatable: it was compiled, but not linked"
    ) as one:
        refcomp.load_code_object(path)
    assert one.value.remedy.endswith(f"ld.lld -shared {path} -o {linked}")
    with pytest.raises(UserError, match="the code object is relocatable") as other:
        read_code_object(path.read_bytes())
    assert other.value.remedy.endswith("ld.lld -shared kernels.o -o kernels.hsaco")
    words = one.value.remedy.partition(": ld.lld ")[2].split()
    subprocess.run([f"{_LLVM}ld.lld", *words], check=True, timeout=60)
    assert refcomp.load_code_object(linked)["nothing"].signature.name == "nothing"
    assert "nothing" in read_code_object(linked.read_bytes()).kernels


def test_other_files_are_none_of_its_business():
    relocatable, rest = b"\x7fELF\x02\x01" + bytes(10) + b"\x01\x00", bytes(44)
    refuse_unlinked(relocatable + b"\x3e\x00" + rest)  # for x86-64
    refuse_unlinked(relocatable[:17])
    refuse_unlinked(b"")
    with pytest.raises(UserError, match="a.o is relocatable"):
        refuse_unlinked(relocatable + b"\xe0\x00" + rest, "a.o")
