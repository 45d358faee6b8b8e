"""Random GPU schedules on Intel's OpenCL runtime: a third judge of our OpenCL C, at night only."""

import pytest

from refcomp.driver.backends import as_target
from refcomp.driver.pipeline import run_device_passes
from refcomp.foundation.target import limits_of
from refcomp.ir.printer import print_program
from tests.properties.differential import agree, expected
from tests.properties.intel_opencl import NO_VECTORIZER, alone
from tests.properties.oclgrind import drawn
from tests.properties.opencl_child import run_apart
from tests.properties.targets import cases_for
from tests.strategies.lowered_once import lowered_once

pytestmark = pytest.mark.intel

_COUNT = 600
_SEED = 20240  # as in differential.expected


def test_they_agree_with_numpy_on_intel_s_runtime(tmp_path, record_property):
    limits = limits_of(as_target("opencl"), None)
    computations, programs = {}, {}
    for number, (computation, schedule) in enumerate(drawn(cases_for("opencl"), _COUNT)):
        name = f"case{number:04}"
        func = lowered_once(schedule, computation.args, name)
        program = run_device_passes(func, "opencl", limits)
        computations[name] = computation
        programs[name] = program, computation.arrays(_SEED)
    folder = tmp_path / "programs"
    folder.mkdir()
    ran = run_apart(programs, folder, NO_VECTORIZER | alone(tmp_path))
    for name, ended in ran.items():
        text = print_program(programs[name][0])
        assert ended.trouble == "", text
        wanted = expected(computations[name])
        arrays = [a.view(w.dtype) for a, w in zip(ended.arrays, wanted, strict=True)]
        agree(arrays, wanted, text)
    record_property("summary", f"schedules on Intel's OpenCL runtime: {len(ran)}")
    assert len(ran) >= _COUNT / 2
