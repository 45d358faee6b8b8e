"""Read and write .npz files: archives of arrays by name.

Raises UserError for files that are missing, damaged or not .npz files, and for pickled objects:
unpickling could run code.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Mapping
from errno import EINVAL

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.runtime.device import HostArray

_NPY = b"\x93NUMPY"
_ZIPS = (b"PK\x03\x04", b"PK\x05\x06")  # an archive, and one without members
# zipfile raises RuntimeError for encrypted members, and NotImplementedError (a RuntimeError) for
# unknown compression. numpy's reader of headers raises the others.
_DAMAGE = (
    ValueError,
    TypeError,
    EOFError,
    KeyError,
    RuntimeError,
    SyntaxError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


def read_npz(path: str | None) -> dict[str, HostArray]:
    """Return the arrays of an .npz file by name; none if `path` is None."""
    if path is None:
        return {}
    try:
        with open(path, "rb") as file:
            magic = file.read(len(_NPY))
            file.seek(0)
            if magic == _NPY:
                raise UserError(
                    f"{path} holds one array without a name",
                    remedy="write it by numpy.savez(path, name=array)",
                )
            if not magic.startswith(_ZIPS):
                # numpy would take such a file for a pickle.
                raise _not_plain_arrays(path, "it does not begin as an .npz file does")
            loaded = np.load(file, allow_pickle=False)
            return {name: _member(path, loaded, name) for name in loaded.files}
    except OSError as error:
        if error.errno == EINVAL:  # the archive leads to a place before its beginning
            raise _not_plain_arrays(path, "the archive is damaged") from error
        raise UserError(
            f"{path} cannot be read", why=error.strerror or str(error)
        ) from error
    except _DAMAGE as error:
        raise _not_plain_arrays(path, "the archive is damaged") from error


def _member(path: str, loaded: Mapping[str, object], name: str) -> HostArray:
    try:
        array = loaded[name]
    except (MemoryError, OverflowError) as error:
        raise _not_plain_arrays(path, f"{name!r} is too large for memory") from error
    except _DAMAGE as error:
        why = "is damaged"
        if "pickle" in str(error):
            why = "holds Python objects, and reading these could run code"
        raise _not_plain_arrays(path, f"{name!r} {why}") from error
    if not isinstance(array, np.ndarray):
        raise _not_plain_arrays(path, f"{name!r} is not an array")
    return array


def _not_plain_arrays(path: str, why: str) -> UserError:
    return UserError(
        f"{path} is not an .npz file of plain arrays",
        why=why,
        remedy="write it by numpy.savez(path, name=array)",
    )


def write_npz(path: str, arrays: Mapping[str, HostArray]) -> None:
    """Write `arrays` by name to an .npz file, which is replaced if it exists."""
    try:
        # Not numpy.savez, to which an array named `file` cannot be given.
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    elements = np.asanyarray(array)
                    np.lib.format.write_array(member, elements, allow_pickle=False)
    except OSError as error:
        raise UserError(
            f"{path} cannot be written", why=error.strerror or str(error)
        ) from error
