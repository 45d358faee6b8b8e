"""Weights are read without unpickling, and damaged or hostile files are refused."""

import io
import json
import os
import pickle
import sys
import types
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.real_models.weight_files import read_safetensors, read_torch
from refcomp.foundation.errors import UserError

MAGIC = 0x1950A86A20F9469CFC6C


def safetensors(header: Any, body: bytes) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def entry(shape: list[int], begin: int, end: int, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_tensors_of_safetensors_are_views_of_the_file() -> None:
    numbers = np.arange(6, dtype=np.float32)
    header = {"__metadata__": {"format": "pt"}, "a": entry([2, 2], 0, 16), "b": entry([2], 16, 24)}
    found = read_safetensors(safetensors(header, numbers.tobytes()))
    np.testing.assert_array_equal(found["a"], [[0, 1], [2, 3]])
    np.testing.assert_array_equal(found["b"], [4, 5])


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "its header would have 0 bytes"),
        (b"\xff" * 8, "its header would have 18446744073709551615 bytes"),
        (safetensors({}, b"")[:-1], "its header would have 2 bytes"),
        (safetensors([], b""), "its header is damaged"),
        (safetensors({"a": entry([1], 0, 4, "F8")}, b"1234"), "its header is damaged: 'F8'"),
        (safetensors({"a": entry([2], 0, 4)}, b"1234"), "'a' does not fit: (2,) at 0..4"),
        (safetensors({"a": entry([2], 0, 8)}, b"1234"), "'a' does not fit"),
        (safetensors({"a": entry([-1], 4, 0)}, b"1234"), "'a' does not fit"),
    ],
)
def test_damaged_safetensors_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(UserError, match="this is not a safetensors file") as info:
        read_safetensors(data)
    assert why in info.value.why


class Storage:
    """What PyTorch pickles as the storage of a tensor."""

    def __init__(self, key: str, count: int) -> None:
        self.key, self.count = key, count


class Tensor:
    def __init__(self, storage: Storage, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.parts = (storage, 0, shape, strides, False, OrderedDict())

    def __reduce__(self) -> Any:
        return sys.modules["torch._utils"]._rebuild_tensor_v2, self.parts


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules whose names PyTorch's pickles hold."""
    for name in ("torch", "torch._utils"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))

    def _rebuild_tensor_v2() -> None: ...

    class FloatStorage: ...

    for module, item in (("torch._utils", _rebuild_tensor_v2), ("torch", FloatStorage)):
        item.__module__, item.__qualname__ = module, item.__name__
        setattr(sys.modules[module], item.__name__, item)


def saved(state: Any, storages: dict[str, np.ndarray]) -> bytes:
    """Return what `torch.save` wrote before version 1.6."""
    stream = io.BytesIO()

    class Pickler(pickle.Pickler):
        def persistent_id(self, item: Any) -> Any:
            if isinstance(item, Storage):
                kind = sys.modules["torch"].FloatStorage
                return ("storage", kind, item.key, "cpu", item.count, None)
            return None

    for item in (MAGIC, 1001, {"little_endian": True}, state, list(storages)):
        Pickler(stream, protocol=2).dump(item)
    for storage in storages.values():
        stream.write(len(storage).to_bytes(8, "little") + storage.tobytes())
    return stream.getvalue()


NUMBERS = np.arange(6, dtype=np.float32)


@pytest.mark.usefixtures("torch")
def test_tensors_of_pytorch_are_found_by_name() -> None:
    storage = Storage("7", 6)
    state = OrderedDict(a=Tensor(storage, (2, 3), (3, 1)), b=Tensor(storage, (2,), (1,)))
    found = read_torch(saved(state, {"7": NUMBERS}))
    np.testing.assert_array_equal(found["a"], [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(found["b"], [0, 1])


@pytest.mark.usefixtures("torch")
def test_tensors_that_do_not_fit_are_refused() -> None:
    storage = Storage("7", 6)
    for tensor, why in (
        (Tensor(storage, (7,), (1,)), "'a' does not fit into its storage"),
        (Tensor(storage, (2, 3), (1, 2)), "'a' is not a dense tensor"),
        (Tensor(storage, (-1,), (1,)), "'a' is not a dense tensor"),
        (3, "'a' is not a dense tensor"),
    ):
        with pytest.raises(UserError, match="this is not a PyTorch file") as info:
            read_torch(saved({"a": tensor}, {"7": NUMBERS}))
        assert why in info.value.why


@pytest.mark.usefixtures("torch")
def test_a_truncated_file_is_refused_wherever_it_ends() -> None:
    whole = saved({"a": Tensor(Storage("7", 6), (6,), (1,))}, {"7": NUMBERS})
    for end in range(len(whole)):
        with pytest.raises(UserError, match="this is not a"):
            read_torch(whole[:end])


def test_a_file_that_would_run_a_function_runs_none(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "made"),)

    with pytest.raises(UserError) as info:
        read_torch(saved({"a": Evil()}, {}))
    assert info.value.why == "'a' is not a dense tensor of f32 or i64"
    assert not (tmp_path / "made").exists()


def test_an_instruction_that_builds_no_data_is_refused() -> None:
    data = b"".join(pickle.dumps(item, 2) for item in (MAGIC, 1, 2.5))
    with pytest.raises(UserError, match="this is not a file of PyTorch") as info:
        read_torch(data)
    assert info.value.why == "a pickle has the instruction BINFLOAT"
