"""`refcomp emulate` runs a kernel of a code object on arrays from files; tells what is wrong."""

import json

import ml_dtypes
import numpy as np
import pytest

from tests.emulator.kernels import compiled_code
from tests.emulator.opencl import compiled_opencl
from tests.foundation.test_unlinked import compile_unlinked

pytestmark = pytest.mark.rocm
_SHAPE = ("--grid", "2", "--block", "64,1")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "k.hsaco").write_bytes(compiled_code("vector_add"))
    np.save(tmp_path / "a.npy", np.arange(100, dtype=np.float32))
    np.save(tmp_path / "c.npy", np.zeros(100, np.float32))
    return tmp_path


def _arguments(files, n="n:i64=100"):
    texts = (files / "a.npy", files / "a.npy", f"out:{files / 'c.npy'}", n, "groups:i64=2")
    return [word for text in texts for word in ("--arg", text)]


def test_a_kernel_writes_its_outputs(cli, files):
    result = cli("emulate", files / "k.hsaco", *_SHAPE, *_arguments(files))
    assert result.exit_code == 0, result.stderr
    assert "c.npy" in result.stdout and "198" in result.stdout
    assert (np.load(files / "c.npy") == 2 * np.arange(100)).all()
    assert (np.load(files / "a.npy") == np.arange(100)).all()


def test_outputs_go_to_the_files_that_were_read(cli, files):
    (files / "c.npy").rename(files / "c.dat")
    words = [str(word).replace("c.npy", "c.dat") for word in _arguments(files)]
    result = cli("emulate", files / "k.hsaco", *_SHAPE, *words)
    assert result.exit_code == 0, result.stderr
    assert (np.load(files / "c.dat") == 2 * np.arange(100)).all()
    assert not (files / "c.dat.npy").exists()


def test_arrays_of_bfloat16_are_given_back_as_numpy_has_them(cli, files):
    """Its files have no name for that type, and its arrays then no numbers."""
    np.save(files / "c.npy", np.zeros(200, ml_dtypes.bfloat16))
    result = cli("emulate", files / "k.hsaco", *_SHAPE, *_arguments(files))
    assert result.exit_code == 0, result.stderr
    assert "c.npy: u16[200]" in result.stdout
    written = np.load(files / "c.npy")
    assert written.dtype.str == "|V2" and (written.view(np.float32)[:3] == [0, 2, 4]).all()


def test_arrays_of_another_byte_order_have_the_same_values(cli, files):
    np.save(files / "a.npy", np.arange(100, dtype=">f4"))
    result = cli("emulate", files / "k.hsaco", *_SHAPE, *_arguments(files))
    assert result.exit_code == 0, result.stderr
    assert (np.load(files / "c.npy") == 2 * np.arange(100)).all()


def test_an_output_that_cannot_be_written_is_an_error(cli, files, monkeypatch):
    """As in a folder that is only to be read; whoever runs this may write anywhere."""

    def refuse(path, data):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.write_bytes", refuse)
    result = cli("emulate", files / "k.hsaco", *_SHAPE, *_arguments(files))
    assert result.exit_code == 4 and "c.npy cannot be written" in result.stderr


def test_results_that_nobody_keeps_are_told_of(cli, files):
    words = [str(word).replace("out:", "") for word in _arguments(files)]
    result = cli("emulate", files / "k.hsaco", *_SHAPE, *words)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "say which array it writes, out:FILE.npy" in result.stderr


def test_findings_end_with_1(cli, files):
    arguments = _arguments(files, "n:i64=101")
    result = cli("emulate", files / "k.hsaco", "--json", *_SHAPE, *arguments)
    report = json.loads(result.stdout)
    assert result.exit_code == 1 and report["kernel"] == "vector_add" and report["steps"] > 0
    assert "4 bytes that end 4 bytes behind the argument A" in report["findings"][0]
    assert report["not_compared"] == []
    shown = cli("emulate", files / "k.hsaco", "--no-checks", *_SHAPE, *arguments)
    assert shown.exit_code == 1 and "kernel vector_add, group (1, 0, 0)" in shown.stdout


