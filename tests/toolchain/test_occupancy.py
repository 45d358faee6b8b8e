"""The occupancy is the one that LLVM tells of the same kernels."""

import re

import pytest

from refcomp.codegen.amdgpu.module import print_amdgpu
from refcomp.foundation.amd_metadata import KernelMetadata
from refcomp.ir.parser import parse_func
from refcomp.toolchain import compile_source, device_layout, load_description, read_code_object
from refcomp.toolchain.find import find_tools
from refcomp.toolchain.occupancy import occupancy_of
from refcomp.toolchain.run import ToolRunner
from tests.codegen.amdgpu.kernels import use_llvm

# Values kept over a barrier, floats in shared memory, threads of a group.
_SHAPES = [(1, 0, 64), (40, 0, 64), (90, 0, 256), (150, 0, 64), (4, 1024, 64), (4, 7000, 256)]
_SHAPES += [(4, 3000, 64), (4, 16384, 1024), (70, 5000, 128), (1, 0, 128)]


def _kernel(values, shared, threads):
    loads = "".join(f"let v{k}: f32 = A@[t + {k * 64}] {{" for k in range(values))
    stores = "".join(f"B@[t + {k * 64}] = v{k} * v{(k + 1) % values} " for k in range(values))
    body = f"{loads} barrier {stores} {'}' * values}"
    if shared:
        body = f"alloc S: f32[{shared}] shared {{ S@[t] = 1.0f32 barrier B@[t] = S@[0] {body} }}"
    name = f"k{values}_{shared}_{threads}"
    return parse_func(f"""
    func {name}(A: f32[65536], B: f32[65536] out) {{
      for t in range({threads}) threadIdx.x {{ {body} }}
    }}
    """)


@pytest.mark.rocm
@pytest.mark.parametrize(
    ("gpu", "wavefront"),
    [
        *(("gfx900", 0), ("gfx90a", 0), ("gfx942", 0), ("gfx1010", 0), ("gfx1030", 64)),
        *(("gfx1100", 0), ("gfx1100", 64), ("gfx1102", 0), ("gfx1200", 0)),
    ],
)
def test_it_is_what_llvm_says(gpu, wavefront, monkeypatch, tmp_path):
    use_llvm("19", monkeypatch)
    kernels = [_kernel(*shape) for shape in _SHAPES]
    layout = device_layout("rocm")
    source = print_amdgpu(kernels, layout=layout, mcpu=gpu, code_object=4, wavefront=wavefront)
    code = compile_source(source, {"mcpu": gpu}, "hsaco", description="rocm")
    told = {kernel.name: kernel for kernel in read_code_object(code.data).kernels}
    expected = _told_by_llvm(source.text, gpu, tmp_path)
    assert {name: occupancy_of(kernel, gpu).waves for name, kernel in told.items()} == expected
    assert len(set(expected.values())) > 2


def _told_by_llvm(text, gpu, folder):
    (folder / "kernels.ll").write_text(text)
    tools = find_tools(load_description("rocm")).paths
    flags = [f"-mcpu={gpu}", "-disable-promote-alloca-to-vector", "-o", "-"]
    opt = [tools["opt"], "-S", "-passes=default<O3>", *flags, str(folder / "kernels.ll")]
    (folder / "best.ll").write_bytes(ToolRunner(60).run(opt).stdout)
    asm = ToolRunner(60).run([tools["llc"], "-O3", *flags, str(folder / "best.ll")]).stdout.decode()
    found, name = {}, ""
    for line in asm.splitlines():
        if match := re.match(r"(k\d+_\d+_\d+):", line):
            name = match[1]
        if match := re.search(r"; Occupancy: (\d+)", line):
            found[name] = int(match[1])
    return found


def _metadata(**more):
    given = {"vgprs": 8, "sgprs": 10, "shared_bytes": 0, "max_threads": 256} | more
    wavefront = given.pop("wavefront_size", 64)
    return KernelMetadata(
        name="f",
        symbol="f.kd",
        arguments=(),
        kernarg_bytes=0,
        kernarg_alignment=8,
        private_bytes=0,
        block=(),
        spilled_vgprs=0,
        spilled_sgprs=0,
        wavefront_size=wavefront,
        **given,
    )


@pytest.mark.parametrize(
    ("gpu", "more", "waves", "limit"),
    [
        ("gfx90a", {}, 8, "the GPU"),
        ("gfx906", {"vgprs": 129}, 1, "vector registers"),
        ("gfx906", {"sgprs": 102}, 7, "scalar registers"),
        ("gfx942", {"shared_bytes": 32768}, 2, "shared memory"),
        ("gfx950", {"shared_bytes": 32768}, 5, "shared memory"),
        ("gfx90a", {"vgprs": 512}, 1, "vector registers"),
        ("gfx906", {"max_threads": 128}, 8, "barriers"),
        ("gfx906", {"max_threads": 64}, 10, "the GPU"),
    ],
)
def test_what_allows_no_more_is_told(gpu, more, waves, limit):
    occupancy = occupancy_of(_metadata(**more), gpu)
    assert (occupancy.waves, occupancy.limit) == (waves, limit)


def test_older_gpus_are_not_known():
    assert occupancy_of(_metadata(), "gfx803") is None
