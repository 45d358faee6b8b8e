"""What is told of a kernel, as numbers for scripts."""

import json

import numpy as np
import pytest

from refcomp.emulator.observers.counting import KernelCounts, Profile
from refcomp.emulator.ptx.observers.counting import ThreadCounting
from refcomp.emulator.ptx.run import EmulatedNvidiaGpu
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.errors import UserError
from refcomp.profile.report import report_of
from tests.emulator.ptx.texts import kernel, words
from tests.profile.programs import product, report, run, transposed

pytestmark = pytest.mark.rocm


def test_json_has_the_counts_and_calls_estimates_so():
    told = json.loads(json.dumps(report(*product(64, 64, 32)).to_json()))
    assert told["kernel"] == "program_kernel0" and told["gpu"] == "gfx942"
    assert (told["groups"], told["waves"], told["launches"]) == (16, 64, 1)
    assert told["multiply_adds"] == 64 * 64 * 32
    assert told["instructions"]["VALU FMA"] == 64 * 32
    assert told["inner_loop"]["VALU FMA"] > 0 and 0 < told["inner_loop_useful_part"] <= 1
    assert told["estimate"]["card"] == "MI300X"
    assert told["estimate"]["limit"] in told["estimate"]["seconds"]
    assert told["resources"]["vgprs"] > 0
    loads = [a for a in told["accesses"] if "global_load" in a["instruction"]]
    assert loads and all(a["source"].startswith("kernels.ir:") for a in loads)
    assert sum(line["instructions"] for line in told["lines"]) == sum(told["instructions"].values())
    assert "fma(" in told["lines"][0]["text"]


@pytest.mark.parametrize(
    ("target", "text"),
    [
        pytest.param("nvptx -code=ptx -arch=sm_90", "LLVM IR", marks=pytest.mark.llvm),
        pytest.param("cuda -code=ptx -arch=sm_90", "CUDA C++", marks=pytest.mark.nvcc),
    ],
)
def test_a_program_on_an_nvidia_gpu_has_texts_counts_and_an_estimate(target, text):
    found = report(*transposed(), target=target)
    assert (found.counts.mcpu, found.counts.groups, found.counts.waves) == ("sm_90", 4, 128)
    load, store = (one.access for one in found.counts.accesses("global"))
    # Lanes side by side read elements of 64 rows, and write a row of 128 bytes.
    assert (load.waves, load.transactions, load.least) == (128, 128 * 32, 128 * 4)
    assert (store.waves, store.transactions, store.conflicts) == (128, 128 * 4, 0)
    assert [*found.listing.texts] == ["schedule", "loop IR", text, "PTX"]
    assert all(found.listing.texts.values())
    assert any(line.links for line in found.listing.texts[text])
    assert found.bound.card.name == "H100 SXM"
    uncoalesced = found.advice[0]
    assert "4096 sectors where 512 would do: 12% of the moved bytes" in uncoalesced.what
    assert "B@[" in found.listing.loop_ir(uncoalesced.line)
    assert "to threadIdx.x instead" in uncoalesced.remedy
    told = json.loads(json.dumps(found.to_json()))
    assert (told["matrix_part"], told["atomic_updates"], told["segment_bytes"]) == (0, 0, 32)


@pytest.mark.llvm
def test_bank_conflicts_of_a_tile_on_an_nvidia_gpu_are_padded_away():
    """Columns of a tile of 32 x 32 are in one bank."""
    target = "nvptx -code=ptx -arch=sm_90"
    tiled, padded = (
        report(*transposed(is_naive=False, align=align), target=target) for align in (0, 32)
    )
    found = [
        sum(one.access.conflicts for one in r.counts.accesses("shared")) for r in (tiled, padded)
    ]
    assert found == [128 * 31, 0]
    assert any("storage_align(s[A.shared].op.axis[0], 32, 1)" in a.remedy for a in tiled.advice)


def test_a_code_object_alone_has_no_texts_but_resources():
    module, counts = run(*product())
    kernels = module.imported_modules[0]
    bare = report_of(counts, Binary(kernels.code.data, "hsaco"))
    assert bare.resources == report_of(counts, module).resources is not None
    assert bare.listing.texts["loop IR"] == () and bare.listing.texts["ISA"]
    assert report_of(counts, kernels).listing.texts["loop IR"]


def test_waves_are_those_of_the_launch():
    module, counts = run(*product())
    usual = report_of(counts, module).resources
    counts.shared_bytes = 60_000  # as if so much had been asked for: one group a unit
    few = report_of(counts, module).resources
    assert (few.waves, few.limit) == (1, "shared memory") and usual.waves > 1
    assert few.shared_bytes == usual.shared_bytes and few.vgprs == usual.vgprs


def test_of_counts_alone_there_is_a_report_too():
    found = report_of(KernelCounts("k", "gfx000", 64, 128))
    assert found.resources is None and found.bound is None and found.advice == ()
    assert found.efficiency == 1 and found.to_json()["estimate"] is None


@pytest.mark.parametrize(
    ("code", "efficiency"),
    [
        # A warp reads, or updates, one word of a sector.
        ("ld.global.u32 %r2, [%rd1];", 4 / 32),
        ("red.global.add.u32 [%rd1], 1;", 4 / 32),
        # A histogram with 8 places, which are one sector.
        (
            "and.b32 %r2, %r1, 7; mul.wide.u32 %rd2, %r2, 4; add.s64 %rd2, %rd1, %rd2;"
            "red.global.add.u32 [%rd2], 1;",
            1,
        ),
    ],
)
def test_bytes_that_lanes_share_are_asked_for_once(code, efficiency):
    profile = Profile()
    gpu = EmulatedNvidiaGpu(size=1 << 16, observers=(ThreadCounting(profile, "sm_90"),))
    gpu.run(gpu.load(kernel(f"{code} ret;")), "k", (1, 1, 1), (64, 1, 1), [words(8), np.int32(0)])
    assert report_of(profile.kernels[0]).efficiency == efficiency


def test_a_wrong_card_is_refused():
    with pytest.raises(UserError, match="no figures of the card 'GTX'"):
        report_of(KernelCounts("k", "gfx942", 64, 128), card="GTX")


def test_all_kernels_at_once_are_refused():
    with pytest.raises(UserError, match="a Profile is not what one kernel did") as caught:
        report_of(Profile())
    assert caught.value.why == "it holds the counts of 0 kernels"
    assert caught.value.remedy.endswith("profile.kernels[0]")
