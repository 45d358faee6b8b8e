"""`tvm.rpc.LocalSession`: a session of this process, for programs that could use a remote one.

Files are copied to a folder of the session, as to another machine. Functions run in this process.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from refcomp.classic.functions import tempdir
from refcomp.driver.devices import context, gpu, opencl
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.foundation.paths import checked_path
from refcomp.runtime.device import Device, cpu
from refcomp.runtime.module import Module
from refcomp.runtime.module_file import load_module


class LocalSession:
    """A session whose machine is this process.

    Example::

        >>> from refcomp import classic as tvm
        >>> A = tvm.placeholder((2,), name="A")
        >>> B = tvm.compute((2,), lambda i: A[i] + 1.0, name="B")
        >>> folder = tvm.contrib.util.tempdir()
        >>> path = folder.relpath("add.so")
        >>> tvm.build(tvm.create_schedule(B.op), [A, B], "llvm").export_library(path)
        >>> remote = tvm.rpc.LocalSession()
        >>> remote.upload(path)
        >>> add = remote.load_module("add.so")
        >>> b = tvm.nd.empty((2,), ctx=remote.cpu(0))
        >>> add(tvm.nd.array(np.ones(2, "float32"), remote.cpu(0)), b)
        >>> b.asnumpy().tolist()
        [2.0, 2.0]
    """

    def __init__(self) -> None:
        self._folder = tempdir()

    def upload(
        self,
        data: str | os.PathLike[str] | bytes | bytearray,
        target: str | None = None,
    ) -> None:
        """Copy a file to the folder of the session.

        Args:
            data: the path of a file, or its bytes.
            target: the name of the copy; None for the name of the file.

        Raises:
            UserError: the file is missing, bytes have no name, or the name has a folder.
        """
        if isinstance(data, bytes | bytearray):
            if target is None:
                raise UserError(
                    "bytes are uploaded without a name", remedy="give target"
                )
            self._place(target).write_bytes(data)
            return
        source = Path(checked_path(data, "a file"))
        if not source.is_file():
            raise UserError(
                f"the file {str(source)!r} does not exist", remedy="check the path"
            )
        shutil.copyfile(source, self._place(source.name if target is None else target))

    def download(self, path: str) -> bytearray:
        """Return the bytes of a file of the session.

        Raises:
            UserError: the session has no such file.
        """
        return bytearray(self._existing(path).read_bytes())

    def remove(self, path: str) -> None:
        """Remove a file of the session.

        Raises:
            UserError: the session has no such file.
        """
        self._existing(path).unlink()

    def load_module(self, path: str) -> Module:
        """Return the module in a file of the session, by `refcomp.load_module`.

        Args:
            path: the name of a file that was uploaded.

        Raises:
            UserError: the session has no such file, or the file holds no module.
        """
        return load_module(self._existing(path))

    def _place(self, name: str) -> Path:
        """Return the path of a file in the folder, and of no file elsewhere."""
        is_name = isinstance(name, str) and name not in ("", "..")
        if not is_name or Path(name).name != name:
            raise UserError(
                f"{name!r} is not the name of a file in the session",
                remedy="give a name without folders",
            )
        return Path(self._folder.relpath(name))

    def _existing(self, name: str) -> Path:
        place = self._place(name)
        if not place.is_file():
            known = self._folder.listdir()
            listed = (
                f"files: {', '.join(sorted(known))}" if known else "upload it first"
            )
            raise UserError(
                f"the session has no file {name!r}", remedy=advise(name, known, listed)
            )
        return place

    def context(self, dev_type: str, dev_id: int = 0) -> Device:
        """Return a device of this machine, by `refcomp.context`."""
        return context(dev_type, dev_id)

    def cpu(self, dev_id: int = 0) -> Device:
        """Return the processor."""
        return cpu(dev_id)

    def gpu(self, dev_id: int = 0) -> Device:
        """Return an NVIDIA GPU."""
        return gpu(dev_id)

    def cl(self, dev_id: int = 0) -> Device:
        """Return an OpenCL device."""
        return opencl(dev_id)
