"""Memory of constants: what is shared, what is copied, and that all of it is aligned."""

import mmap

import numpy as np
import pytest

from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import RefcompError
from refcomp.foundation.mapped_files import MappedFile
from refcomp.graph import constants
from refcomp.graph.compile import compile_graph
from refcomp.graph.constants import aligned, aligned_empty, constant_on, copy_elements, lasting
from refcomp.graph.executor import GraphExecutor
from refcomp.graph.memory_plan import ALIGNMENT
from refcomp.runtime.device import address_of, cpu
from tests.runtime.fake_device import FakeDriver, fake_device
from tests.strategies.graphs import make_graph
from tests.strategies.operands import floats, integers


@pytest.mark.parametrize("shape", [(), (0,), (3, 5), (2, 0, 4)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool"])
def test_empty_constants_are_aligned(shape, dtype) -> None:
    made = aligned_empty(shape, to_numpy(as_dtype(dtype)))
    assert made.shape == shape and made.dtype == to_numpy(as_dtype(dtype))
    assert made.flags.c_contiguous
    # numpy gives an array without elements any address.
    assert made.size == 0 or address_of(made) % ALIGNMENT == 0


def test_arrays_beyond_all_addresses_are_refused() -> None:
    with pytest.raises(RefcompError, match=str(1 << 62)):
        aligned_empty((1 << 62, 4), np.dtype("float32"))


def test_only_other_memory_is_copied() -> None:
    given = aligned_empty((4, 6), np.dtype("float32"))
    given[:] = floats(0, 4, 6)
    assert aligned(given) is given
    for other in (given.T, given[:, 1:], given[1:], given.reshape(-1)[1:]):
        copy = aligned(other)
        assert not np.shares_memory(copy, given) and address_of(copy) % ALIGNMENT == 0
        np.testing.assert_array_equal(copy, other)


@pytest.mark.parametrize("shape", [(3, 200), (130, 65), (2, 3, 128), (0, 70), (70, 0)])
def test_transposed_arrays_are_copied_whole(shape) -> None:
    given = integers(0, *shape).T
    np.testing.assert_array_equal(aligned(given), given)
    assert aligned(given).flags.c_contiguous


def test_host_shares_aligned_constants() -> None:
    given = aligned_empty((4, 6), np.dtype("float32"))
    given.flags.writeable = False
    assert np.shares_memory(constant_on(cpu(), given).numpy(), given)
    assert not constant_on(cpu(), given).numpy().flags.writeable
    copied = constant_on(cpu(), given[:, 1:])
    assert not np.shares_memory(copied.numpy(), given)
    assert copied.address % ALIGNMENT == 0


def test_other_devices_have_copies() -> None:
    elsewhere = fake_device(FakeDriver())
    given = aligned_empty((4, 6), np.dtype("float32"))
    given[:] = floats(0, 4, 6)
    made = constant_on(elsewhere, given)
    given_before = given.copy()
    given[:] = 0
    assert made.device == elsewhere
    np.testing.assert_array_equal(made.asnumpy(), given_before)


def test_weights_exist_once_from_the_graph_to_all_executors() -> None:
    def build(builder, x):
        weight = builder.constant("w", floats(0, 4, 3, 1, 1))
        statistics = [builder.constant(f"s{k}", np.abs(floats(k, 4)) + 1) for k in range(4)]
        convolved = builder.node("conv2d", [x, weight, None])
        head = builder.node(
            "global_avg_pool2d", [builder.node("batch_norm", [convolved, *statistics])]
        )
        dense = builder.constant("dense", floats(1, 5, 4))
        return builder.node("gemm", [builder.node("flatten", [head]), dense], {"trans_b": True})

    module = compile_graph(make_graph(build), "interp")
    executors = [GraphExecutor(module) for _ in range(2)]
    packed = [value for value in module.graph.constants if "packed" in value.name]
    assert len(packed) == 2
    for value in packed:
        for executor in executors:
            kept = executor._constants[value].numpy()
            assert np.shares_memory(kept, module.graph.constants[value])


def map_floats(path, offset=0, is_stable=False) -> np.ndarray:
    path.write_bytes(bytes(offset) + floats(0, 4, 6).tobytes())
    with path.open("rb") as file:
        mapped = MappedFile.open(file, path, is_stable=is_stable)
    return np.frombuffer(memoryview(mapped)[offset:], np.float32).reshape(4, 6)


def test_parts_of_a_model_are_copied_though_they_are_aligned(tmp_path) -> None:
    given = map_floats(tmp_path / "model")
    assert address_of(given) % ALIGNMENT == 0
    for copy in (aligned(given), lasting(given), constant_on(cpu(), given).numpy()):
        assert not np.shares_memory(copy, given)
        np.testing.assert_array_equal(copy, floats(0, 4, 6))


def test_parts_of_a_stable_file_are_shared_if_they_are_aligned(tmp_path) -> None:
    given = map_floats(tmp_path / "data", is_stable=True)
    assert aligned(given) is given
    assert lasting(given) is given
    assert np.shares_memory(constant_on(cpu(), given).numpy(), given)
    shifted = map_floats(tmp_path / "shifted", offset=4, is_stable=True)
    assert not np.shares_memory(constant_on(cpu(), shifted).numpy(), shifted)


def test_large_arrays_have_pages_of_their_own(monkeypatch) -> None:
    made = aligned_empty((1 << 20,), np.dtype("float32"))
    assert address_of(made) % mmap.PAGESIZE == 0 and made.flags.writeable
    made[:] = 7

    def refuse(*_given, **_named):
        raise OSError

    monkeypatch.setattr(mmap, "mmap", refuse)
    assert aligned_empty((1 << 20,), np.dtype("float32")).shape == (1 << 20,)


@pytest.mark.parametrize("held", [1, 100, 1 << 20])
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (7, 3), (3, 200, 2)])
def test_arrays_are_copied_whole_in_any_pieces(shape, held, monkeypatch) -> None:
    monkeypatch.setattr(constants, "_MAX_HELD", held)
    given = floats(0, *shape)
    for source in (given, given.T, given[::-1] if shape else given):
        target = np.full(source.shape, 7, np.float32)
        copy_elements(target, source)
        np.testing.assert_array_equal(target, source)
