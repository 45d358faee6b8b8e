"""The door of the compiler: a cached build does nothing that only a build needs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import refcomp
from refcomp.foundation.errors import UserError

_ROOT = Path(__file__).parents[1]
# Rooms and packages that a program does not import if its modules are in the cache.
_NOT_IMPORTED = (
    "jinja2",
    "elftools",
    "tomllib",
    "refcomp.compiler",
    "refcomp.certificates",
    "refcomp.codegen",
    "refcomp.emulator",
    "refcomp.hip",
    "refcomp.lowering",
    "refcomp.oracle",
    "refcomp.passes",
    "refcomp.toolchain",
    "refcomp.driver.backend",
    "refcomp.driver.compile",
    "refcomp.driver.steps",
    "refcomp.runtime.cuda",
    "refcomp.runtime.hip",
    "refcomp.runtime.opencl",
)
_START = """
import sys
import numpy as np
import refcomp as rc
out = np.zeros(4, "float32")
"""
_PROGRAMS = {
    "schedule": """
A = rc.placeholder((4,), name="A")
B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
add = rc.build(rc.create_schedule(B), [A, B], name="add")
add(np.ones(4, "float32"), out)
""",
    "graph": """
builder = rc.graph.GraphBuilder("net")
x = builder.input("x", "float32", (4,))
net = builder.finish([builder.node("add", [x, builder.constant("c", np.ones(4, "float32"))])])
executor = rc.GraphExecutor(rc.compile_graph(net))
out = executor.run(x=np.ones(4, "float32"))[0].asnumpy()
""",
}
_END = """
print(out)
print(*sorted(sys.modules))
"""


def _modules(path, variables):
    run = subprocess.run(
        [sys.executable, str(path)], env=variables, capture_output=True, text=True, check=True
    )
    result, modules = run.stdout.splitlines()
    assert result == "[2. 2. 2. 2.]"
    return modules.split()


@pytest.mark.llvm
@pytest.mark.parametrize("what", _PROGRAMS)
def test_a_program_whose_module_is_in_the_cache_imports_no_compiler(what, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(_START + _PROGRAMS[what] + _END)
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith("REFCOMP_")
    }
    variables |= {"REFCOMP_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(_ROOT)}
    assert "refcomp.lowering.lower" in _modules(path, variables)
    second = _modules(path, variables)
    wrong = [name for name in second for home in _NOT_IMPORTED if f"{name}.".startswith(f"{home}.")]
    assert wrong == []


def _schedule():
    a = refcomp.placeholder((4,), name="A")
    b = refcomp.compute((4,), lambda i: a[i] + 1.0, name="B")
    return refcomp.create_schedule(b), [a, b]


def test_another_host_is_refused():
    with pytest.raises(UserError, match="a host function cannot be compiled for opencl"):
        refcomp.build(*_schedule(), target="llvm", target_host="opencl")


def test_a_schedule_without_arguments_is_refused():
    with pytest.raises(UserError, match="a schedule is built without arguments"):
        refcomp.build(_schedule()[0])


def test_arguments_that_are_no_list_are_refused_by_the_compiler():
    schedule, args = _schedule()
    with pytest.raises(UserError, match="not a list"):
        refcomp.build(schedule, iter(args), target="interp")
    with pytest.raises(UserError, match="7 is not a name for a function"):
        refcomp.build(schedule, args, target="interp", name=7)


def test_a_function_of_the_loop_ir_is_built():
    func = refcomp.lower(*_schedule(), name="add")
    assert refcomp.build(func, target="interp").entry_name == "add"
