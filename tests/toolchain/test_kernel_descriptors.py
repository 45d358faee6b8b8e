"""Code objects by other eyes: pyelftools reads the descriptors that hardware starts from, LLVM's
own readelf the notes; both agree with what our reader says and with what the launcher packs."""

import io
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from refcomp.ir.parser import parse_func
from refcomp.runtime.device import DeviceMemory
from refcomp.runtime.hip.kernels import pack_arguments
from refcomp.runtime.launch import kernel_signature
from refcomp.toolchain import load_description, read_code_object
from refcomp.toolchain.find import find_tools
from refcomp.toolchain.run import ToolRunner
from tests.codegen.amdgpu.kernels import TOOLS_AND_GPUS, compile_kernels, use_llvm
from tests.codegen.device_kernels import TEXTS, device_kernel

pytestmark = pytest.mark.rocm
_GRANULE = 8  # registers of a lane, of all of these GPUs


def _descriptors(data: bytes) -> dict[str, bytes]:
    """The 64 bytes of each kernel's descriptor, found by its symbol."""
    elf = ELFFile(io.BytesIO(data))
    found = {}
    for symbol in elf.get_section_by_name(".dynsym").iter_symbols():
        if symbol.name.endswith(".kd"):
            section = elf.get_section(symbol["st_shndx"])
            at = symbol["st_value"] - section["sh_addr"]
            found[symbol.name.removesuffix(".kd")] = section.data()[at : at + 64]
    return found


@pytest.mark.parametrize(("llvm", "gpu"), TOOLS_AND_GPUS)
def test_descriptors_agree_with_the_metadata(llvm, gpu, monkeypatch):
    use_llvm(llvm, monkeypatch)
    data = compile_kernels([device_kernel(name) for name in TEXTS], gpu).data
    told = {kernel.name: kernel for kernel in read_code_object(data).kernels}
    descriptors = _descriptors(data)
    assert set(descriptors) == set(told) == set(TEXTS)
    for name, descriptor in descriptors.items():
        shared, private, kernarg = struct.unpack_from("<III", descriptor)
        assert shared == told[name].shared_bytes
        assert private == told[name].private_bytes
        assert kernarg == told[name].kernarg_bytes
        registers = struct.unpack_from("<I", descriptor, 48)[0]
        granted = ((registers & 63) + 1) * _GRANULE
        assert granted - _GRANULE < told[name].vgprs <= granted


_MIXED = """
func mixed(a: i8, A: f32[4], b: f16, c: f32, d: bool, e: i64, B: f32[4] out, f: u16) {
  for t in range(4) threadIdx.x {
    if (d) { B@[t] = A@[t] + f32(a) + f32(b) + c + f32(e) + f32(f) }
  }
}
"""


@pytest.mark.parametrize(("llvm", "gpu"), TOOLS_AND_GPUS)
def test_arguments_lie_where_the_launcher_puts_them(llvm, gpu, monkeypatch, tmp_path: Path):
    use_llvm(llvm, monkeypatch)
    kernel = parse_func(_MIXED)
    data = compile_kernels([kernel], gpu).data
    signature = kernel_signature(kernel)
    values = [np.int8(-3), DeviceMemory(0x1122334455667788, 16), np.float16(1.5), np.float32(2.5)]
    values += [np.bool_(True), np.int64(-4), DeviceMemory(0x8877665544332211, 16), np.uint16(77)]
    packed = pack_arguments(signature, values)
    arguments = _arguments_by_readelf(data, tmp_path)
    assert [size for _, size in arguments] == [1, 8, 2, 4, 1, 8, 8, 2]
    for (offset, size), value, param in zip(arguments, values, signature.params, strict=True):
        raw = packed[offset : offset + size]
        expected = value.address.to_bytes(8, "little") if param is None else value.tobytes()
        assert raw == expected
    assert len(packed) == arguments[-1][0] + arguments[-1][1]


def _arguments_by_readelf(data: bytes, folder: Path) -> list[tuple[int, int]]:
    """Offset and size of each argument, as LLVM prints them."""
    (folder / "code.hsaco").write_bytes(data)
    tools = Path(find_tools(load_description("rocm")).paths["llc"]).parent
    command = [f"{tools}/llvm-readelf", "--notes", str(folder / "code.hsaco")]
    text = ToolRunner(60).run(command).stdout.decode()
    offsets, sizes = (
        [int(number) for number in re.findall(rf"\.{key}:\s+(\d+)", text)]
        for key in ("offset", "size")
    )
    return list(zip(offsets, sizes, strict=True))
