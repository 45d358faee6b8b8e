"""The door of the compiler: a cached build does nothing that only a build needs."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
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
# What a program of symbolic length needs neither: proofs, other primitives and functions of te, and
# the larger packages of the standard library.
_NOT_IMPORTED_BY_VECTORS = (
    "_hashlib",
    "numpy.typing",
    "random",
    "shutil",
    "sysconfig",
    "tempfile",
    "traceback",
    "unicodedata",
    "refcomp.arith",
    "refcomp.schedule.primitives.table",
    "refcomp.te.calls",
    "refcomp.te.externs",
    "refcomp.te.intrin",
    "refcomp.te.maths",
    "refcomp.te.scans",
)
# Files of refcomp that such a program imports. Each costs about a quarter of a millisecond.
_MAX_FILES = 100
_START = """
import sys
import numpy as np
import refcomp as rc
out = np.zeros(4, "float32")
"""
_PROGRAMS = {
    "vectors": """
n = rc.var("n")
A = rc.placeholder((n,), name="A")
B = rc.compute((n,), lambda i: A[i] + 1.0, name="B")
s = rc.create_schedule(B)
outer, inner = s[B].split(B.op.axis[0], factor=4)
s[B].vectorize(inner)
add = rc.build(s, [A, B], name="add")
add(np.ones(4, "float32"), out)
""",
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
    homes = _NOT_IMPORTED + (_NOT_IMPORTED_BY_VECTORS if what == "vectors" else ())
    wrong = [name for name in second for home in homes if f"{name}.".startswith(f"{home}.")]
    assert wrong == []
    if what == "vectors":
        assert sum(name.startswith("refcomp") for name in second) <= _MAX_FILES


def _schedule():
    a = refcomp.placeholder((4,), name="A")
    b = refcomp.compute((4,), lambda i: a[i] + 1.0, name="B")
    return refcomp.create_schedule(b), [a, b]


def test_another_host_is_refused():
    with pytest.raises(UserError, match="a host function cannot be compiled for opencl"):
        refcomp.build(*_schedule(), target="llvm", target_host="opencl")


def test_an_option_of_the_host_is_that_of_the_target():
    message = "target interp has no option '-system-lib'"
    for inputs in (_schedule(), ({"interp": [(*_schedule(), "f")]},)):
        with pytest.raises(UserError, match=message):
            target = None if len(inputs) == 1 else "interp"
            refcomp.build(*inputs, target=target, target_host="llvm -system-lib")


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


def _lowered(name, is_kernel=False):
    schedule, args = _schedule()
    if is_kernel:
        stage = schedule[args[1]]
        stage.bind(args[1].op.axis[0], refcomp.thread_axis("threadIdx.x"))
    return refcomp.lower(schedule, args, name)


def test_a_list_of_functions_is_one_module():
    module = refcomp.build([_lowered("f"), _lowered("g")], target="interp")
    assert list(module.signatures) == ["f", "g"]
    assert module.entry_name == "f"


@pytest.mark.llvm
@pytest.mark.pocl
def test_functions_of_several_targets_run_where_their_target_runs():
    functions = {"llvm": [_lowered("f"), _lowered("h")], "opencl": [_lowered("g", True)]}
    module = refcomp.build(functions, target_host="llvm")
    assert module.target == "llvm, opencl"
    assert [str(module[name].device) for name in "fhg"] == ["cpu:0", "cpu:0", "opencl:0"]
    for name, device in (("f", refcomp.cpu()), ("g", refcomp.opencl())):
        a = refcomp.array(np.arange(4, dtype="float32"), device)
        b = refcomp.empty((4,), "float32", device)
        module[name](a, b)
        assert b.asnumpy().tolist() == [1, 2, 3, 4]
    assert len(module.imported_modules) == 1


def test_dictionaries_of_functions_that_are_refused():
    with pytest.raises(UserError, match="the dictionary of functions to build is empty"):
        refcomp.build({})
    with pytest.raises(UserError, match="for targets of their own, and for the target llvm"):
        refcomp.build({"interp": [_lowered("f")]}, target="llvm")
    with pytest.raises(UserError, match="unknown target 'x'"):
        refcomp.build({"x": [_lowered("f")]})
    alone = refcomp.build({"interp": [_lowered("f")]})
    assert alone.target == "interp"


def test_schedules_and_functions_are_one_module():
    given = [(*_schedule(), "f"), _lowered("g"), (*_schedule(), "h")]
    module = refcomp.build(given, target="interp")
    assert list(module.signatures) == ["f", "g", "h"]
    module["h"](np.arange(4, dtype="f4"), b := np.zeros(4, "f4"))
    assert b.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "given, message",
    [
        ((*_schedule(), "f"), r"one function of a list(.|\n)*\[\(schedule, args, name\)\]"),
        ([_schedule()], r"cannot be built(.|\n)*a schedule, its arguments and a name"),
        ([(*_schedule(), 3)], "a schedule, its arguments and a name"),
        ([_schedule()[0]], r"neither arguments nor a name(.|\n)*pass a tuple"),
        ([(*_schedule(), "f"), _lowered("f")], "two functions of a module are called f"),
        ([(_schedule()[0], 3, "f")], "not a list"),
        ([3], "3 cannot be built"),
    ],
)
def test_lists_that_are_refused(given, message):
    with pytest.raises(UserError, match=message):
        refcomp.build(given, target="interp")


def test_each_schedule_of_a_list_is_certified():
    with refcomp.build_options(certify=True):
        module = refcomp.build([(*_schedule(), "f"), _lowered("g")], target="interp")
    assert list(module.signatures) == ["f", "g"]
