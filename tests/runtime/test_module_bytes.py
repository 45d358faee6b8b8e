"""Modules as bytes: what is read back behaves like what was written."""

import json
import random

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import RefcompError, UserError
from refcomp.runtime.files.bundle import join_members, split_members
from refcomp.runtime.module_bytes import module_from_bytes, module_to_bytes
from refcomp.toolchain import disassemble


def _schedule(bound=False):
    n = refcomp.var("n")
    a = refcomp.placeholder((n,), name="A")
    b = refcomp.compute((n,), lambda i: a[i] + 1.0, name="B")
    s = refcomp.create_schedule(b)
    if bound:
        outer, inner = s[b].split(b.op.axis[0], factor=32)
        s[b].bind(outer, refcomp.thread_axis("blockIdx.x"))
        s[b].bind(inner, refcomp.thread_axis("threadIdx.x"))
    return s, [a, b]


def _texts(module):
    parts = [module, *module.imported_modules]
    return [(part._sources._texts, part._sources._disassemble is None) for part in parts]


@pytest.mark.llvm
def test_a_module_for_the_host_is_read_back(tmp_path):
    built = refcomp.build(*_schedule(), name="increment")
    data = module_to_bytes(built)
    module = module_from_bytes(data, disassemble)
    source, out = np.arange(5, dtype="float32"), np.zeros(5, "float32")
    module(source, out)
    np.testing.assert_array_equal(out, source + 1)
    assert (module.target, module.signatures) == (built.target, built.signatures)
    assert _texts(module) == _texts(built)
    assert module.get_source("asm") == built.get_source("asm")
    built.save(tmp_path / "built")
    module.save(tmp_path / "read")
    assert (tmp_path / "built").read_bytes() == (tmp_path / "read").read_bytes()
    assert module_to_bytes(module) == data


def _read_back(target, tmp_path):
    built = refcomp.build(*_schedule(bound=True), target=target, name="increment")
    data = module_to_bytes(built)
    module = module_from_bytes(data, disassemble)
    assert _texts(module) == _texts(built)
    assert module.imported_modules[0].get_source() == built.imported_modules[0].get_source()
    built.save(tmp_path / "built")
    module.save(tmp_path / "read")
    assert (tmp_path / "built").read_bytes() == (tmp_path / "read").read_bytes()


def test_a_module_of_opencl_is_read_back(tmp_path):
    _read_back("opencl", tmp_path)


@pytest.mark.rocm
def test_a_module_for_amd_gpus_is_read_back(tmp_path):
    _read_back("rocm -mcpu=gfx942", tmp_path)


@pytest.mark.nvcc
@pytest.mark.parametrize("code", ["cubin", "ptx"])
def test_a_module_for_nvidia_gpus_is_read_back(tmp_path, code):
    _read_back(f"cuda -arch=sm_75 -code={code}", tmp_path)


def test_a_module_of_python_functions_has_no_bytes():
    assert module_to_bytes(refcomp.build(*_schedule(), target="interp")) is None


def _opencl_bytes():
    return module_to_bytes(refcomp.build(*_schedule(bound=True), target="opencl"))


def test_bytes_of_another_version_are_refused():
    members = split_members(_opencl_bytes())
    manifest = json.loads(members["manifest.json"])
    manifest["refcomp_version"] = "0.0.1"
    members["manifest.json"] = json.dumps(manifest).encode()
    with pytest.raises(UserError, match=r"the cache was written by refcomp 0\.0\.1"):
        module_from_bytes(join_members(members), disassemble)


def test_bytes_without_a_manifest_are_refused():
    members = split_members(_opencl_bytes())
    del members["manifest.json"]
    with pytest.raises(ValueError, match="no manifest"):
        module_from_bytes(join_members(members), disassemble)


def test_damaged_bytes_are_refused_or_harmless():
    data = _opencl_bytes()
    rng = random.Random(7)
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        cut = rng.choice([len(damaged), rng.randrange(len(damaged))])
        try:
            module_from_bytes(bytes(damaged[:cut]), disassemble)
        except (RefcompError, ValueError):
            continue


def test_a_malformed_manifest_is_refused():
    members = split_members(_opencl_bytes())
    manifest = json.loads(members["manifest.json"])
    for key in manifest:
        for value in (None, 7, "x", [], {}, [[]], [{}], True):
            changed = members | {"manifest.json": json.dumps({**manifest, key: value}).encode()}
            try:
                module_from_bytes(join_members(changed), disassemble)
            except (RefcompError, ValueError):
                continue
