"""Counts on emulated GPUs: cut-outs of convolutions with the tiles of whole layers, and kernels."""

import pytest

from benchmarks.gpu_schedules import workload
from benchmarks.gpu_schedules.kernels import KERNELS
from benchmarks.run import WORKLOADS


def test_all_convolutions_of_the_network_are_listed() -> None:
    assert "gpu_schedules" in WORKLOADS
    titles = [layer.title for layer in workload._LAYERS]
    assert len(titles) == len(set(titles)) == 23
    assert {"7x7/2, 3 to 64 at 112", "3x3, 512 to 512 at 7", "1x1, 64 to 256 at 56"} <= set(titles)


@pytest.mark.parametrize("layer", workload._LAYERS, ids=lambda layer: layer.title)
def test_a_cut_out_has_the_tiles_of_the_whole_layer(layer):
    part = layer.cut()
    assert part.height <= layer.height and part.filters <= layer.filters
    assert part.width == layer.width


@pytest.mark.rocm
def test_a_layer_keeps_the_bars() -> None:
    layer = workload._Layer(32, 64, 1, 56, 1)
    rows = []
    for gpu in workload._GPUS:
        report = workload._profile_layer(layer, gpu)
        rows += workload._rows(layer.title, gpu, report, is_product=True)
    assert [row.case.partition(": ")[2] for row in rows[:3]] == [
        "other vector instructions",
        "unused global bytes",
        "clocks of bank conflicts",
    ]
    assert all(row.is_met for row in rows if "global" in row.case or "bank" in row.case)


@pytest.mark.rocm
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.title)
def test_an_operator_is_one_kernel_that_uses_all_bytes_without_conflicts(kernel) -> None:
    report = workload._profile_kernel(kernel, "gfx1100")
    rows = workload._rows(kernel.title, "gfx1100", report, is_product=kernel.is_product)
    assert len(rows) == (3 if kernel.is_product else 2)
    assert [row.case for row in rows if not row.is_met] == []