def test_names_of_a_code_object_do_not_command_the_terminal(cli, files):
    """As one that a stranger wrote; its names are as long as before."""
    hostile = compiled_code("vector_add").replace(b"\xaavector_add", b"\xaa\x1b]0;owned\x07")
    (files / "k.hsaco").write_bytes(hostile)
    arguments = (files / "k.hsaco", *_SHAPE, *_arguments(files, "n:i64=101"))
    for more in ((), ("--kernel", "other"), ("--json",)):
        result = cli("emulate", *arguments, *more)
        told = result.stdout + result.stderr
        assert "owned" in told and not {"\x1b", "\x07"} & set(told)
    wrong = cli("--traceback", "emulate", *arguments, "--kernel", "other")
    assert "owned" in wrong.stderr and "\x1b" not in wrong.stderr


def test_a_kernel_that_is_given_up_ends_with_1_and_says_where_its_waves_are(cli, files):
    arguments = (files / "k.hsaco", *_SHAPE, *_arguments(files))
    result = cli("emulate", *arguments, "--max-steps", "20")
    assert result.exit_code == 1
    assert "endless: no wave has ended for 20 instructions; 2 of 2 still run\n" in result.stdout
    assert "    2 waves at vector_add+0x" in result.stdout
    assert cli("emulate", *arguments, "--max-seconds", "3600").exit_code == 0


def test_hazards_are_looked_for_when_asked(cli, files):
    """The result is no `out:`: it is only to be read."""
    words = [str(word).replace("out:", "") for word in _arguments(files)]
    arguments = files / "k.hsaco", *_SHAPE, *words
    assert cli("emulate", *arguments).exit_code == 0
    for more in (["--hazards"], ["--hazard", "read-only", "--hazard", "races"]):
        result = cli("emulate", *more, *arguments)
        assert result.exit_code == 1, result.stderr
        assert "read-only: writes the argument C, which is read-only" in result.stdout
    assert cli("emulate", "--hazard", "races", *arguments).exit_code == 0
    assert (
        cli("emulate", "--hazards", files / "k.hsaco", *_SHAPE, *_arguments(files)).exit_code == 0
    )
    assert cli("emulate", "--hazard", "speed", *arguments).exit_code == 2


def test_wrong_requests_are_refused(cli, files):
    kernel, given = files / "k.hsaco", _arguments(files)
    np.savez(files / "several.npz", a=np.zeros(4))
    (files / "x.npy").write_bytes(b"x")
    np.save(files / "c.npy", np.zeros(4))
    twice = ["--arg", f"out:{files / 'c.npy'}"] * 2
    cases = [
        ((kernel, *_SHAPE, "--arg", "n:i8=1000"), 4, "is not a number of that type"),
        ((kernel, *_SHAPE, "--arg", "n:int=1"), 4, "unknown dtype 'int'"),
        ((kernel, *_SHAPE, "--arg", "n:i32x4=1"), 4, "is not a number of that type"),
        (
            (kernel, *_SHAPE, "--arg", "n=100"),
            4,
            "a number is NAME:DTYPE=VALUE, such as n:i32=1000; local",
        ),
        ((kernel, *_SHAPE, "--arg", "local:0"), 4, "--arg local:0 is not local memory"),
        ((kernel, *_SHAPE, "--arg", "local:x"), 4, "its size is a number of bytes, at least 1"),
        ((kernel, *_SHAPE, "--arg", files / "none.npy"), 4, "cannot be read"),
        ((kernel, *_SHAPE, "--arg", files), 4, "cannot be read"),
        ((kernel, *_SHAPE, "--arg", kernel), 4, "is not an .npy file"),
        ((kernel, *_SHAPE, "--arg", files / "x.npy"), 4, "damaged, of another kind, or holds"),
        ((kernel, *_SHAPE, *twice), 4, "c.npy is given for several arguments"),
        ((kernel, *_SHAPE, "--arg", files / "several.npz"), 4, "holds several arrays"),
        ((files / "none.hsaco", *_SHAPE), 4, "none.hsaco cannot be read"),
        ((kernel, *_SHAPE, "--kernel", "other"), 4, "no kernel 'other'"),
        ((kernel, *_SHAPE, "--kernel", "vector_ad"), 4, "did you mean vector_add?"),
        ((kernel, *_SHAPE, *given[:2]), 4, "takes 5 arguments"),
        ((files / "a.npy", *_SHAPE), 4, f"where: {files / 'a.npy'}\n"),
        ((kernel, "--grid", "0", "--block", "64"), 2, "not one to three positive numbers"),
        ((kernel, "--grid", "100000000", "--block", "64", *given), 4, "threads along x"),
        ((kernel, *_SHAPE, "--shared", "-100"), 2, "-100 is not in the range x>=0"),
        ((kernel, *_SHAPE, "--max-steps", "0"), 2, "0 is not in the range x>=1"),
        ((kernel, *_SHAPE, "--max-seconds", "0"), 2, "0.0 is not in the range x>0"),
    ]
    for arguments, code, message in cases:
        result = cli("emulate", *arguments)
        assert result.exit_code == code and message in result.stderr, result.stderr


