"""A session of this process takes files and loads their modules."""

from pathlib import Path

import numpy as np
import pytest

import refcomp as rc
from refcomp import classic as tvm
from refcomp.foundation.errors import UserError


def saved(folder: Path) -> str:
    A = tvm.placeholder((3,), name="A")
    B = tvm.compute((3,), lambda i: A[i] + 1.0, name="B")
    path = str(folder / "add.so")
    tvm.build(tvm.create_schedule(B.op), [A, B], "llvm", name="add").export_library(path)
    return path


@pytest.mark.llvm
def test_an_uploaded_module_runs_on_the_sessions_devices(tmp_path: Path) -> None:
    path = saved(tmp_path)
    remote = tvm.rpc.LocalSession()
    remote.upload(path)
    remote.upload(bytearray(Path(path).read_bytes()), "again.so")
    Path(path).unlink()
    ctx = remote.cpu(0)
    assert ctx == remote.context("cpu", 0) == rc.cpu()
    for name in ("add.so", "again.so"):
        add = remote.load_module(name)
        b = tvm.nd.empty((3,), ctx=ctx)
        add(tvm.nd.array(np.arange(3, dtype="float32"), ctx), b)
        assert b.asnumpy().tolist() == [1, 2, 3]
    assert remote.cl(1) == rc.opencl(1)
    assert remote.gpu(0) == rc.gpu(0)


def test_files_are_returned_and_removed() -> None:
    remote = tvm.rpc.LocalSession()
    remote.upload(b"abc", "a.txt")
    assert remote.download("a.txt") == bytearray(b"abc")
    remote.remove("a.txt")
    with pytest.raises(UserError, match="the session has no file 'a.txt'") as info:
        remote.download("a.txt")
    assert info.value.remedy == "upload it first"


def test_files_stay_in_the_folder_of_the_session(tmp_path: Path) -> None:
    remote = tvm.rpc.LocalSession()
    for name in ("../a.txt", "..", "", "/etc/passwd", 3):
        with pytest.raises(UserError, match="is not the name of a file in the session"):
            remote.upload(b"abc", name)
    with pytest.raises(UserError, match="bytes are uploaded without a name"):
        remote.upload(b"abc")
    with pytest.raises(UserError, match="does not exist"):
        remote.upload(tmp_path / "missing.so")
    remote.upload(b"abc", "add.so")
    with pytest.raises(UserError, match="the session has no file 'ad.so'") as info:
        remote.load_module("ad.so")
    assert "did you mean add.so?" in info.value.remedy
