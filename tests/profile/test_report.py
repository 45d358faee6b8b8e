"""What is told of a kernel, as numbers for scripts."""

import json

import pytest

from refcomp.emulator.observers.counting import KernelCounts, Profile
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.errors import UserError
from refcomp.profile.report import report_of
from tests.profile.programs import product, report, run

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


def test_a_wrong_card_is_refused():
    with pytest.raises(UserError, match="no figures of the card 'GTX'"):
        report_of(KernelCounts("k", "gfx942", 64, 128), card="GTX")


def test_all_kernels_at_once_are_refused():
    with pytest.raises(UserError, match=r"a Profile is not what one kernel did\n.*kernels\[0\]"):
        report_of(Profile())
