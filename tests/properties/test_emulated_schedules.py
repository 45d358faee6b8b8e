"""Kernels of random GPU schedules compute what numpy does on emulated GPUs, as machine code.

All that a user meets is under test but the silicon: printer, LLVM, the runtime, its driver. Bits
that nothing wrote, accesses out of bounds and hazards are failures, too. By day, gfx942 runs 176
schedules and each other GPU 68. With --nightly, gfx942 runs 3,200 and each other GPU 800.
"""

from math import prod

import pytest

from refcomp.emulator.execution.launch import ARCHITECTURES
from refcomp.ir.expr import IntImm
from refcomp.ir.kernels import kernel_nest, kernels_in
from refcomp.schedule.primitives.table import PRIMITIVES
from tests.properties.emulated_schedules import check_emulated, draw_cases, draw_more_cases
from tests.properties.histogram import whole_of
from tests.samples import sample_count
from tests.strategies.computes import MORE

_FIRST = "gfx942"
_SHARDS = 8  # of the first GPU; of each other one, 2
# Schedules of a shard. Where there are two shards, smaller ones would not draw each primitive.
_EACH = {
    gpu: sample_count(by_day=22 if gpu == _FIRST else 34, nightly=400) for gpu in ARCHITECTURES
}
_MORE = sample_count(by_day=16, nightly=400)  # for each GPU and size of wave
SHARDS = [(gpu, k) for gpu in ARCHITECTURES for k in range(_SHARDS if gpu == _FIRST else 2)]
WAVES = [("gfx942", 64), ("gfx90a", 64), ("gfx1100", 32), ("gfx1100", 64)]
_NOT_HERE = {"parallel"}  # for hosts
# The part of all schedules that has it, at least.
_LEAST = {
    **{"several groups": 0.5, "shared memory": 0.5, "local memory": 0.5, "barriers": 0.35},
    **{"exchanges among threads": 0.15, "several kernels": 0.15, "virtual threads": 0.05},
}
_LEAST_PRIMITIVES = {name: 0.02 for name in PRIMITIVES if name not in _NOT_HERE}
_LEAST_PRIMITIVES |= {"double_buffer": 0.08, "cache_read": 0.5}


@pytest.mark.rocm
@pytest.mark.filterwarnings("ignore::refcomp.driver.kernel_resources.SlowKernelWarning")
@pytest.mark.parametrize(("gpu", "shard"), SHARDS)
def test_random_schedules_compute_on_emulated_gpus(gpu, shard, record_property, run_folder):
    drawn = draw_cases(_EACH[gpu], 1000 * ARCHITECTURES.index(gpu) + shard)
    histogram = check_emulated(drawn, gpu)
    shards = sum(name == gpu for name, _ in SHARDS)
    whole = whole_of(histogram, shard, shards, run_folder / f"emulated {gpu}")
    if whole is not None:  # the last one that comes
        record_property("summary", f"on the emulated {gpu}: {whole}")
        # Of a few schedules more may happen to lack something.
        _hold(whole, 0.96 * shards * _EACH[gpu], 1.0 if gpu == _FIRST else 0.5)


@pytest.mark.rocm
@pytest.mark.filterwarnings("ignore::refcomp.driver.kernel_resources.SlowKernelWarning")
@pytest.mark.parametrize(("gpu", "wavefront"), WAVES)
def test_more_computations_and_groups_of_several_waves(gpu, wavefront, record_property):
    """Each GPU and size of wave runs 16 schedules by day, 400 with --nightly."""
    # By night some may be reported although they are right: LLVM loads for lanes that need none.
    drawn = draw_more_cases(_MORE, 5000 + WAVES.index((gpu, wavefront)))
    histogram = check_emulated(drawn, gpu, wavefront)
    record_property("summary", f"more on the emulated {gpu}, waves of {wavefront}: {histogram}")
    wide = sum(_is_of_several_waves(kernel, wavefront) for one in drawn for kernel in _kernels(one))
    assert wide >= len(drawn) / 5, f"{wide} kernels have groups of several waves"
    assert len(set(histogram.kinds) & set(MORE)) >= 2, str(histogram)


def _kernels(one):
    return map(kernel_nest, kernels_in(one.func.body))


def _is_of_several_waves(nest, wavefront):
    extents = [extent.value for extent in nest.block if isinstance(extent, IntImm)]
    return prod(extents) > wavefront


def _hold(whole, least, part):
    total = len(whole.depths)
    assert total >= least, str(whole)
    for name, share in _LEAST.items():
        assert whole.features[name] >= part * share * total, f"too few with {name}\n{whole}"
    for primitive, share in _LEAST_PRIMITIVES.items():
        assert whole.share(primitive) >= part * share, f"hardly ever {primitive}\n{whole}"
