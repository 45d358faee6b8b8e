"""A program that crashes or does not end is found, and the others have their results."""

import sys

import numpy as np
import pytest

from refcomp.ir.parser import parse_func
from refcomp.passes.flatten_storage import flatten_storage
from refcomp.passes.split_host_device import split_host_device
from tests.properties import opencl_child
from tests.properties.opencl_child import run_apart

_TEXT = "func NAME(A: i32[3] out) { for t in range(3) threadIdx.x { A[t] = i32(t) } }"
# Stands for the script: what happens at each program goes by its name.
_STAND_IN = """
import os, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
for path in sorted(folder.glob("*.ir")):
    result, trouble = folder / f"{path.stem}.out.npz", folder / f"{path.stem}.trouble"
    if result.exists() or trouble.exists():
        continue
    if "hangs" in path.stem:
        time.sleep(600)
    if "crashes" in path.stem:
        print("falling", file=sys.stderr, flush=True)
        os.abort()
    result.write_bytes((folder / f"{path.stem}.in.npz").read_bytes())
"""


def _program(name):
    return split_host_device(flatten_storage(parse_func(_TEXT.replace("NAME", name))))


def _programs(*names):
    made = {name: _program(name) for name in names}
    return {name: (program, [np.full(3, 7, np.int32)]) for name, program in made.items()}


@pytest.mark.pocl
def test_programs_give_their_results(tmp_path):
    ran = run_apart(_programs("one", "two"), tmp_path)
    assert [ended.trouble for ended in ran.values()] == ["", ""]
    assert [ended.arrays[0].tolist() for ended in ran.values()] == [[0, 1, 2]] * 2


def test_crash_and_endless_loop_are_told_of_their_program_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(opencl_child, "SCRIPT", [sys.executable, "-c", _STAND_IN])
    names = ("a_good", "b_crashes", "c_good", "d_hangs", "e_good")
    ran = run_apart(_programs(*names), tmp_path, limit_s=15)
    assert ran["b_crashes"].trouble.startswith("the process ended with status -6\n")
    assert "falling" in ran["b_crashes"].trouble
    assert ran["d_hangs"].trouble == "it did not end"
    good = [name for name in names if ran[name].trouble == ""]
    assert good == ["a_good", "c_good", "e_good"]
    assert all(ran[name].arrays[0].tolist() == [7, 7, 7] for name in good)
