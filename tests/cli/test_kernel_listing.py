"""What `refcomp emulate` prints of a file of kernels when no arguments are given."""

import json
import shlex

import numpy as np
import pytest

from refcomp.cli.amd_kernels import listing_of
from refcomp.cli.kernel_listing import listing_to_json, listing_to_text
from refcomp.emulator.code.code_object import CodeObject, Descriptor, KernelEntry
from refcomp.foundation.amd_metadata import KernelArgument
from tests.emulator.kernels import compiled_code
from tests.emulator.opencl import compiled_opencl


def _kernel(*arguments, name="k", block=(), shared_bytes=0):
    descriptor = Descriptor(shared_bytes, 0, 64, 0, 0, 0, 0, 0, 0)
    return KernelEntry(name, 0, 0, descriptor, arguments, 256, block, False)


_ALL = (
    KernelArgument("x", 0, 8, "global_buffer", True, 1, "float*"),
    KernelArgument("", 8, 8, "global_buffer"),
    KernelArgument("scale", 16, 4, "by_value", type_name="float"),
    KernelArgument("n", 20, 8, "by_value"),
    KernelArgument("how", 28, 12, "by_value"),
    KernelArgument("t", 40, 4, "dynamic_shared_pointer", False, 4),
    KernelArgument("", 48, 8, "hidden_global_offset_x"),
)


def _listing(*kernels):
    by_name = {kernel.name: kernel for kernel in kernels}
    return listing_of(CodeObject("gfx942", 0, (), (), by_name))


def _text(*kernels, file="k.hsaco"):
    listing = _listing(*kernels)
    return listing_to_text(listing, [*listing.kernels.values()], file)


def test_kernels_are_listed_with_their_arguments_and_an_example():
    kernel = _kernel(*_ALL, shared_bytes=512)
    lines = _text(kernel, file="some file.hsaco").splitlines()
    assert lines[:2] == [
        "kernels of some file.hsaco, for gfx942:",
        "  k: groups of at most 256 threads, 512 bytes of shared memory",
    ]
    assert [line.split() for line in lines[2:6]] == [
        ["x", "array,", "only", "read", "(float*)", "x.npy"],
        ["#1", "array", "out:1.npy"],
        ["scale", "4", "bytes", "(float)", "scale:f32=1"],
        ["n", "8", "bytes", "n:i64=1"],
    ]
    assert "refcomp.load_code_object passes one of ctypes" in lines[6]
    assert lines[7].split() == ["t", "local", "memory", "local:256"]
    assert "local memory is local:BYTES" in lines[8] and lines[9] == "example:"
    assert lines[10].startswith(
        "  refcomp emulate 'some file.hsaco' --grid 1 --block 64 --arg x.npy"
    )
    assert "--kernel" not in lines[10]


def test_shapes_of_groups():
    first, second = _kernel(name="a", block=(16, 4, 1)), _kernel(name="b")
    text = _text(first, second)
    assert "  a: groups of 16 x 4 x 1 threads\n    no arguments\n" in text
    assert "  refcomp emulate k.hsaco --kernel a --grid 1 --block 16,4\n" in text


def test_names_do_not_command_the_terminal():
    kernel = _kernel(KernelArgument("a\x1b[2J", 0, 4, "by_value"), name="k\x1b]0;")
    assert "\x1b" not in _text(kernel)


def test_the_same_for_scripts():
    kernel = _kernel(*_ALL[:2], block=(64, 1, 1))
    listing = _listing(kernel)
    told = listing_to_json(listing, [listing.kernels["k"]])
    assert told["gpu"] == "gfx942"
    (entry,) = told["kernels"]
    assert (entry["kernel"], entry["block"], entry["max_threads"]) == ("k", [64, 1, 1], 256)
    assert entry["arguments"][0] == {
        "name": "x",
        "kind": "global_buffer",
        "bytes": 8,
        "is_read_only": True,
        "type": "float*",
    }


@pytest.mark.rocm
def test_the_command_lists_where_arguments_are_missing(cli, tmp_path):
    path = tmp_path / "two.hsaco"
    path.write_bytes(compiled_code("vector_add", "matmul"))
    shape = ("--grid", "2", "--block", "64")
    for arguments in ((path,), (path, *shape)):
        result = cli("emulate", *arguments)
        assert result.exit_code == 0, result.stderr
        assert "\n  vector_add: groups of 64 x 1 x 1 threads" in result.stdout
        assert "\n  matmul: groups of " in result.stdout and "\nexample:\n" in result.stdout
    chosen = cli("emulate", path, "--kernel", "vector_add")
    assert "matmul: " not in chosen.stdout and "  A       array" in chosen.stdout
    listed = json.loads(cli("emulate", path, "--json").stdout)
    assert {kernel["kernel"] for kernel in listed["kernels"]} == {"vector_add", "matmul"}
    wrong = cli("emulate", path, "--kernel", "other")
    assert wrong.exit_code == 4 and "name one of: matmul, vector_add" in wrong.stderr


_KERNEL = "kernel void f(global float *x, float a, local int *t, ulong n) { x[0] = a + n; *t = 1; }"


@pytest.mark.rocm
@pytest.mark.clang
def test_the_example_runs(cli, tmp_path, monkeypatch):
    code = compiled_opencl(tmp_path, _KERNEL, "gfx942")
    example = cli("emulate", code).stdout.splitlines()[-1]
    words = shlex.split(example)
    assert words[:2] == ["refcomp", "emulate"] and words[-3:-1] == ["local:256", "--arg"]
    monkeypatch.chdir(tmp_path)
    (name,) = [word.removeprefix("out:") for word in words if word.startswith("out:")]
    np.save(tmp_path / name, np.zeros(1, np.float32))
    result = cli(*words[1:])
    assert result.exit_code == 0, result.stderr
    assert np.load(tmp_path / name)[0] == 2
