"""Instructions on values: each form that is translated, to the bit as the interpreter has it."""

import numpy as np
import pytest

from refcomp.emulator.ptx.run import EmulatedNvidiaGpu
from tests.emulator.ptx.instructions.spelled_forms import accepted_forms
from tests.emulator.ptx.translation.both import AT_ONCE
from tests.emulator.ptx.translation.forms import (
    THREADS,
    form_of,
    inputs_of,
    is_translated,
    kernel_of,
)

_MORE = (
    "prmt.b32 d, a, b, c",
    "lop3.b32 d, a, b, c, e",
    "dp4a.u32.u32 d, a, b, c",
    "dp4a.s32.s32 d, a, b, c",
    "shf.l.wrap.b32 d, a, b, c",
    "shf.r.clamp.b32 d, a, b, c",
    "bfind.shiftamt.u32 d, a",
    "set.ge.u32.f64 d, a, b",
    "setp.leu.f32 d|p, a, b",
    "cvt.rmi.s64.f64 d, a",
    "cvt.sat.u8.s32 d, a",
    "min.f32 d, a, b, c",
)


@pytest.fixture(scope="module")
def forms():
    """The forms that are translated."""
    found = [form_of(text) for text in (*accepted_forms(), *_MORE)]
    return [one for one in found if is_translated(one)]


@pytest.mark.llvm
def test_all_forms_give_the_bits_of_the_interpreter(forms):
    inputs, found = inputs_of(forms), []
    for tools in (AT_ONCE, None):
        gpu = EmulatedNvidiaGpu(size=16 << 20, is_watched=False, tools=tools)
        loaded = gpu.load(kernel_of(forms))
        results = np.zeros((2 * len(forms), THREADS), np.uint64)
        gpu.run(loaded, "forms", (1, 1, 1), (THREADS, 1, 1), [inputs, results])
        found.append(results)
        if tools is not None:
            assert loaded.runner.counts.blocks == 1
    for number, form in enumerate(forms):
        for place, kind in enumerate(form.results):
            ours, theirs = (one[2 * number + place] for one in found)
            same = ours == theirs
            if kind == "f64":  # payload and sign of a NaN are left open
                same |= np.isnan(ours.view(np.float64)) & np.isnan(theirs.view(np.float64))
            assert same.all(), (form.text, inputs[4 * number :, ~same][:4, 0])


def test_most_forms_are_translated(forms):
    opcodes = {form.text.partition(".")[0] for form in forms}
    assert len(forms) > 500
    assert opcodes >= {"add", "fma", "mad", "shl", "bfe", "bfi", "prmt", "cvt", "setp", "ex2"}
    assert opcodes.isdisjoint({"addc", "madc", "fns"})
