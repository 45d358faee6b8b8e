"""A profile takes the counts of GPUs of both kinds."""

import numpy as np
import pytest

import refcomp
from refcomp.emulator.observers.counting import KernelCounts, Profile
from refcomp.emulator.observers.counting.profile import recorder_of
from refcomp.emulator.ptx.observers.opcodes import PTX, CountedPtx
from refcomp.foundation.errors import UserError
from tests.emulator.snippets import instruction


def test_launches_of_a_kernel_are_added_up_and_code_is_told_apart():
    profile, first, second = Profile(), object(), object()
    recorder = recorder_of(profile)
    for loaded in (first, second, first):
        counts = recorder.begin(loaded, "k", lambda: KernelCounts("k", "gfx942", 64, 128))
        recorder.ran(instruction("v_add_f32 v0, v1, v2"), 2, 100)
        assert recorder.current is counts
    assert [one.launches for one in profile.kernels] == [2, 1]
    assert [one.instructions[0].lanes for one in profile.kernels] == [200, 100]
    assert str(profile).count("k: 0 multiply-adds; instructions of waves: ") == 2


def test_instructions_are_of_the_kernels_kind():
    profile = Profile()
    recorder_of(profile).begin(object(), "k", lambda: KernelCounts("k", "sm_90", 32, 32, isa=PTX))
    recorder_of(profile).ran(CountedPtx("fma.rn.f32", 0, "", "fma", ("rn", "f32")), 1, 32)
    assert str(profile) == "k: 32 multiply-adds; instructions of warps: 1 multiply-add"


def test_an_argument_is_refused():
    with pytest.raises(UserError, match="a Profile takes no arguments"):
        Profile("sm_90")


def test_an_index_is_explained_where_no_kernel_ran():
    profile = Profile()
    assert profile.kernels == () and profile.kernels[:1] == () and list(profile.kernels) == []
    with pytest.raises(UserError, match="no kernel ran while the profile counted") as caught:
        profile.kernels[0]
    assert "a device counts only if it was made with the profile" in caught.value.why
    assert "cuda_emulator(profile=...)" in caught.value.remedy
    recorder_of(profile).begin(object(), "k", lambda: KernelCounts("k", "gfx942", 64, 128))
    assert profile.kernels[0].name == "k" and len(profile.kernels[:1]) == 1
    with pytest.raises(IndexError):
        profile.kernels[1]


@pytest.mark.llvm
def test_one_profile_counts_on_several_gpus():
    profile = refcomp.Profile()
    a = refcomp.placeholder((64,), name="A")
    b = refcomp.compute((64,), lambda i: a[i] * a[i] + 1.0, name="B")
    s = refcomp.create_schedule(b)
    s[b].bind(b.op.axis[0], refcomp.thread_axis("threadIdx.x"))
    module = refcomp.build(s, [a, b], "nvptx -code=ptx -arch=sm_80", name="f")
    for arch in ("sm_80", "sm_90"):
        gpu = refcomp.cuda_emulator(arch, profile=profile)
        module(refcomp.array(np.ones(64, "float32"), gpu), refcomp.empty(64, device=gpu))
    found = [(one.mcpu, one.launches, one.waves, one.read) for one in profile.kernels]
    assert found == [("sm_80", 1, 2, 256), ("sm_90", 1, 2, 256)]
