"""PTX behind the names of pycuda."""

import numpy as np
import pytest

from refcomp.emulator.code.failure import KernelFailure
from refcomp.emulator.limits import Limits
from refcomp.emulator.machine.memory import Arena
from refcomp.emulator.ptx.cuda import KernelRun
from refcomp.emulator.ptx.loaded_kernels import kernel_loader
from tests.emulator.ptx.texts import kernel

_TEXT = kernel(".shared .align 4 .b8 tile[64]; st.global.u32 [%rd1], %r1; ret;")


def _run(text, threads, **options):
    arena = Arena(1 << 20, is_watched=True)
    kernels = kernel_loader(**options)(arena, text).kernels
    place = arena.allocate(4, "data")
    packed = place.address.to_bytes(8, "little") + bytes(8)
    kernels["k"].run(KernelRun((1, 1, 1), (threads, 1, 1), packed, 0))
    return arena.read(place.address, 4).view(np.uint32)[0]


def test_a_kernel_runs():
    assert _run(_TEXT, 1) == 0
    assert _run(_TEXT, 5) == 4  # the last thread's
    kernels = kernel_loader()(Arena(1 << 20, is_watched=True), _TEXT).kernels
    assert (kernels["k"].shared_bytes, kernels["k"].threads) == (64, 1024)


def test_findings_are_raised():
    with pytest.raises(KernelFailure, match="the emulator found errors in the kernel k") as caught:
        _run(_TEXT, 5, hazards=True)
    assert [finding.kind for finding in caught.value.findings] == ["race"]


def test_limits_hold():
    text = kernel("$loop: bra $loop;")
    with pytest.raises(KernelFailure, match="no thread of any warp has ended for 100 instructions"):
        _run(text, 1, limits=Limits(100, 10.0))


def test_variables_are_released_with_their_file():
    arena = Arena(1 << 20, is_watched=True)
    free = arena.free_bytes()
    head = ".version 8.0\n.target sm_80\n.address_size 64\n"
    loaded = kernel_loader()(
        arena, f"{head}.global .b8 table[4096];\n.visible .entry k() {{ ret; }}"
    )
    assert arena.free_bytes() <= free - 4096
    loaded.release()
    assert arena.free_bytes() == free