_REVERSE = """
kernel void reverse(global float *x, local float *t) {
  int i = __builtin_amdgcn_workitem_id_x();
  t[i] = x[i];
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  x[i] = t[63 - i];
}
"""


@pytest.mark.clang
def test_local_memory_of_an_opencl_kernel_is_given_by_its_size(cli, tmp_path):
    code, path = compiled_opencl(tmp_path, _REVERSE, "gfx942"), tmp_path / "x.npy"
    np.save(path, np.arange(64, dtype=np.float32))
    arguments = (code, "--grid", "1", "--block", "64", "--arg", f"out:{path}", "--arg")
    result = cli("emulate", *arguments, "local:256")
    assert result.exit_code == 0, result.stderr
    np.testing.assert_array_equal(np.load(path), np.arange(64)[::-1])
    wrong = cli("emulate", *arguments, "local:0xfc")
    assert wrong.exit_code == 1
    assert "out of bounds: 4 bytes at 252 of 252 bytes of shared memory" in wrong.stdout


def test_a_code_object_that_is_not_linked_is_refused_by_name(cli, tmp_path):
    path = compile_unlinked(tmp_path)
    result = cli("emulate", path)
    assert result.exit_code == 4
    assert f"{path} is relocatable" in result.stderr and "ld.lld -shared" in result.stderr


def test_the_ledger_is_printed(cli):
    result = cli("emulate", "--ledger")
    assert result.exit_code == 0 and result.stdout.startswith("gfx942:\n")
    assert "\nv_rcp_f32: approximate" in result.stdout
    assert "\nv_add_f32: exact; abs" in result.stdout
    assert ": exact, not compared\n" in result.stdout
    pages = json.loads(cli("emulate", "--ledger", "--json").stdout)
    assert list(pages) == ["gfx942", "gfx90a", "gfx1100", "ptx"]
    sine = {entry["mnemonic"]: entry for entry in pages["ptx"]}["sin.f32"]
    assert sine["compared"] and sine["references"]["bound"] == ["approx", "ftz"]
    add = {entry["mnemonic"]: entry for entry in pages["gfx1100"]}["v_add_f32"]
    assert add["compared"] and not add["approximate"] and "abs" in add["modifiers"]


def test_what_was_never_compared_is_told(cli, files, monkeypatch):
    monkeypatch.setattr(
        "refcomp.cli.amd_kernels.not_compared", lambda ran, gpu: ("v_odd with clamp",)
    )
    result = cli("emulate", files / "k.hsaco", *_SHAPE, *_arguments(files))
    assert result.exit_code == 0
    assert "never compared with a reference: v_odd with clamp\n" in result.stdout


def test_one_of_several_kernels_must_be_named(cli, files):
    (files / "two.hsaco").write_bytes(compiled_code("vector_add", "matmul"))
    result = cli("emulate", files / "two.hsaco", *_SHAPE, *_arguments(files))
    assert result.exit_code == 4 and "by --kernel: matmul, vector_add" in result.stderr
