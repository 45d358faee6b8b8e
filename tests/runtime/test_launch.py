"""What a launch is told of a kernel, and the limits of a device."""

from dataclasses import dataclass

import pytest

from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.ir.rewrite import with_fields
from refcomp.ir.stmt import Origin
from refcomp.runtime.device import DeviceAttributes, DeviceMemory
from refcomp.runtime.launch import (
    AlignedBuffer,
    Extents,
    KernelSignature,
    attributes_of_gpu,
    check_alignment,
    check_launch,
    kernel_signature,
)
from tests.runtime.device_programs import ADD
from tests.runtime.fake_device import FakeDriver, fake_device

_LOOPS = (("blockIdx.x", "loop group"), ("threadIdx.y", "loop row"), ("threadIdx.x", "loop item"))
_KERNEL = KernelSignature("k", "k", (), _LOOPS)
_LIMITS = DeviceLimits((64, 32, 8), 128, 1024, groups_per_axis=(1000, 100, 10))


def _check(block: Extents, shared_bytes: tuple[int, ...] = (), grid: Extents = (1, 1, 1)) -> None:
    check_launch(_KERNEL, grid, block, shared_bytes, _LIMITS, fake_device(FakeDriver()))


def test_the_signature_of_a_kernel() -> None:
    kernel = kernel_signature(ADD.kernels[0])
    assert kernel == KernelSignature(
        "add_kernel",
        "add_kernel",
        (None, None, None, I64),
        (("blockIdx.x", "loop group"), ("threadIdx.x", "loop item")),
        read_only=(0, 1),
    )
    assert kernel_signature(ADD.kernels[0], "other").symbol == "other"


def test_the_signature_tells_where_loops_come_from() -> None:
    (kernel,) = ADD.kernels
    loop = with_fields(kernel.body, origin=Origin("C", "i", "bind", "user.py:7"))
    assert kernel_signature(kernel.with_body(loop)).loops == (
        ("blockIdx.x", "stage C, axis i, by bind, at user.py:7"),
        ("threadIdx.x", "loop item"),
    )


@pytest.mark.parametrize("block", [(64, 2, 1), (4, 32, 1), (16, 1, 8)])
def test_what_the_limits_allow(block: Extents) -> None:
    _check(block, (1000, 24), (1000, 100, 10))


def test_too_many_threads_along_an_axis() -> None:
    with pytest.raises(UserError) as caught:
        _check((65, 1, 1))
    assert str(caught.value) == (
        "the kernel k needs 65 threads in threadIdx.x, but fake:0 has 64\n"
        "  where: threadIdx.x: loop item\n"
        "  what to do: split by a smaller factor, or bind fewer loops to threadIdx"
    )
    with pytest.raises(UserError, match="33 threads in threadIdx.y, but fake:0 has 32"):
        _check((1, 33, 1))
    with pytest.raises(UserError, match=r"9 threads in threadIdx.z, but fake:0 has 8\n  what"):
        _check((1, 1, 9))


def test_too_many_groups() -> None:
    with pytest.raises(UserError) as caught:
        _check((1, 1, 1), grid=(1001, 1, 1))
    assert str(caught.value) == (
        "the kernel k needs 1001 groups in blockIdx.x, but fake:0 has 1000\n"
        "  where: blockIdx.x: loop group\n"
        "  what to do: split by a larger factor, or let the host run a part of the loop"
    )
    with pytest.raises(UserError, match="101 groups in blockIdx.y, but fake:0 has 100"):
        _check((1, 1, 1), grid=(1, 101, 1))


def test_too_many_threads_in_all() -> None:
    with pytest.raises(UserError) as caught:
        _check((16, 9, 1))
    assert str(caught.value) == (
        "the kernel k needs 144 threads in a group (16 x 9 x 1), but fake:0 has 128\n"
        "  where: threadIdx.y: loop row; threadIdx.x: loop item\n"
        "  what to do: split by a smaller factor, or bind fewer loops to threadIdx"
    )


def test_too_much_shared_memory() -> None:
    with pytest.raises(
        UserError, match=r"needs 1025 bytes of shared memory, but fake:0 has 1024\n.*spl"
    ):
        _check((1, 1, 1), (1000, 25))


@dataclass(frozen=True)
class _Facts:
    multiprocessors: int = 110
    clock: int = 1_700_000_000
    compute_version: str = "9.0"


def test_the_classic_attributes_of_a_gpu() -> None:
    assert attributes_of_gpu(_LIMITS, _Facts(), 64) == DeviceAttributes(
        max_threads_per_block=128,
        max_thread_dimensions=(64, 32, 8),
        max_shared_memory_per_block=1024,
        warp_size=64,
        multi_processor_count=110,
        max_clock_rate=1_700_000,
        compute_version="9.0",
    )


def test_an_argument_that_is_not_aligned() -> None:
    (kernel,) = ADD.kernels
    wide = [with_fields(p, alignment=16) if p.name == "C" else p for p in kernel.params]
    signature = kernel_signature(with_fields(kernel, params=tuple(wide)))
    assert signature.aligned == (AlignedBuffer(2, "C", 16),)
    memory = [DeviceMemory(address, None) for address in (4, 8, 32)]
    check_alignment(signature, memory)
    with pytest.raises(UserError) as caught:
        check_alignment(signature, [*memory[:2], DeviceMemory(36, None)])
    assert str(caught.value) == (
        "the kernel add_kernel cannot access C, which begins at the address 0x24\n"
        "  why: its wide accesses need an address that is a multiple of 16 bytes\n"
        "  what to do: copy the array first, or schedule without vectorize"
    )
